package pg_test

import (
	"context"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// A program that vanished in the middle of a transaction does not keep its locks.
func TestASilentTransactionLetsItsLocksGo(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var setting string
	if err := db.QueryRow(t.Context(), `SHOW idle_in_transaction_session_timeout`).Scan(&setting); check.NoError(t, err, "a transaction may stand still for %s, %v", setting, err) {
		check.Equal(t, "setting", setting, "1min", "a transaction may stand still for %s, %v", setting, err)
	}
	vanished, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := vanished.Exec(t.Context(), `UPDATE course_types SET active = active; SET LOCAL idle_in_transaction_session_timeout = '300ms'`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := db.Exec(ctx, `UPDATE course_types SET active = active`); err != nil {
		t.Errorf("it keeps its locks: %v", err)
	}
	if err := vanished.Commit(t.Context()); err == nil {
		t.Error("it was committed all the same")
	}
}
