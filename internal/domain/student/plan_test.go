package student

import (
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/scope"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

const schoolSize = 30_000

// largeSchool has a course of everybody, one of every hundredth and one of its last ten people. Every
// tenth has left, and had access once. Another organization is as large.
func largeSchool(t *testing.T) (*pg.DB, id.Organization) {
	t.Helper()
	f := flowtest.New(t)
	for _, slug := range []string{"one", "two"} {
		o := f.Organization(slug)
		o.Students(schoolSize)
		for _, name := range []string{"all", "some", "few"} {
			o.Course("ielts", name)
		}
	}
	f.Exec(`
		INSERT INTO enrollments (organization_id, user_id, course_id, start_date, end_date, grace_period_end, created_at, updated_at)
		SELECT c.organization_id, m.user_id, c.id, '2026-01-01', '2026-03-01', '2026-03-08', now(), now()
		FROM courses c JOIN arrivals m ON m.organization_id = c.organization_id
		WHERE c.name = 'all' OR c.name = 'some' AND m.user_id % 10 = 0 OR c.name = 'few' AND m.position > $1`, schoolSize-10)
	f.Exec(`
		UPDATE members SET status = 'inactive' WHERE user_id % 10 = 0`)
	f.Exec(`UPDATE enrollments SET state = 'dropped' WHERE user_id % 10 = 0`)
	f.Exec(`VACUUM ANALYZE`)
	return f.Database, 1
}

// Every filter of the list of students reads along an index, at its end as at its beginning, and no more
// than its page needs.
func TestTheListOfStudentsReadsAlongAnIndex(t *testing.T) {
	t.Parallel()
	db, org := largeSchool(t)
	course := func(name string) (c id.Course) {
		t.Helper()
		if err := db.QueryRow(t.Context(), `SELECT id FROM courses WHERE organization_id = $1 AND name = $2`, org, name).Scan(&c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	const limit = 101
	for name, f := range map[string]RosterFilter{
		"nothing":      {},
		"active":       {Status: RosterActive},
		"inactive":     {Status: RosterInactive},
		"large course": {Course: course("all")},
		"thin course":  {Course: course("some"), Status: RosterInactive},
		"small course": {Course: course("few"), Few: true},
	} {
		f.Today = clock.DateOf(2026, 2, 1)
		for _, after := range []int64{0, schoolSize * 9 / 10} {
			query, args := rosterPage(org, f, Stretch{after, after + walk}, limit, f.Few)
			plan := explain(t, db, query, args)
			whole := regexp.MustCompile(`Seq Scan on (arrivals|members|enrollments|accounts)`).FindString(plan)
			check.Equal(t, "whole tables", whole, "", "%s from %d:\n%s", name, after, plan)
			want := limit
			if f.Few {
				want = 10
			}
			found, err := Roster(t.Context(), db, org, f, Stretch{after, schoolSize}, limit)
			check.NoError(t, err, "%s from %d: %v", name, after, err)
			check.Equal(t, "rows", len(found), want, "%s from %d", name, after)
		}
	}
	// People of a large course who are further away than the walk are looked for person by person.
	f := RosterFilter{Course: course("some"), Today: clock.DateOf(2026, 2, 1)}
	query, args := rosterPage(org, f, Stretch{walk, schoolSize}, limit, true)
	plan := explain(t, db, query, args)
	check.False(t, "reads all arrivals", strings.Contains(plan, "Seq Scan on arrivals"), "%s", plan)
}

// A page after the walk goes on with people beyond it, once each.
func TestTheListOfACourseFindsPeopleFarApart(t *testing.T) {
	t.Parallel()
	db, org := largeSchool(t)
	exec := func(sql string) {
		t.Helper()
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`UPDATE arrivals SET position = position + 1000000 WHERE user_id % 2 = 0`)
	exec(`DELETE FROM enrollments WHERE course_id <> 1 OR user_id % 100 > 3`)
	var want int
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM enrollments WHERE organization_id = $1 AND course_id = 1 AND `+
		scope.NotStaff("$1", "user_id"), org).Scan(&want); err != nil {
		t.Fatal(err)
	}
	f := RosterFilter{Course: 1, Today: clock.DateOf(2026, 2, 1)}
	seen, after := map[id.User]bool{}, int64(0)
	for {
		found, err := Roster(t.Context(), db, org, f, Stretch{after, 2000000}, 70)
		check.NoError(check.Now(t), err, "%v", err)
		for _, l := range found {
			check.True(t, "a higher position", l.Position > after, "%d after %d", l.Position, after)
			after, seen[l.ID] = l.Position, true
		}
		if len(found) < 70 {
			break
		}
	}
	check.Equal(t, "people", len(seen), want, "of the course")
}

func explain(t *testing.T, db *pg.DB, query string, args []any) string {
	t.Helper()
	rows, err := db.Query(t.Context(), `EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) `+query, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
