package result

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

const loaded = 60_000 // results of the large organization; as many belong to the others

// load fills two large organizations: a year of results whose positions follow time but
// roughly.
func load(t *testing.T) (db *pg.DB, org id.Organization) {
	t.Helper()
	f := flowtest.New(t)
	db = f.Database
	one, two := f.Organization("one"), f.Organization("two")
	one.Students(2000)
	for _, o := range []flowtest.Organization{two, one, two, one} {
		o.Course("ielts", "C")
	}
	for _, statement := range []string{
		`UPDATE members SET organization_id = 1 + user_id % 2, status = CASE WHEN user_id % 10 = 0 THEN 'inactive' ELSE 'active' END`,
		// Two courses of each organization: everybody's, and one of ten people.
		`INSERT INTO enrollments (organization_id, user_id, course_id, start_date, end_date, grace_period_end, created_at, updated_at)
			SELECT c.organization_id, m.user_id, c.id, '2026-01-01', '2026-03-01', '2026-03-08', now(), now()
			FROM courses c JOIN members m ON m.organization_id = c.organization_id WHERE c.id <= 2 OR m.user_id <= 20`,
		`INSERT INTO catalog_items (kind, code, title, type, max_score_e4, created_at, updated_at)
			SELECT 'test', t, t, t, 90000, now(), now() FROM unnest(ARRAY['ielts', 'toefl', 'sat']) AS t`,
		`INSERT INTO results (organization_id, ref, kind, type, user_id, item_id, attempt, state, completed_at, score_e4, max_score_e4, final_at, position, updated_at)
			SELECT 1 + n % 2, 'test:' || n, 'test', CASE WHEN n % 1000 < 2 THEN 'sat' WHEN n % 3 = 0 THEN 'toefl' ELSE 'ielts' END,
				1 + (n * 7919 / 2 * 2 + (n + 1) % 2) % 2000, 1 + n % 3, 'practice', 'finished', at, 60000, 90000, at, n / 2 + 1, now()
			FROM generate_series(0, 119999) AS n, LATERAL (SELECT '2025-11-21T00:00:00Z'::timestamptz + n * interval '262 s' + (n * 37 % 1000) * interval '100 s' AS at) AS x`,
		`UPDATE result_positions p SET last = r.last FROM (
			SELECT organization_id, max(position) AS last FROM results GROUP BY 1) AS r
			WHERE r.organization_id = p.organization_id`,
		`INSERT INTO result_spans (organization_id, span, first_final, last_final)
			SELECT organization_id, position / 1024, min(final_at), max(final_at) FROM results GROUP BY 1, 2`,
		`VACUUM ANALYZE`,
	} {
		if _, err := db.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return db, 1
}

// Every filter reads along an index, and touches no more rows on the page at 99 % than
// its own length explains.
func TestEveryFilterReadsAlongAnIndex(t *testing.T) {
	t.Parallel()
	db, org := load(t)
	today := clock.DateOf(2026, 11, 21)
	day := func(month time.Month, d int) time.Time { return time.Date(2026, month, d, 0, 0, 0, 0, time.UTC) }
	const limit = 51
	tests := []string{"ielts", "ielts_general", "toefl", "gre", "gmat", "sat", "custom"}
	for name, c := range map[string]struct {
		filter Filter
		most   int // rows of results that may be read
	}{
		"nothing":       {Filter{}, 2 * limit},
		"kind":          {Filter{Types: tests}, 5 * limit},
		"two kinds":     {Filter{Types: append(tests, "quiz")}, 5 * limit},
		"no such kind":  {Filter{Types: []string{"assessment"}}, 0},
		"a common type": {Filter{Types: []string{"ielts"}}, 2 * limit},
		"a rare type":   {Filter{Types: []string{"sat"}}, 2 * limit},
		"a user":        {Filter{User: 2}, 2 * limit},
		"large course":  {Filter{Course: 2}, 2 * limit},
		"small course":  {Filter{Course: 4}, 12 * limit},
		"since":         {Filter{Since: day(11, 19)}, 3 * 1024},
		"until":         {Filter{Until: day(1, 1)}, 3 * limit},
		"a day":         {Filter{Since: day(6, 1), Until: day(6, 2)}, 4 * 1024},
		"an empty day":  {Filter{Since: day(12, 30), Until: day(12, 31)}, 0},
	} {
		for _, after := range []int64{0, loaded * 99 / 100} {
			c.filter.Today = today
			if c.filter.Course == 4 {
				c.filter.Few = []id.User{2, 4, 6, 8, 10, 12, 14, 16, 18, 20}
			}
			p := newPage(org, c.filter, after, limit)
			if c.filter.Course == 2 {
				p.stretches = []stretch{{after + 1, after + 1 + walk}}
			}
			if c.filter.windowed() {
				all, err := selectStretches(t.Context(), db, org, c.filter, after)
				if err != nil {
					t.Fatal(err)
				}
				p.stretches = all[:min(1, len(all))]
			}
			statement := p.statement()
			rows, err := db.Query(t.Context(), `EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) `+statement, append([]any{pgx.QueryExecModeCacheDescribe}, p.args...)...)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			plan := strings.Join(lines, "\n")
			if strings.Contains(plan, "Seq Scan on results") {
				t.Errorf("%s from %d reads all results:\n%s", name, after, plan)
			}
			if read := rowsRead(t, lines); read > c.most {
				t.Errorf("%s from %d reads %d rows, want %d at most:\n%s", name, after, read, c.most, plan)
			}
		}
	}
}

var (
	actual  = regexp.MustCompile(`actual rows=([0-9.]+) loops=([0-9]+)`)
	removed = regexp.MustCompile(`Rows Removed by Filter: ([0-9]+)`)
)

// rowsRead adds up what the scans of results gave and threw away.
func rowsRead(t *testing.T, plan []string) int {
	t.Helper()
	sum := 0.0
	inside, loops := false, 1.0
	for _, line := range plan {
		if m := actual.FindStringSubmatch(line); m != nil {
			rows, _ := strconv.ParseFloat(m[1], 64)
			loops, _ = strconv.ParseFloat(m[2], 64)
			if inside = strings.Contains(line, " on results"); inside {
				sum += rows * loops
			}
		} else if m := removed.FindStringSubmatch(line); m != nil && inside {
			n, _ := strconv.ParseFloat(m[1], 64)
			sum += n * loops
		}
	}
	return int(sum)
}
