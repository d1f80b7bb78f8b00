package provision_test

import (
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/flow/provision"
	"github.com/registrar-dev/registrar/internal/kit/audit"
)

// item stores a catalog item, which an organization owns or everyone has.
func (d *fixture) item(code, typ string, own bool, more string) {
	d.t.Helper()
	d.Exec(`INSERT INTO catalog_items (organization_id, kind, code, title, type, max_score_e4, starter, active, created_at, updated_at)
		VALUES (CASE WHEN $3 THEN $4::bigint END, 'test', $1, $1, $2, 90000, `+more+`, now(), now())`, code, typ, own, d.who.Organization.ID)
}

// Reference: provisioning#starter-tests.
func TestStarterTests(t *testing.T) {
	t.Parallel()
	d := open(t)
	for _, code := range []string{"a", "b", "c", "d", "e"} {
		d.item(code, "ielts", code == "b", "true, true")
	}
	d.item("no starter", "ielts", false, "false, true")
	d.item("inactive", "ielts", false, "true, false")
	d.item("toefl", "toefl", false, "true, true")
	d.who.Organization.Defaults.StarterTestsPerCourse, d.who.Organization.Defaults.VisibleTestsLimit = 3, 4
	placed := func(c provision.Command) *int {
		t.Helper()
		return d.student(c).Enrollments[0].StarterTestsAssigned
	}
	if n := placed(ana("ielts")); *n != 3 {
		t.Errorf("%d placed, want the organization's number", *n)
	}
	if n := d.Count(`starter_tests s JOIN catalog_items i ON i.id = s.item_id WHERE i.code IN ('a', 'b', 'c')`); n != 3 {
		t.Errorf("%d of the first three were placed", n)
	}
	if n := placed(ana("ielts")); n != nil {
		t.Errorf("unchanged: %v", *n)
	}
	if n := placed(ana("toefl")); *n != 1 {
		t.Errorf("%d placed, want what is available", *n)
	}
	if n := placed(ana("gre")); *n != 0 {
		t.Errorf("%d placed, want none of a type without any", *n)
	}
	batch, err := course.Create(t.Context(), d.DB, audit.Platform, d.who.Organization.ID, course.Draft{Name: "Evening", Type: "ielts", OpenForEnrollment: true, StartDate: today}, now)
	if err != nil {
		t.Fatal(err)
	}
	c := ana()
	c.CourseIDs = append(c.CourseIDs, batch.ID)
	if n := placed(c); *n != 0 {
		t.Errorf("%d placed beyond the visible limit", *n)
	}
	d.who.Organization.Defaults.VisibleTestsLimit = 100
	d.Exec(`DELETE FROM enrollments WHERE course_id = $1`, batch.ID)
	if n := placed(c); *n != 2 {
		t.Errorf("%d placed, want the two unseen ones", *n)
	}
	renew := ana("ielts")
	d.Exec(`UPDATE enrollments SET start_date = '2020-01-01', end_date = '2020-02-01', grace_period_end = '2020-02-08'`)
	if n := placed(renew); *n != 0 {
		t.Errorf("reactivated: %d placed", *n)
	}
	renew.ExtendAccess, renew.ExternalRef = true, "7"
	if n := placed(renew); *n != 0 {
		t.Errorf("extended: %d placed", *n)
	}
	d.who.Organization.Defaults.StarterTestsPerCourse = 0
	other := ana("ielts")
	other.Email = "eve@institute.org"
	if n := placed(other); *n != 0 {
		t.Errorf("switched off: %d placed", *n)
	}
}
