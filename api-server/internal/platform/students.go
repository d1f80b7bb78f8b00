package platform

import (
	"net/http"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// enrollmentBody has the enrollment's status under a name of its own, beside the answer's.
type enrollmentBody struct {
	Status           string                  `json:"status"`
	EnrollmentID     id.Enrollment           `json:"enrollment_id"`
	Student          wire.Person             `json:"student"`
	CourseID         id.Course               `json:"course_id"`
	CourseName       string                  `json:"course_name"`
	CourseType       string                  `json:"course_type"`
	State            course.State            `json:"state"`
	EnrollmentStatus course.EnrollmentStatus `json:"enrollment_status"`
	StartDate        clock.Date              `json:"start_date"`
	EndDate          clock.Date              `json:"end_date"`
	GracePeriodEnd   clock.Date              `json:"grace_period_end"`
	HasAccess        bool                    `json:"has_access"`
}

func (s *Server) changeEnrollment(w http.ResponseWriter, r *http.Request) error {
	change, err := readChange(w, r)
	if err != nil {
		return err
	}
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	which, err := edge.IDParam[id.Enrollment](r, "id")
	if err != nil {
		return err
	}
	e, err := s.Enrollments.ChangeEnrollment(r.Context(), audit.Platform, o, which, change)
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, enrollmentBody{"ok", e.EnrollmentID, e.Student, e.CourseID, e.CourseName, e.CourseType, e.State,
		e.Status, e.StartDate, e.EndDate, e.GracePeriodEnd, e.HasAccess})
}

func readChange(w http.ResponseWriter, r *http.Request) (c course.Change, err error) {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return c, err
	}
	c.StartDate, c.EndDate = b.Date("start_date"), b.Date("end_date")
	if word := b.Choice("state", string(course.Running), string(course.Suspended), string(course.Dropped), string(course.Completed)); word != nil {
		c.State = new(course.State(*word))
	}
	return c, b.Err()
}

// memberBody is a person with their membership, of whatever role.
type memberBody struct {
	Status string `json:"status"`
	wire.Person
	Membership wire.Membership `json:"membership"`
}

func (s *Server) changeMember(w http.ResponseWriter, r *http.Request) error {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return err
	}
	b.Required("status")
	status := b.Choice("status", string(org.MemberActive), string(org.MemberInactive))
	if err := b.Err(); err != nil {
		return err
	}
	o, user, err := s.member(r)
	if err != nil {
		return err
	}
	m, err := s.Enrollments.SetMember(r.Context(), audit.Platform, o.ID, user, org.MemberStatus(*status))
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, memberBody{"ok", m.Person, m.Membership})
}

func (s *Server) removeMember(w http.ResponseWriter, r *http.Request) error {
	o, user, err := s.member(r)
	if err != nil {
		return err
	}
	if err := s.Enrollments.RemoveMember(r.Context(), audit.Platform, o.ID, user); err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, struct {
		Status string  `json:"status"`
		UserID id.User `json:"user_id"`
	}{"ok", user})
}

// member is the organization and the user that the path names.
func (s *Server) member(r *http.Request) (org.Organization, id.User, error) {
	o, err := s.organization(r)
	if err != nil {
		return o, 0, err
	}
	user, err := edge.IDParam[id.User](r, "user_id")
	return o, user, err
}

// skew is how far a platform system's clock may be ahead.
const skew = 5 * time.Minute

func (s *Server) noteSignIn(w http.ResponseWriter, r *http.Request) error {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return err
	}
	b.Required("user_id")
	user, at := b.Int("user_id", 1, 1<<53), b.Timestamp("at")
	now := s.Clock()
	if at == nil {
		at = &now
	}
	if at.After(now.Add(skew)) {
		b.Fault("at", "in_the_future", "send the time of a sign-in that has happened")
	}
	if err := b.Err(); err != nil {
		return err
	}
	a, err := student.NoteSignIn(r.Context(), s.DB, id.User(*user), *at)
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, struct {
		Status    string           `json:"status"`
		UserID    id.User          `json:"user_id"`
		LastLogin *clock.Timestamp `json:"last_login"`
	}{"ok", a.ID, clock.Stamp(a.LastLogin, time.UTC)})
}
