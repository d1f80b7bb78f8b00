package rest

import (
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/assign"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/page"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

type assignedBody struct {
	Status     string          `json:"status"`
	Created    bool            `json:"created"`
	Assignment wire.Assignment `json:"assignment"`
	Warnings   []string        `json:"warnings,omitempty"`
}

// assignWork answers 201 for work that is new, and 200 for work that was open already.
func (s *Server) assignWork(w http.ResponseWriter, r *http.Request) error {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return err
	}
	q, command := readQuery(r), readAssignment(b)
	if q.Text("tz") != "" {
		command.Zone = q.zone
	}
	var faults fault.List
	_, _ = faults.Add(b.Err()), faults.Add(q.Err()) // faults only
	if err := faults.Err(); err != nil {
		return err
	}
	shown, created, err := s.Assignments.Assign(r.Context(), principal(r.Context()).Organization, command)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return edge.JSON(w, status, assignedBody{"ok", created, shown.In(q.zone), b.Unread()})
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

type withdrawnBody struct {
	Status     string          `json:"status"`
	Withdrawn  bool            `json:"withdrawn"` // false: it had expired already
	Assignment wire.Assignment `json:"assignment"`
}

// withdrawWork answers DELETE /assignments/{id}.
func (s *Server) withdrawWork(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	if err := q.Err(); err != nil {
		return err
	}
	p := principal(r.Context())
	shown, withdrawn, err := s.Assignments.Withdraw(r.Context(), p.Actor(), p.Organization.ID, edge.Param(r, "id"))
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, withdrawnBody{"ok", withdrawn, shown.In(q.zone)})
}

// listAssignments answers GET /assignments/.
func (s *Server) listAssignments(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	f := assignment.Filter{
		Choice: assignment.Choice(q.Choice("status", string(assignment.ChooseOpen), string(assignment.ChooseCompleted), string(assignment.ChooseOverdue))),
		Kinds:  kindNames(q.kinds()), Course: q.course(), Since: q.since("since"), Now: s.Clock(), Today: s.today(),
	}
	ctx, who := r.Context(), q.student()
	return edge.List[assignment.Listed]{
		Cursors: s.Cursors, Reads: s.Reads, Organization: principal(ctx).Organization.ID, Name: "assignments", Array: "assignments", Epochs: page.Assignments, Limit: q.Limit(maxLimit, usualLimit),
		Read: func(db *pg.DB, after page.Position, limit int, each func(assignment.Listed) error) error {
			n, err := s.narrow(ctx, db, f.Course, who)
			if err != nil {
				return err
			}
			f.User, f.Few = n.user, n.few
			found, err := assignment.List(ctx, db, n.org, f, after.At(0), limit)
			return edge.Each(found, err, each)
		},
		Position: func(l assignment.Listed) page.Position { return page.Position{l.Position} },
		Show:     func(l assignment.Listed) any { return wire.NewAssignment(l, f.Now, q.zone) },
	}.Answer(w, r, q.Query)
}

func kindNames(kinds []catalog.Kind) []string {
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return names
}
