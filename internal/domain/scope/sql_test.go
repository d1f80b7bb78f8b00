package scope_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/scope"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

const today = "2026-06-15"

// enrollments are one of each kind, with what it gives on the day today.
var enrollments = []struct {
	name, state       string
	start, end, grace string
	access            bool
}{
	{name: "none"},
	{"begins tomorrow", "running", "2026-06-16", "2026-12-16", "2026-12-23", false},
	{"begins today", "running", "2026-06-15", "2026-12-15", "2026-12-22", true},
	{"ends today", "running", "2026-01-01", "2026-06-15", "2026-06-22", true},
	{"in its grace period", "running", "2026-01-01", "2026-06-14", "2026-06-21", true},
	{"last grace day", "running", "2026-01-01", "2026-06-08", "2026-06-15", true},
	{"expired", "running", "2026-01-01", "2026-06-07", "2026-06-14", false},
	{"suspended", "suspended", "2026-01-01", "2026-12-01", "2026-12-08", false},
	{"dropped", "dropped", "2026-01-01", "2026-12-01", "2026-12-08", false},
	{"completed", "completed", "2026-01-01", "2026-12-01", "2026-12-08", false},
}

// memberships are all that there are; nobody without one has a role.
var memberships = []struct{ role, status string }{
	{"", ""},
	{"member", "active"}, {"member", "inactive"},
	{"owner", "active"}, {"owner", "inactive"},
	{"admin", "active"}, {"admin", "inactive"},
	{"examiner", "active"}, {"examiner", "inactive"},
	{"teacher", "active"}, {"teacher", "inactive"},
}

// answers are what the conditions say of a person.
type answers struct {
	Listed, HasAccess, IsStudent, IsStudentByRole, NotStaff bool
}

// TestConditions holds every membership with every enrollment against the reference's text.
func TestConditions(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	exec(t, db, `INSERT INTO organizations (slug, name, language_tests_enabled, default_access_months, grace_period_days,
			starter_tests_per_course, visible_tests_limit, send_welcome_email_default, set_password_link_valid_days, created_at, updated_at)
		SELECT slug, slug, true, 6, 7, 2, 10, true, 7, now(), now() FROM unnest(ARRAY['school', 'elsewhere']) AS slug`)
	exec(t, db, `INSERT INTO courses (organization_id, name, course_type, start_date, created_at, updated_at)
		SELECT id, 'Course', 'ielts', '2026-01-01', now(), now() FROM organizations ORDER BY id`)
	for _, m := range memberships {
		for _, e := range enrollments {
			t.Run(fmt.Sprintf("%s %s, %s", m.role, m.status, e.name), func(t *testing.T) {
				user := insertAccount(t, db)
				// In the other organization everybody is a student with access.
				insertMember(t, db, 2, user, "member", "active")
				insertEnrollment(t, db, 2, user, "running", "2026-01-01", "2026-12-01", "2026-12-08")
				if m.role != "" {
					insertMember(t, db, 1, user, m.role, m.status)
				}
				if e.state != "" {
					insertEnrollment(t, db, 1, user, e.state, e.start, e.end, e.grace)
				}
				staff, student := m.role != "" && m.role != "member", m.role == "member" || m.role == "" && e.state != ""
				want := answers{
					Listed:          !staff && (m.status == "active" || e.access),
					HasAccess:       e.access,
					IsStudent:       student,
					IsStudentByRole: student,
					NotStaff:        !staff,
				}
				if got := ask(t, db, user); got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
				if got := scope.Includes(staff, m.status == "active", e.access); got != want.Listed {
					t.Errorf("Includes = %v, want %v as in SQL", got, want.Listed)
				}
			})
		}
	}
}

// One enrollment that counts is enough, whichever it is.
func TestListedLooksAtEveryEnrollment(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	exec(t, db, `INSERT INTO organizations (slug, name, language_tests_enabled, default_access_months, grace_period_days,
			starter_tests_per_course, visible_tests_limit, send_welcome_email_default, set_password_link_valid_days, created_at, updated_at)
		VALUES ('school', 'school', true, 6, 7, 2, 10, true, 7, now(), now())`)
	exec(t, db, `INSERT INTO courses (organization_id, name, course_type, start_date, created_at, updated_at)
		SELECT 1, n::text, 'ielts', '2026-01-01', now(), now() FROM generate_series(1, 3) AS n`)
	user := insertAccount(t, db)
	for i, state := range []string{"dropped", "running", "suspended"} {
		exec(t, db, `INSERT INTO enrollments (organization_id, user_id, course_id, state, start_date, end_date, grace_period_end, created_at, updated_at)
			VALUES (1, $1, $2, $3, '2026-01-01', '2026-12-01', '2026-12-08', now(), now())`, user, i+1, state)
	}
	if got, want := ask(t, db, user), (answers{true, true, true, true, true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func ask(t *testing.T, db *pg.DB, user id.User) answers {
	t.Helper()
	rows, err := db.Query(t.Context(), `
		SELECT `+scope.Listed("$1", "a.id", "$3")+`,
			`+scope.HasAccess("$1", "a.id", "$3")+`,
			`+scope.IsStudent(scope.Role("$1", "a.id"), "$1", "a.id")+`,
			`+scope.IsStudent("m.role", "$1", "a.id")+`,
			`+scope.NotStaff("$1", "a.id")+`
		FROM accounts a LEFT JOIN members m ON m.organization_id = $1 AND m.user_id = a.id
		WHERE a.id = $2`, 1, user, date(t, today))
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[answers])
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func insertAccount(t *testing.T, db *pg.DB) (user id.User) {
	t.Helper()
	err := db.QueryRow(t.Context(), `
		INSERT INTO accounts (email, username, first_name, created_via, created_at, updated_at)
		SELECT name || '@school.example', name, 'S', 'api', now(), now() FROM (SELECT gen_random_uuid()::text AS name) AS n
		RETURNING id`).Scan(&user)
	if err != nil {
		t.Fatal(err)
	}
	return user
}

func insertMember(t *testing.T, db *pg.DB, org int, user id.User, role, status string) {
	t.Helper()
	exec(t, db, `INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
		VALUES ($1, $2, $3, $4, 'api', now(), now())`, org, user, role, status)
}

func insertEnrollment(t *testing.T, db *pg.DB, org int, user id.User, state, start, end, grace string) {
	t.Helper()
	exec(t, db, `INSERT INTO enrollments (organization_id, user_id, course_id, state, start_date, end_date, grace_period_end, created_at, updated_at)
		SELECT $1, $2, id, $3, $4, $5, $6, now(), now() FROM courses WHERE organization_id = $1`,
		org, user, state, date(t, start), date(t, end), date(t, grace))
}

func date(t *testing.T, text string) clock.Date {
	t.Helper()
	d, err := clock.ParseDate(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func exec(t *testing.T, db *pg.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}
