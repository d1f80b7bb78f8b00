package platform

import (
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

type courseBody struct {
	Status              string        `json:"status"` // of the answer
	ID                  id.Course     `json:"id"`
	Name                string        `json:"name"`
	CourseType          string        `json:"course_type"`
	IsDefault           bool          `json:"is_default"`
	CourseStatus        course.Status `json:"course_status"`
	OpenForEnrollment   bool          `json:"open_for_enrolment"`
	IsPerpetual         bool          `json:"is_perpetual"`
	StartDate           clock.Date    `json:"start_date"`
	EndDate             clock.Date    `json:"end_date"`
	DefaultAccessMonths *int          `json:"default_access_months"`
	DefaultAccessWeeks  *int          `json:"default_access_weeks"`
}

func courseOf(c course.Course) courseBody {
	return courseBody{"ok", c.ID, c.Name, c.Type, c.IsDefault, c.Status, c.OpenForEnrollment, c.IsPerpetual,
		c.StartDate, c.EndDate, orNull(c.DefaultAccessMonths), orNull(c.DefaultAccessWeeks)}
}

func orNull(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func (s *Server) createCourse(w http.ResponseWriter, r *http.Request) error {
	draft, err := s.readDraft(w, r)
	if err != nil {
		return err
	}
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	c, err := course.Create(r.Context(), s.DB, audit.Platform, o.ID, draft, s.Clock())
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusCreated, courseOf(c))
}

// readDraft reads a new course: open, and starting today, unless the body says otherwise.
func (s *Server) readDraft(w http.ResponseWriter, r *http.Request) (course.Draft, error) {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return course.Draft{}, err
	}
	b.Required("name", "course_type")
	p, courseType := readCourse(b), b.Text("course_type", 100)
	if err := b.Err(); err != nil {
		return course.Draft{}, err
	}
	return p.On(course.Draft{Type: *courseType, OpenForEnrollment: true, StartDate: s.today()}), nil
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

func (s *Server) changeCourse(w http.ResponseWriter, r *http.Request) error {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return err
	}
	patch := readCourse(b)
	if err := b.Err(); err != nil {
		return err
	}
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	which, err := edge.IDParam[id.Course](r, "id")
	if err != nil {
		return err
	}
	c, err := course.Update(r.Context(), s.DB, audit.Platform, o.ID, which, patch, s.Clock())
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, courseOf(c))
}

// readCourse reads what POST and PATCH have in common; null removes what is optional.
func readCourse(b *edge.Body) course.Patch {
	p := course.Patch{
		Name:                b.Text("name", 200),
		OpenForEnrollment:   b.Bool("open_for_enrolment"),
		IsPerpetual:         b.Bool("is_perpetual"),
		StartDate:           b.Date("start_date"),
		EndDate:             b.Date("end_date"),
		DefaultAccessMonths: b.Int("default_access_months", 1, 120),
		DefaultAccessWeeks:  b.Int("default_access_weeks", 1, 520),
	}
	if word := b.Choice("status", string(course.StatusActive), string(course.StatusCompleted), string(course.StatusCancelled)); word != nil {
		p.Status = new(course.Status(*word))
	}
	if b.Cleared("end_date") {
		p.EndDate = new(clock.Date)
	}
	if b.Cleared("default_access_months") {
		p.DefaultAccessMonths = new(int)
	}
	if b.Cleared("default_access_weeks") {
		p.DefaultAccessWeeks = new(int)
	}
	return p
}

type courseTypeBody struct {
	Status      string `json:"status"`
	Name        string `json:"name"`
	DisplayName string `json:"display_name"`
	Active      bool   `json:"active"`
}

func (s *Server) putCourseType(w http.ResponseWriter, r *http.Request) error {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return err
	}
	b.Required("active")
	active := b.Bool("active")
	if err := b.Err(); err != nil {
		return err
	}
	t, err := course.SetTypeActive(r.Context(), s.DB, audit.Platform, edge.Param(r, "name"), *active, s.Clock())
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, courseTypeBody{"ok", t.Name, t.DisplayName, t.Active})
}
