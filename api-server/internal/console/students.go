package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/student/directory"
	"github.com/registrar-dev/registrar/internal/flow/explain"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// peopleAPage is how many students a page lists, latestShown how much of each kind a
// student's page shows.
const (
	peopleAPage = 50
	latestShown = 10
)

type studentsPage struct {
	frame
	Search  string
	Choices []studentChoice
	Which   directory.Which // "": everybody, or who is searched for
	People  []studentLine
	Next    string // where the next page begins; "": there is none
}

// studentLine is a student in a list, with what is asked of students most.
type studentLine struct {
	directory.Person
	Course *studentCourse // the one with access the longest, or the last that was over; nil: none
	More   int            // other courses
	Plan   *plan.Line     // that is not closed; nil: none
}

// studentChoice is a list of students, and its name on the page.
type studentChoice struct {
	Which directory.Which
	Label string
}

var studentChoices = []studentChoice{{"", "All"}, {directory.WithAccess, "With access"}, {directory.Expiring, "Ending within 7 days"},
	{directory.AtRisk, "At risk"}, {directory.Joined, "Joined in the last 7 days"}}

func (s *Server) showStudents(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frameFor(staff, r, "students", "Students")
	if err != nil {
		return err
	}
	said := r.URL.Query()
	p := studentsPage{frame: f, Search: searchText(said.Get("q")), Choices: studentChoices}
	p.OwnSearch = true
	if which := directory.Which(said.Get("show")); p.Search == "" && slices.Contains(directory.Whiches(), which) {
		p.Which = which
		now := s.Clock()
		people, next, err := directory.List(r.Context(), s.DB, f.Here.Organization, which, clock.DateIn(now, s.Zone), now, directory.ParseListPosition(said.Get("after")), peopleAPage)
		if err != nil {
			return err
		}
		p.Next = next.String()
		return s.listStudents(w, r, p, people)
	}
	var people []directory.Person
	after := directory.ParsePosition(said.Get("after"))
	if p.Search != "" && after == (directory.Position{}) {
		if people, err = s.byExternalID(r.Context(), f.Here.Organization, p.Search); err != nil {
			return err
		}
	}
	found, next, err := directory.Search(r.Context(), s.DB, f.Here.Organization, p.Search, after, peopleAPage)
	if err != nil {
		return err
	}
	for _, one := range found {
		if !slices.ContainsFunc(people, func(p directory.Person) bool { return p.ID == one.ID }) {
			people = append(people, one)
		}
	}
	p.Next = next.String()
	return s.listStudents(w, r, p, people)
}

func (s *Server) listStudents(w http.ResponseWriter, r *http.Request, p studentsPage, people []directory.Person) error {
	ids := make([]id.User, len(people))
	for i, one := range people {
		ids[i] = one.ID
	}
	courses, err := course.OfStudents(r.Context(), s.DB, p.Here.Organization, ids)
	if err != nil {
		return err
	}
	plans, err := plan.Current(r.Context(), s.DB, p.Here.Organization, ids)
	if err != nil {
		return err
	}
	today := clock.DateIn(s.Clock(), s.Zone)
	for _, one := range people {
		l := studentLine{Person: one, More: max(0, len(courses[one.ID])-1)}
		if held := courses[one.ID]; len(held) > 0 {
			e := slices.MaxFunc(held, func(a, b course.Enrollment) int { return compareAccess(a, b, today) })
			l.Course = &studentCourse{Enrollment: e, Status: e.Status(today)}
		}
		if current, ok := plans[one.ID]; ok {
			l.Plan = &current
		}
		p.People = append(p.People, l)
	}
	return show(w, http.StatusOK, "students.html", p)
}

// compareAccess orders enrollments by what they give: access comes after none, then the later end.
func compareAccess(a, b course.Enrollment, today clock.Date) int {
	if x, y := a.HasAccess(today), b.HasAccess(today); x != y {
		if x {
			return 1
		}
		return -1
	}
	return cmp.Or(a.EndDate.Compare(b.EndDate), cmp.Compare(a.ID, b.ID))
}

// searchText is what of a query can be looked for.
func searchText(text string) string {
	text = strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", ""))
	if runes := []rune(text); len(runes) > 200 {
		return string(runes[:200])
	}
	return text
}

func (s *Server) byExternalID(ctx context.Context, org id.Organization, text string) ([]directory.Person, error) {
	users, err := roster.FindByExternalID(ctx, s.DB, org, text)
	if err != nil {
		return nil, err
	}
	return directory.Some(ctx, s.DB, org, users)
}

type studentPage struct {
	frame
	Student     student.Account
	Membership  string    // its status; "" for who is no member any more
	Joined      time.Time // zero for who is no member any more
	Aliases     []roster.Alias
	Courses     []studentCourse
	Plans       []plan.Line
	Results     []result.Listed
	Assignments []assignment.Listed
	Timeline    []explain.Entry // for managers, as are names of API keys and receivers
	Earlier     string          // where the timeline goes on; "": it does not
	Now         time.Time
}

type studentCourse struct {
	course.Enrollment
	Status course.EnrollmentStatus
	Target string // "" for none
}

// showStudent shows a student of the organization, and of the student what the organization
// may know: its own courses, work, events and mails.
func (s *Server) showStudent(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frameFor(staff, r, "students", "Student")
	if err != nil {
		return err
	}
	which, err := edge.IDParam[id.User](r, "id")
	if err != nil {
		return err
	}
	p := studentPage{frame: f, Now: s.Clock()}
	if p.Student, err = student.Resolve(r.Context(), s.DB, f.Here.Organization, student.Ref{User: which}); err != nil {
		return err
	}
	p.Title = p.Student.FirstName + " " + p.Student.LastName
	for _, read := range []func(context.Context, *studentPage) error{s.readMembership, s.readCourses, s.readWork} {
		if err := read(r.Context(), &p); err != nil {
			return err
		}
	}
	if f.Manages {
		if err := s.readTimeline(r.Context(), &p, parseTimelinePosition(r.URL.Query().Get("before"))); err != nil {
			return err
		}
	}
	return show(w, http.StatusOK, "student.html", p)
}

func (s *Server) readMembership(ctx context.Context, p *studentPage) (err error) {
	members, err := org.Members(ctx, s.DB, p.Here.Organization, []id.User{p.Student.ID})
	if err != nil {
		return err
	}
	m := members[p.Student.ID]
	p.Membership, p.Joined = string(m.Status), m.JoinedAt
	p.Aliases, err = roster.Aliases(ctx, s.DB, p.Here.Organization, p.Student.ID)
	return err
}

func (s *Server) readCourses(ctx context.Context, p *studentPage) error {
	held, err := course.OfStudent(ctx, s.DB, p.Here.Organization, p.Student.ID)
	if err != nil {
		return err
	}
	ids := make([]id.Enrollment, len(held))
	for i, e := range held {
		ids[i] = e.ID
	}
	goals, err := plan.Goals(ctx, s.DB, p.Here.Organization, ids...)
	if err != nil {
		return err
	}
	today := clock.DateIn(p.Now, s.Zone)
	for _, e := range held {
		c := studentCourse{Enrollment: e, Status: e.Status(today)}
		if g := goals[e.ID]; g.HasTarget {
			c.Target = g.TargetScore.String()
		}
		p.Courses = append(p.Courses, c)
	}
	p.Plans, err = plan.Lines(ctx, s.DB, p.Here.Organization, p.Student.ID, "", 0, latestShown)
	return err
}

func (s *Server) readWork(ctx context.Context, p *studentPage) (err error) {
	if p.Results, err = result.Latest(ctx, s.DB, p.Here.Organization, p.Student.ID, latestShown); err != nil {
		return err
	}
	p.Assignments, err = assignment.Latest(ctx, s.DB, p.Here.Organization, p.Student.ID, latestShown)
	return err
}
