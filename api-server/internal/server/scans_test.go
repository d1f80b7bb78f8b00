package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/openapi"
	"github.com/registrar-dev/registrar/api-server/internal/server"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// large are the tables that no list may read as a whole.
var large = []string{"accounts", "members", "enrollments", "assignments", "results", "result_spans", "activity_days", "webhook_events_default",
	"emails", "audit_log", "roster_changes"}

// Every list with each of its filters reads the large tables along an index that narrows
// them, whether PostgreSQL plans a statement for its values or once for all of them. The
// filters are those of the document, so that a new one cannot be forgotten.
func TestNoListReadsALargeTableAsAWhole(t *testing.T) {
	t.Parallel()
	issued := &statements{}
	e := apitest.New(t, func(d *server.Deps) { issued.listen(t, d.DB) })
	crowded, sparse := crowd(t, e)
	for _, o := range operations(t, openapi.Partner()) {
		if o.method != "GET" {
			continue
		}
		for _, query := range queries(t, o) {
			path := named.Replace(o.path) + query
			t.Run(path, func(t *testing.T) {
				for _, org := range []apitest.Organization{crowded, sparse} {
					issued.forget()
					a := org.ReadOnly.Get(t, path)
					check.OneOf(check.Now(t), "status", a.Status, []int{200, 404}, "%s", a.Body)
					for _, s := range issued.all() {
						noScan(t, e.DB, s)
					}
				}
			})
		}
	}
}

// named names what a path does: the webhook URL of the crowded organization, and one of its deliveries.
var named = strings.NewReplacer("{id}", "1", "{delivery}", "dlv_"+strings.Repeat("0", 32))

// statuses are those of each list that has some.
var statuses = map[string][]string{
	"/api/v1/students/":                          {"active", "inactive"},
	"/api/v1/assignments/":                       {"open", "completed", "overdue"},
	"/api/v1/webhook-endpoints/{id}/deliveries/": {"delivered", "declined,exhausted", "waiting"},
}

// values are what each parameter of a list is tried with, in the crowded organization,
// whose people and courses are nobody and nothing in the sparse one.
var values = map[string][]string{
	"email": {"s11@school.example"}, "user_id": {"11"},
	"course_id": {"1", "2"}, // half of the people's, and that of twenty
	"kind":      {"test", "quiz", "test,assessment"},
	"test_type": {"ielts", "sat"},
	"since":     {"2025-12-01", "2026-11-19"},
	"until":     {"2025-12-24", "2026-11-19"},
	"from":      {"2026-09-25", "2026-11-19"}, "to": {"2026-01-10", "2026-11-20"},
	"event": {"evt_019aa3a1ac007000800000000000000f"}, "delivery": {"dlv_019aa3a1ac007000800000000000000f"},
	"types": {"result.final", "student.left", "student.left,student.joined"},
	"tz":    {"Asia/Kolkata"},
	"limit": {"1", "500"},
}

// subjects are what a list is of, where it is of one thing: its other parameters are tried beside it.
var subjects = map[string]string{"/api/v1/explain/": "email=s11%40school.example"}

// queries are a list's query strings: none, and each parameter alone.
func queries(t *testing.T, o operation) []string {
	t.Helper()
	all, beside := []string{""}, ""
	if subject := subjects[o.path]; subject != "" {
		all, beside = nil, subject+"&"
	}
	for _, name := range o.query {
		if name == "cursor" {
			continue // comes with the others
		}
		tried := values[name]
		if name == "status" {
			tried = statuses[o.path]
		}
		if tried == nil {
			t.Fatalf("say in this test which values %s of %s is tried with", name, o.path)
		}
		for _, value := range tried {
			query := name + "=" + url.QueryEscape(value)
			if name != "email" && name != "event" && name != "delivery" {
				query = beside + query
			}
			all = append(all, "?"+query)
		}
	}
	return all
}

// crowd makes an organization of half of everything, and one of very little; the rest is
// that of four others. It is what the planner meets in production, but for the size.
func crowd(t *testing.T, e *apitest.Env) (crowded, sparse apitest.Organization) {
	t.Helper()
	crowded, sparse = e.Organization(t, "crowded"), e.Organization(t, "sparse")
	for _, slug := range []string{"a", "b", "c", "d"} {
		e.Organization(t, slug)
	}
	crowded.Full.Post(t, "webhook-endpoints/", `{"url": "https://hooks.school.example/"}`).Want(t, 201)
	const orgOf = `CASE WHEN %[1]s %% 2 = 1 THEN 1 WHEN %[1]s %% 1000 = 0 THEN 2 ELSE 3 + %[1]s / 2 %% 4 END`
	for _, statement := range []string{
		`INSERT INTO accounts (email, username, first_name, created_via, created_at, updated_at)
			SELECT 's' || n || '@school.example', 's' || n, 'S', 'api', now(), now() FROM generate_series(1, 40000) AS n ORDER BY n`,
		`INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
			SELECT ` + fmt.Sprintf(orgOf, "id") + `, id, CASE WHEN id % 5000 = 0 THEN 'admin' ELSE 'member' END, CASE WHEN id % 10 = 3 THEN 'inactive' ELSE 'active' END, 'api', now(), now() FROM accounts`,
		`INSERT INTO courses (organization_id, name, course_type, start_date, created_at, updated_at)
			SELECT o, 'C', 'ielts', '2026-01-01', now(), now() FROM unnest(ARRAY[1, 1, 2, 3, 4, 5, 6]) AS o`,
		`INSERT INTO enrollments (organization_id, user_id, course_id, start_date, end_date, grace_period_end, created_at, updated_at)
			SELECT m.organization_id, m.user_id, c.id, '2026-01-01', '2026-03-01'::date + m.user_id::integer % 400, '2026-03-08'::date + m.user_id::integer % 400, now(), now()
			FROM members m JOIN courses c USING (organization_id)
			WHERE CASE c.id WHEN 1 THEN m.user_id % 4 = 1 WHEN 2 THEN m.user_id <= 40 ELSE m.user_id % 3 = 0 END`,
		`INSERT INTO catalog_items (organization_id, kind, code, title, type, max_score_e4, created_at, updated_at)
			SELECT CASE k WHEN 'test' THEN NULL ELSE o END, k, k || o || '-' || n, k, CASE k WHEN 'test' THEN (ARRAY['ielts', 'toefl', 'sat'])[1 + n % 3] ELSE k END, 90000, now(), now()
			FROM generate_series(1, 6) AS o, unnest(ARRAY['test', 'quiz', 'assessment']) AS k, generate_series(1, 30) AS n`,
		`CREATE TEMPORARY TABLE work AS
			SELECT n, ` + fmt.Sprintf(orgOf, "u") + ` AS org, u AS user_id, i.id AS item_id, i.kind, i.type, '2025-11-21T00:00:00Z'::timestamptz + n * interval '157 s' AS at,
				row_number() OVER (PARTITION BY ` + fmt.Sprintf(orgOf, "u") + ` ORDER BY n) AS position
			FROM (SELECT n, 1 + (n::bigint * 7919 + n / 40000) % 40000 AS u FROM generate_series(0, 199999) AS n) AS x
			JOIN catalog_items i ON i.id = 1 + x.n % 540`,
		`INSERT INTO results (organization_id, ref, kind, type, user_id, item_id, attempt, state, completed_at, score_e4, max_score_e4, final_at, position, updated_at)
			SELECT org, kind || ':' || n, kind, type, user_id, item_id, 'practice', 'finished', at, 60000, 90000, at, position, now() FROM work`,
		`UPDATE result_positions p SET last = r.last FROM (
			SELECT organization_id, max(position) AS last FROM results GROUP BY 1) AS r
			WHERE r.organization_id = p.organization_id`,
		`INSERT INTO result_spans SELECT organization_id, position / 1024, min(final_at), max(final_at) FROM results GROUP BY 1, 2
			UNION ALL SELECT 100 + n % 50, n, '2025-01-01', '2025-01-02' FROM generate_series(0, 19999) AS n`, // others' of long ago
		`INSERT INTO assignments (organization_id, user_id, item_id, kind, status, source, notify, assigned_at, due_at, position, updated_at)
			SELECT org, user_id, item_id, kind, CASE WHEN n % 20 = 0 THEN 'pending' ELSE 'completed' END, 'api', true, at, at + interval '14 days', position, at FROM work`,
		`UPDATE assignment_positions p SET last = a.last, last_at = a.at FROM (
			SELECT organization_id, max(position) AS last, max(assigned_at) AS at FROM assignments GROUP BY 1) AS a
			WHERE a.organization_id = p.organization_id`,
		`INSERT INTO activity_days (organization_id, date, user_id, first_seen_at, last_seen_at, visits, active_minutes, page_views, tests_started, tests_completed)
			SELECT DISTINCT ON (user_id, at::date) org, at::date, user_id, at, at, 1, 1, 1, 1, 1 FROM work`,
		`INSERT INTO webhook_events (id, organization_id, user_id, type, created_at, data, sequence)
			SELECT uuid7_floor(at), org, user_id, CASE WHEN n % 100 = 0 THEN 'student.left' ELSE 'result.final' END, at,
				CASE WHEN org > 2 THEN '{}' WHEN n % 100 = 0 THEN '` + string(apitest.EventData(t, webhook.StudentLeft)) + `' ELSE '` + string(apitest.EventData(t, webhook.ResultFinal)) + `' END::json, position FROM work`,
		`INSERT INTO emails (organization_id, user_id, type, recipient, reference, params, status, created_at, updated_at)
			SELECT organization_id, user_id, 'welcome', 's@school.example', uuid7(), '{}', 'sent', joined_at, joined_at FROM members`,
		`INSERT INTO audit_log (organization_id, actor_kind, actor_name, action, target, created_at)
			SELECT organization_id, 'schedule', 'schedule', 'activated member', 's' || user_id || '@school.example', joined_at FROM members`,
		`INSERT INTO roster_sources (organization_id, name, created_at, updated_at) SELECT id, 'sis', now(), now() FROM organizations ORDER BY id`,
		`INSERT INTO roster_runs (organization_id, source_id, state, requested_by, stamp, created_at, updated_at)
			SELECT organization_id, id, 'applied', 'sis', now(), now(), now() FROM roster_sources ORDER BY id`,
		`INSERT INTO roster_changes (run_id, n, line, action, effects, user_id, external_id, email, first_name, last_name)
			SELECT r.id, m.user_id, m.user_id, 'update', 64, CASE WHEN m.user_id % 2 = 1 THEN m.user_id END, m.user_id, '', '', ''
			FROM members m JOIN roster_runs r USING (organization_id)`,
		`INSERT INTO webhook_journal (organization_id, endpoint_id, delivery_id, number, event_id, status, outcome, started_at, cause, request_headers)
			SELECT organization_id, 1, id, 1, id, CASE WHEN sequence % 50 = 0 THEN 'declined' ELSE 'delivered' END,
				CASE WHEN sequence % 50 = 0 THEN 'declined' ELSE 'delivered' END, created_at, 'ok', '{}' FROM webhook_events WHERE organization_id = 1`,
		`SELECT setval('positions_' || id, 200000) FROM organizations`,
		`VACUUM ANALYZE`,
	} {
		if _, err := e.DB.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return crowded, sparse
}

// statement is one that was issued.
type statement struct {
	sql  string
	args []any
}

// statements listens to what a pool issues.
type statements struct {
	mu    sync.Mutex
	found []statement
}

// listen makes db issue its statements over connections that are listened to.
func (s *statements) listen(t *testing.T, db *pg.DB) {
	t.Helper()
	cfg := db.Config()
	cfg.ConnConfig.Tracer = s
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	db.Pool = pool
}

func (s *statements) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = nil
}

func (s *statements) all() []statement {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.found)
}

func (s *statements) add(sql string, args []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = append(s.found, statement{sql, args})
}

func (s *statements) TraceQueryStart(ctx context.Context, conn *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	sql, args := q.SQL, q.Args
	if len(args) > 0 {
		if named, ok := args[0].(pgx.QueryRewriter); ok {
			if by, of, err := named.RewriteQuery(ctx, conn, sql, args[1:]); err == nil {
				sql, args = by, of
			}
		}
	}
	s.add(sql, args)
	return ctx
}

func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (*statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (s *statements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	s.add(q.SQL, q.Args)
}

func (*statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

var (
	selects = regexp.MustCompile(`(?i)^\s*(SELECT|WITH|DECLARE)\s`)
	cursor  = regexp.MustCompile(`(?is)^\s*DECLARE\s+.*?\sCURSOR\s+FOR\s`)
)

// noScan looks at both plans of a statement.
func noScan(t *testing.T, db *pg.DB, s statement) {
	t.Helper()
	if !selects.MatchString(s.sql) {
		return
	}
	var plans []string
	err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
		plan := func(statement string, args ...any) error {
			var text string
			err := tx.QueryRow(t.Context(), statement, args...).Scan(&text)
			plans = append(plans, text)
			return err
		}
		if err := plan(`EXPLAIN (FORMAT JSON) `+s.sql, append([]any{pgx.QueryExecModeCacheDescribe}, s.args...)...); err != nil || cursor.MatchString(s.sql) {
			return err // a cursor is always planned for its values
		}
		nulls := strings.TrimSuffix(strings.Repeat("NULL, ", len(s.args)), ", ")
		if nulls != "" {
			nulls = "(" + nulls + ")"
		}
		if _, err := tx.Exec(t.Context(), `SET LOCAL plan_cache_mode = force_generic_plan`); err != nil {
			return err
		}
		if _, err := tx.Exec(t.Context(), `PREPARE looked_at AS `+s.sql); err != nil {
			return err
		}
		if err := plan(`EXPLAIN (FORMAT JSON) EXECUTE looked_at` + nulls); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `DEALLOCATE looked_at`)
		return err
	})
	if err != nil {
		t.Errorf("%v\n%s", err, s.sql)
	}
	for i, text := range plans {
		var found []struct{ Plan node }
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			t.Fatal(err)
		}
		if scan := found[0].Plan.whole(); scan != "" {
			t.Errorf("%s (%s):\n%s\n%s", scan, []string{"planned for its values", "planned once"}[i], s.sql, text)
		}
	}
}

// node is one of a plan.
type node struct {
	Type      string `json:"Node Type"`
	Relation  string `json:"Relation Name"`
	IndexCond string `json:"Index Cond"`
	Index     string `json:"Index Name"`
	Plans     []node
}

// whole finds a large table that is read as a whole: in sequence, or along an index of
// which nothing is asked.
func (n node) whole() string {
	if slices.Contains(large, n.Relation) {
		switch n.Type {
		case "Index Scan", "Index Only Scan":
			if n.IndexCond == "" {
				return "all of " + n.Relation + " is read along " + n.Index
			}
		case "Bitmap Heap Scan": // its index is below
		default:
			return n.Type + " on " + n.Relation
		}
	}
	for _, p := range n.Plans {
		if scan := p.whole(); scan != "" {
			return scan
		}
	}
	return ""
}
