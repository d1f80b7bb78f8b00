package student

import (
	"context"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Ref names one student by email, by user id or by both; the zero Ref names nobody.
type Ref struct {
	Email Email
	User  id.User
}

// Anybody says whether w names no particular student.
func (w Ref) Anybody() bool { return w == Ref{} }

// Resolve finds the student of the organization that w names: a member of the student role,
// active or not, or a person who is or was enrolled and is not staff.
// NotFound otherwise, which does not reveal whether other organizations have the person;
// Invalid (who_differs) when email and user_id are two students of the organization.
func Resolve(ctx context.Context, q pg.Querier, org id.Organization, w Ref) (Account, error) {
	found, err := selectStudents(ctx, q, org, w)
	switch {
	case err != nil:
		return Account{}, err
	case len(found) == 2:
		return Account{}, fault.Field("user_id", "who_differs", "user_id: it is not the student of the email; send one of the two, or both of one student")
	case len(found) == 0, !w.names(found[0]):
		return Account{}, errNoStudent
	}
	return found[0], nil
}

// names says whether the account has the email and the id of w, as far as w has them.
func (w Ref) names(a Account) bool {
	return (w.Email == "" || w.Email == a.Email) && (w.User == 0 || w.User == a.ID)
}

// errNoStudent is the fault for a person who is not a student of the organization.
var errNoStudent = fault.New(fault.NotFound, "student_not_found", "the organization has no such student; check email or user_id")

// Lookup finds anyone who is a member of the organization, whatever the role, or was ever
// enrolled in it, as it may know the account. NotFound otherwise, also for people with accounts elsewhere.
func Lookup(ctx context.Context, q pg.Querier, org id.Organization, email Email) (Account, error) {
	a, err := selectPerson(ctx, q, org, email)
	if pg.None(err) {
		return Account{}, errNoStudent
	}
	return a.SeenBy(org), err
}

// RosterStatus narrows the list of students (reference: students#student-list).
type RosterStatus string

// The statuses. Students whose course has not begun, or who were never enrolled, have neither.
const (
	RosterAny      RosterStatus = ""
	RosterActive   RosterStatus = "active"   // has access today
	RosterInactive RosterStatus = "inactive" // has none, and left or has an enrollment that is over or suspended
)

// RosterFilter chooses students.
type RosterFilter struct {
	Status RosterStatus
	Course id.Course // enrolled in it, whatever the enrollment's status; 0: any
	Few    bool      // the people of Course are few (course.Few)
	Today  clock.Date
}

// Listed is a student with the position of the list.
type Listed struct {
	Account
	Position int64
}

// walk is how many positions are searched for people of a large course before the search goes on person by
// person: they may have come long after each other.
const walk = 16 << 10

// Stretch is a part of the list: the positions above After, up to Until.
type Stretch struct{ After, Until int64 }

// Roster lists the first students of a stretch of the organization's list, up to limit, in the order in
// which they came into it (reference: students#student-list).
func Roster(ctx context.Context, q pg.Querier, org id.Organization, f RosterFilter, s Stretch, limit int) ([]Listed, error) {
	if f.Course == 0 || f.Few {
		return selectRoster(ctx, q, org, f, s, limit, f.Few)
	}
	near, far := s, s
	near.Until = min(s.After+walk, s.Until)
	found, err := selectRoster(ctx, q, org, f, near, limit, false)
	if err != nil || len(found) == limit || near.Until == s.Until {
		return found, err
	}
	far.After = near.Until
	more, err := selectRoster(ctx, q, org, f, far, limit-len(found), true)
	return append(found, more...), err
}
