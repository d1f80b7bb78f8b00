package enrollment

import (
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// The sweep leaves a person to its next look who got another address, and with it another
// lock, after it had looked who is due.
func TestTheSweepTellsOfNobodyWhoseLockItDoesNotHold(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	o := &Service{DB: pgtest.New(t), Zone: time.UTC, Clock: func() time.Time { return now }}
	for _, sql := range []string{
		`INSERT INTO organizations (slug, name, language_tests_enabled, default_access_months, grace_period_days, starter_tests_per_course,
				visible_tests_limit, send_welcome_email_default, set_password_link_valid_days, created_at, updated_at)
			VALUES ('o', 'O', true, 6, 7, 2, 10, true, 7, now(), now())`,
		`INSERT INTO accounts (email, username, first_name, created_via, created_at, updated_at) VALUES ('ana.lopez@institute.org', 'ana', 'Ana', 'api', now(), now())`,
		`INSERT INTO courses (organization_id, name, course_type, start_date, created_at, updated_at) VALUES (1, 'C', 'ielts', '2026-01-01', now(), now())`,
		`INSERT INTO enrollments (organization_id, user_id, course_id, start_date, end_date, grace_period_end, notified_status, next_day, created_at, updated_at)
			VALUES (1, 1, 1, '2026-01-01', '2026-03-01', '2026-03-08', 'active', '2026-03-09', now(), now())`,
	} {
		if _, err := o.DB.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	for _, c := range []struct{ locked, told string }{{"ana@institute.org", "active"}, {"ana.lopez@institute.org", "expired"}} {
		err := o.DB.InTx(t.Context(), func(tx *pg.Tx) error {
			return o.notify(t.Context(), tx, []*dueStudent{{Due: course.Due{Organization: 1, User: 1, Email: c.locked}, locked: true}}, o.today())
		})
		if err != nil {
			t.Fatal(err)
		}
		var notified string
		if err := o.DB.QueryRow(t.Context(), `SELECT notified_status FROM enrollments`).Scan(&notified); err != nil || notified != c.told {
			t.Errorf("with the lock of %s, the enrollment was told as %s, want %s (%v)", c.locked, notified, c.told, err)
		}
	}
}
