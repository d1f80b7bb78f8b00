package course

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Action is what a provisioning call does to one enrollment.
type Action string

// The actions (reference: provisioning#enrollment-moves).
const (
	Created     Action = "created"
	Unchanged   Action = "unchanged"
	Extended    Action = "extended"
	Reactivated Action = "reactivated"
	Skipped     Action = "skipped"
)

// NoteAlreadyExtended is the note of an extension whose external_ref was used before.
const NoteAlreadyExtended = "already_extended_for_external_ref"

// Request is what a provisioning call says about courses.
type Request struct {
	Types        []string    // names or display names, in the caller's order; may repeat
	Courses      []id.Course // in the caller's order; may repeat
	TenureMonths int         // 0: not sent
	Extend       bool        // extend_access
	Ref          string      // external_ref; "": not sent
	Source       string      // a label; "": not sent
}

// Offer has the organization's types and courses that a Request names.
type Offer struct {
	Types   []Type   // the named ones; all of them when a named one is unknown or inactive
	Courses []Course // those named by id, and the default courses of the named types

	drawn []id.Enrollment // ids for new enrollments
}

// Held has the student's enrollments in the organization, and those for which the Request's
// external_ref was already used.
type Held struct {
	Enrollments []Enrollment
	RefUsed     map[id.Enrollment]bool
}

// Move is what the call does to one enrollment.
type Move struct {
	Action Action
	Before Enrollment // the zero Enrollment when there was none
	After  Enrollment // a course that does not exist yet has no id, and a new enrollment may have none
	Note   string
	ref    string // external_ref to store with the enrollment; "" for none
}

// Granted says whether the move gives or extends access.
func (m Move) Granted() bool { return m.Action != Unchanged && m.Action != Skipped }

// Plan decides the moves, one for each course in the order in which the call names them, and
// the warnings. It does no I/O. Invalid lists every type, course and date that is refused.
func Plan(r Request, o Offer, h Held, t Terms, today clock.Date) ([]Move, []string, error) {
	p := planner{Request: r, offer: o, held: h, terms: t, today: today}
	targets := p.targets()
	moves := make([]Move, 0, len(targets))
	for _, g := range targets {
		moves = append(moves, p.move(g))
	}
	if err := p.faults.Err(); err != nil {
		return nil, nil, err
	}
	return moves, p.warnings, nil
}

type planner struct {
	Request
	offer    Offer
	held     Held
	terms    Terms
	today    clock.Date
	faults   fault.List
	warnings []string
}

// target is a course that the call reaches, with the student's enrollment in it.
type target struct {
	course Course
	held   Enrollment // zero: none
	byID   bool       // named in course_ids, perhaps by its type too
}

func (g target) field() string {
	if g.byID {
		return "course_ids"
	}
	return "courses"
}

func (p *planner) targets() []target {
	var all []target
	seen := map[string]bool{}
	for _, text := range p.Types {
		typ, err := ResolveType(p.offer.Types, "courses", text)
		if err != nil {
			_ = p.faults.Add(err) // ResolveType gives faults only
		}
		if err != nil || seen[typ.Name] {
			continue
		}
		seen[typ.Name] = true
		all = append(all, p.byType(typ))
	}
	for _, want := range p.Courses {
		if i := slices.IndexFunc(all, func(g target) bool { return g.course.ID == want }); i >= 0 {
			all[i].byID = true
			continue
		}
		if g, ok := p.byID(want); ok {
			all = append(all, g)
		}
	}
	return all
}

func (p *planner) byID(want id.Course) (target, bool) {
	for _, c := range p.offer.Courses {
		if c.ID == want {
			return target{course: c, held: p.enrollmentIn(want), byID: true}, true
		}
	}
	_ = p.faults.Add(fault.Field("course_ids", "unknown_course",
		"course_ids: the organization has no course %d; send ids from GET /courses/", want))
	return target{}, false
}

// byType finds the course that a type stands for: that of a running enrollment of the type, or
// else of a suspended one, of the one in the default course, of an ended one, or else the
// default course. Ended enrollments in cancelled courses count as none: nobody could renew them.
func (p *planner) byType(typ Type) target {
	if e, ok := p.best(typ.Name); ok {
		return target{course: e.Course, held: e}
	}
	for _, c := range p.offer.Courses {
		if c.IsDefault && c.Type == typ.Name {
			return target{course: c}
		}
	}
	return target{course: typ.defaultCourse(p.today)}
}

func (p *planner) best(typ string) (Enrollment, bool) {
	var of []Enrollment
	for _, e := range p.held.Enrollments {
		gone := e.Course.Status == StatusCancelled && e.State != Suspended && e.ended(p.today)
		if e.Course.Type == typ && !gone {
			of = append(of, e)
		}
	}
	if len(of) == 0 {
		return Enrollment{}, false
	}
	return slices.MinFunc(of, func(a, b Enrollment) int {
		return cmp.Or(
			p.rank(a)-p.rank(b),
			after(a.Course.IsDefault, b.Course.IsDefault),
			after(slices.Contains(p.Courses, a.Course.ID), slices.Contains(p.Courses, b.Course.ID)),
			b.EndDate.Compare(a.EndDate),
			cmp.Compare(a.ID, b.ID))
	}), true
}

func (p *planner) rank(e Enrollment) int {
	switch {
	case e.State == Running && !e.ended(p.today):
		return 0
	case e.State == Suspended:
		return 1
	}
	return 2
}

// after orders true first.
func after(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func (p *planner) enrollmentIn(c id.Course) Enrollment {
	for _, e := range p.held.Enrollments {
		if e.Course.ID == c {
			return e
		}
	}
	return Enrollment{}
}

// move applies the table of enrollment moves to one course (reference: provisioning#enrollment-moves).
func (p *planner) move(g target) Move {
	e := g.held
	switch {
	case e.ID == 0:
		return p.grant(g, Created)
	case e.State == Suspended:
		how := "it is lifted only in the platform"
		if e.PartnerSuspended {
			how = fmt.Sprintf("lift it with POST /enrollments/%d/resume", e.ID)
		}
		p.warn("%s: the enrollment is suspended and was left alone; %s", g.course.Label(), how)
		return Move{Action: Skipped, Before: e, After: e}
	case e.ended(p.today):
		if !g.byID && !g.course.IsDefault {
			p.warn("%s: access in this course has ended; to renew it, send course_ids: [%d]", g.course.Label(), g.course.ID)
			return Move{Action: Unchanged, Before: e, After: e}
		}
		return p.grant(g, Reactivated)
	case e.State != Running:
		p.warn("%s: the enrollment is %s and was left unchanged; its end date %v is not over", g.course.Label(), e.State, e.EndDate)
		return Move{Action: Unchanged, Before: e, After: e}
	case p.Extend:
		return p.extend(g)
	}
	if p.TenureMonths > 0 {
		p.warn("%s: access is still running until %v, so tenure_months was not applied; send extend_access with an external_ref to add months",
			g.course.Label(), e.EndDate)
	}
	return Move{Action: Unchanged, Before: e, After: e}
}

// grant gives access from today, or from the course's start if that is later.
func (p *planner) grant(g target, action Action) Move {
	if !g.course.OpenOn(p.today) {
		_ = p.faults.Add(fault.Field(g.field(), "course_closed",
			"%s: the course %q (%d) is not open for enrollment; name an open course", g.field(), g.course.Name, g.course.ID))
		return Move{}
	}
	start := p.today
	if g.course.StartDate.After(start) {
		start = g.course.StartDate
	}
	end := g.course.Length(p.TenureMonths, p.terms).After(start)
	return p.changed(g, action, p.terms.window(start, end))
}

// extend counts from the end date, so that an early call loses no day.
func (p *planner) extend(g target) Move {
	if p.held.RefUsed[g.held.ID] {
		return Move{Action: Unchanged, Before: g.held, After: g.held, Note: NoteAlreadyExtended}
	}
	end := g.course.Length(p.TenureMonths, p.terms).After(g.held.EndDate)
	return p.changed(g, Extended, p.terms.window(g.held.StartDate, end))
}

func (p *planner) changed(g target, action Action, w Window) Move {
	if w.GracePeriodEnd.Year > lastYear {
		_ = p.faults.Add(fault.Field("tenure_months", "invalid",
			"tenure_months: access to %s would end after the year %d; send fewer months", g.course.Label(), lastYear))
	}
	if c := g.course; !c.IsPerpetual && !c.EndDate.IsZero() && w.EndDate.After(c.EndDate) {
		p.warn("%s: access runs until %v, after the course's own end on %v", c.Label(), w.EndDate, c.EndDate)
	}
	after := g.held
	after.Course, after.State, after.Window, after.PartnerSuspended = g.course, Running, w, false
	after.Source = cmp.Or(p.Source, g.held.Source)
	if drawn := p.offer.drawn; action == Created && len(drawn) > 0 {
		after.ID, p.offer.drawn = drawn[0], drawn[1:]
	}
	return Move{Action: action, Before: g.held, After: after, ref: p.Ref}
}

// lastYear keeps dates within four digits.
const lastYear = 9999

func (p *planner) warn(format string, args ...any) {
	p.warnings = append(p.warnings, fmt.Sprintf(format, args...))
}

// defaultCourse is the course that the first enrollment of the type creates.
func (t Type) defaultCourse(today clock.Date) Course {
	return Course{Name: t.DisplayName, Type: t.Name, TypeDisplay: t.DisplayName, IsDefault: true, Status: StatusActive,
		OpenForEnrollment: true, IsPerpetual: true, StartDate: today, TypeAccessMonths: t.DefaultAccessMonths}
}
