package console

import (
	"cmp"
	"context"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/chart"
	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
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
	"github.com/registrar-dev/registrar/internal/kit/lang"
	"github.com/registrar-dev/registrar/internal/kit/pg"
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
	Courses []course.Name   // to choose from
	Course  id.Course       // 0: any
	Chosen  template.URL    // the query of what is chosen, without a position
	Count   string          // how many students that are, in words
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

var studentChoices = []studentChoice{{"", "Everybody"}, {directory.WithAccess, "With access"}, {directory.Expiring, "Access ends within 7 days"},
	{directory.AtRisk, "At risk"}, {directory.Joined, "Joined in the last 7 days"}, {directory.NeverSignedIn, "Never signed in"},
	{directory.Pending, "Course begins later"}, {directory.Expired, "Access expired"}, {directory.Suspended, "Suspended"},
	{directory.Dropped, "Dropped"}, {directory.Completed, "Completed"}}

// coursesShown is how many courses a list of students can be chosen by.
const coursesShown = 200

func (s *Server) showStudents(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frameFor(staff, r, "students", "Students")
	if err != nil {
		return err
	}
	ctx, said := r.Context(), r.URL.Query()
	which := s.chooseStudents(f, said)
	p := studentsPage{frame: f, Search: which.text, Choices: studentChoices, Which: which.Which, Course: which.Course, Chosen: which.query()}
	p.OwnSearch = true
	err = s.Reads.Do(ctx, func(db *pg.DB) (err error) {
		if p.Courses, err = course.Names(ctx, db, which.org, coursesShown); err != nil {
			return err
		}
		n, err := which.count(ctx, db)
		if err != nil {
			return err
		}
		var people []directory.Person
		if people, p.Next, err = which.find(ctx, db, said.Get("after"), peopleAPage); err != nil {
			return err
		}
		p.Count = inWords(max(n, len(people))) // who has the external id that was looked for is not counted
		p.People, err = which.lines(ctx, db, people)
		return err
	})
	if err != nil {
		return err
	}
	return show(w, http.StatusOK, "students.html", p)
}

// inWords says how many students there are.
func inWords(n int) string {
	switch {
	case n == 1:
		return "1 student"
	case n > directory.Most:
		return "More than " + thousands(directory.Most) + " students"
	}
	return thousands(n) + " students"
}

// chosenStudents are a list or a search.
type chosenStudents struct {
	org  id.Organization
	text string // "": the list, or everybody
	directory.Filter
}

// chooseStudents reads what a query chooses; what is no choice is everybody.
func (s *Server) chooseStudents(f frame, said url.Values) chosenStudents {
	now := s.Clock()
	c := chosenStudents{org: f.Here.Organization, text: searchText(said.Get("q")), Filter: directory.Filter{Today: clock.DateIn(now, s.Zone), Now: now}}
	if c.text != "" {
		return c
	}
	if which := directory.Which(said.Get("show")); slices.Contains(directory.Whiches(), which) {
		c.Which = which
	}
	if n, err := strconv.ParseInt(said.Get("course"), 10, 64); err == nil && n > 0 && c.Which.OfCourse() {
		c.Course = id.Course(n)
	}
	return c
}

// query is what chooseStudents reads.
func (c chosenStudents) query() template.URL {
	q := url.Values{}
	if c.text != "" {
		q.Set("q", c.text)
	}
	if c.Which != "" {
		q.Set("show", string(c.Which))
	}
	if c.Course != 0 {
		q.Set("course", formatID(c.Course))
	}
	return template.URL(q.Encode()) //nolint:gosec // escaped by Encode
}

// isList says whether the students are read along a list; else they are searched for.
func (c chosenStudents) isList() bool { return c.Which != "" || c.Course != 0 }

func (c chosenStudents) count(ctx context.Context, db *pg.DB) (n int, err error) {
	if c.isList() {
		err = db.Along(ctx, func(q pg.Querier) error {
			n, err = directory.Size(ctx, q, c.org, c.Filter)
			return err
		})
		return n, err
	}
	return directory.Matches(ctx, db, c.org, c.text)
}

// find reads a page behind after, which is what an earlier page gave as next; "" is the first.
func (c chosenStudents) find(ctx context.Context, db *pg.DB, after string, limit int) (people []directory.Person, next string, err error) {
	if c.isList() {
		var at directory.ListPosition
		err = db.Along(ctx, func(q pg.Querier) error {
			people, at, err = directory.List(ctx, q, c.org, c.Filter, directory.ParseListPosition(after), limit)
			return err
		})
		return people, at.String(), err
	}
	at := directory.ParsePosition(after)
	if c.text != "" && at == (directory.Position{}) {
		if people, err = byExternalID(ctx, db, c.org, c.text); err != nil {
			return nil, "", err
		}
	}
	found, at, err := directory.Search(ctx, db, c.org, c.text, at, limit)
	for _, one := range found {
		if !slices.ContainsFunc(people, func(p directory.Person) bool { return p.ID == one.ID }) {
			people = append(people, one)
		}
	}
	return people, at.String(), err
}

// lines reads what the list says of the people.
func (c chosenStudents) lines(ctx context.Context, db *pg.DB, people []directory.Person) ([]studentLine, error) {
	ids := make([]id.User, len(people))
	for i, one := range people {
		ids[i] = one.ID
	}
	courses, err := course.OfStudents(ctx, db, c.org, ids)
	if err != nil {
		return nil, err
	}
	plans, err := plan.Current(ctx, db, c.org, ids)
	if err != nil {
		return nil, err
	}
	lines := make([]studentLine, 0, len(people))
	for _, one := range people {
		l := studentLine{Person: one, More: max(0, len(courses[one.ID])-1)}
		if held := courses[one.ID]; len(held) > 0 {
			e := slices.MaxFunc(held, func(a, b course.Enrollment) int { return compareAccess(a, b, c.Today) })
			l.Course = &studentCourse{Enrollment: e, Status: e.Status(c.Today)}
		}
		if current, ok := plans[one.ID]; ok {
			l.Plan = &current
		}
		lines = append(lines, l)
	}
	return lines, nil
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

func byExternalID(ctx context.Context, db *pg.DB, org id.Organization, text string) ([]directory.Person, error) {
	users, err := roster.FindByExternalID(ctx, db, org, text)
	if err != nil {
		return nil, err
	}
	return directory.Some(ctx, db, org, users)
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
	Progress    []progressChart
	Now         time.Time
	Zone        string // the platform's
}

type studentCourse struct {
	course.Enrollment
	Status  course.EnrollmentStatus
	Target  string     // "" for none
	Plans   bool       // a plan can be started
	NextDay clock.Date // the first that access can be extended to
}

// Suspended and Resumable say what can be done about it here: a suspension by the platform is lifted there.
func (c studentCourse) Suspended() bool { return c.State == course.Suspended }
func (c studentCourse) Resumable() bool { return c.Suspended() && c.PartnerSuspended }

// progressChart are the results beside the target of one exam.
type progressChart struct {
	Exam  string
	Plan  id.Plan
	Chart *chart.Scores
}

// student finds the one that the path names.
func (s *Server) student(roles []org.Role, r *http.Request) (f frame, a student.Account, err error) {
	if f, err = s.frameFor(roles, r, "students", "Student"); err != nil {
		return f, a, err
	}
	which, err := edge.IDParam[id.User](r, "id")
	if err != nil {
		return f, a, err
	}
	a, err = student.Resolve(r.Context(), s.DB, f.Here.Organization, student.Ref{User: which})
	return f, a, err
}

// showStudent shows a student of the organization, and of the student what the organization
// may know: its own courses, work, events and mails.
func (s *Server) showStudent(w http.ResponseWriter, r *http.Request) error {
	f, a, err := s.student(staff, r)
	if err != nil {
		return err
	}
	return s.oneStudent(w, r, http.StatusOK, f, a)
}

func (s *Server) oneStudent(w http.ResponseWriter, r *http.Request, status int, f frame, a student.Account) error {
	f.Title = a.FirstName + " " + a.LastName
	now := s.Clock()
	var p studentPage
	err := s.Reads.Do(r.Context(), func(db *pg.DB) error {
		p = studentPage{frame: f, Student: a, Now: now, Zone: s.Zone.String()}
		for _, read := range []func(context.Context, *pg.DB, *studentPage) error{readMembership, s.readCourses, readWork, s.readProgress} {
			if err := read(r.Context(), db, &p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if f.Manages {
		if err := s.readTimeline(r.Context(), &p, parseTimelinePosition(r.URL.Query().Get("before"))); err != nil {
			return err
		}
	}
	return show(w, status, "student.html", p)
}

func readMembership(ctx context.Context, db *pg.DB, p *studentPage) (err error) {
	members, err := org.Members(ctx, db, p.Here.Organization, []id.User{p.Student.ID})
	if err != nil {
		return err
	}
	m := members[p.Student.ID]
	p.Membership, p.Joined = string(m.Status), m.JoinedAt
	p.Aliases, err = roster.Aliases(ctx, db, p.Here.Organization, p.Student.ID)
	return err
}

func (s *Server) readCourses(ctx context.Context, db *pg.DB, p *studentPage) error {
	held, err := course.OfStudent(ctx, db, p.Here.Organization, p.Student.ID)
	if err != nil {
		return err
	}
	ids := make([]id.Enrollment, len(held))
	for i, e := range held {
		ids[i] = e.ID
	}
	goals, err := plan.Goals(ctx, db, p.Here.Organization, ids...)
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
	if p.Plans, err = plan.Lines(ctx, db, p.Here.Organization, p.Student.ID, "", 0, latestShown); err != nil {
		return err
	}
	types, err := course.Types(ctx, db)
	if err != nil {
		return err
	}
	for i := range p.Courses {
		c := &p.Courses[i]
		c.NextDay = c.EndDate.AddDays(1)
		c.Plans = p.Membership == string(org.MemberActive) && c.Status.Access() && slices.ContainsFunc(types, func(t course.Type) bool { return t.Name == c.Course.Type && t.TestPlanAvailable }) &&
			!slices.ContainsFunc(p.Plans, func(l plan.Line) bool { return l.Exam == c.Course.Type && l.Status != plan.Closed })
	}
	return nil
}

// chartsShown is how many plans of a student are drawn.
const chartsShown = 2

// readProgress draws the latest plans that have a result.
func (s *Server) readProgress(ctx context.Context, db *pg.DB, p *studentPage) error {
	for _, l := range p.Plans[:min(len(p.Plans), chartsShown)] {
		stored, err := plan.Find(ctx, db, p.Here.Organization, l.ID)
		if err != nil {
			return err
		}
		slots, err := plan.Slots(ctx, db, l.ID)
		if err != nil {
			return err
		}
		if c := chart.OfPlan(lang.Of(lang.English), stored, slots[l.ID], s.Zone); c != nil {
			p.Progress = append(p.Progress, progressChart{catalog.TypeLabel(stored.Exam), l.ID, c})
		}
	}
	return nil
}

func readWork(ctx context.Context, db *pg.DB, p *studentPage) (err error) {
	if p.Results, err = result.Latest(ctx, db, p.Here.Organization, p.Student.ID, latestShown); err != nil {
		return err
	}
	p.Assignments, err = assignment.Latest(ctx, db, p.Here.Organization, p.Student.ID, latestShown)
	return err
}
