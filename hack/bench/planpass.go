package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/hack/internal/chart"
	"github.com/registrar-dev/registrar/hack/stack"
)

// planCases belong to target score plans.
var planCases = []benchCase{
	{"plan-simulation", "1,000 students with random ability, paces, zones and exam dates over 120 days of test plans: their outcome, and no rule broken", onHouse(simulate)},
	{"plan-pass", "the daily pass over 10,000, 30,000 and 100,000 active plans: time, CPU and SQL per plan, memory of the worker", planPass},
}

const (
	planOrganizations = 50
	planPapers        = 30 // of each scope
	plansBound        = 60 * time.Second
)

// passed is what one pass cost.
type passed struct {
	plans    int
	took     time.Duration
	cpu      cpuTimes // of the pass alone
	calls    float64  // statements
	rss      int64
	verified string
}

func planPass(ctx context.Context, r *run) error {
	watched := *r
	watched.statements = true
	return onHouse(func(ctx context.Context, _ *run, h *house) error { return h.planPass(ctx, r) })(ctx, &watched)
}

func (h *house) planPass(ctx context.Context, r *run) error {
	conn, err := h.withoutWorker(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	var all []passed
	r.printf("  %8s  %9s  %26s  %15s  %12s  %14s  %s", "plans", "the pass", "CPU a plan, µs", "SQL statements", "tests opened", "missed", "memory of")
	r.printf("  %8s  %9s  %8s %8s %8s  %15s  %12s  %14s  %s", "", "s", "worker", "postgres", "sum", "a plan", "", "", "the worker, MiB")
	for _, n := range []int{r.size(10_000), r.size(30_000), r.size(100_000)} {
		if err := seedPlans(ctx, conn, n); err != nil {
			return fmt.Errorf("%d plans: %w", n, err)
		}
		p, err := h.onePass(ctx, r, conn, n)
		if err != nil {
			return fmt.Errorf("%d plans: %w", n, err)
		}
		all = append(all, p)
		perPlan := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(n) }
		r.printf("  %8d  %9.1f  %8.0f %8.0f %8.0f  %15.2f  %27s  %d", n, p.took.Seconds(), perPlan(p.cpu["worker"]), perPlan(p.cpu["postgres"]),
			perPlan(p.cpu["worker"]+p.cpu["postgres"]), p.calls/float64(n), p.verified, p.rss>>20)
	}
	if err := h.printStatements(ctx, r); err != nil {
		return err
	}
	first, last := all[0], all[len(all)-1]
	cost := func(p passed) float64 {
		return float64(p.cpu["worker"]+p.cpu["postgres"]) / float64(p.plans)
	}
	bound := time.Duration(float64(plansBound) * r.scale)
	drawPasses(r, all, bound)
	r.verdict("the pass over all", last.took < bound, fmt.Sprintf("under %.0f s", bound.Seconds()), "%.1f s", last.took.Seconds())
	r.verdict("a plan's cost, many beside few", cost(last) <= 1.25*cost(first), "about 1: at most 1.25 times", "%.2f times", cost(last)/cost(first))
	r.verdict("the worker's memory", last.rss <= first.rss+first.rss/2, "at most 1.5 times", "%d MiB with %d plans, %d MiB with %d", first.rss>>20, first.plans, last.rss>>20, last.plans)
	return nil
}

// drawPasses shows how a pass grows with the plans, and that a plan's cost does not.
func drawPasses(r *run, all []passed, bound time.Duration) {
	took := chart.Rows{Title: "Time of the pass", Unit: "s"}
	cost := chart.Rows{Title: "CPU time of a plan", Unit: "µs"}
	for i, p := range all {
		name := fmt.Sprintf("%d plans", p.plans)
		row := bar(name, p.took.Seconds(), 0, chart.Blue)
		if i == len(all)-1 {
			row.Bound = bound.Seconds()
		}
		took.Rows = append(took.Rows, row)
		perPlan := func(of string) float64 { return float64(p.cpu[of].Microseconds()) / float64(p.plans) }
		cost.Rows = append(cost.Rows, chart.Row{Name: name, Parts: []chart.Part{{Name: "worker", Color: chart.Blue, Value: perPlan("worker")}, {Name: "PostgreSQL", Color: chart.Green, Value: perPlan("postgres")}}})
	}
	r.draw(took)
	r.draw(cost)
}

// onePass starts a worker and waits until no plan is due any more.
func (h *house) onePass(ctx context.Context, r *run, conn *pgx.Conn, n int) (p passed, err error) {
	if _, err := conn.Exec(ctx, `SELECT pg_stat_statements_reset()`); err != nil {
		return p, err
	}
	if _, err := conn.Exec(ctx, `UPDATE plans SET next_run_at = date_trunc('day', now())`); err != nil {
		return p, err
	}
	before, began := familyTime(h.Postgres.Identity().PID), time.Now()
	h.worker = h.settings.Worker()
	if err := stack.StartReady(ctx, h.worker, h.settings.Ports.WorkerPrivate); err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, h.worker.Stop()) }()
	defer h.profiles(ctx, r, r.lasting(8*time.Second))()
	for due := true; due; {
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return p, err
		}
		if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM plans WHERE next_run_at <= now())`).Scan(&due); err != nil {
			return p, err
		}
		if time.Since(began) > 10*time.Minute {
			return p, errors.New("the pass does not come to an end")
		}
	}
	p.took, p.plans, p.rss = time.Since(began), n, peakRSS(h.worker.Identity().PID)
	r.peak("worker", p.rss)
	p.cpu = cpuTimes{"worker": procTime(h.worker.Identity().PID), "postgres": familyTime(h.Postgres.Identity().PID) - before}
	if err := conn.QueryRow(ctx, `SELECT sum(calls) FROM pg_stat_statements`).Scan(&p.calls); err != nil {
		return p, err
	}
	return p, h.verifyPass(ctx, conn, n, &p)
}

// verifyPass holds what the pass did against what the seed asked for.
func (h *house) verifyPass(ctx context.Context, conn *pgx.Conn, n int, p *passed) error {
	var opened, missed, failed int
	err := conn.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE event = 'test_opened'), count(*) FILTER (WHERE event = 'test_missed'),
			(SELECT count(*) FROM plans WHERE failures > 0)
		FROM plan_history`).Scan(&opened, &missed, &failed)
	if err != nil {
		return err
	}
	p.verified = fmt.Sprintf("%12d  %14d", opened, missed)
	if want := n / 7; opened < want || missed < n/14 || failed > 0 {
		return fmt.Errorf("%d tests were opened, of %d; %d missed; %d plans failed", opened, want, missed, failed)
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// seedPlans makes n active plans in the middle of their time, none of them due yet. Of each
// seven, one has a test that opens today, one a test that was opened and is due later; of
// each fourteen, one has a test that was due yesterday; the others wait.
func seedPlans(ctx context.Context, conn *pgx.Conn, n int) error {
	script := strings.NewReplacer("$n", fmt.Sprint(n), "$orgs", fmt.Sprint(planOrganizations), "$papers", fmt.Sprint(planPapers)).Replace(planSeed)
	if _, err := conn.Exec(ctx, script); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, `VACUUM ANALYZE`)
	return err
}

const planSeed = `
SET session_replication_role = replica;
-- When the fifth test of plan i opens, in days from today.
CREATE OR REPLACE FUNCTION pg_temp.phase(i bigint) RETURNS integer LANGUAGE sql AS
	$f$ SELECT CASE WHEN i % 7 = 1 THEN -1 WHEN i % 14 = 2 THEN -3 ELSE i % 7 END $f$;
TRUNCATE organizations, accounts, catalog_items, plans, plan_history, plan_tests, assignments, assignment_positions, results, members, courses, enrollments,
	outbox_tasks, emails RESTART IDENTITY CASCADE;
INSERT INTO organizations (slug, name, language_tests_enabled, default_access_months, grace_period_days, starter_tests_per_course,
		visible_tests_limit, send_welcome_email_default, set_password_link_valid_days, created_at, updated_at)
	SELECT 'pass-' || o, 'School ' || o, true, 6, 7, 0, 10, true, 7, now(), now() FROM generate_series(1, $orgs) AS o;
INSERT INTO courses (organization_id, name, course_type, is_default, start_date, created_at, updated_at)
	SELECT o, 'IELTS', 'ielts', true, current_date - 400, now(), now() FROM generate_series(1, $orgs) AS o;
INSERT INTO catalog_items (kind, code, title, type, scope, max_score_e4, difficulty_e4, created_at, updated_at)
	SELECT 'test', scope || '-' || i, 'Paper ' || scope || ' ' || i, 'ielts', scope, 90000, 50000 + 1000 * i, now(), now()
	FROM unnest(ARRAY['full', 'listening', 'reading', 'writing', 'speaking']) WITH ORDINALITY AS s(scope, nth), generate_series(1, $papers) AS i ORDER BY nth, i;
INSERT INTO accounts (email, username, first_name, last_name, created_by_organization, created_via, created_at, updated_at)
	SELECT 's' || i || '@bench.school', 's' || i, 'Student', 'No. ' || i, 1 + i % $orgs, 'api', now(), now() FROM generate_series(1, $n) AS i;
INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
	SELECT 1 + i % $orgs, i, 'member', 'active', 'api', now() - interval '60 days', now() FROM generate_series(1, $n) AS i;
INSERT INTO enrollments (organization_id, user_id, course_id, start_date, end_date, grace_period_end, next_day, created_at, updated_at)
	SELECT 1 + i % $orgs, i, 1 + i % $orgs, current_date - 60, current_date + 100, current_date + 107, NULL, now(), now() FROM generate_series(1, $n) AS i;
INSERT INTO plans (organization_id, user_id, enrollment_id, exam, status, target_score_e4, exam_date, time_zone, pace, practice_drills,
		staff_recipients, level, counted_to, at_risk, next_run_at, started_at, updated_at)
	SELECT 1 + i % $orgs, i, i, 'ielts', 'active', 70000, current_date + 60, 'UTC', 'standard', true, '{}', 'standard', 4, false,
		now() + interval '1 hour', now() - interval '35 days', now() FROM generate_series(1, $n) AS i;
-- Four finished tests each, a week apart, then one in the state that the phase leaves it in.
INSERT INTO assignments (organization_id, user_id, item_id, kind, status, source, notify, assigned_at, due_at, completed_at, result_ref, position, updated_at)
	SELECT 1 + i % $orgs, i, slot, 'test', 'completed', 'plan', true, day, day + interval '2 days', day + interval '1 day',
		'test:' || i || '-' || slot, (slot - 1) * $n + i, now()
	FROM generate_series(1, 4) AS slot, generate_series(1, $n) AS i, LATERAL (SELECT (current_date + pg_temp.phase(i) - 7 * (5 - slot))::timestamptz AS day) AS d;
INSERT INTO results (organization_id, ref, kind, type, user_id, item_id, assignment_id, attempt, state, completed_at, score_e4, max_score_e4, sections, final_at, position, updated_at)
	SELECT organization_id, result_ref, kind, 'ielts', user_id, item_id, id, 'assigned', 'finished', completed_at, 70000, 90000,
		'{"listening":7,"reading":7,"writing":7,"speaking":7}', completed_at, position, now() FROM assignments;
INSERT INTO plan_tests (plan_id, slot, kind, state, opens_on, due_on, decided_on, item_id, assignment_id, finished_on, score_e4, sections)
	SELECT user_id, item_id, CASE item_id WHEN 1 THEN 'baseline' ELSE 'mock' END, 'finished', assigned_at::date, due_at::date,
		assigned_at::date - 6, item_id, id, completed_at::date, 70000, '{"listening":7,"reading":7,"writing":7,"speaking":7}' FROM assignments;
INSERT INTO assignments (organization_id, user_id, item_id, kind, status, source, notify, assigned_at, due_at, position, updated_at)
	SELECT 1 + i % $orgs, i, 5, 'test', 'pending', 'plan', true, (current_date + pg_temp.phase(i))::timestamptz,
		(current_date + pg_temp.phase(i) + 3)::timestamptz - interval '1 minute', 4 * $n + i, now()
	FROM generate_series(1, $n) AS i WHERE pg_temp.phase(i) < 0;
INSERT INTO plan_tests (plan_id, slot, kind, state, opens_on, due_on, decided_on, item_id, assignment_id)
	SELECT user_id, 5, 'challenge', 'opened', assigned_at::date, due_at::date, assigned_at::date - 6, item_id, id FROM assignments WHERE status = 'pending';
INSERT INTO plan_tests (plan_id, slot, kind, state, opens_on, due_on, decided_on)
	SELECT i, 5, 'challenge', 'waiting', current_date + pg_temp.phase(i), current_date + pg_temp.phase(i) + 2, current_date + pg_temp.phase(i) - 6
	FROM generate_series(1, $n) AS i WHERE pg_temp.phase(i) >= 0;
SELECT begin_lists(ARRAY(SELECT id FROM organizations));
UPDATE assignment_positions p SET last = a.last, last_at = a.at
	FROM (SELECT organization_id, max(position) AS last, max(assigned_at) AS at FROM assignments GROUP BY 1) AS a
	WHERE a.organization_id = p.organization_id;
UPDATE result_positions p SET last = r.last
	FROM (SELECT organization_id, max(position) AS last FROM results GROUP BY 1) AS r
	WHERE r.organization_id = p.organization_id;
SELECT make_positions(id) FROM organizations;
-- next_position draws with the rights of its owner, who makes them elsewhere.
DO $f$ DECLARE o bigint; BEGIN
	FOR o IN SELECT id FROM organizations LOOP
		EXECUTE format('ALTER SEQUENCE %I OWNER TO %I', 'positions_' || o, (SELECT proowner::regrole::text FROM pg_proc WHERE proname = 'next_position'));
	END LOOP;
END $f$;
SET session_replication_role = DEFAULT;
`
