package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// upgraded is a Registrar on a dump that earlier programs filled, migrated by today's.
type upgraded struct {
	*house

	kept kept
	db   *pgx.Conn
}

// Everything that was there when a dump was made works after its upgrade: what people hold, what was read, and what
// was pending.
func TestAllOfAnUpgradedDatabaseWorks(t *testing.T) {
	t.Parallel()
	root, err := stack.Root()
	must(t, err)
	dumps, err := filepath.Glob(filepath.Join(root, "internal/kit/pg/testdata/filled-*.json"))
	must(t, err)
	check.True(check.Now(t), "there are dumps", len(dumps) > 0, "")
	for _, file := range dumps {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			u := upgrade(t, file)
			u.startUntilTheEnd(u.api, u.settings.Ports.APIPrivate)
			u.readsAsBefore()
			u.opensWhatPeopleHold()
			u.startUntilTheEnd(u.worker, u.settings.Ports.WorkerPrivate)
			u.startUntilTheEnd(u.sender, u.settings.Ports.SenderPrivate)
			u.doesWhatWasPending()
			u.goesOn()
			u.pagesOpen()
			u.logsNoErrors()
		})
	}
}

// upgrade restores a dump, as if it had been made within the last day, and migrates it.
func upgrade(t *testing.T, file string) *upgraded {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	var k kept
	must(t, json.Unmarshal(text, &k))
	h := preparedHouse(t, pgtest.URL(t))
	dump := pgtest.ReadDump(t, strings.TrimSuffix(file, ".json")+".sql.gz")
	here := strings.NewReplacer(k.Public, h.settings.PublicURL(), k.Receiver, h.receiver.URL(""))
	days := int(time.Since(k.At) / (24 * time.Hour))
	at := k.At
	moved := func(text string) string { return here.Replace(later(text, at, days)) }
	sealed := k.Order // its answer comes back as it was sealed, word for word
	k = kept{}
	must(t, json.Unmarshal([]byte(moved(string(text))), &k))
	k.Order = sealed
	must(t, os.WriteFile(h.settings.KeysetFile, k.Keyset, 0o600))
	pgtest.Restore(t, h.database, moved(dump))
	must(t, stack.Run(t.Context(), h.settings.Migrate()))
	h.api, h.worker, h.sender = h.settings.APIServer(), h.settings.Worker(), h.settings.WebhookSender()
	h.key = k.Key
	for path, secret := range k.Secrets {
		h.receiver.Trust(path, secret)
		h.secrets = append(h.secrets, secret)
	}
	h.secrets = append(h.secrets, k.Consumer.Secret, filledPassword)
	u := &upgraded{house: h, kept: k, db: connect(t, h)}
	u.opensItsMails(func(reference string) string { return later(reference, at, -days) })
	// The dump is of any hour of the last day: a session may be over by now, an attempt not due yet, and an answer forgotten soon.
	for _, statement := range []string{
		`UPDATE sessions SET expires_at = now() + interval '1 hour', data = jsonb_set(data, '{deadline}', to_jsonb(now() + interval '1 hour'))`,
		`UPDATE webhook_deliveries SET due_at = now() WHERE status = 'waiting'`,
		`UPDATE webhook_queue SET due_at = now()`,
		`UPDATE idempotency_keys SET created_at = now()`,
	} {
		_, err = u.db.Exec(t.Context(), statement)
		must(t, err)
	}
	return u
}

// opensItsMails gives mails the references back that they had: their secrets are sealed for them.
func (u *upgraded) opensItsMails(had func(reference string) string) {
	u.t.Helper()
	rows, err := u.db.Query(u.t.Context(), `SELECT reference::text FROM emails WHERE sealed IS NOT NULL`)
	must(u.t, err)
	references, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(u.t, err)
	for _, moved := range references {
		_, err := u.db.Exec(u.t.Context(), `UPDATE emails SET reference = $2 WHERE reference = $1`, moved, had(moved))
		must(u.t, err)
	}
}

// What tells a time in a dump: days, the names of partitions and the first 48 bits of ids.
var (
	dayInDump       = regexp.MustCompile(`\b20\d\d-\d\d-\d\d`)
	partitionInDump = regexp.MustCompile(`_20\d{6}\b`)
	idInDump        = regexp.MustCompile(`\b([0-9a-f]{8})(-?)([0-9a-f]{4})(-?[07][0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12})\b`)
	eventInDump     = regexp.MustCompile(`\bevt_[0-9a-f]{12}`)
)

// later is the text of a dump as if it had been made so many days later.
func later(text string, at time.Time, days int) string {
	const near = 2 * 366 * 24 * time.Hour // other times are nobody's
	day := func(layout string) func(string) string {
		return func(s string) string {
			was, err := time.Parse(layout, s)
			if err != nil || was.Sub(at).Abs() > near {
				return s
			}
			return was.AddDate(0, 0, days).Format(layout)
		}
	}
	bits := func(hex string) string {
		n, err := strconv.ParseInt(hex, 16, 64)
		if err != nil || time.UnixMilli(n).Sub(at).Abs() > near {
			return hex
		}
		return fmt.Sprintf("%012x", n+int64(days)*24*3600*1000)
	}
	text = dayInDump.ReplaceAllStringFunc(text, day(time.DateOnly))
	text = partitionInDump.ReplaceAllStringFunc(text, day("_20060102"))
	text = eventInDump.ReplaceAllStringFunc(text, func(s string) string { return "evt_" + bits(s[len("evt_"):]) })
	return idInDump.ReplaceAllStringFunc(text, func(s string) string {
		part := idInDump.FindStringSubmatch(s)
		moved := bits(part[1] + part[3])
		return moved[:8] + part[2] + moved[8:] + part[4]
	})
}

func TestADumpIsMovedInTime(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 24, 18, 34, 0, 0, time.UTC)
	const dump = `CREATE TABLE public.webhook_events_20261124; VALUES ('01a20ed6-574c-7870-bc6a-715a3f693217', '2026-11-24 18:34:16+00',
		'2000-01-01', '{"id": "evt_01a20ed6574c7870bc6a715a3f693217"}', '9ae34795-e38d-4051-b64a-0950ad6aec83') FROM ('01a20c00-0000-0000-0000-000000000000')`
	moved := later(dump, at, 40)
	for _, want := range []string{"webhook_events_20270103", "'2027-01-03 18:34:16+00'", "'2000-01-01'", "'9ae34795-e38d-4051-b64a-0950ad6aec83'",
		"'01a2dcd4-b74c-7870-bc6a-715a3f693217'", "evt_01a2dcd4b74c7870bc6a715a3f693217"} {
		check.Contains(t, "the dump 40 days later", moved, want, "")
	}
	check.Equal(t, "the dump, moved back", later(moved, at, -40), dump, "")
}

// readsAsBefore compares what both APIs answer with what they answered then. Answers may have more fields today.
func (u *upgraded) readsAsBefore() {
	t := u.t
	t.Helper()
	for path, was := range u.kept.Partner {
		var now json.RawMessage
		u.partnerGet(path, &now)
		u.compare(path, was, now)
	}
	for path, was := range u.kept.Platform {
		var now json.RawMessage
		u.platform(http.MethodGet, path, "", &now)
		u.compare(path, was, now)
	}
	for list, cursor := range u.kept.Cursors {
		var all, rest map[string]json.RawMessage
		u.partnerGet(list, &all)
		u.partnerGet(list+"?limit=100&cursor="+url.QueryEscape(cursor), &rest)
		var rows, later []map[string]any
		array := strings.TrimSuffix(list, "/")
		must(t, json.Unmarshal(all[array], &rows))
		must(t, json.Unmarshal(rest[array], &later))
		// A cursor of another order begins again: it may repeat rows and misses none.
		check.True(t, "a cursor of then misses nothing", len(later) >= len(rows)-1, "%s: %d of %d rows", list, len(later), len(rows))
	}
}

func (u *upgraded) compare(path string, was, now json.RawMessage) {
	u.t.Helper()
	var want, got any
	must(u.t, json.Unmarshal(was, &want))
	must(u.t, json.Unmarshal(now, &got))
	if difference := missing("", want, got); difference != "" {
		u.t.Errorf("GET %s after the upgrade: %s", path, difference)
	}
}

// moving are fields that say something of the moment, and cursors. The backlog of earlier versions is counted once a
// worker has moved it.
var moving = map[string]bool{"as_of": true, "next_cursor": true, "backlog": true}

// missing says where got lacks something of want; "" when it has everything.
func missing(where string, want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v, was %v", where, got, want)
		}
		for name, value := range want {
			if moving[name] {
				continue
			}
			if m := missing(where+"."+name, value, object[name]); m != "" {
				return m
			}
		}
		return ""
	case []any:
		array, ok := got.([]any)
		if !ok || len(array) != len(want) {
			return fmt.Sprintf("%s is %v, was %v", where, got, want)
		}
		for i := range want {
			if m := missing(fmt.Sprintf("%s[%d]", where, i), want[i], array[i]); m != "" {
				return m
			}
		}
		return ""
	default:
		if fmt.Sprint(want) != fmt.Sprint(got) {
			return fmt.Sprintf("%s is %v, was %v", where, got, want)
		}
		return ""
	}
}

// opensWhatPeopleHold uses the password, the session, the link, the call's key and the LMS's secret of then.
func (u *upgraded) opensWhatPeopleHold() {
	t, base := u.t, u.settings.PublicURL()
	t.Helper()
	u.signInAs("olive@north-institute.org", filledPassword)
	status, page, _ := u.exchange(http.MethodGet, base+"/console/demo/", "", "Cookie", u.kept.Session)
	check.Equal(t, "the session of then", status, http.StatusOK, "%.300s", page)

	again := u.place(u.kept.Order)
	check.Equal(t, "status of the repeated call", again.Status, u.kept.Order.Status, "%s", again.Answer)
	check.Equal(t, "answer of the repeated call", again.Answer, u.kept.Order.Answer, "")

	const chosen = "cedar-violin-harbour-17"
	u.secrets = append(u.secrets, chosen)
	if status, page := u.post(base+u.kept.Link, url.Values{"password": {chosen}, "again": {chosen}}); status >= 400 {
		t.Errorf("the link of then: %d %.300s", status, page)
	}
	u.signInAs("binod@north-institute.org", chosen)

	u.launch(u.kept.Consumer, "lena@north-institute.org", "nonce-of-later")
	u.launch(u.kept.Consumer, "luis@north-institute.org", "nonce-of-latest")
}

// doesWhatWasPending waits for the mails, deliveries and the import that the programs of then had not come to.
func (u *upgraded) doesWhatWasPending() {
	t := u.t
	t.Helper()
	for _, email := range []string{"chitra@north-institute.org", "deepa@north-institute.org"} {
		u.awaitMail(email, 1)
	}
	u.awaitMailAbout("chitra@north-institute.org", "password")
	u.awaitEvents("chitra@north-institute.org", 4) // two events, two URLs
	eventually(t, u.db, "no delivery is pending", `SELECT NOT EXISTS (SELECT FROM webhook_queue)
		AND NOT EXISTS (SELECT FROM webhook_deliveries WHERE status IN ('waiting', 'leased'))`)
	eventually(t, u.db, "no work is pending", `SELECT NOT EXISTS (SELECT FROM outbox_tasks WHERE run_at < now())`)
	for _, r := range u.receiver.All() {
		if check.True(t, "the secret of then signs", r.Verified != nil, "%s", r.Path) {
			check.True(t, "the signature verifies", *r.Verified, "%s %s", r.Path, r.Body)
		}
	}
	var waiting int
	for _, r := range u.receiver.All() {
		if r.Path == downPath && strings.Contains(r.Body, "asha@north-institute.org") {
			waiting++ // was attempted before the upgrade
		}
	}
	check.True(t, "what had failed is delivered", waiting > 0, "%d", waiting)
	var noor struct{ Email string }
	u.partnerGet("students/?email=noor@roster-institute.org", &noor) // of the run that was queued
}

// rosterRun is a run as the platform API shows it.
type rosterRun struct {
	ID     int    `json:"id"`
	Status string `json:"status"`
	Source string `json:"source"`
}

// goesOn approves and undoes rosters of then, resends a delivery of then and takes a plan of then on.
func (u *upgraded) goesOn() {
	t := u.t
	t.Helper()
	var list struct {
		Runs []rosterRun `json:"roster_runs"`
	}
	u.platform(http.MethodGet, "organizations/demo/roster-runs", "", &list)
	for _, r := range list.Runs {
		if r.Source != sisSource || r.Status != "held" {
			continue
		}
		for _, step := range []struct{ name, ends string }{{"approve", "applied"}, {"undo", "undone"}} {
			var run rosterRun
			path := fmt.Sprintf("organizations/demo/roster-runs/%d", r.ID)
			u.platform(http.MethodPost, path+"/"+step.name, "", &run)
			until(t, step.name+" ends", func() bool {
				u.platform(http.MethodGet, path, "", &run)
				return run.Status == step.ends
			})
		}
	}
	var active int
	must(t, u.db.QueryRow(t.Context(), `SELECT count(*) FROM members m JOIN accounts a ON a.id = m.user_id
		WHERE a.email LIKE '%@sis-institute.org' AND m.status = 'active'`).Scan(&active))
	check.Equal(t, "people whom the undone snapshot had left out", active, sisPeople, "")

	u.resendOne()
	u.planGoesOn()
}

func (u *upgraded) resendOne() {
	t := u.t
	t.Helper()
	var page struct {
		Deliveries []struct {
			ID    string `json:"id"`
			Event string `json:"event_id"`
		} `json:"deliveries"`
	}
	const path = "organizations/demo/webhook-endpoints/1/deliveries"
	u.platform(http.MethodGet, path, "", &page)
	check.True(check.Now(t), "deliveries of then are listed", len(page.Deliveries) > 0, "")
	oldest := page.Deliveries[len(page.Deliveries)-1]
	before := len(u.receiver.All())
	u.platform(http.MethodPost, path+"/"+oldest.ID+"/resend", "", nil)
	until(t, "it is sent again", func() bool { return len(u.receiver.All()) > before })
}

// planGoesOn opens the next test of the plan and finishes it.
func (u *upgraded) planGoesOn() {
	t := u.t
	t.Helper()
	const asha = "asha@north-institute.org"
	before := u.plan(asha)
	check.Equal(t, "the next test", before.NextTest.Kind, "skills_check", "%+v", before)
	var opened struct {
		Tests []struct {
			State      string  `json:"state"`
			Assignment *string `json:"assignment_id"`
		} `json:"tests"`
	}
	u.platform(http.MethodPost, "plans/1/open-test", "", &opened)
	last := opened.Tests[len(opened.Tests)-1]
	check.True(check.Now(t), "a test is assigned", last.Assignment != nil, "%+v", opened)
	var given work
	for _, w := range u.assignments(asha) {
		if w.ID == *last.Assignment {
			given = w
		}
	}
	check.Equal(check.Now(t), "the assignment", given.Status, "pending", "%+v of %+v", given, opened)
	u.platform(http.MethodPut, "test-sessions/later", fmt.Sprintf(
		`{"organization": "demo", "user_id": %d, "item_id": %d, "attempt": "assigned", "assignment_id": %q, "state": "finished",
		"started_at": %q, "completed_at": %[4]q, "score": 6, "sections": {"writing": 6}}`,
		given.Student.UserID, given.Item.ID, given.ID, time.Now().UTC().Format(time.RFC3339)), nil)
	until(t, "the plan has moved on", func() bool { return u.plan(asha).NextTest.Kind != before.NextTest.Kind })
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	_, err := u.receiver.Await(ctx, 2, func(r stack.Received) bool {
		return r.Headers["X-Service-Event"] == "result.final" && strings.Contains(r.Body, "test:later")
	})
	check.NoError(t, err, "the result's events, one a URL")
}

// pagesOpen reads the pages of the console, with their rows of then.
func (u *upgraded) pagesOpen() {
	t := u.t
	t.Helper()
	cookie := u.signInAs("olive@north-institute.org", filledPassword)
	for page, words := range map[string]string{
		"": "Demo Institute", "students/": "asha@north-institute.org", "students/2/": "Asha", "api-keys/": "Student system",
		"webhooks/": "/hook", "webhooks/1/": "/hook", "webhooks/1/deliveries/": "student.joined", "roster-runs/": sisSource,
		"roster-runs/1/": "s2", "plans/": "Asha", "plans/1/": "5.5", "staff/": "Olive", "audit-log/": "created API key",
		"settings/": "Demo Institute", "mails/": "", "lms/": "", "sandbox/": "",
	} {
		status, text, _ := u.exchange(http.MethodGet, u.settings.PublicURL()+"/console/demo/"+page, "", "Cookie", cookie)
		check.Equal(t, "status", status, http.StatusOK, "/console/demo/%s: %.300s", page, text)
		check.Contains(t, "the page", text, words, "/console/demo/%s", page)
	}
}

// logsNoErrors looks for errors in the logs of the programs.
func (u *upgraded) logsNoErrors() {
	u.t.Helper()
	logs, err := filepath.Glob(filepath.Join(u.dir, "*.log"))
	must(u.t, err)
	for _, log := range logs {
		text, err := os.ReadFile(log)
		must(u.t, err)
		for line := range strings.Lines(string(text)) {
			check.False(u.t, "an error is logged", strings.Contains(line, `"level":"ERROR"`), "%s: %s", filepath.Base(log), line)
		}
	}
}
