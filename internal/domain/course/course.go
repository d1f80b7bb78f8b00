// Package course holds course types, an organization's courses, and enrollments with
// their rules: which status the dates give, how long access lasts, and what naming a
// course in a provisioning call does to an enrollment.
package course

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Status says whether a course is offered. It does not change with the dates.
type Status string

// The statuses of a course. Cancelled ones are in no list.
const (
	StatusActive    Status = "active"
	StatusCompleted Status = "completed"
	StatusCancelled Status = "cancelled"
)

// Course is a class of one type (reference: courses#course-fields).
type Course struct {
	ID                  id.Course
	Name                string
	Type                string // the type's name
	TypeDisplay         string
	IsDefault           bool // never of a cancelled course
	Status              Status
	OpenForEnrollment   bool
	IsPerpetual         bool
	StartDate           clock.Date
	EndDate             clock.Date // zero: none
	DefaultAccessMonths int        // 0: not set on the course
	DefaultAccessWeeks  int        // 0: not set on the course; wins over the months
	TypeAccessMonths    int        // the type's default; 0: not set
}

// OpenOn says whether the course takes new or renewed students on the day today. Its own
// end closes a course, unless it is perpetual.
func (c Course) OpenOn(today clock.Date) bool {
	ended := !c.IsPerpetual && !c.EndDate.IsZero() && c.EndDate.Before(today)
	return c.Status == StatusActive && c.OpenForEnrollment && !ended
}

// Listed is a course with the number of distinct students who have an active,
// grace-period or scheduled enrollment in it. Staff are not counted.
type Listed struct {
	Course
	StudentsWithAccess int
}

// Find reads one course of the organization, whatever its status. NotFound otherwise.
func Find(ctx context.Context, q pg.Querier, org id.Organization, course id.Course) (Course, error) {
	c, err := selectCourse(ctx, q, org, course)
	if pg.None(err) {
		return Course{}, errNoCourse(course)
	}
	return c, err
}

// maxFew is the largest number of people in a course for which a list looks up each person's
// rows. In a larger course it reads on through the list instead, as it soon meets their rows.
const maxFew = 500

// Few lists the people who are or were enrolled in the course; nil when they are more than
// maxFew.
func Few(ctx context.Context, q pg.Querier, org id.Organization, course id.Course) ([]id.User, error) {
	users, err := selectEnrolled(ctx, q, org, course, maxFew+1)
	if err != nil || len(users) > maxFew {
		return nil, err
	}
	return users, nil
}

// Counts are the numbers that `GET /organization/` shows.
type Counts struct {
	Courses            int // cancelled ones left out
	StudentsWithAccess int // distinct, staff left out
}

// Draft has the settings of a new course.
type Draft struct {
	Name                string
	Type                string
	Status              Status // "": active
	OpenForEnrollment   bool
	IsPerpetual         bool
	StartDate           clock.Date // required
	EndDate             clock.Date // zero: none
	DefaultAccessMonths int        // 1 to 120; 0: the type's or the organization's
	DefaultAccessWeeks  int        // 1 to 520; 0: in months
}

// Create adds a course, which is not the type's default. Invalid names each wrong field.
func Create(ctx context.Context, db *pg.DB, by audit.Actor, org id.Organization, d Draft, now time.Time) (c Course, err error) {
	d.Name = strings.TrimSpace(d.Name)
	if d.Status == "" {
		d.Status = StatusActive
	}
	if err := d.check(); err != nil {
		return Course{}, err
	}
	err = db.InTx(ctx, func(tx *pg.Tx) error {
		if c, err = insertCourse(ctx, tx, org, d, now); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "created course", Target: c.Label(), At: now})
	})
	if pg.Violates(err, "courses_course_type_fkey") {
		return Course{}, fault.Field("course_type", "unknown_course_type", "course_type: there is no course type %q", d.Type)
	}
	return c, err
}

// Label is what the course is called in warnings and in the audit log. Several courses may have one name.
func (c Course) Label() string { return fmt.Sprintf("%s (%d)", c.Name, c.ID) }

func (d Draft) check() error {
	var faults fault.List
	bad := func(field, format string, args ...any) {
		_ = faults.Add(fault.Field(field, "invalid", field+": "+format, args...))
	}
	if n := utf8.RuneCountInString(d.Name); n < 1 || n > maxName {
		bad("name", "send a name of 1 to %d characters", maxName)
	}
	if d.Type == "" {
		bad("course_type", "required; send the name of a course type, such as ielts")
	}
	switch d.Status {
	case StatusActive, StatusCompleted, StatusCancelled:
	default:
		bad("status", "%q is no status; send active, completed or cancelled", string(d.Status))
	}
	if d.StartDate.IsZero() {
		bad("start_date", "required; send a date of the form YYYY-MM-DD")
	}
	if !d.EndDate.IsZero() && d.EndDate.Before(d.StartDate) {
		bad("end_date", "%v is before start_date %v", d.EndDate, d.StartDate)
	}
	if d.DefaultAccessMonths < 0 || d.DefaultAccessMonths > MaxMonths {
		bad("default_access_months", "send a whole number from 1 to %d, or null", MaxMonths)
	}
	if d.DefaultAccessWeeks < 0 || d.DefaultAccessWeeks > maxWeeks {
		bad("default_access_weeks", "send a whole number from 1 to %d, or null", maxWeeks)
	}
	return faults.Err()
}

// Limits of a course's settings.
const (
	MaxMonths = 120 // of access, also of one call's tenure_months
	maxWeeks  = 520
	maxName   = 200
)

// Patch changes the settings that are not nil. The type of a course never changes.
type Patch struct {
	Name                *string
	Status              *Status
	OpenForEnrollment   *bool
	IsPerpetual         *bool
	StartDate           *clock.Date
	EndDate             *clock.Date // the zero Date removes it
	DefaultAccessMonths *int        // 0 removes it
	DefaultAccessWeeks  *int        // 0 removes it
}

// Update changes a course. Enrollments keep their dates. A default course that is cancelled stops being
// the default, for good: the next grant of its type makes another. NotFound for a course of another
// organization; Invalid as for Create.
func Update(ctx context.Context, db *pg.DB, by audit.Actor, org id.Organization, course id.Course, p Patch, now time.Time) (c Course, err error) {
	err = db.InTx(ctx, func(tx *pg.Tx) error {
		if c, err = lockCourse(ctx, tx, org, course); err != nil {
			return err
		}
		before := Draft{c.Name, c.Type, c.Status, c.OpenForEnrollment, c.IsPerpetual, c.StartDate, c.EndDate,
			c.DefaultAccessMonths, c.DefaultAccessWeeks}
		d := p.On(before)
		if err := d.check(); err != nil || d == before {
			return err
		}
		if c, err = updateCourse(ctx, tx, org, course, d, now); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "changed course", Target: c.Label(), At: now})
	})
	if pg.None(err) {
		return Course{}, errNoCourse(course)
	}
	return c, err
}

// On returns the draft with the patch's settings.
func (p Patch) On(d Draft) Draft {
	if p.Name != nil {
		d.Name = strings.TrimSpace(*p.Name)
	}
	set(&d.Status, p.Status)
	set(&d.OpenForEnrollment, p.OpenForEnrollment)
	set(&d.IsPerpetual, p.IsPerpetual)
	set(&d.StartDate, p.StartDate)
	set(&d.EndDate, p.EndDate)
	set(&d.DefaultAccessMonths, p.DefaultAccessMonths)
	set(&d.DefaultAccessWeeks, p.DefaultAccessWeeks)
	return d
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func errNoCourse(course id.Course) error {
	return fault.New(fault.NotFound, "not_found", "the organization has no course %d", course)
}
