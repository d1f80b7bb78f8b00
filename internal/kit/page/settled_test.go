package page_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/page"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// list is a table whose rows have positions, in a database with some organizations.
type list struct{ *pg.DB }

func newList(t *testing.T, organizations int) list {
	t.Helper()
	l := list{pgtest.New(t)}
	l.exec(t, `CREATE TABLE list (organization_id bigint, position bigint, PRIMARY KEY (organization_id, position))`)
	for n := range organizations {
		l.exec(t, `INSERT INTO organizations (slug, name, language_tests_enabled, default_access_months, grace_period_days,
			starter_tests_per_course, visible_tests_limit, send_welcome_email_default, set_password_link_valid_days, created_at, updated_at)
			VALUES ('o' || $1::int, 'O', true, 3, 7, 3, 5, true, 7, now(), now())`, n)
	}
	return l
}

// organization adds one with an id of its own, unless it is there.
func (l list) organization(t *testing.T, org id.Organization) {
	t.Helper()
	l.exec(t, `INSERT INTO organizations (id, slug, name, language_tests_enabled, default_access_months, grace_period_days,
		starter_tests_per_course, visible_tests_limit, send_welcome_email_default, set_password_link_valid_days, created_at, updated_at)
		OVERRIDING SYSTEM VALUE VALUES ($1, 'number-' || $1::bigint, 'O', true, 3, 7, 3, 5, true, 7, now(), now()) ON CONFLICT DO NOTHING`, org)
}

func (l list) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := l.Exec(t.Context(), sql, args...)
	check.NoError(check.Now(t), err, "%s: %v", sql, err)
}

const insertRow = `INSERT INTO list VALUES ($1, next_position($1)) RETURNING position`

// begin adds a row in a transaction that stays open.
func (l list) begin(t *testing.T, org id.Organization) (tx pgx.Tx, position int64) {
	t.Helper()
	tx, err := l.Begin(t.Context())
	check.NoError(check.Now(t), err, "%v", err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	err = tx.QueryRow(t.Context(), insertRow, org).Scan(&position)
	check.NoError(check.Now(t), err, "%v", err)
	return tx, position
}

func (l list) add(t *testing.T, org id.Organization) (position int64) {
	t.Helper()
	err := l.QueryRow(t.Context(), insertRow, org).Scan(&position)
	check.NoError(check.Now(t), err, "%v", err)
	return position
}

// page reads up to limit rows after a position. looked is called after each look at the table.
func (l list) page(ctx context.Context, org id.Organization, after int64, limit int, looked func()) ([]int64, error) {
	return page.Settled(ctx, pg.ReadPrimary(l.DB), org, limit, func(_ *pg.DB, until int64) ([]int64, error) {
		defer looked()
		rows, err := l.Query(ctx, `SELECT position FROM list
			WHERE organization_id = $1 AND position > $2 AND position <= $3 ORDER BY position LIMIT $4`, org, after, until, limit)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowTo[int64])
	})
}

// write adds up to three rows in one transaction, takes some of them back and sometimes all, and returns
// what it committed.
func (l list) write(ctx context.Context, random *rand.Rand, org id.Organization) (written []int64, err error) {
	tx, err := l.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	for range 1 + random.IntN(3) {
		part, err := tx.Begin(ctx)
		if err != nil {
			return nil, err
		}
		var position int64
		if err := part.QueryRow(ctx, insertRow, org).Scan(&position); err != nil {
			return nil, err
		}
		if random.IntN(4) == 0 {
			err = part.Rollback(ctx)
		} else {
			written, err = append(written, position), part.Commit(ctx)
		}
		if err != nil {
			return nil, err
		}
		if random.IntN(5) == 0 {
			if _, err := tx.Exec(ctx, `SELECT pg_sleep($1)`, random.Float64()/50); err != nil {
				return nil, err
			}
		}
	}
	if random.IntN(5) == 0 {
		return nil, tx.Rollback(ctx)
	}
	return written, tx.Commit(ctx)
}

// Writers of two organizations draw positions at once and commit in any order, or do not. A reader who
// stores the last position of each page reads every row once, in ascending order.
// Reference: conventions#cursors.
func TestStoredPositionsMissNothing(t *testing.T) {
	t.Parallel()
	rounds := 200
	if testing.Short() {
		rounds = 50
	}
	l := newList(t, 2)
	var mu sync.Mutex
	written := map[id.Organization][]int64{}
	var writers, readers sync.WaitGroup
	for n := range 10 {
		org, random := id.Organization(1+n%2), rand.New(rand.NewPCG(uint64(n), 1))
		writers.Go(func() {
			for range rounds {
				rows, err := l.write(t.Context(), random, org)
				check.NoError(t, err, "%v", err)
				mu.Lock()
				written[org] = append(written[org], rows...)
				mu.Unlock()
			}
		})
	}
	ended := make(chan struct{})
	go func() { writers.Wait(); close(ended) }()
	for n := range 4 {
		org, limit := id.Organization(1+n%2), 1+n*3
		readers.Go(func() {
			var read []int64
			for over, last := false, int64(0); ; {
				select {
				case <-ended:
					over = true
				default:
				}
				rows, err := l.page(t.Context(), org, last, limit, func() {})
				check.NoError(t, err, "%v", err)
				read = append(read, rows...)
				if len(rows) > 0 {
					last = rows[len(rows)-1]
				} else if over {
					break
				}
			}
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(written[org])
			check.True(t, "the reader saw what was written", slices.Equal(read, written[org]),
				"organization %d, pages of %d: %d rows read, %d written", org, limit, len(read), len(written[org]))
		})
	}
	readers.Wait()
}

// A page that lacks a committed row, because of an earlier one that is not committed yet, waits for it.
func TestAPageWaitsForRowsUnderWay(t *testing.T) {
	t.Parallel()
	l := newList(t, 2)
	read := func(limit int, looked func()) []int64 {
		t.Helper()
		rows, err := l.page(t.Context(), 1, 0, limit, looked)
		check.NoError(t, err, "%v", err)
		return rows
	}
	first := l.add(t, 1)
	open, second := l.begin(t, 1)
	third := l.add(t, 1)
	l.add(t, 2)

	ctx, cancel := context.WithCancel(t.Context())
	rows, err := l.page(ctx, 1, 0, 1, cancel) // what waits after its look is cut off
	check.NoError(t, err, "a full page waits for nobody")
	check.Slices(t, "a page that is full", rows, []int64{first}, "%v", rows)

	rows = read(5, func() {})
	check.Slices(t, "a page behind a transaction that stays open", rows, []int64{first}, "%v", rows)

	looks := 0
	rows = read(5, func() {
		if looks++; looks == 1 {
			check.NoError(t, open.Commit(t.Context()), "commit")
		}
	})
	check.Slices(t, "a page behind a transaction that commits", rows, []int64{first, second, third}, "%v", rows)

	open, _ = l.begin(t, 1)
	fifth := l.add(t, 1)
	check.NoError(t, open.Rollback(t.Context()), "rollback")
	rows = read(5, func() {})
	check.Slices(t, "a page behind a transaction that came to nothing", rows, []int64{first, second, third, fifth}, "%v", rows)
}

// A transaction's floor is found whatever its size and the organization's, and only by readers of that
// organization, in that database.
func TestFloorsOfLargeNumbers(t *testing.T) {
	t.Parallel()
	l, other := newList(t, 2), newList(t, 2)
	for org, last := range map[id.Organization]int64{1: 3, 2: 1<<32 - 1, 300: 1<<33 + 7, 70_000: 1<<40 - 10, 8_000_000: 5} {
		name := fmt.Sprintf("positions_%d", org)
		l.organization(t, org)
		other.organization(t, org)
		l.exec(t, fmt.Sprintf(`SELECT setval('%s', %d)`, name, last))
		other.exec(t, fmt.Sprintf(`SELECT setval('%s', %d)`, name, last))
	}
	for org, last := range map[id.Organization]int64{1: 3, 2: 1<<32 - 1, 300: 1<<33 + 7, 70_000: 1<<40 - 10, 8_000_000: 5} {
		tx, position := l.begin(t, org)
		check.Equal(t, "position", position, last+1, "of organization %d", org)
		later := l.add(t, org)
		for _, c := range []struct {
			in   list
			want int64
		}{{l, last}, {other, last + 1}} {
			if c.in == other {
				other.add(t, org)
			}
			var settled int64
			err := c.in.QueryRow(t.Context(), `SELECT settled FROM settled_position($1)`, org).Scan(&settled)
			check.NoError(t, err, "%v", err)
			check.Equal(t, "settled", settled, c.want, "of organization %d", org)
		}
		check.NoError(t, tx.Commit(t.Context()), "commit")
		var settled, drawn int64
		err := l.QueryRow(t.Context(), `SELECT settled, drawn FROM settled_position($1)`, org).Scan(&settled, &drawn)
		check.NoError(t, err, "%v", err)
		check.Equal(t, "settled", settled, later, "of organization %d", org)
		check.Equal(t, "drawn", drawn, later, "of organization %d", org)
	}
}

// A role that may execute the two functions draws and reads positions without rights on tables and
// sequences, and a temporary table leads nobody astray.
func TestRolesNeedNoRightsOnPositions(t *testing.T) {
	t.Parallel()
	l := newList(t, 1)
	tx, err := l.Begin(t.Context())
	check.NoError(check.Now(t), err, "%v", err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	for _, sql := range []string{
		`GRANT EXECUTE ON FUNCTION next_position, settled_position TO pg_signal_backend`,
		`SET LOCAL ROLE pg_signal_backend`,
		`CREATE TEMP SEQUENCE positions_1`,
		`CREATE TEMP TABLE pg_locks (n int)`,
	} {
		_, err := tx.Exec(t.Context(), sql)
		check.NoError(check.Now(t), err, "%s: %v", sql, err)
	}
	var position, settled, drawn int64
	err = tx.QueryRow(t.Context(), `SELECT next_position(1)`).Scan(&position)
	check.NoError(t, err, "%v", err)
	check.Equal(t, "position", position, 1, "the first")
	err = tx.QueryRow(t.Context(), `SELECT settled, drawn FROM settled_position(1)`).Scan(&settled, &drawn)
	check.NoError(t, err, "%v", err)
	check.Equal(t, "settled", settled, 0, "while it is open")
	check.Equal(t, "drawn", drawn, 1, "while it is open")
}

// Positions come and go with their organization.
func TestPositionsOfADeletedOrganization(t *testing.T) {
	t.Parallel()
	l := newList(t, 2)
	l.exec(t, `DELETE FROM organizations WHERE slug = 'o0'`)
	_, err := l.Exec(t.Context(), `SELECT next_position(1)`)
	check.True(t, "nobody writes for it", err != nil, "%v", err)
	var sequences int
	err = l.QueryRow(t.Context(), `SELECT count(*) FROM pg_sequences WHERE sequencename LIKE 'positions\_%'`).Scan(&sequences)
	check.NoError(t, err, "%v", err)
	check.Equal(t, "sequences", sequences, 1, "of the other one")
	check.Equal(t, "position", l.add(t, 2), 1, "of the other one")
}
