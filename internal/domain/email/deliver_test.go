package email_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	netmail "net/mail"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/mail"
	"github.com/registrar-dev/registrar/internal/kit/mail/mailtest"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/seal/sealtest"
	"github.com/registrar-dev/registrar/internal/kit/task"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// post is one organization's mail with a server of its own.
type post struct {
	*email.Sender
	db     *pg.DB
	server *mailtest.Server
	org    id.Organization
	user   id.User
	now    time.Time
	log    bytes.Buffer
	t      *testing.T
}

func newPost(t *testing.T, script mailtest.Script) *post {
	t.Helper()
	p := &post{db: pgtest.New(t), server: mailtest.Start(t, script, mailtest.Options{}), now: noon, t: t}
	p.org, p.user = newStudent(t, p.db, "ada@saffron.school")
	server, err := mail.ParseServer(p.server.URL())
	if err != nil {
		t.Fatal(err)
	}
	p.Sender = &email.Sender{DB: p.db, Box: sealtest.New(t), Server: server, Zone: time.UTC,
		From:  netmail.Address{Address: "no-reply@saffron.school"},
		Clock: func() time.Time { return p.now }, Log: slog.New(slog.NewTextHandler(&p.log, nil))}
	return p
}

func (p *post) queue(m email.Message) email.Record {
	p.t.Helper()
	return queue(p.t, p.db, email.Service{Box: p.Box}, m)
}

// claim is the relay's part; false when nothing is due.
func (p *post) claim() (task.Outbox, bool) {
	p.t.Helper()
	got, err := outbox.Claim(p.t.Context(), p.db, task.EmailSend, p.now, time.Minute, 1)
	if err != nil {
		p.t.Fatal(err)
	}
	if len(got) == 0 {
		return task.Outbox{}, false
	}
	return task.Outbox{Task: got[0].ID, Claim: got[0].Claim}, true
}

func (p *post) deliver() {
	p.t.Helper()
	ref, ok := p.claim()
	if !ok {
		p.t.Fatal("nothing is due")
	}
	if err := p.Deliver(p.t.Context(), ref); err != nil {
		p.t.Fatal(err)
	}
}

// stored reads what the mail's row and task say.
func (p *post) stored(mail id.Email) (r email.Record, attempts int, sealed, claimed bool) {
	p.t.Helper()
	r, err := email.Find(p.t.Context(), p.db, p.org, mail)
	if err != nil {
		p.t.Fatal(err)
	}
	err = p.db.QueryRow(p.t.Context(), `
		SELECT attempts, sealed IS NOT NULL, EXISTS (SELECT FROM outbox_tasks WHERE subject = emails.id)
		FROM emails WHERE id = $1`, mail).Scan(&attempts, &sealed, &claimed)
	if err != nil {
		p.t.Fatal(err)
	}
	return r, attempts, sealed, claimed
}

// TestEveryEmailStatusArises covers the statuses that sending leads to; suppressed is
// TestQueueSuppressesAddressesThatAreNotMailed.
// Reference: provisioning#email-status.
func TestEveryEmailStatusArises(t *testing.T) {
	t.Parallel()
	refuse := func(code int) func(string) error {
		return func(string) error { return mailtest.Refuse(code, "as the script says") }
	}
	for _, c := range []struct {
		name   string
		script mailtest.Script
		status email.Status
		detail string
		mails  int
	}{
		{"taken", mailtest.Script{}, email.Sent, "", 1},
		{"recipient refused for now", mailtest.Script{OnRcpt: refuse(450)}, email.Queued, "answered 450", 0},
		{"text refused for now", mailtest.Script{OnData: refuse(451)}, email.Queued, "answered 451", 0},
		{"recipient refused for good", mailtest.Script{OnRcpt: refuse(550)}, email.Failed, "answered 550", 0},
		{"text refused for good", mailtest.Script{OnData: refuse(554)}, email.Failed, "answered 554", 0},
		{"connection dropped after the text", mailtest.Script{OnData: func(string) error { return mailtest.ErrDrop }},
			email.Uncertain, "may have been received", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPost(t, c.script)
			m := p.queue(welcome(p.org, p.user, "ada@saffron.school"))
			p.deliver()
			got, attempts, sealed, claimed := p.stored(m.ID)
			check.Equal(t, "status", got.Status, c.status, "record = %+v", got)
			check.Contains(t, "detail", got.Detail, c.detail, "record = %+v", got)
			check.Equal(t, "there is a detail", got.Detail != "", c.status != email.Sent, "record = %+v", got)
			queued := c.status == email.Queued
			if check.Equal(t, "attempts", attempts, 1, "attempts %d, secrets kept %v, task pending %v", attempts, sealed, claimed) &&
				check.Equal(t, "sealed", sealed, queued, "attempts %d, secrets kept %v, task pending %v", attempts, sealed, claimed) {
				check.Equal(t, "claimed", claimed, queued, "attempts %d, secrets kept %v, task pending %v", attempts, sealed, claimed)
			}
			if n := len(p.server.Messages()); n != c.mails {
				t.Errorf("%d mails arrived, want %d", n, c.mails)
			}
			// Another look, after any lease, sends nothing that is final.
			p.server.Play(mailtest.Script{})
			p.now = p.now.Add(time.Hour)
			if ref, ok := p.claim(); ok != queued {
				t.Errorf("claimed again: %v %v", ref, ok)
			}
			if check.Lacks(t, "the log", p.log.String(), "Tok3n", "log shows too much: %s", p.log.String()) {
				check.Lacks(t, "the log", p.log.String(), "ada@", "log shows too much: %s", p.log.String())
			}
		})
	}
}

func TestTemporaryRefusalsAreRetriedWithGrowingPausesForADay(t *testing.T) {
	t.Parallel()
	p := newPost(t, mailtest.Script{OnRcpt: func(string) error { return mailtest.Refuse(451, "later") }})
	m := p.queue(welcome(p.org, p.user, "ada@saffron.school"))
	var pauses []time.Duration
	for {
		p.deliver()
		r, _, _, _ := p.stored(m.ID)
		if r.Status.Final() {
			if check.Equal(t, "r.Status", r.Status, email.Failed, "at last %+v", r) &&
				check.Contains(t, "detail", r.Detail, "24 hours", "at last %+v", r) {
				check.Contains(t, "detail", r.Detail, "451", "at last %+v", r)
			}
			break
		}
		pause := time.Duration(0)
		for _, ok := p.peek(); !ok; _, ok = p.peek() {
			p.now = p.now.Add(time.Minute)
			pause += time.Minute
		}
		pauses = append(pauses, pause)
	}
	for i, want := range []time.Duration{1, 2, 5, 10, 30, 30} {
		if pauses[i] != want*time.Minute {
			t.Errorf("pause %d = %s, want %d min", i+1, pauses[i], want)
		}
	}
	if total := p.now.Sub(noon); check.True(t, "it was at most a day", total <= 24*time.Hour, "given up after %s", total) {
		check.True(t, "it was nearly a day", total >= 23*time.Hour, "given up after %s", total)
	}
}

// peek says whether a task is due, without claiming it.
func (p *post) peek() (n int, due bool) {
	p.t.Helper()
	if err := p.db.QueryRow(p.t.Context(), `SELECT count(*) FROM outbox_tasks WHERE run_at <= $1`, p.now).Scan(&n); err != nil {
		p.t.Fatal(err)
	}
	return n, n > 0
}

func TestARefusedMailLeavesOnceTheServerAgrees(t *testing.T) {
	t.Parallel()
	p := newPost(t, mailtest.Script{OnData: func(string) error { return mailtest.Refuse(451, "later") }})
	m := p.queue(welcome(p.org, p.user, "ada@saffron.school"))
	p.deliver()
	p.server.Play(mailtest.Script{})
	p.now = p.now.Add(email.Pause(1))
	p.deliver()
	if r, attempts, sealed, claimed := p.stored(m.ID); check.Equal(check.Now(t), "r.Status", r.Status, email.Sent, "%+v after %d attempts, secrets %v, pending %v", r, attempts, sealed, claimed) &&
		check.Equal(check.Now(t), "attempts", attempts, 2, "%+v after %d attempts, secrets %v, pending %v", r, attempts, sealed, claimed) &&
		check.False(check.Now(t), "sealed", sealed, "%+v after %d attempts, secrets %v, pending %v", r, attempts, sealed, claimed) {
		check.False(check.Now(t), "claimed", claimed, "%+v after %d attempts, secrets %v, pending %v", r, attempts, sealed, claimed)
	}
	if got := p.server.Messages(); check.Equal(check.Now(t), "number of mails", len(got), 1, "arrived: %q", got) &&
		check.Contains(check.Now(t), "the first mail", got[0], "Tok3nTok3n", "arrived: %q", got) {
		check.Contains(check.Now(t), "the first mail", got[0], `"Saffron School" <no-reply@saffron.school>`, "arrived: %q", got)
	}
}

// A process that dies between the server's yes and its record leaves the mark.
func TestAMailThatWasPerhapsSentIsNotSentAgain(t *testing.T) {
	t.Parallel()
	ctx, die := context.WithCancel(t.Context())
	defer die()
	p := newPost(t, mailtest.Script{})
	m := p.queue(welcome(p.org, p.user, "ada@saffron.school"))
	first, _ := p.claim()
	// The claim moves on while the text is on its way, so the first worker's record is
	// refused as a dead worker's would never come.
	var second task.Outbox
	p.server.Play(mailtest.Script{OnData: func(string) error {
		p.now = p.now.Add(time.Hour)
		second, _ = p.claim()
		return nil
	}})
	if err := p.Deliver(ctx, first); err != nil {
		t.Fatal(err)
	}
	if r, _, _, claimed := p.stored(m.ID); check.Equal(check.Now(t), "r.Status", r.Status, email.Queued, "after the lost record: %+v, pending %v", r, claimed) {
		check.True(check.Now(t), "claimed", claimed, "after the lost record: %+v, pending %v", r, claimed)
	}
	p.server.Play(mailtest.Script{})
	if err := p.Deliver(ctx, second); err != nil {
		t.Fatal(err)
	}
	r, _, sealed, claimed := p.stored(m.ID)
	check.Equal(check.Now(t), "r.Status", r.Status, email.Uncertain, "%+v, secrets %v, pending %v, %d mails", r, sealed, claimed, len(p.server.Messages()))
	check.False(check.Now(t), "sealed", sealed, "%+v, secrets %v, pending %v, %d mails", r, sealed, claimed, len(p.server.Messages()))
	check.False(check.Now(t), "claimed", claimed, "%+v, secrets %v, pending %v, %d mails", r, sealed, claimed, len(p.server.Messages()))
	check.Equal(check.Now(t), "number of mails", len(p.server.Messages()), 1, "%+v, secrets %v, pending %v, %d mails", r, sealed, claimed, len(p.server.Messages()))
}

func TestALostClaimSendsNothing(t *testing.T) {
	t.Parallel()
	p := newPost(t, mailtest.Script{})
	m := p.queue(welcome(p.org, p.user, "ada@saffron.school"))
	first, _ := p.claim()
	p.now = p.now.Add(time.Hour)
	second, _ := p.claim()
	if err := p.Deliver(t.Context(), first); check.NoError(check.Now(t), err, "the lost claim: %v, %d mails", err, len(p.server.Messages())) {
		check.Equal(check.Now(t), "number of mails", len(p.server.Messages()), 0, "the lost claim: %v, %d mails", err, len(p.server.Messages()))
	}
	// The same claim twice at once, as after a worker's shutdown: one of them sends.
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := p.Deliver(t.Context(), second); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(p.server.Messages()); n != 1 {
		t.Fatalf("%d mails arrived", n)
	}
	if r, _, _, claimed := p.stored(m.ID); check.True(check.Now(t), "the status is final", r.Status.Final(), "%+v, pending %v", r, claimed) {
		check.False(check.Now(t), "claimed", claimed, "%+v, pending %v", r, claimed)
	}
}

func TestAMailWhoseAccountIsGoneIsDropped(t *testing.T) {
	t.Parallel()
	p := newPost(t, mailtest.Script{})
	p.queue(welcome(p.org, p.user, "ada@saffron.school"))
	if _, err := p.db.Exec(t.Context(), `DELETE FROM accounts`); err != nil {
		t.Fatal(err)
	}
	p.deliver()
	if n, _ := p.peek(); check.Equal(check.Now(t), "n", n, 0, "%d tasks, %d mails", n, len(p.server.Messages())) {
		check.Equal(check.Now(t), "number of mails", len(p.server.Messages()), 0, "%d tasks, %d mails", n, len(p.server.Messages()))
	}
}

func TestAMailThatCannotBeWrittenWaits(t *testing.T) {
	t.Parallel()
	p := newPost(t, mailtest.Script{})
	m := p.queue(welcome(p.org, p.user, "ada@saffron.school"))
	right := p.Box
	p.Box = sealtest.New(t)
	p.deliver()
	if r, _, sealed, claimed := p.stored(m.ID); check.Equal(check.Now(t), "r.Status", r.Status, email.Queued, "%+v, secrets %v, pending %v", r, sealed, claimed) &&
		check.True(check.Now(t), "sealed", sealed, "%+v, secrets %v, pending %v", r, sealed, claimed) &&
		check.True(check.Now(t), "claimed", claimed, "%+v, secrets %v, pending %v", r, sealed, claimed) {
		check.Lacks(check.Now(t), "detail", r.Detail, "keyset", "%+v, secrets %v, pending %v", r, sealed, claimed)
	}
	p.Box, p.now = right, p.now.Add(time.Hour)
	p.deliver()
	if r, _, _, _ := p.stored(m.ID); r.Status != email.Sent {
		t.Fatalf("with the key back: %+v", r)
	}
}

func TestAFinalStatusWakesWhoWaitsForIt(t *testing.T) {
	t.Parallel()
	p := newPost(t, mailtest.Script{})
	ctx, cancel := context.WithCancel(t.Context())
	notes, ended := make(chan wake.Notification, 4), make(chan struct{})
	go func() {
		defer close(ended)
		p.db.Wakes.Subscribe(ctx, func(n wake.Notification) { notes <- n }, email.Channel)
	}()
	defer func() { cancel(); <-ended }()
	<-notes // listening
	m := p.queue(welcome(p.org, p.user, "ada@saffron.school"))
	p.deliver()
	if n := <-notes; n.Payload != strconv.FormatInt(int64(m.ID), 10) {
		t.Fatalf("woken with %+v", n)
	}
}

// A mail shows the logo that the organization has when it leaves.
func TestAMailHasTheOrganizationsLogo(t *testing.T) {
	t.Parallel()
	p := newPost(t, mailtest.Script{})
	p.PublicURL = "https://saffron.school"
	plain := strings.NewReplacer("=\r\n", "", "=3D", "=")
	for n, logo := range []bool{false, true} {
		if logo {
			_, err := p.db.Exec(t.Context(), `INSERT INTO organization_logos (organization_id, picture, digest, updated_at) VALUES ($1, 'p', '\x00ff', now())`, p.org)
			check.NoError(check.Now(t), err, "the logo")
		}
		p.queue(welcome(p.org, p.user, "ada@saffron.school"))
		p.deliver()
		text := plain.Replace(p.server.Messages()[n])
		check.Equal(t, "whether there is a picture", strings.Contains(text, "<img"), logo, "%s", text)
		check.Equal(t, "whether it is the logo", strings.Contains(text, fmt.Sprintf(`src="https://saffron.school/logos/%d/00ff"`, p.org)), logo, "%s", text)
	}
}
