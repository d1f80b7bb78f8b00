package pg_test

import (
	"log/slog"
	"maps"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// testdata has dumps of databases that the programs filled, named by the version of their schema:
// every table has rows. Migrated to this version, no row is lost.
func TestAFilledDatabaseIsUpgraded(t *testing.T) {
	t.Parallel()
	dumps, err := filepath.Glob("testdata/filled-*.sql.gz")
	check.NoError(check.Now(t), err, "%d dumps, %v", len(dumps), err)
	check.True(check.Now(t), "there are dumps", len(dumps) != 0, "%d dumps, %v", len(dumps), err)
	for _, dump := range dumps {
		t.Run(filepath.Base(dump), func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			pgtest.Restore(t, url, pgtest.ReadDump(t, dump))
			db := opened(t, url)
			before := rowCounts(t, db)
			for table, rows := range before {
				if rows == 0 {
					t.Errorf("%s is empty in the dump", table)
				}
			}
			if err := pg.Migrate(t.Context(), url, slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			if pending, err := pg.PendingMigrations(t.Context(), db); check.NoError(t, err, "%d pending, %v", pending, err) {
				check.Equal(t, "pending", pending, 0, "%d pending, %v", pending, err)
			}
			after := rowCounts(t, db)
			delete(before, "goose_db_version")
			maps.DeleteFunc(after, func(table string, _ int) bool { _, had := before[table]; return !had })
			if !maps.Equal(before, after) {
				t.Errorf("rows are %v, want %v", after, before)
			}
			if _, had := before["arrivals"]; !had { // from a version whose lists had another order, and whose people had one name
				checkArrivals(t, db)
				checkNames(t, db)
			}
		})
	}
}

// checkArrivals wants a position for everybody who was a student before the upgrade, in the order in which they
// joined, and higher ones for those who come later.
func checkArrivals(t *testing.T, db *pg.DB) {
	t.Helper()
	var students, placed, inOrder, high int
	err := db.QueryRow(t.Context(), `
		SELECT count(*), count(a.position),
			count(*) FILTER (WHERE a.position = a.expected), count(*) FILTER (WHERE a.position > p.drawn)
		FROM members m
		CROSS JOIN LATERAL settled_position(m.organization_id) AS p
		LEFT JOIN (SELECT x.user_id, x.organization_id, x.position,
				row_number() OVER (PARTITION BY x.organization_id ORDER BY j.joined_at, j.user_id) AS expected
			FROM arrivals x JOIN members j USING (organization_id, user_id)) AS a USING (organization_id, user_id)
		WHERE m.role = 'member'`).Scan(&students, &placed, &inOrder, &high)
	check.NoError(check.Now(t), err, "%v", err)
	check.True(t, "students", students > 0, "the dump has none")
	check.Equal(t, "students with a position", placed, students, "of %d", students)
	check.Equal(t, "students in the order in which they joined", inOrder, students, "of %d", students)
	check.Equal(t, "positions that will be given again", high, 0, "of %d", students)
}

// checkNames holds that names stay the account's where they were: everybody of an organization has an
// entry without names of its own.
func checkNames(t *testing.T, db *pg.DB) {
	t.Helper()
	var otherwise int
	err := db.QueryRow(t.Context(), `
		SELECT count(*) FROM (
			SELECT organization_id, user_id FROM members UNION SELECT organization_id, user_id FROM enrollments) AS p
		LEFT JOIN directory d USING (organization_id, user_id)
		WHERE d.user_id IS NULL OR d.first_name IS NOT NULL OR d.last_name IS NOT NULL`).Scan(&otherwise)
	if check.NoError(t, err, "%v", err) {
		check.Equal(t, "people without their account's names", otherwise, 0, "%d", otherwise)
	}
}

// Sessions from before carry the proof of the password that opened them, and links from before, which
// went both into a mail and into an answer, prove no more than the organization.
func TestSessionsAndLinksGetTheirProof(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pgtest.Restore(t, url, pgtest.ReadDump(t, "testdata/filled-00013.sql.gz"))
	db := opened(t, url)
	exec(t, db, `
		WITH o AS (SELECT min(id) AS id FROM organizations), a AS (
			INSERT INTO accounts (email, username, first_name, password_hash, proven_password, created_by_organization, created_via, created_at, updated_at)
			SELECT who || '@x.org', who, 'A', 'x', who = 'own', CASE WHEN who <> 'nobodys' THEN o.id END, 'api', now(), now()
			FROM o, unnest(ARRAY['own', 'given', 'nobodys']) AS who
			RETURNING id, username),
		l AS (INSERT INTO set_password_tokens (hash, user_id, organization_id, created_at, expires_at)
			SELECT username::bytea, a.id, o.id, now(), now() + interval '1 hour' FROM a, o)
		INSERT INTO sessions (hash, data, expires_at)
		SELECT username, jsonb_build_object('values', jsonb_build_object('user', id::text, 'flash', 'x')), now() + interval '1 hour' FROM a`)
	if err := pg.Migrate(t.Context(), url, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	for hash, want := range map[string]string{"own": "mailbox", "given": "organization 1", "nobodys": "organization 0"} {
		var proof, flash string
		err := db.QueryRow(t.Context(), `
			SELECT replace(data -> 'values' ->> 'proof', (SELECT min(id)::text FROM organizations), '1'), data -> 'values' ->> 'flash'
			FROM sessions WHERE hash = $1`, hash).Scan(&proof, &flash)
		check.NoError(t, err, "%s", hash)
		check.Equal(t, "proof", proof, want, "%s", hash)
		check.Equal(t, "the rest of the session", flash, "x", "%s", hash)
	}
	var mailed int
	err := db.QueryRow(t.Context(), `SELECT count(*) FROM set_password_tokens WHERE mailed`).Scan(&mailed)
	check.NoError(t, err, "links")
	check.Equal(t, "links that prove the mailbox", mailed, 0, "of those that organizations have")
}

// rowCounts counts the rows of every table, those of partitions with their parent.
func rowCounts(t *testing.T, db *pg.DB) map[string]int {
	t.Helper()
	rows, err := db.Query(t.Context(), `
		SELECT oid::regclass::text FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, table := range tables {
		var n int
		if err := db.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		counts[table] = n
	}
	return counts
}
