package org

import (
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Role is what a person is in an organization.
type Role string

// The roles. All but RoleMember are staff, who are never students, even when enrolled.
const (
	RoleMember   Role = "member"
	RoleOwner    Role = "owner"
	RoleAdmin    Role = "admin"
	RoleExaminer Role = "examiner"
	RoleTeacher  Role = "teacher"
)

// Staff says whether the role is one of the staff's.
func (r Role) Staff() bool { return r != "" && r != RoleMember }

// StaffRoles are the roles of staff.
func StaffRoles() []Role { return []Role{RoleOwner, RoleAdmin, RoleExaminer, RoleTeacher} }

// MemberStatus says whether a membership is active.
type MemberStatus string

// The statuses.
const (
	MemberActive   MemberStatus = "active"
	MemberInactive MemberStatus = "inactive"
)

// Via is how a membership came to be.
type Via string

// The ways. A roster import changes only what roster imports made.
const (
	ViaAPI    Via = "api"
	ViaRoster Via = "roster"
	ViaStaff  Via = "staff"
	ViaLTI    Via = "lti"
)

// Member is a person's membership of an organization. The zero Member is none.
type Member struct {
	Role     Role
	Status   MemberStatus
	Via      Via
	JoinedAt time.Time // of the first time
	Managed  bool      `db:"-"` // the organization's resource keeps the role; Staff alone reads it
}

// AddMember queues a new active membership and returns it. The caller holds the lock of
// the person's address and has seen that there is none.
func AddMember(b *pg.Batch, org id.Organization, user id.User, role Role, via Via, now time.Time) Member {
	m := NewMember(role, via, now)
	InsertMember(b, org, user, m)
	return m
}

// NewMember returns a new active membership, for InsertMember.
func NewMember(role Role, via Via, now time.Time) Member {
	return Member{Role: role, Status: MemberActive, Via: via, JoinedAt: now}
}

// SetStaff queues that the member m is active staff with the role, and returns it so.
func SetStaff(b *pg.Batch, org id.Organization, user id.User, m Member, role Role, now time.Time) Member {
	m.Role, m.Status = role, MemberActive
	queueMemberRole(b, org, user, m, now)
	return m
}

// Readmit queues that the member m is an active student, and returns it so. Somebody who was
// staff before loses the staff role.
func Readmit(b *pg.Batch, org id.Organization, user id.User, m Member, now time.Time) Member {
	m.Role, m.Status = RoleMember, MemberActive
	queueMemberRole(b, org, user, m, now)
	return m
}

// Belonging is a person's membership together with its organization.
type Belonging struct {
	Organization id.Organization
	Slug, Name   string
	Logo         string // its digest; "": there is none
	Language     string // the organization's
	Member
}
