package pages

import (
	"net/http"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// coursesPage is what a signed-in person has, by organization that the session opens.
type coursesPage struct {
	Person *signin.Person
	Note   string
	Staff  bool // of some organization, which has a console
	Groups []courseGroup
}

type courseGroup struct {
	Organization string
	Role         string // of the staff; "" for students
	Courses      []courseLine
	Work         []workLine
}

// workLine is a piece of work that was given to the student and is not finished.
type workLine struct {
	Title, Kind string
	Due         string // a sentence; "": whenever
	State       string
}

// courseLine is one course in the student's words.
type courseLine struct {
	Name, Type string
	State      string // a word for the badge
	Good       bool   // whether it can be used today
	Access     string // a sentence
}

func (s *Server) showCourses(w http.ResponseWriter, r *http.Request) error {
	p := signin.SignedIn(r.Context())
	if p.MustChangePassword {
		http.Redirect(w, r, "/change-password/", http.StatusSeeOther)
		return nil
	}
	page := coursesPage{Person: p, Note: s.Sessions.Flashed(r.Context()), Staff: len(p.StaffOf()) > 0}
	today := clock.DateIn(s.Clock(), s.Zone)
	for _, b := range p.Belongings {
		held, err := course.OfStudent(r.Context(), s.DB, b.Organization, p.ID)
		if err != nil {
			return err
		}
		open, err := s.openWork(r, b.Organization, p.ID)
		if err != nil {
			return err
		}
		if g, ok := newGroup(b, held, today); ok {
			g.Work = open
			page.Groups = append(page.Groups, g)
		}
	}
	return show(w, http.StatusOK, "my-courses.html", page)
}

// shownWork is how many pieces of open work the page lists.
const shownWork = 50

// openWork is what the organization's student has still to do, the longest given first.
func (s *Server) openWork(r *http.Request, o id.Organization, user id.User) ([]workLine, error) {
	now := s.Clock()
	f := assignment.Filter{Choice: assignment.ChooseOpen, User: user, Now: now, Today: clock.DateIn(now, s.Zone)}
	open, err := assignment.List(r.Context(), s.DB, o, f, 0, shownWork)
	if err != nil || len(open) == 0 {
		return nil, err
	}
	given := make([]id.Assignment, len(open))
	for i, a := range open {
		given[i] = a.ID
	}
	zones, err := plan.Zones(r.Context(), s.DB, o, user, given)
	lines := make([]workLine, len(open))
	for i, a := range open {
		lines[i] = newWork(a, now, s.dueZone(zones[a.ID]))
	}
	return lines, err
}

// dueZone is the zone in which a piece of work is due: that of the plan which gave it, as in mails and in
// the APIs, or the platform's.
func (s *Server) dueZone(name string) *time.Location {
	if zone, err := clock.Zone("timezone", name); err == nil {
		return zone
	}
	return s.Zone
}

func newWork(a assignment.Listed, now time.Time, zone *time.Location) workLine {
	l := workLine{Title: a.ItemTitle, Kind: strings.ToUpper(a.Kind[:1]) + a.Kind[1:]}
	if a.DueAt != nil {
		l.Due = a.DueAt.In(zone).Format("Due on Monday, 2 January 2006, 15:04") + " (" + zone.String() + ")"
	}
	switch {
	case a.Overdue(now):
		l.State = "Overdue"
	case a.Status == assignment.InProgress:
		l.State = "Begun"
	case a.Status == assignment.Submitted:
		l.State = "Handed in"
	default:
		l.State = "To do"
	}
	return l
}

// newGroup leaves out an organization that the person has left with nothing to show.
func newGroup(b org.Belonging, held []course.Enrollment, today clock.Date) (courseGroup, bool) {
	g := courseGroup{Organization: b.Name}
	if b.Role.Staff() {
		g.Role = string(b.Role)
	}
	for _, e := range held {
		g.Courses = append(g.Courses, newLine(e, today))
	}
	return g, b.Status == org.MemberActive || len(held) > 0
}

func newLine(e course.Enrollment, today clock.Date) courseLine {
	l := courseLine{Name: e.Course.Name, Good: e.HasAccess(today)}
	if e.Course.TypeDisplay != e.Course.Name {
		l.Type = e.Course.TypeDisplay
	}
	switch e.Status(today) {
	case course.EnrollmentActive:
		l.State, l.Access = "Active", "Access until "+day(e.EndDate)
	case course.EnrollmentPending:
		l.State, l.Access = "Starts soon", "Access from "+day(e.StartDate)+" until "+day(e.EndDate)
	case course.EnrollmentGracePeriod:
		l.State, l.Access = "Ending", "Ended on "+day(e.EndDate)+"; you can still use it until "+day(e.GracePeriodEnd)
	case course.EnrollmentExpired:
		l.State, l.Access = "Ended", "Access ended on "+day(e.GracePeriodEnd)
	case course.EnrollmentSuspended:
		l.State, l.Access = "Paused", "Access is paused; please ask your institute"
	case course.EnrollmentDropped:
		l.State, l.Access = "Left", "You left this course"
	case course.EnrollmentCompleted:
		l.State, l.Access = "Completed", "You completed this course"
	}
	return l
}

func day(d clock.Date) string { return d.Time().Format("2 January 2006") }
