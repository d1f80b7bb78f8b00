package organization

import (
	"slices"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// along are the tables whose rows go with others' by a foreign key, those about organizations that were erased, and those
// that have rows in the databases of sandboxes alone.
var along = []string{"plan_goals", "webhook_recoveries", "organization_erasures", "sandbox_clock", "sandbox_mails"}

// Whoever adds a table with rows of organizations says here, or in pieces, what becomes of them.
func TestEveryTableOfOrganizationsIsErased(t *testing.T) {
	t.Parallel()
	tables, err := pg.Column[string](t.Context(), pgtest.New(t), `
		SELECT c.relname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
			AND a.attname IN ('organization_id', 'run_id') AND NOT a.attisdropped`)
	check.NoError(check.Now(t), err, "the tables")
	check.True(t, "there are tables", len(tables) > 30, "%v", tables)
	for _, table := range tables {
		erased := slices.ContainsFunc(pieces, func(p piece) bool { return p.table == table })
		check.True(t, table, erased != slices.Contains(along, table), "erased %v", erased)
	}
	for _, p := range pieces {
		check.True(t, p.table, p.table == people || slices.Contains(tables, p.table), "is no table of organizations")
	}
}

// A piece that is found by an index is one to PostgreSQL, too, however much others have.
func TestRowsOfAnOrganizationAreFoundByAnIndex(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	err := db.InTx(t.Context(), func(tx *pg.Tx) error {
		if _, err := tx.Exec(t.Context(), `SET LOCAL enable_seqscan = off`); err != nil {
			return err
		}
		for _, p := range pieces {
			if p.unindexed || p.table == people {
				continue
			}
			var which string
			if err := tx.QueryRow(t.Context(), `SELECT rows_of_organization($1)`, p.table).Scan(&which); err != nil {
				return err
			}
			plan, err := pg.Column[string](t.Context(), tx, `EXPLAIN SELECT FROM `+p.table+` WHERE `+which, 7)
			if err != nil {
				return err
			}
			check.True(t, p.table, !slices.ContainsFunc(plan, readsAll(p.table)), "%v", plan)
		}
		return nil
	})
	check.NoError(t, err, "explaining")
}

// readsAll finds the line of a plan that reads a table, or a partition, as a whole.
func readsAll(table string) func(line string) bool {
	return func(line string) bool { return strings.Contains(line, "Seq Scan on "+table) }
}
