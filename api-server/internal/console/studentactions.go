package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/assign"
	"github.com/registrar-dev/registrar/internal/flow/provision"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// studentCommand is what a form of a student's page asks for.
type studentCommand struct {
	frame
	org     org.Organization
	student student.Account
	form    url.Values
}

// principal is the person as the giver of a provisioning call.
func (c studentCommand) principal() org.Principal {
	return org.Principal{Organization: c.org, Key: org.Key{Name: plan.StaffActor(c.Person.Actor().Name), Access: org.Full}}
}

// onStudent does what a form asks for, and shows the student's page again: with the sentence that do returns, or with what
// is wrong.
func (s *Server) onStudent(do func(context.Context, studentCommand) (note string, err error)) edge.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		f, a, err := s.student(managers, r)
		if err != nil {
			return err
		}
		o, err := org.Find(r.Context(), s.DB, f.Here.Slug)
		if err != nil {
			return err
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		_ = r.ParseForm() // what cannot be read is missing
		note, err := do(r.Context(), studentCommand{f, o, a, r.PostForm})
		if text, mine := refused(err); mine {
			f.Fault = text
			return s.oneStudent(w, r, http.StatusBadRequest, f, a)
		}
		if err != nil {
			return err
		}
		return s.back(w, r, f, "/students/"+formatID(a.ID)+"/", note)
	}
}

// refused says whether a command was refused for what was asked, and why, without the names that the API gives to fields.
func refused(err error) (string, bool) {
	text, mine := typed(err)
	if fault.KindOf(err) == fault.Forbidden {
		text, mine = err.Error(), true
	}
	return strings.ReplaceAll(text, plan.Block+".", ""), mine
}

// checkActive keeps a command that provisions the student from making a member of who is none any more.
func (s *Server) checkActive(ctx context.Context, c studentCommand) error {
	members, err := org.Members(ctx, s.DB, c.org.ID, []id.User{c.student.ID})
	if err == nil && members[c.student.ID].Status != org.MemberActive {
		err = fault.New(fault.Conflict, "no_access", "The student is no active member of the organization. Provision the student with a course first.")
	}
	return err
}

func (s *Server) resendWelcome(ctx context.Context, c studentCommand) (string, error) {
	if err := s.checkActive(ctx, c); err != nil {
		return "", err
	}
	send := true
	a, err := s.Provision.Student(ctx, c.principal(), provision.Command{Email: string(c.student.Email), FirstName: c.student.FirstName, LastName: c.student.LastName,
		SendEmail: &send, ResendEmail: true, By: c.Person.Actor(), Does: "asked for another welcome mail for"})
	if err != nil {
		return "", err
	}
	switch email.Status(a.Email.Status) {
	case email.Queued:
		return "The welcome mail is on its way to " + string(c.student.Email) + ".", nil
	case email.Sent:
		return "A welcome mail was sent to " + string(c.student.Email) + " a moment ago; it is not sent twice.", nil
	case email.Suppressed:
		return "No mail is sent to " + string(c.student.Email) + ": nobody can receive mail there.", nil
	case email.Uncertain, email.Failed:
	}
	return "The welcome mail is not sent: " + strings.ReplaceAll(string(a.Email.Status), "_", " ") + ".", nil
}

// enrollment finds the one that the form names.
func (s *Server) enrollment(ctx context.Context, c studentCommand) (course.Enrollment, error) {
	which, _ := strconv.ParseInt(c.form.Get("enrollment"), 10, 64) // 0 is nobody's
	held, err := course.OfStudent(ctx, s.DB, c.org.ID, c.student.ID)
	if err != nil {
		return course.Enrollment{}, err
	}
	i := slices.IndexFunc(held, func(e course.Enrollment) bool { return e.ID == id.Enrollment(which) })
	if i < 0 {
		return course.Enrollment{}, fault.Field("enrollment", "invalid", "Choose one of the student’s courses.")
	}
	return held[i], nil
}

func (s *Server) extendAccess(ctx context.Context, c studentCommand) (string, error) {
	e, err := s.enrollment(ctx, c)
	if err != nil {
		return "", err
	}
	until, err := clock.ParseDate(c.form.Get("until"))
	if err != nil || !until.After(e.EndDate) {
		return "", fault.Field("until", "invalid", "Choose a last day after %s.", longDay(e.EndDate))
	}
	if _, err := s.Enrollments.ChangeEnrollment(ctx, c.Person.Actor(), c.org, e.ID, course.Change{EndDate: &until}); err != nil {
		return "", err
	}
	return e.Course.Name + " now ends on " + longDay(until) + ".", nil
}

func (s *Server) suspendAccess(ctx context.Context, c studentCommand) (string, error) {
	e, err := s.enrollment(ctx, c)
	if err != nil {
		return "", err
	}
	_, _, err = s.Enrollments.Suspend(ctx, c.Person.Actor(), c.org, e.ID)
	return e.Course.Name + " is suspended.", err
}

func (s *Server) resumeAccess(ctx context.Context, c studentCommand) (string, error) {
	e, err := s.enrollment(ctx, c)
	if err != nil {
		return "", err
	}
	_, _, err = s.Enrollments.Resume(ctx, c.Person.Actor(), c.org, e.ID)
	return e.Course.Name + " is no longer suspended.", err
}

func (s *Server) startPlan(ctx context.Context, c studentCommand) (string, error) {
	if err := s.checkActive(ctx, c); err != nil {
		return "", err
	}
	e, err := s.enrollment(ctx, c)
	if err != nil {
		return "", err
	}
	if !e.HasAccess(clock.DateIn(s.Clock(), s.Zone)) { // naming the course would renew it
		return "", fault.New(fault.Conflict, "no_access", "A plan needs access to the course. Extend it first.")
	}
	lines, err := plan.Lines(ctx, s.DB, c.org.ID, c.student.ID, "", 0, latestShown)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(lines, func(l plan.Line) bool { return l.Exam == e.Course.Type && l.Status != plan.Closed }) {
		return "", fault.Field("plan", "invalid", "The student has a plan for this exam already.")
	}
	start, zone := true, c.form.Get("zone")
	block := plan.Request{TestPlan: &start, TimeZone: &zone}
	if text := strings.TrimSpace(c.form.Get("target")); text != "" {
		target, err := decimal.Parse(text)
		if err != nil {
			return "", fault.Field("target", "invalid", "Write the target score as a number.")
		}
		block.TargetScore = &target
	}
	if text := c.form.Get("exam_date"); text != "" {
		exam, err := clock.ParseDate(text)
		if err != nil {
			return "", fault.Field("exam_date", "invalid", "Choose the day of the exam.")
		}
		block.ExamDate = &exam
	}
	a, err := s.Provision.Student(ctx, c.principal(), provision.Command{Email: string(c.student.Email), FirstName: c.student.FirstName, LastName: c.student.LastName,
		CourseIDs: []id.Course{e.Course.ID}, Plan: &block, By: c.Person.Actor(), Does: "asked for a test plan for"})
	if err != nil {
		return "", err
	}
	if b := a.TargetScorePlan; b != nil && b.Action != plan.Created {
		return "No plan was started: " + strings.Join(a.Warnings, " "), nil
	}
	return "The test plan for " + e.Course.Name + " has begun.", nil
}

// itemsOffered is how many items of the catalog the page offers.
const itemsOffered = 500

type assignPage struct {
	frame
	Student student.Account
	Groups  []itemGroup
	Cut     bool // the catalog has more
	Chosen  string
	DueOn   string
	First   clock.Date // on which work can be due
}

// itemGroup is the catalog's work of one kind.
type itemGroup struct {
	Label string
	Items []catalog.Item
}

func (s *Server) showAssign(w http.ResponseWriter, r *http.Request) error {
	f, a, err := s.student(managers, r)
	if err != nil {
		return err
	}
	return s.oneAssign(w, r, http.StatusOK, assignPage{frame: f, Student: a})
}

func (s *Server) oneAssign(w http.ResponseWriter, r *http.Request, status int, p assignPage) error {
	p.Title, p.First = "Assign work", clock.DateIn(s.Clock(), s.Zone)
	items, err := catalog.List(r.Context(), s.DB, p.Here.Organization, catalog.Kinds())
	if err != nil {
		return err
	}
	if p.Cut = len(items) > itemsOffered; p.Cut {
		items = items[:itemsOffered]
	}
	for _, kind := range []struct {
		catalog.Kind
		label string
	}{{catalog.Test, "Tests"}, {catalog.Quiz, "Quizzes"}, {catalog.Assessment, "Assessments"}} {
		g := itemGroup{Label: kind.label}
		for _, i := range items {
			if i.Kind == kind.Kind {
				g.Items = append(g.Items, i)
			}
		}
		if len(g.Items) > 0 {
			p.Groups = append(p.Groups, g)
		}
	}
	return show(w, status, "assign.html", p)
}

func (s *Server) assignWork(w http.ResponseWriter, r *http.Request) error {
	f, a, err := s.student(managers, r)
	if err != nil {
		return err
	}
	o, err := org.Find(r.Context(), s.DB, f.Here.Slug)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	p := assignPage{frame: f, Student: a, Chosen: r.PostFormValue("item"), DueOn: r.PostFormValue("due_on")}
	kind, item, _ := strings.Cut(p.Chosen, "-")
	which, _ := strconv.ParseInt(item, 10, 64) // 0 is none
	given, created, err := s.Assign.Assign(r.Context(), o, assign.Command{Who: student.Ref{User: a.ID}, Kind: catalog.Kind(kind), Item: id.Item(which),
		DueDate: p.DueOn, Notify: r.PostFormValue("notify") != "", By: f.Person.Actor()})
	text, mine := refused(err)
	if fault.KindOf(err) == fault.NotFound {
		text, mine = "Choose what to assign.", true
	}
	if mine {
		p.Fault = text
		return s.oneAssign(w, r, http.StatusBadRequest, p)
	}
	if err != nil {
		return err
	}
	note := given.Item.Title + " is assigned."
	if !created {
		note = given.Item.Title + " was assigned already and is still open; nothing was changed."
	}
	return s.back(w, r, f, "/students/"+formatID(a.ID)+"/#work", note)
}

// longDay is a day in a sentence.
func longDay(d clock.Date) string { return d.Time().Format("2 January 2006") }
