package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
)

var calendarCases = []benchCase{
	{"calendar", "1,000,000 enrollments of 50 organizations that end at one midnight: until all events are recorded", onHouse(calendar)},
}

// tenMillion is how many enrollments may end at one midnight, and tenMillionWithin until when their events are to be recorded.
const (
	tenMillion       = 10_000_000
	tenMillionWithin = 5 * time.Minute
)

func calendar(ctx context.Context, r *run, h *house) error {
	conn, err := h.withoutWorker(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	n := r.size(1_000_000)
	if _, err := conn.Exec(ctx, strings.ReplaceAll(calendarSeed, "$n", fmt.Sprint(n))); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `VACUUM ANALYZE`); err != nil {
		return err
	}
	if err := h.superuser(ctx, "registrar", `CHECKPOINT`); err != nil {
		return err
	}
	before, log, began := h.cpu(), h.walBytes(ctx), time.Now()
	h.worker = h.settings.Worker()
	if err := stack.StartReady(ctx, h.worker, h.settings.Ports.WorkerPrivate); err != nil {
		return err
	}
	for due := true; due; {
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
		if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM enrollments WHERE next_day <= current_date)`).Scan(&due); err != nil {
			return err
		}
		if time.Since(began) > 20*time.Minute {
			return errors.New("the pass does not come to an end")
		}
	}
	took := time.Since(began)
	var events int
	if err := conn.QueryRow(ctx, `SELECT count(*) FROM webhook_events WHERE type = 'enrollment.ended'`).Scan(&events); err != nil {
		return err
	}
	if events != n {
		return fmt.Errorf("%d enrollments ended, and %d events say so", n, events)
	}
	r.printf("  %d enrollments in %.1f s: %.0f/s; CPU an enrollment: %s, %d bytes of WAL", n, took.Seconds(), float64(n)/took.Seconds(),
		h.cpu().since(before, n), (h.walBytes(ctx)-log)/int64(n))
	all := time.Duration(float64(took) / float64(n) * tenMillion)
	r.verdict("10,000,000 at one midnight", all <= tenMillionWithin, "within 5 min", "%s, reckoned from these", all.Round(time.Second))
	return h.printStatements(ctx, r)
}

const calendarSeed = `
SET session_replication_role = replica;
INSERT INTO organizations (slug, name, language_tests_enabled, default_access_months, grace_period_days, starter_tests_per_course,
		visible_tests_limit, send_welcome_email_default, set_password_link_valid_days, created_at, updated_at)
	SELECT 'midnight-' || o, 'School ' || o, true, 6, 7, 0, 10, true, 7, now(), now() FROM generate_series(1, 50) AS o;
CREATE TEMP TABLE schools AS
	SELECT id, row_number() OVER (ORDER BY id) - 1 AS n FROM organizations WHERE slug LIKE 'midnight-%';
INSERT INTO courses (organization_id, name, course_type, is_default, start_date, created_at, updated_at)
	SELECT id, 'IELTS', 'ielts', true, current_date - 400, now(), now() FROM schools;
INSERT INTO accounts (email, username, first_name, last_name, created_by_organization, created_via, created_at, updated_at)
	SELECT 'm' || i || '@midnight.school', 'm' || i, 'Student', 'No. ' || i, s.id, 'api', now(), now()
	FROM generate_series(1, $n) AS i JOIN schools s ON s.n = i % 50;
INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
	SELECT created_by_organization, id, 'member', 'active', 'api', now() - interval '60 days', now()
	FROM accounts WHERE email LIKE '%@midnight.school';
INSERT INTO enrollments (organization_id, user_id, course_id, start_date, end_date, grace_period_end, notified_status, next_day, created_at, updated_at)
	SELECT a.created_by_organization, a.id, c.id, current_date - 60, current_date - 8, current_date - 1, 'grace_period', current_date, now(), now()
	FROM accounts a JOIN courses c ON c.organization_id = a.created_by_organization AND c.is_default WHERE a.email LIKE '%@midnight.school';
SELECT make_positions(id) FROM schools;
SELECT begin_lists(ARRAY(SELECT id FROM schools));
-- next_position draws with the rights of its owner, who makes them elsewhere.
DO $f$ DECLARE o bigint; BEGIN
	FOR o IN SELECT id FROM schools LOOP
		EXECUTE format('ALTER SEQUENCE %I OWNER TO %I', 'positions_' || o, (SELECT proowner::regrole::text FROM pg_proc WHERE proname = 'next_position'));
	END LOOP;
END $f$;
SET session_replication_role = DEFAULT;
`
