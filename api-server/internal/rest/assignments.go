package rest

import (
	"context"
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/assign"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/page"
)

type assignedBody struct {
	Status     string          `json:"status"`
	Created    bool            `json:"created"`
	Assignment wire.Assignment `json:"assignment"`
}

// assignWork answers 201 for work that is new, and 200 for work that was open already.
func (s *Server) assignWork(w http.ResponseWriter, r *http.Request) error {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return err
	}
	command := readAssignment(b)
	if err := b.Err(); err != nil {
		return err
	}
	shown, created, err := s.Desk.Assign(r.Context(), principal(r.Context()).Organization.ID, command)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return edge.JSON(w, status, assignedBody{"ok", created, shown})
}

func readAssignment(b *edge.Body) assign.Command {
	if !b.Has("email") && !b.Has("user_id") {
		b.Fault("email", "missing", "required, unless user_id is sent; send one of the two")
	}
	b.Required("kind", "item_id")
	c := assign.Command{Notify: true}
	if text := b.Text("email", maxText); text != nil {
		address, err := student.ParseEmail(*text)
		if err != nil {
			b.Fault("email", "invalid_email", "send one email address, such as name@institute.org")
		}
		c.Who.Email = address
	}
	c.Who.User = id.User(value(b.Int("user_id", 1, 1<<53)))
	c.Kind = catalog.Kind(value(b.Choice("kind", string(catalog.Test), string(catalog.Quiz), string(catalog.Assessment))))
	c.Item = id.Item(value(b.Int("item_id", 1, 1<<53)))
	c.DueDate = value(b.Text("due_date", 100))
	if notify := b.Bool("notify"); notify != nil {
		c.Notify = *notify
	}
	return c
}

type assignmentsBody struct {
	pageBody
	Assignments []wire.Assignment `json:"assignments"`
}

const listAssignments = "assignments"

func (s *Server) listAssignments(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	limit := q.limit(maxLimit, usualLimit)
	f := assignment.Filter{
		Choice: assignment.Choice(q.choice("status", string(assignment.ChooseOpen), string(assignment.ChooseCompleted), string(assignment.ChooseOverdue))),
		Kinds:  kindNames(q.kinds()), Course: q.course(), Since: q.since("since"), Now: s.Clock(), Today: s.today(),
	}
	who := q.who()
	if err := q.err(); err != nil {
		return err
	}
	ctx, o := r.Context(), principal(r.Context()).Organization.ID
	from, err := s.start(ctx, q, listAssignments)
	if err != nil {
		return err
	}
	if err := s.checkCourse(ctx, o, f.Course); err != nil {
		return err
	}
	if f.User, err = s.resolve(ctx, o, who); err != nil {
		return err
	}
	found, err := assignment.List(ctx, s.DB, o, f, from.At(0), limit+1)
	if err != nil {
		return err
	}
	found, more := cut(found, limit)
	last := page.Position{from.At(0)}
	body := assignmentsBody{Assignments: make([]wire.Assignment, len(found))}
	for i, a := range found {
		body.Assignments[i] = wire.NewAssignment(a, f.Now, q.zone)
		last = page.Position{a.Position}
	}
	if body.pageBody, err = s.pageOf(ctx, q, listAssignments, len(found), more, last); err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, body)
}

// resolve finds the student whom a list is narrowed to; 0 for nobody in particular.
func (s *Server) resolve(ctx context.Context, o id.Organization, who student.Who) (id.User, error) {
	if who.Anybody() {
		return 0, nil
	}
	a, err := student.Resolve(ctx, s.DB, o, who)
	return a.ID, err
}

func kindNames(kinds []catalog.Kind) []string {
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return names
}
