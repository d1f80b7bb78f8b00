package e2e

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/oauth1"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// The programs can fill every table of the schema. With -update, a dump of the database is stored
// as the state from which internal/kit/pg tests upgrades, unless there is one of this version.
func TestTheProgramsFillEveryTable(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := connect(t, h)
	k := h.newKept()
	h.fillCatalog()
	h.fillFailing(&k)
	h.fillPlans(db)
	k.Consumer = h.fillLaunch()
	h.fillRoster(db)
	h.fillHeld()
	h.fillActivity(db)
	h.fillWebhooks(db)
	eventually(t, db, "a delivery waits for its next attempt", `SELECT EXISTS (SELECT FROM webhook_journal WHERE outcome = 'retry')`)
	h.keep(&k)
	h.fillPending(db)
	h.keepAnswers(&k)
	// What the programs do not write here is of an organization beside the others, which nothing else is about.
	h.platform(http.MethodPut, "organizations/beside", `{"name": "Beside"}`, nil)
	h.platform(http.MethodPut, "organizations/beside/staff/nora@beside.org", `{"first_name": "Nora", "role": "owner", "password": "`+filledPassword+`"}`, nil)
	// Programs from before this version write it, and this one only reads it.
	_, err := db.Exec(t.Context(), `INSERT INTO result_returns (organization_id, user_id, due_at)
		SELECT organization_id, user_id, now() + interval '1 hour' FROM members WHERE role = 'member' LIMIT 1`)
	must(t, err)
	// A worker that stops takes its row away.
	_, err = db.Exec(t.Context(), `INSERT INTO leader_candidates (job, holder, since, expires)
		VALUES ('webhooks', 'a worker', now(), now() + interval '1 hour')`)
	must(t, err)
	_, err = db.Exec(t.Context(), `
		WITH d AS (
			INSERT INTO webhook_deliveries (event_id, organization_id, endpoint_id, status, tries, attempts, lease, lease_until, due_at)
			SELECT e.id, e.organization_id, w.id, 'leased', 1, 1, gen_random_uuid(), now() + interval '1 second', now()
			FROM webhook_endpoints w JOIN webhook_events e USING (organization_id) ORDER BY e.id LIMIT 1 RETURNING id, event_id, organization_id, endpoint_id
		), l AS (
			INSERT INTO webhook_leases (organization_id, endpoint_id, id, until, in_order, deliveries)
			SELECT organization_id, endpoint_id, uuid7(), now() + interval '1 second', false, ARRAY[id] FROM d
		), q AS (
			INSERT INTO webhook_queue (organization_id, endpoint_id, id, event_id, due_at)
			SELECT organization_id, endpoint_id, uuid7(), event_id, now() FROM d
		)
		INSERT INTO webhook_attempts (delivery_id, number, endpoint_id, started_at, duration_us, outcome, cause, request_headers)
		SELECT id, 1, endpoint_id, now(), 1, 'retry', 'timeout', '{}' FROM d`)
	must(t, err)
	// The house has no sandboxes, whose databases are others.
	_, err = db.Exec(t.Context(), `
		WITH o AS (SELECT id FROM organizations WHERE slug = 'beside'), s AS (
			INSERT INTO sandboxes (organization_id, generation, created_at, filled_at) SELECT id, 1, now(), now() FROM o
		), c AS (
			INSERT INTO sandbox_clock (organization_id, now_at, from_at, kept_on) SELECT id, now(), now(), current_date FROM o
		)
		INSERT INTO sandbox_mails (organization_id, email_id, sent_at, recipient, subject, plain, html)
		SELECT id, 1, now(), 'nora@beside.org', 'Welcome', 'Hello', '<p>Hello</p>' FROM o`)
	must(t, err)
	// Nobody of the house has a second factor, a provider to sign in at or an LMS of LTI 1.3, and nothing of it needs somebody.
	_, err = db.Exec(t.Context(), `
		WITH o AS (SELECT id FROM organizations WHERE slug = 'beside'), u AS (SELECT id FROM accounts WHERE email = 'nora@beside.org'), f AS (
			INSERT INTO factors (id, user_id, kind, name, sealed, created_at) SELECT gen_random_uuid(), id, 'totp', 'Telephone', '', now() FROM u
		), c AS (
			INSERT INTO recovery_codes (user_id, hash) SELECT id, '' FROM u
		), w AS (
			INSERT INTO factor_tries (user_id, since, tries) SELECT id, now(), 1 FROM u
		), p AS (
			INSERT INTO sign_in_policies (organization_id, factor_since, grace_days, updated_at) SELECT id, now(), 7, now() FROM o
		), i AS (
			INSERT INTO identity_providers (organization_id, issuer, client_id, sealed, version, students, created_at, updated_at)
			SELECT id, 'https://id.north-institute.org', 'registrar', '', 1, false, now(), now() FROM o
		), a AS (
			INSERT INTO staff_alerts (organization_id, type, subject, occasion, since, mailed, mailed_at)
			SELECT id, 'url_failing', -1, 1, now(), true, now() FROM o
		), r AS (
			INSERT INTO lms_registrations (organization_id, name, issuer, client_id, authorize_url, token_url, keys_url, deployments, created_at, updated_at)
			SELECT id, 'LMS', 'https://lms.school', 'x', '', '', '', '{x}', now(), now() FROM o RETURNING organization_id, id
		), k AS (
			INSERT INTO lms_people (organization_id, registration_id, subject, user_id, created_at) SELECT r.organization_id, r.id, '1', u.id, now() FROM r, u
		), aa AS (
			INSERT INTO lms_contexts (organization_id, registration_id, deployment, context, title, memberships_url, seen_at) SELECT organization_id, id, 'x', '1', '', '', now() FROM r
		), j AS (
			INSERT INTO lms_marks (organization_id, registration_id, line, user_id, line_item, item_id, updated_at) SELECT r.organization_id, r.id, '', u.id, '', 1, now() FROM r, u
		), g AS (
			INSERT INTO lms_logins (organization_id, state, registration_id, nonce, browser, storage, expires_at)
			SELECT organization_id, '', id, '', '', '', now() FROM r
		), l AS (
			INSERT INTO lms_choices (organization_id, hash, registration_id, request, expires_at) SELECT organization_id, '', id, '{}', now() FROM r
		), m AS (
			INSERT INTO lms_invitations (organization_id, hash, expires_at) SELECT organization_id, '', now() FROM r
		), q AS (
			INSERT INTO lms_tickets (organization_id, hash, user_id, leads_to, note, expires_at) SELECT o.id, '', u.id, '/', '', now() FROM o, u
		), z AS (
			INSERT INTO lms_keys (kid, sealed, public, created_at, signs_from) VALUES ('x', '', '{}', now(), now() + interval '100 years')
		), n AS (
			INSERT INTO mail_optouts (organization_id, user_id, type, created_at)
			SELECT organization_id, user_id, 'url_failing', now() FROM members, u WHERE user_id = u.id
		)
		INSERT INTO mail_domains (organization_id, domain, token, created_at) SELECT id, 'north-institute.org', 'token', now() FROM o`)
	must(t, err)
	tables, err := pgx.CollectRows(query(t, db, `
		SELECT oid::regclass::text FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY 1`), pgx.RowTo[string])
	must(t, err)
	for _, table := range tables {
		var filled bool
		must(t, db.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM "+table+")").Scan(&filled))
		if !filled {
			t.Errorf("%s has no row", table)
		}
	}
	if *update && !t.Failed() {
		h.storeDump(k)
	}
}

func query(t *testing.T, db *pgx.Conn, sql string) pgx.Rows {
	t.Helper()
	rows, err := db.Query(t.Context(), sql)
	must(t, err)
	return rows
}

const filledPassword = "plum-orbit-lantern-42"

func (h *house) fillCatalog() {
	h.t.Helper()
	for i := range 3 {
		h.platform(http.MethodPut, fmt.Sprintf("catalog/tests/mock-%d", i), `{"title": "IELTS mock", "type": "ielts"}`, nil)
		h.platform(http.MethodPut, fmt.Sprintf("catalog/tests/writing-%d", i), `{"title": "IELTS writing", "type": "ielts", "scope": "writing"}`, nil)
	}
	h.platform(http.MethodPut, "catalog/tests/starter", `{"title": "IELTS starter", "type": "ielts", "starter": true}`, nil)
	h.platform(http.MethodPut, "organizations/demo/catalog/quizzes/q1", `{"title": "Grammar"}`, nil)
	browser := h.ownersBrowser()
	h.submit(browser, "/console/demo/api-keys/", url.Values{"name": {"Student system"}, "access": {"read_only"}})
	var logo bytes.Buffer
	form := multipart.NewWriter(&logo)
	part, err := form.CreateFormFile("logo", "logo.png")
	must(h.t, err)
	must(h.t, png.Encode(part, image.NewGray(image.Rect(0, 0, 256, 256))))
	must(h.t, form.Close())
	h.sendForm(browser, "/console/demo/settings/logo", form.FormDataContentType(), &logo)
}

// ownersBrowser is one in which an owner of the organization has signed in.
func (h *house) ownersBrowser() *http.Client {
	h.t.Helper()
	h.platform(http.MethodPut, "organizations/demo/staff/olive@north-institute.org",
		`{"first_name": "Olive", "role": "owner", "password": "`+filledPassword+`"}`, nil)
	h.secrets = append(h.secrets, filledPassword)
	jar, err := cookiejar.New(nil)
	must(h.t, err)
	browser := &http.Client{Jar: jar}
	h.submit(browser, "/sign-in", url.Values{"name": {"olive@north-institute.org"}, "password": {filledPassword}})
	return browser
}

// submit sends a form of a page, as a browser does.
func (h *house) submit(browser *http.Client, path string, form url.Values) {
	h.t.Helper()
	h.sendForm(browser, path, "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
}

func (h *house) sendForm(browser *http.Client, path, media string, body io.Reader) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.settings.PublicURL()+path, body)
	must(h.t, err)
	req.Header.Set("Content-Type", media)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := browser.Do(req)
	must(h.t, err)
	must(h.t, resp.Body.Close())
	if resp.StatusCode >= 300 {
		h.t.Fatalf("%s: %s", path, resp.Status)
	}
}

// provisionWith makes a provisioning call with an idempotency key.
func (h *house) provisionWith(key, body string) {
	h.t.Helper()
	status, text := h.send(http.MethodPost, h.settings.PublicURL()+"/api/v1/provision/student/", body,
		"X-API-Key", h.key, "Content-Type", "application/json", "Idempotency-Key", key)
	if status >= 300 {
		h.t.Fatalf("%s: %d %s", body, status, text)
	}
}

// fillPlans has one student with a plan whose first test is finished, and one with a goal alone.
func (h *house) fillPlans(db *pgx.Conn) {
	h.t.Helper()
	const asha = "asha@north-institute.org"
	h.startPlan(asha, "parent@home-of-asha.org")
	h.provisionWith("order-1", `{"email": "asha@north-institute.org", "first_name": "Asha", "courses": "ielts",
		"extend_access": true, "external_ref": 7, "tenure_months": 1, "target_score_plan": {"safe_exam_browser": true}}`)
	h.provisionWith("order-2", `{"email": "binod@north-institute.org", "first_name": "Binod", "courses": "toefl",
		"target_score_plan": {"target_score": 100}}`)
	given := h.assignments(asha)[0]
	for _, state := range []string{"started", "finished"} {
		h.platform(http.MethodPut, "test-sessions/s1", fmt.Sprintf(`{"organization": "demo", "user_id": %d, "item_id": %d, "attempt": "assigned",
			"assignment_id": %q, "state": %q, "started_at": %q, "completed_at": %[5]q, "score": 5.5,
			"sections": {"listening": 6, "reading": 6, "writing": 4.5, "speaking": 5.5}}`,
			given.Student.UserID, given.Item.ID, given.ID, state, time.Now().UTC().Format(time.RFC3339)), nil)
	}
	eventually(h.t, db, "a drill is given", `SELECT EXISTS (SELECT FROM plan_drills)`)
	var students struct{ Students []json.RawMessage }
	h.partnerGet("students/?limit=1", &students) // whose cursor is signed
}

// fillLaunch has a learning management system launch a quiz.
func (h *house) fillLaunch() (consumer ltiConsumer) {
	h.t.Helper()
	h.platform(http.MethodPost, "organizations/demo/lti-consumer", `{}`, &consumer)
	h.secrets = append(h.secrets, consumer.Secret)
	var catalog struct {
		Items []struct {
			Link string `json:"lti_link"`
		}
	}
	h.partnerGet("catalog/?kind=quiz", &catalog)
	consumer.Link = catalog.Items[0].Link
	h.launch(consumer, "lena@north-institute.org", "nonce-1")
	return consumer
}

// launch is the launch of the consumer's item by somebody.
func (h *house) launch(consumer ltiConsumer, email, nonce string) {
	h.t.Helper()
	form := url.Values{
		"lti_message_type": {"basic-lti-launch-request"}, "lti_version": {"LTI-1p0"}, "resource_link_id": {"1"}, "user_id": {email},
		"roles": {"Learner"}, "lis_person_contact_email_primary": {email}, "lis_person_name_given": {"Lena"},
		"oauth_consumer_key": {consumer.Key}, "oauth_nonce": {nonce}, "oauth_callback": {"about:blank"}, "oauth_version": {"1.0"},
		"oauth_timestamp": {fmt.Sprint(time.Now().Unix())}, "oauth_signature_method": {"HMAC-SHA1"},
	}
	form.Set("oauth_signature", oauth1.Sign(http.MethodPost, consumer.Link, form, consumer.Secret, ""))
	if status, page := h.post(consumer.Link, form); status >= 400 {
		h.t.Fatalf("launching: %d %s", status, page)
	}
}

func zipped(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range files {
		f, err := w.Create(name)
		must(t, err)
		_, err = f.Write([]byte(text))
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

func (h *house) fillRoster(db *pgx.Conn) {
	h.t.Helper()
	file := zipped(h.t, map[string]string{
		"people.csv": "person_external_id,email,first_name,last_name,role\n" +
			"s1,rosa@roster-institute.org,Rosa,Diaz,student\ns2,not an address,Omar,Said,student\n",
		"enrollments.csv": "person_external_id,class_external_id,class_name\ns1,c1,Class 1\n"})
	h.mustImport(file)
	eventually(h.t, db, "the roster is imported", `SELECT EXISTS (SELECT FROM roster_class_members)`)
}

// fillActivity reports an event and has its day compiled.
func (h *house) fillActivity(db *pgx.Conn) {
	h.t.Helper()
	user := h.assignments("asha@north-institute.org")[0].Student.UserID
	h.platform(http.MethodPost, "activity", fmt.Sprintf(`{"events": [{"organization": "demo", "user_id": %d, "at": %q, "kind": "visit"}]}`,
		user, time.Now().UTC().Add(-time.Hour).Format(time.RFC3339)), nil)
	india := time.FixedZone("Asia/Kolkata", 19800)
	h.platform(http.MethodPost, "activity/compile", fmt.Sprintf(`{"date": %q}`, time.Now().Add(-time.Hour).In(india).Format(time.DateOnly)), nil)
	eventually(h.t, db, "a day is closed", `SELECT EXISTS (SELECT FROM activity_closed_days)`)
}

func (h *house) fillWebhooks(db *pgx.Conn) {
	h.t.Helper()
	eventually(h.t, db, "a delivery is recorded", `SELECT EXISTS (SELECT FROM webhook_journal WHERE outcome IS NOT NULL)`)
	var list struct {
		Endpoints []struct{ ID json.RawMessage } `json:"webhook_endpoints"`
	}
	h.platform(http.MethodGet, "organizations/demo/webhook-endpoints", "", &list)
	h.platform(http.MethodPost, "organizations/demo/webhook-endpoints/"+strings.Trim(string(list.Endpoints[0].ID), `"`)+"/recover",
		`{"since": "2020-01-01T00:00:00Z", "until": "2099-01-01T00:00:00Z"}`, nil)
}

// fillPending leaves work that only a worker would do, and stops it before.
func (h *house) fillPending(db *pgx.Conn) {
	h.t.Helper()
	must(h.t, h.worker.Stop())
	h.provision("chitra@north-institute.org", http.StatusCreated)
	if status, page := h.post(h.settings.PublicURL()+"/forgot-password", url.Values{"email": {"chitra@north-institute.org"}}); status >= 400 {
		h.t.Fatalf("asking for a new password: %d %s", status, page)
	}
	gone := h.provision("farah@north-institute.org", http.StatusCreated)
	h.platform(http.MethodDelete, fmt.Sprintf("users/%d", gone.UserID), "", nil)
	h.platform(http.MethodPut, "organizations/closed", `{"name": "Closed Institute"}`, nil)
	h.platform(http.MethodDelete, "organizations/closed", "", nil)
	deepa := h.provision("deepa@north-institute.org", http.StatusCreated)
	// Who comes back into the organization's scope is due for new positions of results.
	h.platform(http.MethodPatch, fmt.Sprintf("organizations/demo/members/%d", deepa.UserID), `{"status": "inactive"}`, nil)
	enrollment := fmt.Sprintf("organizations/demo/enrollments/%d", deepa.Enrollments[0].EnrollmentID)
	h.platform(http.MethodPatch, enrollment, `{"state": "suspended"}`, nil)
	h.platform(http.MethodPatch, enrollment, `{"state": "running"}`, nil)
	file := zipped(h.t, map[string]string{"people.csv": "person_external_id,email,first_name,last_name,role\n" +
		"s3,noor@roster-institute.org,Noor,Khan,student\n"})
	go func() { _, _ = h.importRoster(bytes.NewReader(file)) }() // it waits for the worker
	eventually(h.t, db, "a roster waits", `SELECT EXISTS (SELECT FROM roster_runs WHERE state = 'queued')`)
}

// psqlCommands are pg_dump's to psql, which the test of the upgrade does not need.
var psqlCommands = regexp.MustCompile(`(?m)^\\.*\n`)

func (h *house) storeDump(k kept) {
	h.t.Helper()
	tools, err := stack.EnsureServers(h.t.Context(), os.Stderr)
	must(h.t, err)
	root, err := stack.Root()
	must(h.t, err)
	file := filepath.Join(root, "internal", "kit", "pg", "testdata", fmt.Sprintf("filled-%05d.sql.gz", pg.RequiredVersion()))
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	dump := command(h.t, filepath.Join(tools.PostgresBin, "pg_dump"), "--inserts", "--no-owner", "--no-privileges", h.settings.DatabaseURL)
	dump.Stderr = os.Stderr
	text, err := dump.Output()
	must(h.t, err)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(psqlCommands.ReplaceAll(text, nil))
	must(h.t, err)
	must(h.t, w.Close())
	must(h.t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(h.t, os.WriteFile(file, packed.Bytes(), 0o644))
	inHand, err := json.MarshalIndent(k, "", " ")
	must(h.t, err)
	must(h.t, os.WriteFile(strings.TrimSuffix(file, ".sql.gz")+".json", append(inHand, '\n'), 0o644))
}
