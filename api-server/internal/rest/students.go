package rest

import (
	"context"
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/page"
)

// Limits of the paged lists (contract: Limits).
const (
	maxLimit   = 500
	usualLimit = 100
)

// students answers both forms of the path: with an email it looks one person up, without
// one it lists.
func (s *Server) students(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Query().Has("email") {
		return s.lookUpStudent(w, r)
	}
	return s.listStudents(w, r)
}

type lookupBody struct {
	Status      string           `json:"status"`
	Student     wire.Student     `json:"student"`
	Membership  *wire.Membership `json:"membership"` // null for who is enrolled and no member
	Enrollments []lookupEntry    `json:"enrollments"`
}

type lookupEntry struct {
	wire.Enrolment
	TargetScorePlan wire.PlanBlock `json:"target_score_plan"`
}

func (s *Server) lookUpStudent(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	email := q.email()
	if err := q.err(); err != nil {
		return err
	}
	ctx, o := r.Context(), principal(r.Context()).Organization.ID
	a, err := student.Lookup(ctx, s.DB, o, email)
	if err != nil {
		return err
	}
	members, err := org.Members(ctx, s.DB, o, []id.User{a.ID})
	if err != nil {
		return err
	}
	held, err := course.OfStudent(ctx, s.DB, o, a.ID)
	if err != nil {
		return err
	}
	plans, err := s.Plans.Blocks(ctx, s.DB, o, a.ID, held)
	if err != nil {
		return err
	}
	body := lookupBody{Status: "ok", Student: wire.NewStudent(a, q.zone), Enrollments: make([]lookupEntry, len(held))}
	if m, ok := members[a.ID]; ok {
		body.Membership = &wire.Membership{Role: m.Role, Status: m.Status}
	}
	for i, e := range held {
		body.Enrollments[i] = lookupEntry{wire.NewEnrolment(e, s.today()), plans[i]}
	}
	return edge.JSON(w, http.StatusOK, body)
}

type studentsBody struct {
	pageBody
	Students []wire.RosterStudent `json:"students"`
}

const listStudents = "students"

func (s *Server) listStudents(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	limit := q.limit(maxLimit, usualLimit)
	f := student.RosterFilter{Status: student.RosterStatus(q.choice("status", string(student.RosterActive), string(student.RosterInactive))),
		Course: q.course(), Today: s.today()}
	if err := q.err(); err != nil {
		return err
	}
	ctx, o := r.Context(), principal(r.Context()).Organization.ID
	from, err := s.start(ctx, q, listStudents)
	if err != nil {
		return err
	}
	if err := s.checkCourse(ctx, o, f.Course); err != nil {
		return err
	}
	found, err := student.Roster(ctx, s.DB, o, f, id.User(from.At(0)), limit+1)
	if err != nil {
		return err
	}
	found, more := cut(found, limit)
	last := page.Position{from.At(0)}
	if len(found) > 0 {
		last = page.Position{int64(found[len(found)-1].ID)}
	}
	body := studentsBody{}
	if body.Students, err = s.showStudents(ctx, o, found, q); err != nil {
		return err
	}
	if body.pageBody, err = s.pageOf(ctx, q, listStudents, len(found), more, last); err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, body)
}

// showStudents reads what the page's people have, in two queries for all of them.
func (s *Server) showStudents(ctx context.Context, o id.Organization, found []student.Account, q *query) ([]wire.RosterStudent, error) {
	users := make([]id.User, len(found))
	for i, a := range found {
		users[i] = a.ID
	}
	members, err := org.Members(ctx, s.DB, o, users)
	if err != nil {
		return nil, err
	}
	held, err := course.OfStudents(ctx, s.DB, o, users)
	if err != nil {
		return nil, err
	}
	shown := make([]wire.RosterStudent, len(found))
	for i, a := range found {
		shown[i] = wire.NewRosterStudent(a, members[a.ID], held[a.ID], s.today(), q.zone)
	}
	return shown, nil
}

// checkCourse: another organization's course does not exist for this one.
func (s *Server) checkCourse(ctx context.Context, o id.Organization, c id.Course) error {
	if c == 0 {
		return nil
	}
	_, err := course.Find(ctx, s.DB, o, c)
	return err
}

// cut takes off the row that was read beyond the page to see whether there is one.
func cut[T any](rows []T, limit int) ([]T, bool) {
	if len(rows) > limit {
		return rows[:limit], true
	}
	return rows, false
}
