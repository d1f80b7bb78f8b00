package directory_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/student/directory"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

const north, south = id.Organization(1), id.Organization(2)

func newDB(t *testing.T) *pg.DB {
	t.Helper()
	f := flowtest.New(t)
	f.Organization("north")
	f.Organization("south")
	return f.Database
}

func exec(t *testing.T, db *pg.DB, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func add(t *testing.T, db *pg.DB, org id.Organization, role, first, last, email string) {
	t.Helper()
	f := flowtest.On(t, db)
	f.Of(org).Add(f.Account(email, first, last), role, "active")
}

// names searches page after page and gives the first names in the order they came.
func names(t *testing.T, db *pg.DB, org id.Organization, text string, limit int) []string {
	t.Helper()
	var all []string
	at := directory.Position{}
	for {
		found, next, err := directory.Search(t.Context(), db, org, text, at, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range found {
			all = append(all, p.FirstName)
		}
		if next == (directory.Position{}) {
			return all
		}
		if at = directory.ParsePosition(next.String()); at != next {
			t.Fatalf("the place %v is read as %v", next, at)
		}
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	db := newDB(t)
	add(t, db, north, "member", "Asha", "Rao", "asha@north.org")
	add(t, db, north, "member", "Binod", "Ashworth", "binod@north.org")
	add(t, db, north, "member", "Cleo", "O'Neil", "ash.cleo@north.org")
	add(t, db, north, "member", "Élodie", "de  la Cruz", "elodie@north.org")
	add(t, db, north, "member", "Odd", "100%_x", "odd@north.org")
	add(t, db, north, "examiner", "Ashley", "Staff", "ashley@north.org")
	add(t, db, south, "member", "Ashok", "Else", "ashok@south.org")
	add(t, db, north, "member", "Thị Minh", "Nguyễn", "minh@north.org")
	add(t, db, north, "member", "José", "García Müller", "jose@north.org")
	add(t, db, north, "member", "Anna-Maria", "Strauß", "anna@north.org")
	add(t, db, north, "member", "Łukasz", "Ødegård", "lukasz@north.org")
	add(t, db, north, "member", "आशा", "शर्मा", "hindi@north.org")
	add(t, db, north, "member", "Ana", "Anand", "aa@north.org") // both words begin so
	for text, want := range map[string][]string{
		"":              {"Ana", "Anna-Maria", "Asha", "Binod", "Cleo", "José", "Odd", "Thị Minh", "Élodie", "Łukasz", "आशा"},
		"ash":           {"Asha", "Binod", "Cleo"},
		" ASHA  rao ":   {"Asha"},
		"Rao, Asha":     {"Asha"},
		"ra as":         {"Asha"},
		"asha ashworth": nil,
		"asha@NORTH":    {"Asha"},
		"élodie":        {"Élodie"},
		"ELODIE":        {"Élodie"},
		"De la cruz":    {"Élodie"},
		"cruz":          {"Élodie"},
		"o'n":           {"Cleo"},
		"ONeil":         {"Cleo"},
		"o’neil cl":     {"Cleo"},
		"nguyen":        {"Thị Minh"},
		"Nguyễn":        {"Thị Minh"},
		"minh thi":      {"Thị Minh"},
		"garcia":        {"José"},
		"muller jose":   {"José"},
		"maria":         {"Anna-Maria"},
		"anna-m":        {"Anna-Maria"},
		"strauss":       {"Anna-Maria"},
		"lukasz odeg":   {"Łukasz"},
		"शर्मा":         {"आशा"},
		"an":            {"Ana", "Anna-Maria"},
		"ana an":        {"Ana"},
		"100%":          {"Odd"},
		"%":             nil,
		"sha":           nil,
		"' OR 1=1; --":  nil,
	} {
		for _, limit := range []int{1, 2, 3, 50} {
			if got := names(t, db, north, text, limit); !slices.Equal(got, want) {
				t.Errorf("%q by %d: %q, want %q", text, limit, got, want)
			}
		}
		n, err := directory.Matches(t.Context(), db, north, text)
		if check.NoError(t, err, "%q", text) {
			check.Equal(t, "number of students", n, len(want), "%q", text)
		}
	}
}

func TestTheDirectoryFollows(t *testing.T) {
	t.Parallel()
	db := newDB(t)
	add(t, db, north, "member", "Asha", "Rao", "asha@north.org")
	exec(t, db, `UPDATE accounts SET created_by_organization = 1`)
	exec(t, db, `INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
		VALUES (2, 1, 'member', 'active', 'api', now(), now())`)
	exec(t, db, `UPDATE accounts SET first_name = 'Usha', email = 'usha@north.org'`)
	for text, want := range map[string]int{"usha r": 0, "asha": 0, "rao": 0, "usha@": 1} { // it never sent a name
		check.Equal(t, "found by the other organization", len(names(t, db, south, text, 5)), want, "%q", text)
	}
	if got := names(t, db, north, "usha r", 5); len(got) != 1 {
		t.Errorf("the new name finds %q", got)
	}
	if got := names(t, db, north, "asha", 5); len(got) != 0 {
		t.Errorf("the old name still finds %q", got)
	}
	// Who left and was never enrolled is no student; who was enrolled is.
	exec(t, db, `DELETE FROM members`)
	if got := names(t, db, north, "", 5); len(got) != 0 {
		t.Errorf("who was removed is found: %q", got)
	}
	exec(t, db, `WITH c AS (INSERT INTO courses (organization_id, name, course_type, is_default, start_date, created_at, updated_at)
			VALUES (1, 'IELTS', 'ielts', true, current_date, now(), now()) RETURNING id)
		INSERT INTO enrollments (organization_id, user_id, course_id, start_date, end_date, grace_period_end, created_at, updated_at)
		SELECT 1, a.id, c.id, current_date, current_date, current_date, now(), now() FROM accounts a, c`)
	if got := names(t, db, north, "usha", 5); len(got) != 1 {
		t.Errorf("who is enrolled is not found: %q", got)
	}
	some, err := directory.Some(t.Context(), db, north, []id.User{1, 99})
	if check.NoError(t, err, "%+v %v", some, err) &&
		check.Equal(t, "number of students", len(some), 1, "%+v %v", some, err) {
		check.Equal(t, "the first student's status", some[0].Status, "", "%+v %v", some, err)
	}
	if some, err = directory.Some(t.Context(), db, south, []id.User{1}); check.NoError(t, err, "another organization sees %+v %v", some, err) {
		check.Equal(t, "number of students", len(some), 0, "another organization sees %+v %v", some, err)
	}
	exec(t, db, `DELETE FROM accounts`)
	for _, table := range []string{"directory", "directory_words"} {
		var left int
		if err := db.QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&left); check.NoError(t, err, "%s", table) {
			check.Equal(t, "rows of an erased person", left, 0, "%s", table)
		}
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "x", "0", "0-", "-1", "7-1", "1--1", "0-0", "1-99999999999999999999"} {
		if p := directory.ParsePosition(text); p != (directory.Position{}) {
			t.Errorf("%q is %v", text, p)
		}
	}
}

var large = regexp.MustCompile(`Seq Scan on (directory|directory_words|accounts|members)\b`)

// A page of a large organization is read along an index, whatever is looked for.
func TestNothingIsReadBeyondThePage(t *testing.T) {
	t.Parallel()
	db := newDB(t)
	exec(t, db, `WITH a AS (INSERT INTO accounts (email, username, first_name, last_name, created_via, created_at, updated_at)
			SELECT 'p' || n || '@north.org', 'p' || n, 'Given' || n % 700, 'Family' || n % 900, 'api', now(), now() FROM generate_series(1, 20000) AS n RETURNING id)
		INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
		SELECT 1 + id % 2, id, 'member', 'active', 'api', now(), now() FROM a`)
	exec(t, db, `ANALYZE`)
	for _, text := range []string{"", "given1", "family88", "given family88", "p777", "nobody"} {
		plan := explain(t, db, func(q pg.Querier) error {
			_, _, err := directory.Search(t.Context(), q, north, text, directory.Position{}, 50)
			return err
		})
		if check.False(t, "a large table is read as a whole", large.MatchString(plan), "%q:\n%s", text, plan) {
			check.Contains(t, "the query plan", plan, "Index", "%q:\n%s", text, plan)
		}
	}
}

// explainer runs queries, and gathers what PostgreSQL did for them.
type explainer struct {
	pg.Querier
	plans *strings.Builder
}

func (e explainer) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	rows, err := e.Querier.Query(ctx, "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) "+sql, args...)
	if err != nil {
		return nil, err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(e.plans, strings.Join(lines, "\n"))
	return e.Querier.Query(ctx, sql, args...)
}

var touched = regexp.MustCompile(`(?m)^\S.*\n  Buffers: shared (?:hit=(\d+) ?)?(?:read=(\d+))?`)

// explain holds that each query touches few of the tables' blocks, some nine for each of 50 people.
func explain(t *testing.T, db *pg.DB, run func(pg.Querier) error) string {
	t.Helper()
	var plans strings.Builder
	if err := db.Along(t.Context(), func(q pg.Querier) error { return run(explainer{q, &plans}) }); err != nil {
		t.Fatal(err)
	}
	found := touched.FindAllStringSubmatch(plans.String(), -1)
	check.True(t, "blocks are counted", len(found) > 0, "%s", plans.String())
	for _, f := range found {
		hit, _ := strconv.Atoi(f[1])
		read, _ := strconv.Atoi(f[2])
		check.True(t, "few blocks are touched", hit+read < 500, "%d:\n%s", hit+read, plans.String())
	}
	return plans.String()
}
