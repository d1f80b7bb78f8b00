package provision_test

import (
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
)

// No key makes staff: whose membership was ended comes back as a student.
// Reference: students#membership.
func TestFormerStaffComeBackAsStudents(t *testing.T) {
	t.Parallel()
	for _, role := range []org.Role{org.RoleOwner, org.RoleAdmin, org.RoleExaminer, org.RoleTeacher} {
		t.Run(string(role), func(t *testing.T) {
			t.Parallel()
			d := open(t)
			d.student(ana("ielts"))
			is := func(role org.Role, status org.MemberStatus) {
				t.Helper()
				if n := d.Count(`members WHERE role = $1 AND status = $2`, role, status); n != 1 {
					t.Errorf("no member is %s and %s", role, status)
				}
			}
			d.Exec(`UPDATE members SET role = $1`, role)
			if a := d.student(ana("toefl")); a.Membership.Role != role || a.Membership.Reactivated || len(a.Warnings) != 0 {
				t.Errorf("active staff: %+v", a)
			}
			is(role, org.MemberActive)
			d.Exec(`UPDATE members SET status = 'inactive'`)
			if a := d.student(ana()); a.Membership.Role != role || a.Membership.Status != org.MemberInactive {
				t.Errorf("no course named: %+v", a)
			}
			is(role, org.MemberInactive)
			a := d.student(ana("ielts"))
			if a.Membership.Role != org.RoleMember || a.Membership.Status != org.MemberActive || !a.Membership.Reactivated || a.Enrollments[0].Action != course.Unchanged {
				t.Errorf("the membership: %+v", a)
			}
			if len(a.Warnings) != 1 || !strings.Contains(a.Warnings[0], "staff") || a.SetPasswordURL != nil {
				t.Errorf("the answer: %+v", a)
			}
			is(org.RoleMember, org.MemberActive)
			if again := d.student(ana("ielts")); again.Status != "already_provisioned" || len(again.Warnings) != 0 {
				t.Errorf("a repeat: %+v", again)
			}
		})
	}
}
