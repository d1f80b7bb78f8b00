package provision_test

import (
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/check"
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
			if a := d.student(ana("toefl")); check.Equal(t, "a.Membership.Role", a.Membership.Role, role, "active staff: %+v", a) &&
				check.False(t, "a.Membership.Reactivated", a.Membership.Reactivated, "active staff: %+v", a) {
				check.Equal(t, "number of warnings", len(a.Warnings), 0, "active staff: %+v", a)
			}
			is(role, org.MemberActive)
			d.Exec(`UPDATE members SET status = 'inactive'`)
			if a := d.student(ana()); check.Equal(t, "a.Membership.Role", a.Membership.Role, role, "no course named: %+v", a) {
				check.Equal(t, "a.Membership.Status", a.Membership.Status, org.MemberInactive, "no course named: %+v", a)
			}
			is(role, org.MemberInactive)
			a := d.student(ana("ielts"))
			if check.Equal(t, "a.Membership.Role", a.Membership.Role, org.RoleMember, "the membership: %+v", a) &&
				check.Equal(t, "a.Membership.Status", a.Membership.Status, org.MemberActive, "the membership: %+v", a) &&
				check.True(t, "a.Membership.Reactivated", a.Membership.Reactivated, "the membership: %+v", a) {
				check.Equal(t, "the first enrollment's action", a.Enrollments[0].Action, course.Unchanged, "the membership: %+v", a)
			}
			if check.Equal(t, "number of warnings", len(a.Warnings), 1, "the answer: %+v", a) &&
				check.Contains(t, "the first warning", a.Warnings[0], "staff", "the answer: %+v", a) {
				check.True(t, "there is a link for the password", a.SetPasswordURL != nil, "the answer: %+v", a)
			}
			is(org.RoleMember, org.MemberActive)
			if again := d.student(ana("ielts")); check.Equal(t, "again.Status", again.Status, "already_provisioned", "a repeat: %+v", again) {
				check.Equal(t, "number of warnings", len(again.Warnings), 0, "a repeat: %+v", again)
			}
		})
	}
}
