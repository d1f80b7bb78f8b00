package enrollment_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
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

// Changes of many people at once, among them of somebody whose lock another call has and of nobody, are made in a few
// transactions, each exactly once, and one that is refused keeps no other from being made.
func TestChangesAtOnceGoTogether(t *testing.T) {
	t.Parallel()
	d := open(t)
	const n = 40
	users, enrollments := make([]id.User, n), make([]id.Enrollment, n)
	for i := range n {
		users[i], enrollments[i] = d.enroll(fmt.Sprintf("s%d@institute.org", i), 0, 4)
	}
	d.Exec(`DELETE FROM members`) // so that who is suspended is in no list, and comes back
	provisioning := d.call("s0@institute.org")
	change := func(state course.State, refused bool) {
		var calls sync.WaitGroup
		for i := range n {
			calls.Go(func() {
				e, err := d.ChangeEnrollment(t.Context(), audit.Platform, d.org, enrollments[i], course.Change{State: &state})
				if check.NoError(t, err, "student %d", i) {
					check.Equal(t, "state", e.State, state, "of student %d", i)
					check.Equal(t, "student", e.Student.UserID, users[i], "of the answer")
				}
			})
			if refused && i%4 == 0 {
				calls.Go(func() {
					_, err := d.SetMember(t.Context(), audit.Platform, d.org.ID, 999999, org.MemberInactive)
					check.Equal(t, "fault", fault.KindOf(err), fault.NotFound, "%v", err)
				})
			}
		}
		calls.Wait()
	}
	go func() {
		pgtest.AwaitBlocked(t, d.DB, provisioning)
		_ = provisioning.Commit(t.Context())
	}()
	change(course.Suspended, true)
	change(course.Running, false)
	for action, want := range map[string]int{`action = 'changed enrollment'`: 2 * n, `action = 'deactivated member'`: 0} {
		var got int
		check.NoError(t, d.DB.QueryRow(t.Context(), `SELECT count(*) FROM audit_log WHERE `+action).Scan(&got), "entries")
		check.Equal(t, "entries", got, want, "%s", action)
	}
	var transactions, events int
	check.NoError(t, d.DB.QueryRow(t.Context(), `SELECT count(DISTINCT xmin::text) FROM enrollments WHERE state = 'running'`).Scan(&transactions), "transactions")
	check.True(t, "they share transactions", transactions < n, "%d for %d changes", transactions, n)
	check.NoError(t, d.DB.QueryRow(t.Context(), `SELECT count(*) FROM webhook_events WHERE type IN ('enrollment.updated', 'enrollment.ended')`).Scan(&events), "events")
	check.Equal(t, "events", events, 2*n, "one a change")
}
