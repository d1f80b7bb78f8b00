package platform

import (
	"net/http"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// lmsCourseBody is a course of an LMS, whose people may be pulled as a roster.
type lmsCourseBody struct {
	Status     string           `json:"status,omitempty"`
	ID         id.LMSContext    `json:"id"`
	Deployment string           `json:"deployment_id"`
	Course     string           `json:"context_id"`
	Title      string           `json:"title"`
	Source     string           `json:"source"`
	Pulled     bool             `json:"pulled"`
	State      string           `json:"state"`
	DueAt      *clock.Timestamp `json:"next_attempt_at"`
	PulledAt   *clock.Timestamp `json:"last_pulled_at"`
	SeenAt     *clock.Timestamp `json:"last_launch_at"`
	Attempts   []lmsAttemptBody `json:"attempts"`
}

type lmsAttemptBody struct {
	At        *clock.Timestamp `json:"at"`
	Status    *int             `json:"http_status"`
	Cause     *string          `json:"cause"`
	Run       *id.RosterRun    `json:"run_id"`
	Members   int              `json:"members"`
	NoAddress int              `json:"without_email"`
}

func lmsCourseOf(c lms.Context) lmsCourseBody {
	stamp := func(at *time.Time) *clock.Timestamp {
		if at == nil {
			return nil
		}
		return clock.Stamp(*at, time.UTC)
	}
	b := lmsCourseBody{ID: c.ID, Deployment: c.Deployment, Course: c.Course, Title: c.Title, Source: c.Source(), Pulled: c.Pulled, State: c.State(),
		DueAt: stamp(c.DueAt), PulledAt: stamp(c.PulledAt), SeenAt: stamp(&c.SeenAt), Attempts: []lmsAttemptBody{}}
	for _, a := range c.Attempts {
		said := lmsAttemptBody{At: stamp(&a.At), Members: a.Members, NoAddress: a.NoAddress}
		if a.Status != 0 {
			said.Status = &a.Status
		}
		if a.Cause != "" {
			said.Cause = &a.Cause
		}
		if a.Run != 0 {
			said.Run = &a.Run
		}
		b.Attempts = append(b.Attempts, said)
	}
	return b
}

func (s *Server) listLMSCourses(w http.ResponseWriter, r *http.Request) error {
	o, found, err := s.findRegistration(r)
	if err != nil {
		return err
	}
	all, err := lms.Contexts(r.Context(), s.DB, o.ID, found.ID)
	if err != nil {
		return err
	}
	body := struct {
		Status  string          `json:"status"`
		Courses []lmsCourseBody `json:"courses"`
	}{"ok", []lmsCourseBody{}}
	for _, c := range all {
		body.Courses = append(body.Courses, lmsCourseOf(c))
	}
	return edge.JSON(w, http.StatusOK, body)
}

func (s *Server) findLMSCourse(r *http.Request) (o org.Organization, found lms.Registration, which id.LMSContext, err error) {
	if which, err = edge.IDParam[id.LMSContext](r, "course_id"); err != nil {
		return o, found, which, err
	}
	o, found, err = s.findRegistration(r)
	return o, found, which, err
}

func answerLMSCourse(w http.ResponseWriter, status int, c lms.Context) error {
	b := lmsCourseOf(c)
	b.Status = "ok"
	return edge.JSON(w, status, b)
}

// changeLMSCourse turns the roster of a course on or off.
func (s *Server) changeLMSCourse(w http.ResponseWriter, r *http.Request) error {
	sent, err := edge.ReadBody(w, r)
	if err != nil {
		return err
	}
	on := sent.Bool("pulled")
	if err := sent.Err(); err != nil {
		return err
	}
	if on == nil {
		return fault.Field("pulled", "missing", "pulled: required; send true or false")
	}
	o, found, which, err := s.findLMSCourse(r)
	if err != nil {
		return err
	}
	c, err := s.LMS.SetPull(r.Context(), audit.Platform, o.ID, found.ID, which, *on, s.Clock())
	if err != nil {
		return err
	}
	return answerLMSCourse(w, http.StatusOK, c)
}

// pullLMSCourse has the roster of a course pulled now.
func (s *Server) pullLMSCourse(w http.ResponseWriter, r *http.Request) error {
	o, found, which, err := s.findLMSCourse(r)
	if err != nil {
		return err
	}
	c, err := s.LMS.AskPull(r.Context(), audit.Platform, o.ID, found.ID, which, s.Clock())
	if err != nil {
		return err
	}
	return answerLMSCourse(w, http.StatusAccepted, c)
}
