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
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Limits of the paged lists (reference: limits#lists).
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
	Object      string           `json:"object"` // student, where the list has student_list
	Student     wire.Student     `json:"student"`
	Membership  *wire.Membership `json:"membership"` // null for who is enrolled and no member
	Enrollments []lookupEntry    `json:"enrollments"`
}

type lookupEntry struct {
	wire.Enrollment
	Source          *string        `json:"source"`
	ExternalRef     *string        `json:"external_ref"`
	TargetScorePlan wire.PlanBlock `json:"target_score_plan"`
}

func (s *Server) lookUpStudent(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	email := q.email()
	if err := q.Err(); err != nil {
		return err
	}
	ctx, o := r.Context(), principal(r.Context()).Organization.ID
	var body lookupBody
	err := s.Reads.Do(ctx, func(db *pg.DB) (err error) {
		body, err = s.lookUp(ctx, db, o, email, q)
		return err
	})
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, body)
}

func (s *Server) lookUp(ctx context.Context, db *pg.DB, o id.Organization, email student.Email, q *query) (lookupBody, error) {
	a, err := student.Lookup(ctx, db, o, email)
	if err != nil {
		return lookupBody{}, err
	}
	members, err := org.Members(ctx, db, o, []id.User{a.ID})
	if err != nil {
		return lookupBody{}, err
	}
	held, err := course.OfStudent(ctx, db, o, a.ID)
	if err != nil {
		return lookupBody{}, err
	}
	plans, err := s.Plans.Blocks(ctx, db, o, a.ID, held)
	if err != nil {
		return lookupBody{}, err
	}
	refs, err := course.LatestRefs(ctx, db, o, a.ID)
	if err != nil {
		return lookupBody{}, err
	}
	body := lookupBody{Status: "ok", Object: "student", Student: wire.NewStudent(a, q.zone), Enrollments: make([]lookupEntry, len(held))}
	if m, ok := members[a.ID]; ok {
		body.Membership = &wire.Membership{Role: m.Role, Status: m.Status}
	}
	for i, e := range held {
		body.Enrollments[i] = lookupEntry{wire.NewEnrollment(e, s.today()), orNull(e.Source), orNull(refs[e.ID]), plans[i].In(q.zone)}
	}
	return body, nil
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// listStudents answers GET /students/ without an email.
func (s *Server) listStudents(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	f := student.RosterFilter{Status: student.RosterStatus(q.Choice("status", string(student.RosterActive), string(student.RosterInactive))),
		Course: q.course(), Today: s.today()}
	ctx := r.Context()
	return edge.List[listedStudent]{
		Cursors: s.Cursors, Organization: principal(ctx).Organization.ID, Name: "students", Array: "students", Object: "student_list", Epochs: page.Positions, Nth: 1, Limit: q.Limit(maxLimit, usualLimit),
		Read: func(db *pg.DB, after page.Position, limit int, each func(listedStudent) error) error {
			n, err := s.narrow(ctx, db, f.Course, student.Ref{})
			if err != nil {
				return err
			}
			f.Few = n.few != nil
			shown, err := page.Settled(ctx, s.Reads, n.org, limit, func(db *pg.DB, until int64) ([]listedStudent, error) {
				found, err := student.Roster(ctx, db, n.org, f, student.Stretch{After: after.At(1), Until: until}, limit)
				if err != nil {
					return nil, err
				}
				return s.showStudents(ctx, db, n.org, found, q)
			})
			return edge.Each(shown, err, each)
		},
		Position: func(l listedStudent) page.Position { return page.Position{byArrival, l.position} },
		Show:     func(l listedStudent) any { return l.RosterStudent },
	}.Answer(w, r, q.Query)
}

// byArrival is what cursors of this list begin with, whose position follows. Older cursors have an account's id
// there and no position. They are good for a walk from the beginning, as older programs are with these.
const byArrival = 0

// listedStudent is a row of the list with its position.
type listedStudent struct {
	wire.RosterStudent
	position int64
}

// showStudents reads what the page's people have, in two queries for all of them.
func (s *Server) showStudents(ctx context.Context, db *pg.DB, o id.Organization, found []student.Listed, q *query) ([]listedStudent, error) {
	users := make([]id.User, len(found))
	for i, a := range found {
		users[i] = a.ID
	}
	members, err := org.Members(ctx, db, o, users)
	if err != nil {
		return nil, err
	}
	held, err := course.OfStudents(ctx, db, o, users)
	if err != nil {
		return nil, err
	}
	shown := make([]listedStudent, len(found))
	for i, a := range found {
		shown[i] = listedStudent{wire.NewRosterStudent(a.Account, members[a.ID], held[a.ID], s.today(), q.zone), a.Position}
	}
	return shown, nil
}
