package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// estate is a platform after years of use: 50 organizations, one of which has a fifth of
// everything, with 100,000 students, 1 million assignments, 10 million results and a year of
// activity.
type estate struct {
	house *house
	conn  *pgx.Conn // a superuser's, which may leave foreign keys unchecked
	r     *run
	began time.Time
	now   time.Time // What results and activity lead up to

	orgs  []holding
	tests []item // everyone's
}

// holding is one organization's part of the estate.
type holding struct {
	id, course, small  int64 // course has half of the students, small has 50
	firstUser          int64
	students, results  int
	assignments        int
	quizzes, assessing []item
}

type item struct {
	id        int64
	kind, typ string
	max       int64 // in ten-thousandths
	title     string
}

// estateSettings give PostgreSQL the memory that a server with so much data would have.
var estateSettings = []string{"shared_buffers=1GB", "max_wal_size=4GB", "min_wal_size=256MB", "checkpoint_timeout=30min"}

const (
	organizations = 50
	yearDays      = 365
)

// load fills the database with COPY, as much of the estate as the run's scale says.
func (e *estate) load(ctx context.Context) error {
	e.began, e.now = time.Now(), time.Now().UTC().Truncate(time.Second)
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"organizations, courses and catalog", e.loadOrganizations},
		{"students", e.loadStudents},
		{"assignments", e.loadAssignments},
		{"results", e.loadResults},
		{"activity", e.loadActivity},
		{"statistics", func(ctx context.Context) error { return e.exec(ctx, `VACUUM ANALYZE`) }},
	}
	if err := e.exec(ctx, `SET session_replication_role = replica`); err != nil {
		return err
	}
	if err := e.exec(ctx, `SET maintenance_work_mem = '512MB'`); err != nil {
		return err
	}
	for _, s := range steps {
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		e.say("%s done", s.name)
	}
	return nil
}

func (e *estate) say(format string, args ...any) {
	e.r.printf("  %6.1f s  %s", time.Since(e.began).Seconds(), fmt.Sprintf(format, args...))
}

func (e *estate) exec(ctx context.Context, sql string) error {
	_, err := e.conn.Exec(ctx, sql)
	return err
}

// Share is the i-th organization's part of n: a fifth for the first.
func share(n, i int) int {
	if i == 0 {
		return n / 5
	}
	return (n - n/5) / (organizations - 1)
}

func (e *estate) loadOrganizations(ctx context.Context) error {
	for i := range organizations {
		h := holding{students: share(e.r.size(100_000), i), results: share(e.r.size(10_000_000), i), assignments: share(e.r.size(1_000_000), i)}
		var err error
		if h.id, err = e.house.organization(ctx, fmt.Sprintf("estate-%d", i)); err != nil {
			return err
		}
		err = e.conn.QueryRow(ctx, `
			WITH c AS (INSERT INTO courses (organization_id, name, course_type, is_default, start_date, created_at, updated_at)
				SELECT $1, n, 'ielts', n = 'IELTS', current_date - 400, now(), now() FROM unnest(ARRAY['IELTS', 'Small']) AS n RETURNING id)
			SELECT min(id), max(id) FROM c`, h.id).Scan(&h.course, &h.small)
		if err != nil {
			return err
		}
		if h.quizzes, err = e.addItems(ctx, &h.id, "quiz", 20); err != nil {
			return err
		}
		if h.assessing, err = e.addItems(ctx, &h.id, "assessment", 20); err != nil {
			return err
		}
		e.orgs = append(e.orgs, h)
	}
	var err error
	e.tests, err = e.addItems(ctx, nil, "test", 120)
	return err
}

// scales are test types with their maxima.
var scales = []struct {
	typ string
	max int64
}{{"ielts", 9}, {"toefl", 120}, {"pte_academic", 90}, {"sat", 1600}}

func (e *estate) addItems(ctx context.Context, org *int64, kind string, n int) ([]item, error) {
	items := make([]item, n)
	for i := range items {
		it := item{kind: kind, typ: kind, max: 100, title: fmt.Sprintf("Practice %s %d", kind, i+1)}
		if kind == "test" {
			it.typ, it.max = scales[i%len(scales)].typ, scales[i%len(scales)].max
		}
		it.max *= 10_000
		err := e.conn.QueryRow(ctx, `
			INSERT INTO catalog_items (organization_id, kind, code, title, type, max_score_e4, created_at, updated_at)
			VALUES ($1, $2, $3, $4, $5, $6, now(), now()) RETURNING id`,
			org, kind, fmt.Sprintf("%s-%d", kind, i), it.title, it.typ, it.max).Scan(&it.id)
		if err != nil {
			return nil, err
		}
		items[i] = it
	}
	return items, nil
}

// loadStudents gives every organization students of its own; half of them are in the course.
func (e *estate) loadStudents(ctx context.Context) error {
	for i := range e.orgs {
		h := &e.orgs[i]
		err := e.conn.QueryRow(ctx, `
			WITH a AS (INSERT INTO accounts (email, username, first_name, last_name, created_by_organization, created_via, created_at, updated_at)
				SELECT 's' || $1::bigint || '.' || n || '@estate.school', 's' || $1 || '.' || n, 'Student', 'No. ' || n, $1, 'api', now(), now()
				FROM generate_series(1, $2::integer) AS n ORDER BY n RETURNING id),
			m AS (INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
				SELECT $1, id, 'member', CASE WHEN id % 20 = 0 THEN 'inactive' ELSE 'active' END, 'api', now() - interval '1 year', now() FROM a),
			e AS (INSERT INTO enrollments (organization_id, user_id, course_id, start_date, end_date, grace_period_end, next_day, created_at, updated_at)
				SELECT $1, id, $3, current_date - 200, current_date + 100, current_date + 107, NULL, now(), now() FROM a WHERE id % 2 = 0),
			s AS (INSERT INTO enrollments (organization_id, user_id, course_id, start_date, end_date, grace_period_end, next_day, created_at, updated_at)
				SELECT $1, id, $4, current_date - 200, current_date + 100, current_date + 107, NULL, now(), now() FROM a ORDER BY id LIMIT 50)
			SELECT min(id) FROM a`, h.id, h.students, h.course, h.small).Scan(&h.firstUser)
		if err != nil {
			return err
		}
	}
	return nil
}

func (h holding) user() int64 { return h.firstUser + rand.Int64N(int64(h.students)) }

// withoutIndexes drops the table's indexes, but for its constraints', while it is filled.
func (e *estate) withoutIndexes(ctx context.Context, table string, fill func() error) error {
	rows, err := e.conn.Query(ctx, `
		SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid) FROM pg_index i
		WHERE i.indrelid = $1::regclass AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)`, table)
	if err != nil {
		return err
	}
	var name, definition string
	indexes := map[string]string{}
	if _, err := pgx.ForEachRow(rows, []any{&name, &definition}, func() error { indexes[name] = definition; return nil }); err != nil {
		return err
	}
	for name := range indexes {
		if err := e.exec(ctx, `DROP INDEX `+name); err != nil {
			return err
		}
	}
	if err := fill(); err != nil {
		return err
	}
	for name, definition := range indexes {
		if err := e.exec(ctx, definition); err != nil {
			return err
		}
		e.say("%s: index %s", table, name)
	}
	return nil
}

// copyRows fills a table, n rows for each organization, and shows how far it is.
func (e *estate) copyRows(ctx context.Context, table, columns string, count func(holding) int, row func(h holding, i int) []any) error {
	total, done, said := 0, 0, time.Now()
	for _, h := range e.orgs {
		total += count(h)
	}
	for _, h := range e.orgs {
		n := count(h)
		i := -1
		_, err := e.conn.CopyFrom(ctx, pgx.Identifier{table}, strings.Split(columns, ","), pgx.CopyFromFunc(func() ([]any, error) {
			if i++; i == n {
				return nil, nil
			}
			if done++; time.Since(said) > 5*time.Second {
				said = time.Now()
				e.say("%s: %d of %d rows", table, done, total)
			}
			return row(h, i), nil
		}))
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *estate) loadAssignments(ctx context.Context) error {
	const columns = "organization_id,user_id,item_id,kind,status,source,notify,assigned_at,due_at,completed_at,position,updated_at"
	err := e.withoutIndexes(ctx, "assignments", func() error {
		return e.copyRows(ctx, "assignments", columns, func(h holding) int { return h.assignments }, func(h holding, i int) []any {
			at := e.now.Add(-time.Duration(float64(yearDays*24*time.Hour) * float64(h.assignments-i) / float64(h.assignments)))
			it := e.work(h, i)
			// One in 50 is open, each of a student and item of its own.
			status, completed, user := "completed", new(at.Add(time.Hour)), h.user()
			if i%50 == 0 {
				status, completed, user = "pending", nil, h.firstUser+int64(i/50%h.students)
				it = e.tests[i/50/h.students%len(e.tests)]
			}
			return []any{h.id, user, it.id, it.kind, status, "api", true, at, at.AddDate(0, 0, 14), completed, int64(i + 1), at}
		})
	})
	if err != nil {
		return err
	}
	return e.exec(ctx, `UPDATE assignment_positions p SET last = a.last, last_at = a.at FROM (
			SELECT organization_id, max(position) AS last, max(assigned_at) AS at FROM assignments GROUP BY 1) AS a
			WHERE a.organization_id = p.organization_id`)
}

// work is the item of the i-th piece of work: seven in ten are tests.
func (e *estate) work(h holding, i int) item {
	switch pick := rand.IntN(10); {
	case pick < 7:
		return e.tests[i%len(e.tests)]
	case pick < 9:
		return h.quizzes[i%len(h.quizzes)]
	}
	return h.assessing[i%len(h.assessing)]
}

func (e *estate) loadResults(ctx context.Context) error {
	const columns = "organization_id,ref,kind,type,user_id,item_id,attempt,state,started_at,completed_at,score_e4,max_score_e4,sections,final_at,position,updated_at"
	sections := `{"listening":6.5,"reading":7,"writing":6,"speaking":6.5}`
	err := e.withoutIndexes(ctx, "results", func() error {
		return e.copyRows(ctx, "results", columns, func(h holding) int { return h.results }, func(h holding, i int) []any {
			final := e.now.Add(-time.Duration(float64(yearDays*24*time.Hour) * float64(h.results-i) / float64(h.results)))
			completed := final.Add(-time.Duration(rand.IntN(7200)) * time.Second)
			it := e.work(h, i)
			var parts *string
			if it.kind == "test" {
				parts = &sections
			}
			score := it.max / 20 * rand.Int64N(21)
			return []any{h.id, fmt.Sprintf("%s:%09d", it.kind, i), it.kind, it.typ, h.user(), it.id, "practice", "finished", completed.Add(-time.Hour),
				completed, score, it.max, parts, final, int64(i + 1), final}
		})
	})
	if err != nil {
		return err
	}
	if err := e.exec(ctx, `UPDATE result_positions p SET last = r.last FROM (
			SELECT organization_id, max(position) AS last FROM results GROUP BY 1) AS r
			WHERE r.organization_id = p.organization_id`); err != nil {
		return err
	}
	return e.exec(ctx, `
		INSERT INTO result_spans SELECT organization_id, position / 1024, min(final_at), max(final_at) FROM results GROUP BY 1, 2`)
}

// loadActivity gives a student activity on three days of ten.
func (e *estate) loadActivity(ctx context.Context) error {
	const columns = "organization_id,date,user_id,first_seen_at,last_seen_at,visits,active_minutes,page_views,tests_started,tests_completed"
	return e.withoutIndexes(ctx, "activity_days", func() error {
		return e.copyRows(ctx, "activity_days", columns, func(h holding) int { return yearDays * (h.students * 3 / 10) }, func(h holding, i int) []any {
			a := h.students * 3 / 10
			day, nth := i/a, i%a
			at := e.now.AddDate(0, 0, day-yearDays).Truncate(24 * time.Hour).Add(6 * time.Hour)
			return []any{h.id, at.Truncate(24 * time.Hour), h.firstUser + int64((nth*10/3+day)%h.students), at, at.Add(2 * time.Hour), 2, 40, 25, 1, 1}
		})
	})
}
