package rest

import (
	"context"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// narrowed is whom a list is of.
type narrowed struct {
	org  id.Organization
	user id.User   // 0: nobody in particular
	few  []id.User // the people of the course, where they are few
}

// errNoCourse is the fault of a course_id that names no course of the organization.
func errNoCourse(c id.Course) error {
	f := fault.New(fault.NotFound, "not_found", "course_id: the organization has no course %d; send the id of one of GET /courses/", c)
	f.Field = "course_id"
	return f
}

// narrow finds whom a list is of. Another organization's course, or student, does not exist
// for this one.
func (s *Server) narrow(ctx context.Context, db *pg.DB, c id.Course, who student.Ref) (n narrowed, err error) {
	n.org = principal(ctx).Organization.ID
	if c != 0 {
		if _, err := course.Find(ctx, db, n.org, c); fault.KindOf(err) == fault.NotFound {
			return n, errNoCourse(c)
		} else if err != nil {
			return n, err
		}
		if n.few, err = course.Few(ctx, db, n.org, c); err != nil {
			return n, err
		}
	}
	if who.Anybody() {
		return n, nil
	}
	a, err := student.Resolve(ctx, db, n.org, who)
	n.user = a.ID
	return n, err
}
