package directory_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/student/directory"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

var (
	today = clock.Date{Year: 2026, Month: 6, Day: 15}
	now   = time.Date(2026, 6, 15, 9, 0, 0, 0, time.UTC)
)

// enroll puts the person into the n-th course of the organization.
func enroll(t *testing.T, db *pg.DB, org id.Organization, email string, n int, state, start, end, grace string) {
	t.Helper()
	exec(t, db, `INSERT INTO courses (organization_id, name, course_type, start_date, created_at, updated_at)
		SELECT $1, 'Course ' || $2::int, 'ielts', '2026-01-01', now(), now()
		WHERE NOT EXISTS (SELECT FROM courses WHERE organization_id = $1 AND name = 'Course ' || $2::int)`, org, n)
	exec(t, db, `INSERT INTO enrollments (organization_id, user_id, course_id, state, start_date, end_date, grace_period_end, created_at, updated_at)
		SELECT $1, a.id, c.id, $4, $5, $6, $7, now(), now() FROM accounts a, courses c
		WHERE a.email = $2 AND c.organization_id = $1 AND c.name = 'Course ' || $3::int`, org, email, n, state, start, end, grace)
}

func filter(which directory.Which) directory.Filter {
	return directory.Filter{Which: which, Today: today, Now: now}
}

// walk reads a list page after page, and gives the first names in their order.
func walk(t *testing.T, db *pg.DB, org id.Organization, f directory.Filter, limit int) (all []string) {
	t.Helper()
	at := directory.ListPosition{}
	for range 20 {
		found, next, err := directory.List(t.Context(), db, org, f, at, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range found {
			all = append(all, p.FirstName)
		}
		if next == (directory.ListPosition{}) {
			return all
		}
		if at = directory.ParseListPosition(next.String()); at != next {
			t.Fatalf("the place %v is read as %v", next, at)
		}
	}
	t.Fatalf("%s does not end: %q", f.Which, all)
	return nil
}

func TestListsAndTheirFigures(t *testing.T) {
	t.Parallel()
	db := newDB(t)
	for _, name := range []string{"Asha", "Binod", "Cleo", "Dev", "Eve", "Fay", "Gus"} {
		add(t, db, north, "member", name, "Rao", strings.ToLower(name)+"@north.org")
	}
	add(t, db, north, "teacher", "Tariq", "Staff", "tariq@north.org")
	add(t, db, south, "member", "Sam", "Else", "sam@south.org")
	for _, e := range []struct{ email, state, start, end, grace string }{
		{"asha@north.org", "running", "2026-01-01", "2026-06-22", "2026-06-29"},  // ends in 7 days
		{"binod@north.org", "running", "2026-01-01", "2026-06-15", "2026-06-22"}, // ends today
		{"cleo@north.org", "running", "2026-01-01", "2026-06-14", "2026-06-21"},  // in the grace period
		{"dev@north.org", "running", "2026-01-01", "2026-06-01", "2026-06-14"},   // over
		{"eve@north.org", "running", "2026-06-16", "2026-06-20", "2026-06-27"},   // begins tomorrow
		{"fay@north.org", "suspended", "2026-01-01", "2026-06-20", "2026-06-27"},
		{"gus@north.org", "running", "2026-01-01", "2026-06-23", "2026-06-30"}, // ends in 8 days
		{"tariq@north.org", "running", "2026-01-01", "2026-06-20", "2026-06-27"},
	} {
		enroll(t, db, north, e.email, 1, e.state, e.start, e.end, e.grace)
	}
	enroll(t, db, north, "binod@north.org", 2, "running", "2026-01-01", "2026-06-18", "2026-06-25") // listed once all the same
	enroll(t, db, north, "dev@north.org", 2, "running", "2026-01-01", "2026-05-18", "2026-05-25")
	enroll(t, db, south, "sam@south.org", 1, "running", "2026-01-01", "2026-06-20", "2026-06-27")
	exec(t, db, `UPDATE enrollments SET notified_status = 'pending' WHERE start_date = '2026-06-16'`)
	for state, name := range map[string]string{"dropped": "Hal", "completed": "Ida", "running": "Jay"} {
		add(t, db, north, "member", name, "Rao", strings.ToLower(name)+"@north.org")
		enroll(t, db, north, strings.ToLower(name)+"@north.org", 2, state, "2026-01-01", "2026-06-01", "2026-06-10")
	}
	exec(t, db, `UPDATE accounts SET created_by_organization = 1 WHERE first_name IN ('Asha', 'Binod', 'Cleo', 'Dev', 'Tariq')`)
	exec(t, db, `UPDATE accounts SET created_by_organization = 2 WHERE first_name IN ('Eve', 'Sam')`)
	exec(t, db, `UPDATE accounts SET last_login = now() WHERE first_name = 'Binod'`)
	exec(t, db, `UPDATE members SET status = 'inactive' WHERE user_id = (SELECT id FROM accounts WHERE first_name = 'Cleo')`)
	exec(t, db, `INSERT INTO plans (organization_id, user_id, enrollment_id, exam, status, target_score_e4, time_zone, pace, practice_drills, staff_recipients, level, at_risk, started_at, updated_at, closed_at)
		SELECT e.organization_id, e.user_id, e.id, 'ielts', CASE a.first_name WHEN 'Cleo' THEN 'closed' ELSE 'active' END, 70000, 'UTC', 'auto', true, '{}', 'standard',
			a.first_name <> 'Gus', now(), now(), CASE a.first_name WHEN 'Cleo' THEN now() END
		FROM enrollments e JOIN accounts a ON a.id = e.user_id JOIN courses c ON c.id = e.course_id
		WHERE a.first_name IN ('Asha', 'Cleo', 'Gus', 'Sam', 'Tariq', 'Binod') AND c.name = 'Course 1'`)
	exec(t, db, `INSERT INTO plans (organization_id, user_id, enrollment_id, exam, status, target_score_e4, time_zone, pace, practice_drills, staff_recipients, level, at_risk, started_at, updated_at)
		SELECT organization_id, user_id, enrollment_id, 'sat', status, target_score_e4, time_zone, pace, practice_drills, staff_recipients, level, at_risk, now(), now()
		FROM plans WHERE user_id = (SELECT id FROM accounts WHERE first_name = 'Binod')`)
	exec(t, db, `UPDATE members SET joined_at = $1::timestamptz - user_id * interval '1 day' - interval '1 hour'`, now)

	want := map[directory.Which][]string{
		directory.WithAccess: {"Cleo", "Binod", "Asha", "Gus"},
		directory.Expiring:   {"Binod", "Asha"},
		directory.AtRisk:     {"Asha", "Binod"},
		directory.Joined:     {"Asha", "Binod", "Cleo", "Dev", "Eve", "Fay"}, // the seventh came a moment too early

		directory.Pending: {"Eve"}, directory.Expired: {"Dev", "Jay"}, directory.Suspended: {"Fay"}, directory.Dropped: {"Hal"}, directory.Completed: {"Ida"},
		directory.NeverSignedIn: {"Asha", "Dev"},
	}
	for _, which := range directory.Whiches() {
		for _, limit := range []int{1, 2, 50} {
			if got := walk(t, db, north, filter(which), limit); !slices.Equal(got, want[which]) {
				t.Errorf("%s by %d: %q, want %q", which, limit, got, want[which])
			}
		}
	}
	for _, which := range directory.Whiches() {
		n, err := directory.Size(t.Context(), db, north, filter(which))
		if check.NoError(t, err, "%s", which) {
			check.Equal(t, "the size", n, len(want[which]), "%s", which)
		}
	}
	var second id.Course
	if err := db.QueryRow(t.Context(), `SELECT id FROM courses WHERE name = 'Course 2'`).Scan(&second); err != nil {
		t.Fatal(err)
	}
	for which, want := range map[directory.Which][]string{
		"": {"Binod", "Dev", "Hal", "Ida", "Jay"}, directory.WithAccess: {"Binod"}, directory.Expiring: {"Binod"}, directory.Expired: {"Jay", "Dev"},
		directory.Pending: nil, directory.Suspended: nil, directory.Dropped: {"Hal"}, directory.Completed: {"Ida"},
	} {
		f := filter(which)
		f.Course = second
		check.True(t, "it is one of a course", which.OfCourse(), "%s", which)
		for _, limit := range []int{1, 2, 50} {
			got := walk(t, db, north, f, limit)
			if which == "" {
				slices.Sort(got) // the order of accounts
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q of one course by %d: %q, want %q", which, limit, got, want)
			}
			check.Equal(t, "students of the other organization", len(walk(t, db, south, f, limit)), 0, "%s", which)
		}
	}
	figures, err := directory.Count(t.Context(), db, north, today, now)
	if check.NoError(t, err, "figures") {
		check.Equal(t, "figures", figures, directory.Figures{WithAccess: 4, Expiring: 2, AtRisk: 2, Joined: 6}, "")
	}
	figures, err = directory.Count(t.Context(), db, south, today, now)
	if check.NoError(t, err, "figures") {
		check.Equal(t, "the other organization's figures", figures, directory.Figures{WithAccess: 1, Expiring: 1, AtRisk: 1, Joined: 0}, "")
	}
	// A place that somebody made up is one like any other, or none.
	for _, text := range []string{"4503599627370496-1-1", "1-1-9223372036854775807", "0-9223372036854775807-1"} {
		for _, which := range directory.Whiches() {
			if _, _, err := directory.List(t.Context(), db, north, filter(which), directory.ParseListPosition(text), 5); err != nil {
				t.Errorf("%s behind %s: %v", which, text, err)
			}
		}
	}
}

func TestListPlaces(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "x", "1-1", "1-1-0", "-1-1-1", "1--1-1", "1-1-1-1", "4503599627370497-1-1", "1-1-99999999999999999999"} {
		if p := directory.ParseListPosition(text); p != (directory.ListPosition{}) {
			t.Errorf("%q is %v", text, p)
		}
	}
}

// whole says that a plan reads or sorts a large table as a whole.
var whole = regexp.MustCompile(`Seq Scan on (directory|accounts|members|enrollments|plans)|Hash`)

// A page of a list of a large organization is read along its index.
func TestAListIsReadAlongItsIndex(t *testing.T) {
	t.Parallel()
	db := newDB(t)
	exec(t, db, `INSERT INTO courses (organization_id, name, course_type, start_date, created_at, updated_at)
		SELECT 1 + n % 2, 'Course ' || n, 'ielts', '2026-01-01', now(), now() FROM generate_series(1, 8) AS n`)
	exec(t, db, `WITH a AS (INSERT INTO accounts (email, username, first_name, last_name, created_via, created_at, updated_at)
			SELECT 'p' || n || '@north.org', 'p' || n, 'Given' || n % 700, 'Family' || n % 900, 'api', now(), now() FROM generate_series(1, 20000) AS n RETURNING id),
		m AS (INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
			SELECT 1 + id % 2, id, 'member', 'active', 'api', $1::timestamptz - id * interval '1 minute', now() FROM a),
		e AS (INSERT INTO enrollments (organization_id, user_id, course_id, state, start_date, end_date, grace_period_end, created_at, updated_at)
			SELECT c.organization_id, a.id, c.id, 'running', '2025-01-01', $2::date + (a.id % 400)::int - 200, $2::date + (a.id % 400)::int - 193, now(), now()
			FROM a JOIN courses c ON c.id = a.id / 2 % 4 * 2 + 2 - a.id % 2 RETURNING id, user_id, organization_id)
		INSERT INTO plans (organization_id, user_id, enrollment_id, exam, status, target_score_e4, time_zone, pace, practice_drills, staff_recipients, level, at_risk, started_at, updated_at)
		SELECT organization_id, user_id, id, 'ielts', 'active', 70000, 'UTC', 'auto', true, '{}', 'standard', user_id % 50 < 2, now(), now() FROM e`, now, today)
	exec(t, db, `UPDATE accounts SET created_by_organization = 1 + id % 2, last_login = CASE WHEN id % 100 > 1 THEN now() END`)
	exec(t, db, `UPDATE enrollments SET state = (ARRAY['suspended', 'dropped', 'completed'])[1 + id / 2 % 3] WHERE user_id % 100 IN (12, 13)`)
	exec(t, db, `UPDATE enrollments SET start_date = end_date, notified_status = 'pending' WHERE end_date > $1 AND user_id % 100 IN (22, 23)`, today)
	exec(t, db, `ANALYZE`)
	for which, index := range map[directory.Which]string{
		directory.WithAccess: "enrollments_access", directory.Expiring: "enrollments_end", directory.AtRisk: "plans_at_risk", directory.Joined: "members_joined",
		directory.Pending: "enrollments_pending", directory.Expired: "enrollments_access", directory.Suspended: "enrollments_not_running",
		directory.Dropped: "enrollments_not_running", directory.Completed: "enrollments_not_running", directory.NeverSignedIn: "accounts_never_signed_in",
	} {
		for _, at := range []string{"", fmt.Sprintf("%d-3-7", clock.Date{Year: 1970, Month: 1, Day: 1}.DaysUntil(today)+3)} {
			plan := explain(t, db, func(q pg.Querier) error {
				found, _, err := directory.List(t.Context(), q, north, filter(which), directory.ParseListPosition(at), 50)
				if at == "" {
					check.True(t, "there are people on the page", len(found) > 20, "%d of %s", len(found), which)
				}
				return err
			})
			if check.False(t, "a large table is read as a whole", whole.MatchString(plan), "%s behind %q:\n%s", which, at, plan) {
				check.Contains(t, "the query plan", plan, index, "%s behind %q:\n%s", which, at, plan)
			}
		}
	}
}
