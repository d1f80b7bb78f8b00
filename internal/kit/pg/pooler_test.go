package pg_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// Behind a pooler each transaction makes its settings, and leaves none.
func TestSettingsAreTheTransactionsBehindAPooler(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.BehindPooler(map[string]string{"jit": "off", "idle_in_transaction_session_timeout": "7s"})
	second, err := db.Steady(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	const what = `SELECT current_setting('idle_in_transaction_session_timeout') || ' ' || current_setting('jit')`
	for name, read := range map[string]func(tx *pg.Tx) (string, error){
		"a statement first": func(tx *pg.Tx) (got string, err error) {
			err = tx.QueryRow(t.Context(), what).Scan(&got)
			return got, err
		},
		"a batch first": func(tx *pg.Tx) (got string, err error) {
			var b pg.Batch
			b.Queue(what).QueryRow(func(row pgx.Row) error { return row.Scan(&got) })
			err = b.Commit(t.Context(), tx)
			return got, err
		},
	} {
		for _, pool := range []*pg.DB{db, second} {
			var inside, after string
			err := pool.InTx(t.Context(), func(tx *pg.Tx) (err error) {
				inside, err = read(tx)
				return err
			})
			if check.NoError(t, err, "%s", name) {
				check.Equal(t, "the settings inside", inside, "7s off", "%s", name)
			}
			err = pool.QueryRow(t.Context(), what).Scan(&after)
			if check.NoError(t, err, "%s", name) {
				check.False(t, "they are left behind", strings.HasPrefix(after, "7s"), "%s: %s", name, after)
			}
		}
	}
}
