package platform_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/flow/organization"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// closer is a worker's, under its role.
func (l *life) closer(t *testing.T) *organization.Eraser {
	t.Helper()
	return &organization.Eraser{DB: pgtest.OpenAs(t, l.DB, "worker"), Clock: l.Now, Log: slog.New(slog.DiscardHandler)}
}

// has is everything that an organization has, and the accounts of its people, as texts by table.
func (l *life) has(t *testing.T, org id.Organization) map[string]string {
	t.Helper()
	of := map[string]string{
		"accounts":             `WHERE id IN (SELECT user_id FROM directory WHERE organization_id = $1)`,
		"roster_changes":       `WHERE run_id IN (SELECT id FROM roster_runs WHERE organization_id = $1)`,
		"roster_class_changes": `WHERE run_id IN (SELECT id FROM roster_runs WHERE organization_id = $1)`,
		"roster_issues":        `WHERE run_id IN (SELECT id FROM roster_runs WHERE organization_id = $1)`,
		"enrollment_refs":      `WHERE enrollment_id IN (SELECT id FROM enrollments WHERE organization_id = $1)`,
		"plan_history":         `WHERE plan_id IN (SELECT id FROM plans WHERE organization_id = $1)`,
		"plan_tests":           `WHERE plan_id IN (SELECT id FROM plans WHERE organization_id = $1)`,
		"webhook_secrets":      `WHERE endpoint_id IN (SELECT id FROM webhook_endpoints WHERE organization_id = $1)`,
		"organizations":        `WHERE id = $1`,
	}
	tables, err := pg.Column[string](t.Context(), l.DB, `
		SELECT c.relname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attname = 'organization_id'`)
	check.NoError(check.Now(t), err, "the tables")
	for _, table := range tables {
		of[table] = `WHERE organization_id = $1`
	}
	delete(of, "api_keys") // which remember their last use
	has := map[string]string{}
	for table, which := range of {
		var text string
		err := l.DB.QueryRow(t.Context(), `SELECT coalesce(string_agg(x::text, E'\n' ORDER BY x::text), '') FROM `+table+` AS x `+which, org).Scan(&text)
		check.NoError(check.Now(t), err, "%s", table)
		if text != "" {
			has[table] = text
		}
	}
	return has
}

// erasureBody is an answer about the erasure of an organization.
type erasureBody struct {
	ID            id.Organization `json:"organization_id"`
	State         string
	Deleted, Left map[string]int
	Stays         struct {
		Shared  int `json:"shared_accounts"`
		Numbers int `json:"account_numbers"`
		Catalog int `json:"catalog_numbers"`
	}
}

// ofNorth are texts that the organization north, and those whom only it knows, are called by anywhere.
var ofNorth = []string{"north", "bursar", "head@", "mock-", "ext-zq-77", "order-zq-5", "label-zq-6", "zq-parent", "parent@other.org", "198.51.100.7", "lti-north"}

// The worker is killed after its first transaction, after its second one when it goes on, and so forth. In the end a
// dump of the whole database has nothing of the organization, and another one beside it has all that it had.
// Reference: organization#erasure.
func TestAnErasedOrganizationIsNowhereInTheDump(t *testing.T) {
	t.Parallel()
	l := live(t)
	l.north.Full.With("Idempotency-Key", "bursar").Post(t, "provision/student/", `{"email": "bursar@only-north.org", "first_name": "Bursar", "courses": "ielts"}`).Want(t, 201)
	bursar := l.find(t, "bursar@only-north.org")
	l.Platform.Post(t, "organizations/north/lti-consumer", nil).Want(t, 201)
	l.Platform.Put(t, "organizations/north/roster-sources/sis", `{"authoritative_enabled": true}`).Want(t, 200)
	for _, u := range []id.User{bursar, l.user} {
		err := audit.WriteOwn(t.Context(), l.DB, audit.Actor{Kind: audit.Student, ID: int64(u), Name: fmt.Sprintf("user %d", u)}, nil, "signed in", "", fmt.Sprintf("198.51.100.%d", 70+u-bursar), l.Now())
		check.NoError(check.Now(t), err, "a sign-in")
	}
	l.exec(t, `UPDATE audit_log SET address = '192.0.2.1' WHERE actor_id = $1 AND address <> ''`, l.user)
	l.exec(t, `INSERT INTO sessions (hash, data, expires_at) VALUES ('h', jsonb_build_object('values', jsonb_build_object('user', $1::text, 'agent', 'bursar on a phone')), now() + interval '1 day')`, fmt.Sprint(bursar))
	l.exec(t, `INSERT INTO password_resets (email, created_at) VALUES ('bursar@only-north.org', now())`)
	l.exec(t, `INSERT INTO factors (id, user_id, kind, name, sealed, created_at) VALUES (gen_random_uuid(), $1, 'totp', 'the bursar''s telephone', '', now())`, bursar)
	l.exec(t, `INSERT INTO recovery_codes (user_id, hash) VALUES ($1, 'x')`, bursar)
	l.exec(t, `INSERT INTO factor_tries (user_id, since, tries) VALUES ($1, now(), 1)`, bursar)
	l.exec(t, `INSERT INTO identity_providers (organization_id, issuer, client_id, sealed, version, students, created_at, updated_at)
		VALUES ($1, 'https://north.test', 'x', '', 1, false, now(), now())`, l.north.ID)
	l.exec(t, `INSERT INTO mail_domains (organization_id, domain, token, created_at) VALUES ($1, 'north.test', 'x', now())`, l.north.ID)
	l.exec(t, `WITH r AS (
			INSERT INTO lms_registrations (organization_id, name, issuer, client_id, authorize_url, token_url, keys_url, deployments, created_at, updated_at)
			VALUES ($1, 'LMS of north', 'https://lms.north', 'x', 'x', 'x', 'x', '{x}', now(), now()) RETURNING id
		), p AS (
			INSERT INTO lms_people (organization_id, registration_id, subject, user_id, created_at) SELECT $1, id, 'bursar', $2, now() FROM r
		), x AS (
			INSERT INTO lms_contexts (organization_id, registration_id, deployment, context, title, memberships_url, seen_at) SELECT $1, id, '1', 'x', 'north', 'https://lms.north/names', now() FROM r
		), m AS (
			INSERT INTO lms_marks (organization_id, registration_id, line, user_id, line_item, item_id, updated_at) SELECT $1, id, '', $2, 'https://lms.north/1', 1, now() FROM r
		), g AS (
			INSERT INTO lms_logins (organization_id, state, registration_id, nonce, browser, storage, expires_at) SELECT $1, '', id, '', '', 'north', now() FROM r
		), v AS (
			INSERT INTO lms_invitations (organization_id, hash, expires_at) VALUES ($1, '', now())
		), d AS (
			INSERT INTO lms_choices (organization_id, hash, registration_id, request, expires_at) SELECT $1, '', id, '{"ReturnURL": "https://lms.north/return"}', now() FROM r
		)
		INSERT INTO lms_tickets (organization_id, hash, user_id, leads_to, note, expires_at) VALUES ($1, '', $2, '/', 'north', now())`, l.north.ID, bursar)
	l.exec(t, `INSERT INTO sign_in_policies (organization_id, factor_since, grace_days, updated_at) VALUES ($1, now(), 7, now())`, l.north.ID)
	l.exec(t, `INSERT INTO staff_alerts (organization_id, type, subject, occasion, since) VALUES ($1, 'url_failing', 1, 1, now())`, l.north.ID)
	l.exec(t, `INSERT INTO mail_optouts (organization_id, user_id, type, created_at) SELECT organization_id, user_id, 'url_failing', now()
		FROM members WHERE organization_id = $1 LIMIT 1`, l.north.ID)
	l.exec(t, `INSERT INTO emails (organization_id, user_id, type, recipient, reference, params, status, created_at, updated_at)
		SELECT NULL::bigint, $1::bigint, 'reset', 'bursar@only-north.org', gen_random_uuid(), '{}'::jsonb, 'sent', now(), now()
		UNION ALL SELECT $2, $1, 'welcome', 'bursar@only-north.org', gen_random_uuid(), '{}', 'sent', now(), now() FROM generate_series(1, 2500)`, bursar, l.north.ID)
	l.exec(t, `INSERT INTO results (organization_id, ref, kind, type, user_id, item_id, attempt, state, updated_at)
		SELECT $1, 'test:north-' || n, 'test', 'ielts', $2, (SELECT min(id) FROM catalog_items), 'practice', 'started', now() FROM generate_series(1, 6000) AS n`, l.north.ID, bursar)
	l.exec(t, `UPDATE catalog_items SET launch_url = 'https://learn.bursar.org/' WHERE organization_id = $1`, l.north.ID)
	before := l.dump(t)
	for _, text := range ofNorth[:len(ofNorth)-1] {
		check.Contains(t, "the dump", before, text, "before")
	}
	was := l.has(t, l.south.ID)
	check.True(t, "there is something beside", len(was) > 12, "%d tables", len(was))

	var e erasureBody
	l.Platform.Delete(t, "organizations/south-east").Want(t, 404)
	l.Platform.Delete(t, "organizations/north").Want(t, 202).Into(t, &e)
	check.Equal(t, "state", e.State, "erasing", "at once")
	check.Equal(t, "results that are left", e.Left["results"], 6002, "%v", e.Left)
	l.north.Full.Get(t, "ping/").Want(t, 401)
	l.Platform.Get(t, "organizations/north/api-keys").Want(t, 404)
	l.south.Full.Get(t, "ping/").Want(t, 200)
	leases, _, err := dispatch.LeaseDue(t.Context(), l.DB, l.Now(), time.Minute, nil)
	check.NoError(check.Now(t), err, "leasing")
	for _, lease := range leases {
		check.True(t, "nothing is sent", lease.Organization != l.north.ID, "%v", lease)
	}
	l.exec(t, `DELETE FROM webhook_leases`)
	l.Platform.Delete(t, "organizations/north").Want(t, 202)

	step := 1
	if testing.Short() {
		step = 10
	}
	kills := 0
	for finished := false; !finished; kills += step {
		c := l.closer(t)
		ctx, kill := context.WithCancel(t.Context())
		left := kills + 1
		c.Batch = func() {
			if left--; left == 0 {
				kill()
			}
		}
		err := c.Sweep(ctx)
		kill()
		check.True(check.Now(t), "it was killed, and no more", err == nil || errors.Is(err, context.Canceled), "%v", err)
		finished = err == nil
		c.DB.Close()
	}
	check.True(t, "it was killed often", kills > 30, "%d", kills)
	e = l.erasure(t, e.ID)
	check.Equal(t, "state", e.State, "erasing", "while calls may be under way")
	check.Equal(t, "left", len(e.Left), 0, "%v", e.Left)
	// A call that had begun.
	l.exec(t, `INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at) VALUES ($1, $2, 'member', 'active', 'roster', now(), now())`, l.north.ID, l.user)
	l.exec(t, `INSERT INTO api_keys (organization_id, name, access, prefix, hash, created_at) VALUES ($1, 'late north', 'full', 'reg_', 'h', now())`, l.north.ID)
	check.NoError(check.Now(t), l.closer(t).Sweep(t.Context()), "sweeping too early")
	check.Equal(t, "members", l.count(t, `members WHERE organization_id = $1`, l.north.ID), 1, "who came late")
	l.Advance(11 * time.Minute)
	check.NoError(check.Now(t), l.closer(t).Sweep(t.Context()), "sweeping")
	e = l.erasure(t, e.ID)
	check.Equal(t, "state", e.State, "erased", "in the end")
	check.Equal(t, "results", e.Deleted["results"], 6002, "%v", e.Deleted)
	check.Equal(t, "shared accounts", e.Stays.Shared, 3, "%+v", e) // one came late once more
	check.Equal(t, "accounts that are numbers", e.Stays.Numbers, 2, "%+v", e)
	check.Equal(t, "catalog", e.Stays.Catalog, 6, "%+v", e)
	l.Platform.Delete(t, "organizations/north").Want(t, 404)
	for _, table := range []string{"factors", "recovery_codes", "factor_tries"} {
		check.Equal(t, table, l.count(t, table+` WHERE user_id = $1`, bursar), 0, "of somebody whom nobody else knew")
	}
	for _, table := range []string{"sign_in_policies", "identity_providers", "mail_domains", "staff_alerts", "mail_optouts", "lms_registrations", "lms_people", "lms_contexts", "lms_marks", "lms_logins", "lms_choices", "lms_invitations", "lms_tickets"} {
		check.Equal(t, table, l.count(t, table+` WHERE organization_id = $1`, l.north.ID), 0, "")
	}

	after := l.dump(t)
	for line := range strings.Lines(after) {
		for _, text := range ofNorth {
			check.True(t, text, !strings.Contains(line, text) || strings.Contains(line, "create ") || strings.HasPrefix(line, "--"), "%.300s", line)
		}
	}
	is := l.has(t, l.south.ID)
	for table, text := range was {
		check.Equal(t, table, is[table], text, "of another organization")
	}
	check.Contains(t, "the dump", after, "192.0.2.1", "where somebody signed in whom another organization knows")
	l.Platform.Put(t, "organizations/north", `{"name": "Another North"}`).Want(t, 201)
	l.Platform.Get(t, "organization-erasures/999999").Want(t, 404)
}

// erasure says how far that of an organization is.
func (l *life) erasure(t *testing.T, org id.Organization) (e erasureBody) {
	t.Helper()
	l.Platform.Get(t, fmt.Sprintf("organization-erasures/%d", org)).Want(t, 200).Into(t, &e)
	return e
}

func (l *life) count(t *testing.T, from string, args ...any) (n int) {
	t.Helper()
	check.NoError(check.Now(t), l.DB.QueryRow(t.Context(), `SELECT count(*) FROM `+from, args...).Scan(&n), "%s", from)
	return n
}

// Another organization takes in people of one that is being erased: each has an account there, whole.
func TestPeopleOfAnErasedOrganizationAreTakenInElsewhere(t *testing.T) {
	t.Parallel()
	l := &life{Env: apitest.New(t)}
	l.north, l.south = l.Organization(t, "north"), l.Organization(t, "south")
	n := 60
	if testing.Short() {
		n = 15
	}
	student := func(i int) string {
		return fmt.Sprintf(`{"email": "s%d@shared.org", "first_name": "Sam", "last_name": "Shared", "courses": "ielts"}`, i)
	}
	for i := range n {
		l.north.Full.Post(t, "provision/student/", student(i)).Want(t, 201)
	}
	l.Platform.Delete(t, "organizations/north").Want(t, 202)
	var calls sync.WaitGroup
	for w := range 3 {
		calls.Go(func() {
			for i := w; i < n; i += 3 {
				a := l.south.Full.Freely().Post(t, "provision/student/", student(i))
				check.True(t, "taken in", a.Status == 200 || a.Status == 201, "%d %s", a.Status, a.Body)
			}
		})
	}
	check.NoError(t, l.closer(t).Sweep(t.Context()), "sweeping")
	calls.Wait()
	l.Advance(11 * time.Minute)
	check.NoError(t, l.closer(t).Sweep(t.Context()), "sweeping")
	const whole = `members m JOIN accounts a ON a.id = m.user_id JOIN enrollments e ON e.user_id = a.id
		WHERE m.organization_id = $1 AND e.organization_id = $1 AND a.email LIKE 's%@shared.org'`
	check.Equal(t, "students", l.count(t, whole, l.south.ID), n, "of the other organization, with an account")
	check.Equal(t, "members", l.count(t, `members WHERE organization_id = $1`, l.north.ID), 0, "of the erased one")
}
