package pages

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/chart"
	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/lang"
)

// coursesPage is what a signed-in person has, by organization that the session opens.
type coursesPage struct {
	Person *signin.Person
	Note   string
	Staff  bool   // of some organization, which has a console
	Zone   string // that was chosen for times; "": the browser's
	Groups []courseGroup
}

type courseGroup struct {
	Organization string
	Logo         string    // its address; "": none
	Role         string    // of the staff; "" for students
	Next         *workLine // what to do first; nil: nothing
	Courses      []courseLine
	Work         []workLine // the rest
	Progress     []progress
	Results      []resultLine
}

// workLine is a piece of work that was given to the student and is not finished.
type workLine struct {
	Title, Kind string
	Section     string // that it practises alone; "": the whole
	Due         string // a sentence; "": whenever
	DueAt       string // the same, as an instant for programs
	State       string // a word for the badge
	Begun       bool
	HandedIn    bool // it waits for others
	Overdue     bool
	URL         string // where it is begun; "": not known here
}

// progress is the way to the target of one exam.
type progress struct {
	Exam, Target string
	ExamDay      string        // a sentence; "": none
	Chart        *chart.Scores // nil: there is no result yet
}

// resultLine is a result with the share of its maximum.
type resultLine struct {
	Title, What, Label, Path string
	Percent                  string // a number
	Share                    string // the same in words
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
	chosen := chosenZone(r)
	if chosen != nil {
		page.Zone = chosen.String()
	}
	today, t := clock.DateIn(s.Clock(), s.Zone), textsOf(r)
	for _, b := range p.Belongings {
		held, err := course.OfStudent(r.Context(), s.DB, b.Organization, p.ID)
		if err != nil {
			return err
		}
		open, err := s.openWork(r, b.Organization, p.ID)
		if err != nil {
			return err
		}
		g, ok := newGroup(t, b, held, today)
		if !ok {
			continue
		}
		g.Next, g.Work = first(open)
		if g.Progress, err = s.progress(r.Context(), t, b.Organization, p.ID); err != nil {
			return err
		}
		if g.Results, err = s.results(r, b.Organization, p.ID); err != nil {
			return err
		}
		page.Groups = append(page.Groups, g)
	}
	return show(w, r, http.StatusOK, "my-courses.html", page)
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
	if err != nil {
		return nil, err
	}
	items := make([]id.Item, len(open))
	for i, a := range open {
		items[i] = a.Item
	}
	known, err := catalog.Load(r.Context(), s.DB, o, items)
	if err != nil {
		return nil, err
	}
	// What is due first comes first, and what is due at any time at the end.
	slices.SortStableFunc(open, func(a, b assignment.Listed) int {
		switch {
		case a.DueAt != nil && b.DueAt != nil:
			return a.DueAt.Compare(*b.DueAt)
		case a.DueAt != nil:
			return -1
		case b.DueAt != nil:
			return 1
		}
		return 0
	})
	t, lines := textsOf(r), make([]workLine, len(open))
	for i, a := range open {
		lines[i] = newWork(t, a, known[a.Item], now, s.dueZone(r, zones[a.ID]))
	}
	return lines, nil
}

// first takes out what the student should do first: of what can be done, what was begun, and then what is due first.
func first(all []workLine) (next *workLine, rest []workLine) {
	which := -1
	for i, l := range all {
		if !l.HandedIn && (which < 0 || l.Begun && !all[which].Begun) {
			which = i
		}
	}
	if which < 0 {
		return nil, all
	}
	found := all[which]
	return &found, slices.Delete(all, which, which+1)
}

// progress is the way to the student's targets, for the plans that are not closed.
func (s *Server) progress(ctx context.Context, t *lang.Texts, o id.Organization, user id.User) ([]progress, error) {
	plans, err := plan.OfStudent(ctx, s.DB, o, user)
	if err != nil || len(plans) == 0 {
		return nil, err
	}
	ids := make([]id.Plan, len(plans))
	for i, p := range plans {
		ids[i] = p.ID
	}
	slots, err := plan.Slots(ctx, s.DB, ids...)
	if err != nil {
		return nil, err
	}
	all := make([]progress, len(plans))
	for i, p := range plans {
		all[i] = progress{Exam: catalog.TypeLabel(p.Exam), Target: t.Digits(p.TargetScore.String()), Chart: chart.OfPlan(t, p, slots[p.ID], s.Zone)}
		if !p.ExamDate.IsZero() {
			all[i].ExamDay = t.T("courses.exam_on", "Day", t.Day(p.ExamDate))
		}
	}
	return all, nil
}

// shownResults is how many of the latest results the page lists.
const shownResults = 5

func (s *Server) results(r *http.Request, o id.Organization, user id.User) ([]resultLine, error) {
	latest, err := result.Latest(r.Context(), s.DB, o, user, shownResults)
	if err != nil {
		return nil, err
	}
	t, lines := textsOf(r), make([]resultLine, len(latest))
	for i := range latest {
		lines[i] = newResultLine(t, &latest[i], s.zoneFor(r))
	}
	return lines, nil
}

func newResultLine(t *lang.Texts, r *result.Listed, zone *time.Location) resultLine {
	f := wire.NewFinalResult(r, "", zone)
	l := resultLine{Title: r.ItemTitle, What: t.Word(f.Item.TypeLabel), Label: t.Score(f.ScoreLabel), Path: f.ResultURL, Percent: f.Percentage.String()}
	l.Share = t.T("result.percent", "Percent", t.Digits(l.Percent))
	if r.Section != "" {
		l.What = t.T("result.line_section", "Type", l.What, "Section", t.Word(spaced(r.Section)))
	}
	if r.FinalAt != nil {
		l.What = t.T("result.line_on", "What", l.What, "Day", t.DayOf(*r.FinalAt, zone))
	}
	return l
}

// zoneFor is the zone of times on a page: the one that was chosen, or the platform's. The script puts the browser's in
// its place.
func (s *Server) zoneFor(r *http.Request) *time.Location {
	if zone := chosenZone(r); zone != nil {
		return zone
	}
	return s.Zone
}

// dueZone is the zone in which a piece of work is due: the one that was chosen, or that of the plan which gave it, as in
// mails and in the APIs, or the platform's.
func (s *Server) dueZone(r *http.Request, name string) *time.Location {
	if zone := chosenZone(r); zone != nil {
		return zone
	}
	if zone, err := clock.Zone("timezone", name); err == nil {
		return zone
	}
	return s.Zone
}

func newWork(t *lang.Texts, a assignment.Listed, item catalog.Item, now time.Time, zone *time.Location) workLine {
	l := workLine{Title: a.ItemTitle, Kind: t.Word(strings.ToUpper(a.Kind[:1]) + a.Kind[1:]), URL: item.LaunchURL, Begun: a.Status == assignment.InProgress}
	if item.Scope != "" && item.Scope != catalog.ScopeFull {
		l.Section = t.Word(spaced(item.Scope))
	}
	if a.DueAt != nil {
		l.Due = t.T("due.on", "Due", t.Due(*a.DueAt, zone))
		l.DueAt = a.DueAt.UTC().Format(time.RFC3339)
	}
	switch {
	case a.Overdue(now):
		l.State, l.Overdue = t.T("work.overdue"), true
	case a.Status == assignment.InProgress:
		l.State = t.T("work.begun")
	case a.Status == assignment.Submitted:
		l.State, l.HandedIn = t.T("work.handed_in"), true
	default:
		l.State = t.T("work.to_do")
	}
	return l
}

// newGroup leaves out an organization that the person has left with nothing to show.
func newGroup(t *lang.Texts, b org.Belonging, held []course.Enrollment, today clock.Date) (courseGroup, bool) {
	g := courseGroup{Organization: b.Name, Logo: LogoPath(b.Organization, b.Logo)}
	if b.Role.Staff() {
		g.Role = string(b.Role)
	}
	for _, e := range held {
		g.Courses = append(g.Courses, newLine(t, e, today))
	}
	return g, b.Status == org.MemberActive || len(held) > 0
}

func newLine(t *lang.Texts, e course.Enrollment, today clock.Date) courseLine {
	l := courseLine{Name: e.Course.Name, Good: e.HasAccess(today)}
	if e.Course.TypeDisplay != e.Course.Name {
		l.Type = e.Course.TypeDisplay
	}
	switch e.Status(today) {
	case course.EnrollmentActive:
		l.State, l.Access = t.T("course.active"), t.T("access.until", "End", t.Day(e.EndDate))
	case course.EnrollmentPending:
		l.State, l.Access = t.T("course.pending"), t.T("access.between", "Start", t.Day(e.StartDate), "End", t.Day(e.EndDate))
	case course.EnrollmentGracePeriod:
		l.State, l.Access = t.T("course.grace"), t.T("access.grace", "End", t.Day(e.EndDate), "Grace", t.Day(e.GracePeriodEnd))
	case course.EnrollmentExpired:
		l.State, l.Access = t.T("course.expired"), t.T("access.ended", "End", t.Day(e.GracePeriodEnd))
	case course.EnrollmentSuspended:
		l.State, l.Access = t.T("course.suspended"), t.T("access.paused")
	case course.EnrollmentDropped:
		l.State, l.Access = t.T("course.dropped"), t.T("access.left")
	case course.EnrollmentCompleted:
		l.State, l.Access = t.T("course.completed"), t.T("access.completed")
	}
	return l
}
