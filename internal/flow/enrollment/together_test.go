package enrollment_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// call is somebody's transaction that holds the lock of an address.
func (d *fixture) call(address string) pgx.Tx {
	d.t.Helper()
	tx, err := d.DB.Begin(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	if _, err := tx.Exec(d.t.Context(), `SELECT pg_advisory_xact_lock(1001, hashtext($1))`, address); err != nil {
		d.t.Fatal(err)
	}
	return tx
}

// An import gives somebody another address while a change waits for the lock of the one
// before: the change then takes the lock of the other, as every call to it does.
func TestAChangeHoldsTheLockOfTheAddressThatThePersonHas(t *testing.T) {
	t.Parallel()
	d := open(t)
	user, _ := d.enroll("ana@institute.org", 0, 4)
	importing, provisioning := d.call("ana@institute.org"), d.call("ana.lopez@institute.org")
	done := make(chan error, 1)
	go func() {
		_, err := d.SetMember(t.Context(), audit.Platform, d.org.ID, user, org.MemberInactive)
		done <- err
	}()
	pgtest.AwaitBlocked(t, d.DB, importing)
	if _, err := importing.Exec(t.Context(), `UPDATE accounts SET email = 'ana.lopez@institute.org' WHERE id = $1`, user); err != nil {
		t.Fatal(err)
	}
	if err := importing.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	pgtest.AwaitBlocked(t, d.DB, provisioning)
	if err := provisioning.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var status string
	if err := d.DB.QueryRow(t.Context(), `SELECT status FROM members WHERE user_id = $1`, user).Scan(&status); check.NoError(t, err, "the member is %s, %v", status, err) {
		check.Equal(t, "status", status, "inactive", "the member is %s, %v", status, err)
	}
}
