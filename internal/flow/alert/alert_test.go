package alert_test

import (
	"fmt"
	"log/slog"
	netmail "net/mail"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/alert"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/lang"
	"github.com/registrar-dev/registrar/internal/kit/mail"
	"github.com/registrar-dev/registrar/internal/kit/mail/mailtest"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/seal/sealtest"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// school is an organization with an owner, an admin, a teacher, somebody who was an owner, a student, and a webhook URL.
type school struct {
	*flowtest.Fixture
	*alert.Service
	t            *testing.T
	box          *seal.Box
	now          time.Time
	org          flowtest.Organization
	olive, adam  id.User
	url, source  int64
	mails        int // that were seen
	otherManager id.User
}

func newSchool(t *testing.T) *school {
	t.Helper()
	f := flowtest.New(t)
	s := &school{Fixture: f, t: t, box: sealtest.New(t), now: time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)}
	// What the worker may do has to be enough.
	s.Service = &alert.Service{DB: pgtest.OpenAs(t, f.Database, "worker"), Mail: email.Service{Box: s.box}, Clock: func() time.Time { return s.now }, PublicURL: "https://learn.test"}
	s.org = f.Organization("north").Set("name", "North School")
	s.olive, s.adam = s.org.Member("olive@north.school", "owner"), s.org.Member("adam@north.school", "admin")
	s.org.Member("tariq@north.school", "teacher")
	s.org.Student("sunita@north.school")
	gone := f.Account("gone@north.school", "Gone", "")
	s.org.Add(gone, "owner", "inactive")
	other := f.Organization("south")
	s.otherManager = other.Member("sam@south.school", "owner")
	s.org.Endpoint()
	s.Scan(&s.url, `SELECT id FROM webhook_endpoints`)
	s.Exec(`INSERT INTO webhook_health (endpoint_id) VALUES ($1)`, s.url)
	s.Scan(&s.source, `INSERT INTO roster_sources (organization_id, name, created_at, updated_at) VALUES ($1, 'sis', now(), now()) RETURNING id`, s.org.ID)
	return s
}

// sweep wants the mails that a sweep makes: their types and recipients.
func (s *school) sweep(what string, want ...string) {
	s.t.Helper()
	_, err := s.Sweep(s.t.Context())
	check.NoError(check.Now(s.t), err, "%s", what)
	all, err := pg.Column[string](s.t.Context(), s.Database, `
		SELECT type || ' ' || recipient FROM emails WHERE organization_id = $1 ORDER BY id OFFSET $2`, s.org.ID, s.mails)
	check.NoError(check.Now(s.t), err, "%s", what)
	s.mails += len(all)
	check.Slices(s.t, what, all, want, "")
	check.Equal(s.t, "mails of others", s.Count(`emails WHERE organization_id IS DISTINCT FROM $1`, s.org.ID), 0, "%s", what)
}

func (s *school) after(d time.Duration) { s.now = s.now.Add(d) }

func (s *school) switchOff() {
	s.Exec(`UPDATE webhook_endpoints SET switched_on = false, switched_off_at = $2, switched_off_reason = 'Fifty failures in a row.' WHERE id = $1`, s.url, s.now)
}

func (s *school) turnOn() {
	s.Exec(`UPDATE webhook_endpoints SET switched_on = true, switched_off_at = NULL, switched_off_reason = '' WHERE id = $1`, s.url)
}

// fail is a failed attempt of the run of failures.
func (s *school) fail(run int) {
	s.Exec(`UPDATE webhook_health SET consecutive_failures = consecutive_failures + 1, runs = $2, last_failure_at = $3 WHERE endpoint_id = $1`, s.url, run, s.now)
}

func (s *school) hold(state string) (run int64) {
	s.Scan(&run, `INSERT INTO roster_runs (organization_id, source_id, state, requested_by, mode, reasons, created_at, updated_at)
		VALUES ($1, $2, $3, 'a key', 'authoritative_snapshot', '[{"code": "empty_file", "text": "people.csv has no rows"}]', $4, $4) RETURNING id`, s.org.ID, s.source, state, s.now)
	return run
}

func TestASwitchedOffURLIsMailedAtMostOnceAnHour(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	both := []string{"url_switched_off olive@north.school", "url_switched_off adam@north.school"}
	s.sweep("nothing is wrong")
	s.switchOff()
	s.sweep("it is off", both...)
	s.sweep("again")
	s.after(2 * time.Hour)
	s.sweep("it is off still")
	s.turnOn()
	s.sweep("it is on")
	s.after(time.Minute)
	s.switchOff()
	s.sweep("off for another time", both...)
	s.turnOn()
	s.after(10 * time.Minute)
	s.switchOff()
	s.sweep("off within the hour")
	s.after(49 * time.Minute)
	s.sweep("the hour is not over")
	s.after(time.Minute)
	s.sweep("the hour is over", both...)
	s.turnOn()
	s.after(time.Hour)
	s.sweep("mended")
	check.Equal(t, "rows that are left", s.Count("staff_alerts"), 0, "")
	s.switchOff()
	s.after(8 * 24 * time.Hour)
	s.sweep("it was switched off long ago")
}

func TestAURLIsMailedAsFailingOnceItHasFailedForAnHour(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.fail(1)
	s.sweep("one failure")
	s.after(3 * time.Hour)
	s.sweep("one failure, long ago")
	s.Exec(`UPDATE webhook_health SET consecutive_failures = 0`)
	s.sweep("it works")
	check.Equal(t, "rows that are left", s.Count("staff_alerts"), 0, "")
	s.fail(2)
	s.sweep("failing")
	s.after(59 * time.Minute)
	s.fail(2)
	s.sweep("failing for 59 minutes")
	s.after(time.Minute)
	s.fail(2)
	s.sweep("failing for an hour", "url_failing olive@north.school", "url_failing adam@north.school")
	s.after(5 * time.Hour)
	s.fail(2)
	s.sweep("failing still")
	s.switchOff()
	s.sweep("and off", "url_switched_off olive@north.school", "url_switched_off adam@north.school")
}

// The mail says in words what package webhook keeps in numbers.
func TestTheMailOfAFailingURLSaysTheSchedule(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	got, err := email.Render(email.Alert{Of: email.TypeURLFailing, Organization: "North", Since: now}, email.Secrets{}, email.Links{}, lang.Of("en"), now, time.UTC)
	check.NoError(check.Now(t), err, "")
	said := strings.Join(strings.Fields(got.Plain), " ")
	var tried time.Duration
	for tries := 1; tries < webhook.MaxTries; tries++ {
		pause, more := webhook.Pause(tries)
		check.True(t, "there is another try", more, "after %d", tries)
		tried += pause
	}
	check.Equal(t, "hours of trying", tried.Round(time.Hour), 6*time.Hour, "")
	for _, words := range []string{"tried again for about six hours", fmt.Sprintf("After %d failures in a row", webhook.SwitchOffAfter)} {
		check.Contains(t, "the mail", said, words, "")
	}
}

func TestAHeldRosterIsMailed(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	first := s.hold("held")
	s.sweep("held", "roster_held olive@north.school", "roster_held adam@north.school")
	s.after(10 * time.Minute)
	s.hold("held")
	s.sweep("another file of the source within the hour")
	s.after(50 * time.Minute)
	s.sweep("after the hour", "roster_held olive@north.school", "roster_held adam@north.school")
	s.after(2 * time.Hour)
	s.sweep("they wait still")
	s.Exec(`DELETE FROM roster_runs WHERE id > $1`, first)
	s.sweep("the later one is discarded") // and the earlier one was mailed long ago
	s.Exec(`UPDATE roster_runs SET updated_at = $1`, s.now)
	s.sweep("approved, and held again", "roster_held olive@north.school", "roster_held adam@north.school")
	s.after(2 * time.Hour)
	s.hold("queued")
	s.sweep("a newer file is under way")
}

func TestWhoHasUnsubscribedGetsNoMail(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	end := func(o id.Organization, u id.User, of email.Type) {
		t.Helper()
		check.NoError(t, email.Subscription{Organization: o, User: u, Of: of}.End(t.Context(), s.Database, s.now), "ending %s of %d", of, u)
	}
	end(s.org.ID, s.olive, email.TypeURLSwitchedOff)
	end(s.org.ID, s.olive, email.TypeURLSwitchedOff)
	end(s.org.ID, s.adam, email.TypeURLFailing)
	end(s.org.ID, s.otherManager, email.TypeURLSwitchedOff) // who is not of the organization
	check.Equal(t, "choices", s.Count("mail_optouts"), 2, "")
	s.switchOff()
	s.sweep("off", "url_switched_off adam@north.school")
	s.Exec(`DELETE FROM members WHERE user_id = $1`, s.olive)
	check.Equal(t, "choices", s.Count("mail_optouts"), 1, "they go with the membership")
}

func TestSeveralSweepsMailOnce(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.switchOff()
	s.hold("held")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			_, err := s.Sweep(t.Context())
			check.NoError(t, err, "sweeping")
		})
	}
	all.Wait()
	check.Equal(t, "mails", s.Count("emails"), 4, "two to each of two")
}

// What arrives says what to do, and ends by one click of a mail client.
func TestTheMailThatArrives(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.Exec(`INSERT INTO webhook_queue (organization_id, endpoint_id, id, event_id, due_at) SELECT $1, $2, uuid7(), uuid7(), now() FROM generate_series(1, 3)`, s.org.ID, s.url)
	s.Exec(`INSERT INTO webhook_journal (organization_id, endpoint_id, delivery_id, number, event_id, status, started_at)
		SELECT $1, $2, uuid7_floor($3::timestamptz + n * interval '1 second'), 1, uuid7(), CASE WHEN n < 3 THEN 'skipped' ELSE 'delivered' END, $3
		FROM generate_series(1, 4) AS n`, s.org.ID, s.url, s.now)
	s.switchOff()
	s.hold("held")
	s.sweep("both", "roster_held olive@north.school", "roster_held adam@north.school", "url_switched_off olive@north.school", "url_switched_off adam@north.school")
	server := mailtest.Start(t, mailtest.Script{}, mailtest.Options{})
	through, err := mail.ParseServer(server.URL())
	check.NoError(check.Now(t), err, "the mail server")
	sender := &email.Sender{DB: s.DB, Box: s.box, Server: through, From: netmail.Address{Address: "no-reply@learn.test"}, PublicURL: "https://learn.test",
		Zone: time.UTC, Clock: s.Clock, Log: slog.New(slog.DiscardHandler)}
	claimed, err := outbox.Claim(t.Context(), s.DB, task.EmailSend, s.now, time.Minute, 10)
	check.NoError(check.Now(t), err, "the tasks")
	for _, c := range claimed {
		check.NoError(t, sender.Deliver(t.Context(), task.Outbox{Task: c.ID, Claim: c.Claim}), "sending")
	}
	arrived := server.Messages()
	check.Equal(check.Now(t), "mails", len(arrived), 4, "")
	plain := strings.NewReplacer("=\r\n", "", "=3D", "=")
	for what, texts := range map[string][]string{
		"North School: a webhook URL is switched off": {"Fifty failures in a row.", "https://hooks.test/", "5 events", "https://learn.test/console/north/webhooks/"},
		"North School: a roster import waits for you": {"people.csv has no rows", "sis", "https://learn.test/console/north/roster-runs/"},
	} {
		i := slices.IndexFunc(arrived, func(m string) bool { return strings.Contains(m, "Subject: "+what) && strings.Contains(m, "olive@") })
		check.True(check.Now(t), "it arrived", i >= 0, "%s: %q", what, arrived)
		for _, text := range texts {
			check.Contains(t, what, plain.Replace(arrived[i]), text, "")
		}
		m, err := netmail.ReadMessage(strings.NewReader(arrived[i]))
		check.NoError(check.Now(t), err, "%s", what)
		check.Equal(t, "List-Unsubscribe-Post", m.Header.Get("List-Unsubscribe-Post"), "List-Unsubscribe=One-Click", "%s", what)
		token := regexp.MustCompile(`^<https://learn\.test/unsubscribe/([\w-]+)/>$`).FindStringSubmatch(m.Header.Get("List-Unsubscribe"))
		check.Equal(check.Now(t), "parts", len(token), 2, "%s: %q", what, m.Header.Get("List-Unsubscribe"))
		check.Contains(t, what, plain.Replace(arrived[i]), "/unsubscribe/"+token[1], "the text has the link, too")
		sub, err := email.ReadToken(t.Context(), s.box, token[1])
		check.NoError(t, err, "%s", what)
		check.Equal(t, "whose mails it ends", sub.User, s.olive, "%s", what)
		check.Equal(t, "of which organization", sub.Organization, s.org.ID, "%s", what)
	}
}

func TestATokenOpensNothingElse(t *testing.T) {
	t.Parallel()
	box := sealtest.New(t)
	right, err := email.Subscription{Organization: 1, User: 2, Of: email.TypeURLFailing}.Token(t.Context(), box)
	check.NoError(check.Now(t), err, "the token")
	_, err = email.ReadToken(t.Context(), box, right)
	check.NoError(t, err, "the right one")
	other, err := email.Subscription{Organization: 1, User: 2, Of: email.TypeWelcome}.Token(t.Context(), box)
	check.NoError(check.Now(t), err, "a token of a mail that nobody can do without")
	sealed, err := box.Seal(t.Context(), []byte("1 2 url_failing"), "something else")
	check.NoError(check.Now(t), err, "another secret")
	for _, text := range []string{"", "abc", right[1:], right + "A", other, string(sealed)} {
		_, err := email.ReadToken(t.Context(), box, text)
		check.True(t, "it is refused", err != nil, "%q", text)
	}
}
