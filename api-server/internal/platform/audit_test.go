package platform_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// auditRow is what a test expects of a row of the audit log.
type auditRow struct {
	Organization string // slug; "" for none
	Kind         audit.Kind
	Action       string
	Target       string
}

func auditRows(t *testing.T, e *apitest.Env) []auditRow {
	t.Helper()
	rows, err := e.DB.Query(t.Context(), `
		SELECT coalesce(o.slug, ''), a.actor_kind, a.action, a.target
		FROM audit_log a LEFT JOIN organizations o ON o.id = a.organization_id ORDER BY a.id`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[auditRow])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Each command leaves one row, and none when it is repeated or refused.
func TestCommandsAreInTheAuditLogOnce(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	var made struct {
		UserID      int `json:"user_id"`
		Enrollments []struct {
			ID     int `json:"enrollment_id"`
			Course int `json:"course_id"`
		}
	}
	north.Full.Post(t, "provision/student/", `{"email": "ana@institute.org", "first_name": "Ana", "courses": "ielts"}`).Want(t, 201).Into(t, &made)
	enrollment, member := fmt.Sprintf("organizations/north/enrollments/%d", made.Enrollments[0].ID), fmt.Sprintf("organizations/north/members/%d", made.UserID)
	var course struct {
		ID int `json:"id"`
	}
	before := len(auditRows(t, e))
	e.Platform.Post(t, "organizations/north/courses", `{"name": "Evening", "course_type": "sat"}`).Want(t, 201).Into(t, &course)
	evening := fmt.Sprintf("Evening (%d)", course.ID)
	want := []auditRow{{"north", audit.PlatformKey, "created course", evening}}
	for _, c := range []struct {
		method, path, body string
		row                auditRow
	}{
		{"PUT", "organizations/south", `{"name": "South"}`, auditRow{"south", audit.PlatformKey, "created organization", "South"}},
		{"PUT", "organizations/south", `{"language_tests_enabled": true}`, auditRow{"south", audit.PlatformKey, "changed organization", "South"}},
		{"PATCH", fmt.Sprintf("organizations/north/courses/%d", course.ID), `{"end_date": "2027-12-31"}`,
			auditRow{"north", audit.PlatformKey, "changed course", evening}},
		{"PUT", "course-types/sat", `{"active": false}`, auditRow{"", audit.PlatformKey, "closed course type", "sat"}},
		{"PUT", "course-types/sat", `{"active": true}`, auditRow{"", audit.PlatformKey, "opened course type", "sat"}},
		{"PUT", "catalog/tests/i1", `{"title": "IELTS 1", "type": "ielts", "difficulty": 6}`,
			auditRow{"", audit.PlatformKey, "created catalog item", "test i1"}},
		{"PUT", "organizations/north/catalog/quizzes/q1", `{"title": "Quiz"}`,
			auditRow{"north", audit.PlatformKey, "created catalog item", "quiz q1"}},
		{"PUT", "organizations/north/catalog/quizzes/q1", `{"active": false}`,
			auditRow{"north", audit.PlatformKey, "changed catalog item", "quiz q1"}},
		{"PATCH", enrollment, `{"state": "suspended"}`,
			auditRow{"north", audit.PlatformKey, "changed enrollment", "ana@institute.org in IELTS Academic (" + fmt.Sprint(made.Enrollments[0].Course) + ")"}},
		{"PATCH", member, `{"status": "inactive"}`, auditRow{"north", audit.PlatformKey, "deactivated member", "ana@institute.org"}},
		{"PATCH", member, `{"status": "active"}`, auditRow{"north", audit.PlatformKey, "activated member", "ana@institute.org"}},
		{"PUT", "organizations/north/staff/olive@school.org", `{"first_name": "Olive", "role": "owner"}`,
			auditRow{"north", audit.PlatformKey, "added staff member", "olive@school.org (owner)"}},
		{"PUT", "organizations/north/staff/olive@school.org", `{"role": "teacher"}`,
			auditRow{"north", audit.PlatformKey, "changed staff member", "olive@school.org (teacher)"}},
	} {
		for range 2 {
			a := e.Platform.Do(t, c.method, c.path, c.body)
			check.OneOf(check.Now(t), "status", a.Status, []int{http.StatusOK, http.StatusCreated}, "%s %s: %s", c.method, c.path, a.Body)
		}
		want = append(want, c.row)
	}
	e.Platform.Delete(t, member).Want(t, 200)
	e.Platform.Delete(t, member).WantFault(t, 404, "not_found", "")
	want = append(want, auditRow{"north", audit.PlatformKey, "removed member", "ana@institute.org"})
	got := auditRows(t, e)[before:]
	check.Equal(t, "number of entries", len(got), len(want), "%+v", got)
	for i := range min(len(got), len(want)) {
		check.Equal(t, "row", got[i], want[i], "row %d", i)
	}
}

// What cannot be recorded is not done.
func TestWithoutItsAuditRowACommandChangesNothing(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	if _, err := e.DB.Exec(t.Context(), `ALTER TABLE audit_log RENAME TO audit_log_away`); err != nil {
		t.Fatal(err)
	}
	for path, body := range map[string]string{
		"organizations/south":                    `{"name": "South"}`,
		"organizations/north/catalog/quizzes/q1": `{"title": "Quiz"}`,
		"organizations/north/staff/a@school.org": `{"first_name": "A", "role": "owner"}`,
		"course-types/sat":                       `{"active": false}`,
	} {
		if a := e.Platform.Put(t, path, body); a.Status != http.StatusInternalServerError {
			t.Errorf("%s: status %d, want 500", path, a.Status)
		}
	}
	for _, statement := range []string{
		`SELECT count(*) FROM organizations WHERE slug = 'south'`,
		`SELECT count(*) FROM catalog_items`,
		`SELECT count(*) FROM accounts WHERE email = 'a@school.org'`,
		`SELECT count(*) FROM course_types WHERE name = 'sat' AND NOT active`,
	} {
		var n int
		if err := e.DB.QueryRow(t.Context(), statement).Scan(&n); err != nil {
			t.Fatal(err)
		}
		check.Equal(t, statement, n, 0, "left behind")
	}
}
