// Package flowtest gives tests what most of them begin with: a database with organizations,
// people, courses and papers in it.
//
//	f := flowtest.New(t)
//	north := f.Organization("north")
//	ana := north.Student("ana@institute.org")
//	north.Enroll(ana, north.Course("ielts", "Morning batch"), "2026-01-01", "2026-07-01")
//
// It writes the rows by itself and knows kit alone, so that tests of every layer can use it and a
// test of a command does not rest on the command. What it makes is committed at once; a statement
// that fails ends the test.
package flowtest

import (
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// Fixture is a test's database.
type Fixture struct {
	Database *pg.DB
	t        testing.TB
}

// New makes a database of the test's own.
func New(t testing.TB) *Fixture {
	t.Helper()
	return On(t, pgtest.New(t))
}

// On works on a database that the test has already.
func On(t testing.TB, db *pg.DB) *Fixture { return &Fixture{Database: db, t: t} }

// Exec runs a statement.
func (f *Fixture) Exec(sql string, args ...any) {
	f.t.Helper()
	if _, err := f.Database.Exec(f.t.Context(), sql, args...); err != nil {
		f.t.Fatalf("%v: %s", err, sql)
	}
}

// Count is how many rows a FROM clause gives: Count("members WHERE role = $1", "owner").
func (f *Fixture) Count(from string, args ...any) (n int) {
	f.t.Helper()
	f.Scan(&n, "SELECT count(*) FROM "+from, args...)
	return n
}

// Scan reads the one value of the one row that a statement gives.
func (f *Fixture) Scan(into any, sql string, args ...any) {
	f.t.Helper()
	if err := f.Database.QueryRow(f.t.Context(), sql, args...).Scan(into); err != nil {
		f.t.Fatalf("%v: %s", err, sql)
	}
}

// InTx runs work in a transaction.
func (f *Fixture) InTx(work func(tx *pg.Tx) error) {
	f.t.Helper()
	if err := f.Database.InTx(f.t.Context(), work); err != nil {
		f.t.Fatal(err)
	}
}

// Organization is one that a test made.
type Organization struct {
	ID   id.Organization
	Slug string
	f    *Fixture
}

// Organization makes one with the settings that the platform gives to new ones, and language
// tests switched on. Its name is its slug.
func (f *Fixture) Organization(slug string) Organization {
	f.t.Helper()
	o := Organization{Slug: slug, f: f}
	f.Scan(&o.ID, `
		INSERT INTO organizations (slug, name, language_tests_enabled, default_access_months, grace_period_days,
			starter_tests_per_course, visible_tests_limit, send_welcome_email_default, set_password_link_valid_days,
			created_at, updated_at)
		VALUES ($1, $1, true, 3, 7, 3, 10, true, 3, now(), now())
		RETURNING id`, slug)
	return o
}

// Of is an organization that was made in another way.
func (f *Fixture) Of(org id.Organization) Organization { return Organization{ID: org, f: f} }

// Set changes one column of the organization's row.
func (o Organization) Set(column string, value any) Organization {
	o.f.t.Helper()
	o.f.Exec(`UPDATE organizations SET `+column+` = $2 WHERE id = $1`, o.ID, value)
	return o
}

// Endpoint registers a webhook URL for all events, without a signing secret.
func (o Organization) Endpoint() {
	o.f.t.Helper()
	o.f.Exec(`
		INSERT INTO webhook_endpoints (organization_id, slot, url, created_at, updated_at)
		VALUES ($1, 1, 'https://hooks.test/', now(), now())`, o.ID)
}

// Account makes a person whom no organization has. The username is the address.
func (f *Fixture) Account(email, first, last string) (user id.User) {
	f.t.Helper()
	f.Scan(&user, `
		INSERT INTO accounts (email, username, first_name, last_name, created_via, created_at, updated_at)
		VALUES ($1, $1, $2, $3, 'api', now(), now())
		RETURNING id`, email, first, last)
	return user
}

// Add makes a person a member: of a role, and "active" or "inactive".
func (o Organization) Add(user id.User, role, status string) {
	o.f.t.Helper()
	o.f.Exec(`
		INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
		VALUES ($1, $2, $3, $4, 'api', now(), now())`, o.ID, user, role, status)
}

// Member makes an account called Ana and its active membership.
func (o Organization) Member(email, role string) id.User {
	o.f.t.Helper()
	user := o.f.Account(email, "Ana", "")
	o.Add(user, role, "active")
	return user
}

// Student makes an account called Ana that is an active student.
func (o Organization) Student(email string) id.User {
	o.f.t.Helper()
	return o.Member(email, "member")
}

// Students makes n active students, s1 to sN, in one statement.
func (o Organization) Students(n int) (users []id.User) {
	o.f.t.Helper()
	o.f.Scan(&users, `
		WITH a AS (
			INSERT INTO accounts (email, username, first_name, created_via, created_at, updated_at)
			SELECT 's' || n || '@' || $2 || '.school', 's' || n || '@' || $2, 'S', 'api', now(), now()
			FROM generate_series(1, $3::int) AS n
			RETURNING id),
		m AS (
			INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
			SELECT $1, id, 'member', 'active', 'api', now(), now() FROM a)
		SELECT array_agg(id ORDER BY id) FROM a`, o.ID, o.Slug, n)
	return users
}

// Course makes an open course of a type that began on the first day of 2026.
func (o Organization) Course(typ, name string) (course id.Course) {
	o.f.t.Helper()
	o.f.Scan(&course, `
		INSERT INTO courses (organization_id, name, course_type, start_date, created_at, updated_at)
		VALUES ($1, $2, $3, '2026-01-01', now(), now())
		RETURNING id`, o.ID, name, typ)
	return course
}

// Enroll gives access from one day to another (YYYY-MM-DD) and a grace period of seven days. What
// the calendar does to it is notified from its next sweep on.
func (o Organization) Enroll(user id.User, course id.Course, start, end string) (enrollment id.Enrollment) {
	o.f.t.Helper()
	o.f.Scan(&enrollment, `
		INSERT INTO enrollments (organization_id, user_id, course_id, start_date, end_date, grace_period_end,
			created_at, updated_at)
		VALUES ($1, $2, $3, $4::date, $5::date, $5::date + 7, now(), now())
		RETURNING id`, o.ID, user, course, start, end)
	return enrollment
}

// Paper puts a full test of a type, out of 9, into the catalog of all organizations.
func (f *Fixture) Paper(code, typ string) (item id.Item) {
	f.t.Helper()
	f.Scan(&item, `
		INSERT INTO catalog_items (kind, code, title, type, max_score_e4, created_at, updated_at)
		VALUES ('test', $1, $1, $2, 90000, now(), now())
		RETURNING id`, code, typ)
	return item
}
