package enrollment

import (
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// The sweep leaves a person to its next look who got another address, and with it another
// lock, after it had looked who is due.
func TestTheSweepNotifiesOfNobodyWhoseLockItDoesNotHold(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	f := flowtest.New(t)
	o := &Service{DB: f.Database, Zone: time.UTC, Clock: func() time.Time { return now }}
	north := f.Organization("north")
	north.Enroll(f.Account("ana.lopez@institute.org", "Ana", ""), north.Course("ielts", "C"), "2026-01-01", "2026-03-01")
	f.Exec(`UPDATE enrollments SET notified_status = 'active', next_day = '2026-03-09'`)
	for _, c := range []struct{ locked, want string }{{"ana@institute.org", "active"}, {"ana.lopez@institute.org", "expired"}} {
		err := o.DB.InTx(t.Context(), func(tx *pg.Tx) error {
			return o.notify(t.Context(), tx, []course.Due{{DuePosition: course.DuePosition{Organization: 1}, User: 1, Email: c.locked}}, o.today())
		})
		if err != nil {
			t.Fatal(err)
		}
		var notified string
		if err := o.DB.QueryRow(t.Context(), `SELECT notified_status FROM enrollments`).Scan(&notified); check.NoError(t, err, "with the lock of %s, the enrollment was notified as %s, want %s (%v)", c.locked, notified, c.want, err) {
			check.Equal(t, "notified", notified, c.want, "with the lock of %s, the enrollment was notified as %s, want %s (%v)", c.locked, notified, c.want, err)
		}
	}
}
