package platform_test

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/flow/person"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// life is somebody of whom every part of Registrar knows something, in two organizations, beside
// somebody else who is everywhere, too.
type life struct {
	*apitest.Env
	north, south apitest.Organization
	user, other  id.User
}

// strings are what the person is called anywhere.
var callings = []string{"zoe.quint", "xyzzy-mail", "zoella", "zoëlla", "quintessence", "zq.learns", "ext-zq-77", "order-zq-5", "label-zq-6", "zq-parent"}

// others is part of what somebody else is called anywhere.
const others = "bystander"

func live(t *testing.T) *life {
	t.Helper()
	l := &life{Env: apitest.New(t)}
	l.ImportRosters(t)
	l.north, l.south = l.Organization(t, "north"), l.Organization(t, "south")
	papers := make([]float64, 6)
	for i := range papers {
		papers[i] = l.Platform.Put(t, fmt.Sprintf("organizations/north/catalog/tests/mock-%d", i), `{"title": "Mock", "type": "ielts"}`).Want(t, 201).Object(t)["item_id"].(float64)
	}
	for _, slug := range []string{"north", "south"} {
		l.Platform.Post(t, "organizations/"+slug+"/webhook-endpoints", `{"url": "https://hooks.`+slug+`-institute.org/in"}`).Want(t, 201)
	}
	l.Platform.Put(t, "organizations/north/staff/head@north-institute.org", `{"first_name": "Head", "role": "admin", "password": "correct horse battery"}`).Want(t, 201)
	file := func(o apitest.Organization) *apitest.Client {
		return o.Full.With("Content-Type", "text/csv").With("X-Roster-Source", "sis")
	}
	const head = "person_external_id,email,first_name,last_name,role\n"
	file(l.north).Post(t, "roster/import/", head+"EXT-zq-77,Zoe.Quint@xyzzy-mail.org,Zoëlla,Quintessence,student\nB-1,bystander@other.org,Bystander,B,student\n").Want(t, 200)
	file(l.north).Post(t, "roster/import/", head+"EXT-zq-77,zoe.quint@xyzzy-mail.org,Zoella-Quint,Quintessence,teacher\nB-1,bystander@other.org,Bystander,B,student\n").Want(t, 200)
	for key, p := range map[string]string{
		"enrol-Zoe.Quint@xyzzy-mail.org": `{"email": "Zoe.Quint@xyzzy-mail.org", "first_name": "Zoella", "last_name": "Quintessence", "courses": "ielts", "external_ref": "ORDER-zq-5", "source": "label-zq-6",
			"target_score_plan": {"target_score": 7, "test_plan": true, "timezone": "Asia/Kolkata", "extra_recipients": ["zq-parent@xyzzy-mail.org"]}}`,
		"enrol-bystander": `{"email": "bystander@other.org", "first_name": "Bystander", "courses": "ielts",
			"target_score_plan": {"target_score": 7, "test_plan": true, "timezone": "Asia/Kolkata", "extra_recipients": ["zoe.quint@xyzzy-mail.org", "parent@other.org"]}}`,
	} {
		l.north.Full.With("Idempotency-Key", key).Post(t, "provision/student/", p).Want(t, 200)
	}
	l.south.Full.Post(t, "provision/student/", `{"email": "zoe.quint@xyzzy-mail.org", "first_name": "Zoella", "last_name": "Quintessence", "courses": "ielts"}`).Want(t, 200)
	l.south.Full.Post(t, "provision/student/", `{"email": "bystander@other.org", "first_name": "Bystander", "courses": "ielts"}`).Want(t, 200)
	l.user, l.other = l.find(t, "zoe.quint@xyzzy-mail.org"), l.find(t, "bystander@other.org")
	_, err := l.DB.Exec(t.Context(), `UPDATE accounts SET username = 'ZQ.learns' WHERE id = $1`, l.user)
	check.NoError(check.Now(t), err, "the username")
	for _, u := range []id.User{l.user, l.other} {
		l.Platform.Put(t, fmt.Sprintf("test-sessions/%d", u), fmt.Sprintf(`{"organization": "north", "user_id": %d, "item_id": %v, "state": "finished", "score": 6,
			"started_at": "2026-11-20T09:00:00Z", "completed_at": "2026-11-20T10:00:00Z"}`, u, papers[4])).Want(t, http.StatusCreated)
		l.Platform.Post(t, "activity", fmt.Sprintf(`{"events": [{"organization": "north", "user_id": %d, "at": "2026-11-21T09:00:00Z", "kind": "visit"}]}`, u)).Want(t, 200)
		l.Platform.Post(t, "sign-ins", fmt.Sprintf(`{"user_id": %d}`, u)).Want(t, 200)
	}
	l.north.Full.Post(t, "assignments/", fmt.Sprintf(`{"email": "zoe.quint@xyzzy-mail.org", "kind": "test", "item_id": %v}`, papers[5])).Want(t, 201)
	l.Platform.Patch(t, fmt.Sprintf("organizations/south/members/%d", l.user), `{"status": "inactive"}`).Want(t, 200)
	l.attempts(t)()
	return l
}

func (l *life) find(t *testing.T, address string) (user id.User) {
	t.Helper()
	if err := l.DB.QueryRow(t.Context(), `SELECT id FROM accounts WHERE email = $1`, address).Scan(&user); err != nil {
		t.Fatal(err)
	}
	return user
}

// attempts plays receivers who decline half of their events, and who answer with what they
// were sent. The function that it returns records that.
func (l *life) attempts(t *testing.T) (record func()) {
	t.Helper()
	leases, _, err := dispatch.LeaseDue(t.Context(), l.DB, l.Now(), time.Minute, nil)
	check.NoError(check.Now(t), err, "leasing")
	var outcomes []webhook.Outcome
	for _, lease := range leases {
		for i, d := range lease.Deliveries {
			var sent string
			var number int
			err := l.DB.QueryRow(t.Context(), `
				SELECT e.data::text, q.entries + 1 FROM webhook_queue q JOIN webhook_events e ON e.id = q.event_id WHERE q.id = $1`, d).Scan(&sent, &number)
			check.NoError(check.Now(t), err, "what is sent")
			o := webhook.Outcome{Delivery: d, Endpoint: lease.Endpoint, Organization: lease.Organization, Number: number, StartedAt: l.Now(), Duration: time.Millisecond,
				Verdict: webhook.Declined, Cause: "http_404", Status: 404, Response: []byte("you sent " + sent), RequestHeaders: map[string]string{}, Peer: "203.0.113.7:443"}
			if i%2 == 0 {
				o.Verdict, o.Cause, o.Status = webhook.Delivered, "ok", 200
			}
			outcomes = append(outcomes, o)
		}
	}
	check.True(check.Now(t), "there are deliveries", len(outcomes) > 0, "%v", leases)
	return func() {
		t.Helper()
		err := l.DB.InTx(t.Context(), func(tx *pg.Tx) error { return webhook.Settle(t.Context(), tx, outcomes) })
		check.NoError(check.Now(t), err, "settling")
		l.exec(t, `DELETE FROM webhook_leases`)
	}
}

type auditEntry = wire.AuditEntry

func TestAPersonIsExportedWhole(t *testing.T) {
	t.Parallel()
	l := live(t)
	answer := l.Platform.Get(t, fmt.Sprintf("users/%d/export", l.user)).Want(t, 200)
	found := map[string]int{}
	first := ""
	for line := range strings.Lines(string(answer.Body)) {
		var o map[string]any
		check.NoError(check.Now(t), json.Unmarshal([]byte(line), &o), "%s", line)
		kind, _ := o["object"].(string)
		if first == "" {
			first = kind
		}
		found[kind]++
	}
	check.Equal(t, "the first line", first, "account", "%s", answer.Body)
	for kind, n := range map[string]int{"account": 1, "name": 2, "membership": 2, "enrollment": 2, "result": 1, "external_id": 1, "activity_event": 1, "plan": 1} {
		check.Equal(t, kind, found[kind], n, "%v", found)
	}
	for _, kind := range []string{"assignment", "email", "event", "roster_change", "roster_issue", "audit_entry", "plan_history", "plan_test"} {
		check.True(t, kind, found[kind] > 0, "%v", found)
	}
	text := strings.ToLower(string(answer.Body))
	for _, calling := range callings {
		check.True(t, calling, strings.Contains(text, calling), "it is not in the export")
	}
	for _, secret := range []string{others, "password_hash", "sealed", "you sent"} {
		check.True(t, secret, !strings.Contains(text, secret), "it is in the export")
	}
	l.Platform.Get(t, "users/999999/export").Want(t, 404)
	l.Advance(2 * time.Minute)
	check.True(t, "the audit log says so", slices.ContainsFunc(lines(t, l.Platform.Get(t, "audit-log")), func(e auditEntry) bool {
		return e.Action == "exported user" && e.Target == fmt.Sprintf("user %d", l.user)
	}), "it does not")
}

func (l *life) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := l.DB.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%v: %s", err, sql)
	}
}

// sweep is a turn of the worker, under its role.
func (l *life) sweep(t *testing.T) {
	t.Helper()
	e := person.Eraser{DB: pgtest.OpenAs(t, l.DB, "worker"), Box: l.Box, Clock: l.Now, Log: slog.New(slog.DiscardHandler)}
	check.NoError(check.Now(t), e.Sweep(t.Context()), "sweeping")
}

// erase erases the user, and says how far that is.
func (l *life) erase(t *testing.T, user id.User, status int) string {
	t.Helper()
	return l.Platform.Delete(t, fmt.Sprintf("users/%d", user)).Want(t, status).Object(t)["state"].(string)
}

var bytesInDump = regexp.MustCompile(`\\\\x[0-9a-f]{2,}`)

// dump is the whole database in small letters, with what is stored as bytes as text, too.
func (l *life) dump(t *testing.T) string {
	t.Helper()
	text := strings.ToLower(pgtest.Dump(t, l.DB))
	var all strings.Builder
	all.WriteString(text)
	for _, word := range bytesInDump.FindAllString(text, -1) {
		if plain, err := hex.DecodeString(word[3:]); err == nil {
			all.WriteString("\n" + strings.ToLower(string(plain)))
		}
	}
	return all.String()
}

// traces are the person's callings that a dump has, also folded to what a mail address, a URL or a hash makes of them.
func traces(dump string) (found []string) {
	words := slices.Clone(callings)
	for _, w := range []string{"zoe.quint@xyzzy-mail.org", "Zoe.Quint@xyzzy-mail.org", "zq.learns", "ZQ.learns", "EXT-zq-77", "zoella", "quintessence", "zoella quintessence"} {
		a, b, c := md5.Sum([]byte(w)), sha1.Sum([]byte(w)), sha256.Sum256([]byte(w))
		words = append(words, hex.EncodeToString(a[:]), hex.EncodeToString(b[:]), hex.EncodeToString(c[:]),
			strings.ToLower(base64.StdEncoding.EncodeToString([]byte(w))), strings.ToLower(url.QueryEscape(w)))
	}
	for _, w := range words {
		if strings.Contains(dump, w) {
			found = append(found, w)
		}
	}
	return found
}

// counted is what stays countable.
func (l *life) counted(t *testing.T) (n []int) {
	t.Helper()
	for _, from := range []string{"accounts", "results", "assignments", "activity_events", "emails", "webhook_events", "webhook_queue", "roster_runs",
		"audit_log WHERE action <> 'erased user' AND action <> 'discarded roster import'"} {
		var rows int
		if err := l.DB.QueryRow(t.Context(), `SELECT count(*) FROM `+from).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		n = append(n, rows)
	}
	return n
}

// A dump of the whole database has nothing of a person who was erased: not what was there, and not what calls wrote
// that had read it before. Somebody else keeps everything. Reference: students#export-and-erasure.
func TestAnErasedPersonIsNowhereInTheDump(t *testing.T) {
	t.Parallel()
	l := live(t)
	// A past of every other kind: staff with a role, a browser, a forgotten password, and a file that waits for a decision.
	l.Platform.Put(t, "organizations/south/staff/zoe.quint@xyzzy-mail.org", `{"role": "admin"}`).Want(t, 200)
	err := audit.WriteOwn(t.Context(), l.DB, audit.Actor{Kind: audit.Staff, ID: int64(l.user), Name: "zoe.quint@xyzzy-mail.org"},
		[]id.Organization{l.south.ID}, "signed in", "", "198.51.100.77", l.Now())
	check.NoError(check.Now(t), err, "a sign-in")
	l.exec(t, `INSERT INTO sessions (hash, data, expires_at) VALUES ('h', jsonb_build_object('values', jsonb_build_object('user', $1::text, 'agent', 'zq.learns on a phone')), now() + interval '1 day')`, fmt.Sprint(l.user))
	l.exec(t, `INSERT INTO password_resets (email, created_at) VALUES ('zoe.quint@xyzzy-mail.org', now())`)
	l.exec(t, `INSERT INTO factors (id, user_id, kind, name, sealed, created_at) VALUES (gen_random_uuid(), $1, 'totp', 'zq.learns telephone', '', now())`, l.user)
	l.exec(t, `INSERT INTO recovery_codes (user_id, hash) VALUES ($1, 'x')`, l.user)
	l.exec(t, `INSERT INTO factor_tries (user_id, since, tries) VALUES ($1, now(), 1)`, l.user)
	l.exec(t, `WITH r AS (
			INSERT INTO lms_registrations (organization_id, name, issuer, client_id, authorize_url, token_url, keys_url, deployments, created_at, updated_at)
			VALUES ($1, 'LMS', 'https://lms.school', 'x', 'x', 'x', 'x', '{x}', now(), now()) RETURNING id
		), p AS (
			INSERT INTO lms_people (organization_id, registration_id, subject, user_id, created_at) SELECT $1, id, 'zq.learns', $2, now() FROM r
		)
		, m AS (
			INSERT INTO lms_marks (organization_id, registration_id, line, user_id, line_item, item_id, updated_at) SELECT $1, id, '', $2, 'https://lms.school/zq.learns', 1, now() FROM r
		)
		INSERT INTO lms_tickets (organization_id, hash, user_id, leads_to, note, expires_at) VALUES ($1, '', $2, '/', '', now())`, l.north.ID, l.user)
	l.exec(t, `UPDATE roster_runs SET decided_by = 'zoe.quint@xyzzy-mail.org' WHERE id = (SELECT min(id) FROM roster_runs)`)
	l.Platform.Put(t, "organizations/north/roster-sources/sis", `{"authoritative_enabled": true}`).Want(t, 200)
	l.north.Full.With("Content-Type", "text/csv").With("X-Roster-Source", "sis").With("X-Roster-Mode", "authoritative_snapshot").
		Post(t, "roster/import/", "person_external_id,email,first_name,last_name,role\n").Want(t, 202)
	before := l.dump(t)
	check.Equal(t, "callings in the dump", len(traces(before)) >= len(callings), true, "%v", traces(before))
	check.Contains(t, "the dump", before, "198.51.100.77", "the address of a sign-in")

	// Deliveries are on their way, with what is about the person in hand.
	l.Advance(time.Hour)
	tell := func(of webhook.Type, user id.User, address string) {
		t.Helper()
		err := l.DB.InTx(t.Context(), func(tx *pg.Tx) error {
			return webhook.Record(t.Context(), tx, l.north.ID, l.Now(), webhook.Event{Type: of, User: user, Data: map[string]any{"email": address}})
		})
		check.NoError(check.Now(t), err, "an event")
	}
	tell(webhook.StudentJoined, l.user, "zoe.quint@xyzzy-mail.org")
	tell(webhook.StudentJoined, l.other, "bystander@other.org")
	record := l.attempts(t)
	was := l.counted(t)
	check.Equal(t, "state", l.erase(t, l.user, 202), "erasing", "at once")
	check.Equal(t, "state", l.erase(t, l.user, 202), "erasing", "a repeat")
	l.Platform.Get(t, fmt.Sprintf("users/%d/export", l.user)).Want(t, 404)
	for _, o := range []apitest.Organization{l.north, l.south} {
		o.Full.Get(t, "students/?email=zoe.quint@xyzzy-mail.org").Want(t, 404)
		o.Full.Get(t, fmt.Sprintf("results/?user_id=%d", l.user)).Want(t, 404)
		for _, list := range []string{"students/", "assignments/", "results/"} {
			body := strings.ToLower(string(o.Full.Get(t, list).Want(t, 200).Body))
			for _, calling := range callings {
				check.Lacks(t, list, body, calling, "the person is listed")
			}
		}
	}
	l.sweep(t)
	record()
	// So are calls.
	l.exec(t, `INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at) VALUES ($1, $2, 'member', 'active', 'roster', now(), now())`, l.south.ID, l.user)
	l.exec(t, `INSERT INTO emails (organization_id, user_id, type, recipient, reference, params, status, created_at, updated_at)
		VALUES ($1, $2, 'welcome', 'zoe.quint@xyzzy-mail.org', gen_random_uuid(), '{"name": "Zoella"}', 'queued', now(), now())`, l.north.ID, l.user)
	err = l.DB.InTx(t.Context(), func(tx *pg.Tx) error {
		return audit.Write(t.Context(), tx, audit.Entry{Organization: l.north.ID, Actor: audit.Platform, Action: "removed member", Target: "zoe.quint@xyzzy-mail.org", At: l.Now()})
	})
	check.NoError(check.Now(t), err, "an entry of a call that had begun")
	tell(webhook.StudentJoined, l.user, "zoe.quint@xyzzy-mail.org")
	l.sweep(t) // too early
	check.Equal(t, "state", l.erase(t, l.user, 202), "erasing", "while calls may be under way")
	l.Advance(11 * time.Minute)
	l.sweep(t)
	check.Equal(t, "state", l.erase(t, l.user, 200), "erased", "in the end")

	after := l.dump(t)
	if found := traces(after); len(found) > 0 {
		for line := range strings.Lines(after) {
			if some := traces(line); len(some) > 0 {
				t.Errorf("%v: %.300s", some, line)
			}
		}
	}
	check.True(t, "the address of a sign-in", !strings.Contains(after, "198.51.100.77"), "is in the dump")
	is := l.counted(t)
	was[4], was[5], was[8] = was[4]+1, was[5]+1, was[8]+1 // what came late
	was[6] = is[6]                                        // deliveries that waited are cancelled
	check.Equal(t, "counts", fmt.Sprint(is), fmt.Sprint(was), "before and after")
	for _, kept := range []string{"bystander@other.org", "parent@other.org", "b-1"} {
		check.Contains(t, "the dump", after, kept, "somebody else's")
	}
	l.Platform.Delete(t, "users/999999").Want(t, 404)
	l.Platform.Post(t, "sign-ins", fmt.Sprintf(`{"user_id": %d}`, l.user)).Want(t, 404)

	// The address is nobody's, and can be somebody's again.
	l.north.Full.Post(t, "provision/student/", `{"email": "zoe.quint@xyzzy-mail.org", "first_name": "Zoe", "courses": "ielts"}`).Want(t, 201)
	check.True(t, "the new account is another", l.find(t, "zoe.quint@xyzzy-mail.org") != l.user, "it is the same")
}

// While both organizations call, import and assign, the person is erased again and again. Each account is then either
// whole or a number, and in the end the dump has nothing.
func TestErasuresBesideCallsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	l := live(t)
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	var calls sync.WaitGroup
	call := func(do func()) {
		calls.Go(func() {
			for range rounds {
				do()
			}
		})
	}
	ask := func(c *apitest.Client, method, path, body string) {
		a := c.Freely().Do(t, method, path, body)
		check.True(t, method+" "+path, a.Status < 500, "%d %s", a.Status, a.Body)
	}
	for _, o := range []apitest.Organization{l.north, l.south} {
		csv := o.Full.With("Content-Type", "text/csv").With("X-Roster-Source", "sis")
		call(func() {
			ask(o.Full, "POST", "provision/student/", `{"email": "zoe.quint@xyzzy-mail.org", "first_name": "Zoella", "last_name": "Quintessence", "courses": "ielts", "external_ref": "order-zq-5"}`)
		})
		call(func() {
			ask(csv, "POST", "roster/import/", "person_external_id,email,first_name,last_name,role\nEXT-zq-77,zoe.quint@xyzzy-mail.org,Zoella,Quintessence,student\n")
		})
		call(func() {
			ask(o.Full, "POST", "assignments/", `{"email": "zoe.quint@xyzzy-mail.org", "kind": "test", "item_id": 6}`)
		})
	}
	call(func() {
		ask(l.Platform, "PUT", "organizations/south/staff/zoe.quint@xyzzy-mail.org", `{"first_name": "Zoella", "role": "teacher"}`)
	})
	call(func() {
		var user id.User
		err := l.DB.QueryRow(t.Context(), `SELECT coalesce(max(id), 0) FROM accounts WHERE email = 'zoe.quint@xyzzy-mail.org'`).Scan(&user)
		check.NoError(t, err, "who it is")
		if user != 0 {
			ask(l.Platform, "DELETE", fmt.Sprintf("users/%d", user), "")
		}
	})
	calls.Wait()
	for range 2 { // whoever came after the last erasure, and then nobody
		rows, err := pg.Column[int64](t.Context(), l.DB, `SELECT id FROM accounts WHERE email = 'zoe.quint@xyzzy-mail.org'`)
		check.NoError(check.Now(t), err, "who it is")
		for _, user := range rows {
			l.erase(t, id.User(user), 202)
		}
	}
	l.sweep(t)
	l.Advance(11 * time.Minute)
	l.sweep(t)
	for line := range strings.Lines(l.dump(t)) {
		if some := traces(line); len(some) > 0 {
			t.Errorf("%v: %.300s", some, line)
		}
	}
	for _, table := range []string{"members", "enrollments", "directory", "directory_words", "arrivals", "roster_identities", "roster_class_members", "plans", "set_password_tokens", "factors", "recovery_codes", "factor_tries", "lms_people", "lms_marks", "lms_tickets"} {
		var n int
		err := l.DB.QueryRow(t.Context(), `SELECT count(*) FROM `+table+` WHERE user_id IN (SELECT user_id FROM erasures)`).Scan(&n)
		check.NoError(check.Now(t), err, "%s", table)
		check.Equal(t, table, n, 0, "of people who were erased")
	}
}
