package console

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/sandboxes"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/student/directory"
	"github.com/registrar-dev/registrar/internal/flow/explain"
	"github.com/registrar-dev/registrar/internal/flow/simulate"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

type sandboxPage struct {
	frame
	Offered bool // by the installation
	Open    bool // the organization has a sandbox
	Clock   sandbox.Clock
	Next    *simulate.Next // nil: nothing
	Steps   []sandboxStep
	People  []directory.Person

	Student  *student.Account // that is looked at; nil: none
	Life     *lifeChart
	Timeline []explain.Entry
}

// sandboxStep is a way to move the clock.
type sandboxStep struct{ By, Text string }

// toNext is the step to what happens next; the others are durations.
const toNext = "next"

var sandboxSteps = []sandboxStep{{toNext, "To what happens next"}, {"P1D", "A day"}, {"P7D", "A week"}, {"P1M", "A month"}}

// What the page shows of a student's life.
const (
	lifeShown    = 500 // entries in the picture
	lifeInWords  = 50  // of these below it
	sandboxShown = 50  // students
)

// Percent says how far the clock is.
func (p sandboxPage) Percent() int { return int(100 * p.Clock.Progress()) }

// NextWords says what happens next.
func (p sandboxPage) NextWords() string {
	switch p.Next.Kind {
	case "enrollments":
		return "the calendar changes an enrollment"
	case "assignments":
		return "work becomes overdue, or expires"
	case "plans":
		return "a test plan is decided"
	case "webhooks":
		return "webhooks are attempted"
	}
	return "mails, imports and test plans go on"
}

func (s *Server) showSandbox(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "sandbox", "Sandbox")
	if err != nil {
		return err
	}
	p := sandboxPage{frame: f, Offered: s.Sandboxes != nil, Steps: sandboxSteps}
	v, err := s.Sandboxes.Visit(r.Context(), f.Here.Organization)
	if fault.KindOf(err) == fault.NotFound {
		return show(w, http.StatusOK, "sandbox.html", p)
	}
	if err != nil {
		return err
	}
	defer v.Leave()
	if err := s.readSandbox(r.Context(), v, &p, r.URL.Query().Get("student")); err != nil {
		return err
	}
	return show(w, http.StatusOK, "sandbox.html", p)
}

func (s *Server) readSandbox(ctx context.Context, v *sandboxes.Visit, p *sandboxPage, which string) (err error) {
	p.Open, p.Clock = true, v.Clock
	if v.Clock.Target != nil {
		p.Refresh = 2
	}
	if p.Next, err = simulate.NextOf(ctx, v.DB, v.Organization, v.Clock, s.Zone); err != nil {
		return err
	}
	if p.People, _, err = directory.Search(ctx, v.DB, v.Organization, "", directory.Position{}, sandboxShown); err != nil {
		return err
	}
	n, err := strconv.ParseInt(which, 10, 64)
	if err != nil || n <= 0 {
		return nil //nolint:nilerr // nobody is looked at
	}
	a, err := student.Resolve(ctx, v.DB, v.Organization, student.Ref{User: id.User(n)})
	if fault.KindOf(err) == fault.NotFound { // the sandbox was wiped
		return nil
	}
	if err != nil {
		return err
	}
	p.Student = &a
	explains := &explain.Service{DB: v.DB, Clock: v.Now, Zone: s.Zone}
	if p.Timeline, err = explains.Student(ctx, v.Organization, a, explain.Position{}, lifeShown); err != nil {
		return err
	}
	held, err := course.OfStudent(ctx, v.DB, v.Organization, a.ID)
	if err != nil {
		return err
	}
	p.Life = newLifeChart(p.Timeline, held, v.Clock.Now, s.Zone)
	p.Timeline = p.Timeline[:min(len(p.Timeline), lifeInWords)]
	return nil
}

// moveSandbox moves the clock by one of the steps.
func (s *Server) moveSandbox(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "sandbox", "Sandbox")
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	by, receiver, back := r.PostFormValue("by"), sandbox.Accepts, "/sandbox/"
	for _, known := range sandbox.Receivers() {
		if r.PostFormValue("receiver") == string(known) {
			receiver = known
		}
	}
	if n, err := strconv.ParseInt(r.PostFormValue("student"), 10, 64); err == nil {
		back = fmt.Sprintf("/sandbox/?student=%d", n)
	}
	note, err := s.stepSandbox(r.Context(), f, by, receiver)
	switch fault.KindOf(err) {
	case fault.Conflict, fault.Invalid, fault.NotFound:
		note, err = err.Error(), nil
	}
	if err != nil {
		return err
	}
	return s.back(w, r, f, back, note)
}

func (s *Server) stepSandbox(ctx context.Context, f frame, by string, receiver sandbox.Receiver) (note string, err error) {
	v, err := s.Sandboxes.Visit(ctx, f.Here.Organization)
	if err != nil {
		return "", err
	}
	defer v.Leave()
	var to time.Time
	if by == toNext {
		next, err := simulate.NextOf(ctx, v.DB, v.Organization, v.Clock, s.Zone)
		if err != nil {
			return "", err
		}
		if next == nil {
			return "Nothing happens until a call changes something.", nil
		}
		to = next.At
	} else if to, err = clock.AddPeriod("by", v.Clock.Now, by); err != nil {
		return "", err
	}
	if err := v.Full(ctx); err != nil {
		return "", err
	}
	if err := v.Move(ctx, "by", to, receiver); err != nil {
		return "", err
	}
	return "The clock is moved.", nil
}

// hasSandbox says whether the organization has a sandbox.
func (s *Server) hasSandbox(ctx context.Context, of id.Organization) (bool, error) {
	if s.Sandboxes == nil {
		return false, nil
	}
	_, err := sandbox.Find(ctx, s.DB, of)
	if fault.KindOf(err) == fault.NotFound {
		return false, nil
	}
	return err == nil, err
}

func (s *Server) makeSandbox(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "sandbox", "Sandbox")
	if err != nil {
		return err
	}
	note := "The sandbox is there. Create a key of it, with which calls reach it."
	if s.Sandboxes == nil {
		note = "This installation has no sandboxes."
	} else if _, _, err := s.Sandboxes.Service.Make(r.Context(), f.Person.Actor(), f.Here.Organization); err != nil {
		return err
	}
	return s.back(w, r, f, "/sandbox/", note)
}

func (s *Server) wipeSandbox(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "sandbox", "Sandbox")
	if err != nil {
		return err
	}
	note := "The sandbox is empty, and its clock shows the real time."
	if s.Sandboxes == nil {
		note = "There is no sandbox."
	} else if _, err := s.Sandboxes.Service.Wipe(r.Context(), f.Person.Actor(), f.Here.Organization); fault.KindOf(err) == fault.NotFound {
		note = "There is no sandbox."
	} else if err != nil {
		return err
	}
	return s.back(w, r, f, "/sandbox/", note)
}
