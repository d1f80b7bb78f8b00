package rest

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/page"
)

// pageBody is what every paged answer begins with.
type pageBody struct {
	Status     string `json:"status"`
	Count      int    `json:"count"` // of this page
	HasMore    bool   `json:"has_more"`
	NextCursor string `json:"next_cursor"` // never null
}

// paged is a list that is read page by page, of rows of the type T. A row is written as soon
// as it is read, so that PostgreSQL finds the next one meanwhile.
type paged[T any] struct {
	name, array string // of its cursors, and of its rows in the answer
	limit       int
	course      id.Course     // 0: of no course in particular
	who         student.Ref   // zero: of nobody in particular
	begin       page.Position // where a walk begins; nil: before the first row

	// read calls each with up to limit rows after the position. A row may change once each
	// has returned.
	read  func(ctx context.Context, n narrowed, after page.Position, limit int, each func(T) error) error
	place func(row T) page.Position
	show  func(row T) any
	head  func(pageBody) any // what stands before the rows; nil: the pageBody
}

// narrowed is whom a list is of.
type narrowed struct {
	org  id.Organization
	user id.User   // 0: nobody in particular
	few  []id.User // the people of the course, where they are few
}

// usualRow is about as long as a row's text.
const usualRow = 640

// answer answers a request whose parameters were all read, and may be faulty.
func (l paged[T]) answer(s *Server, w http.ResponseWriter, r *http.Request, q *query) error {
	if err := q.err(); err != nil {
		return err
	}
	ctx := r.Context()
	from, err := s.start(ctx, q, l.name)
	if err != nil {
		return err
	}
	if from == nil {
		from = l.begin
	}
	n, err := s.narrow(ctx, l.course, l.who)
	if err != nil {
		return err
	}
	rows, count, more, last := make([]byte, 0, l.limit*usualRow), 0, false, from
	// The row beyond the page only shows that there is one.
	err = l.read(ctx, n, from, l.limit+1, func(row T) error {
		if more = count == l.limit; more {
			return nil
		}
		if count++; count > 1 {
			rows = append(rows, ',')
		}
		last = l.place(row)
		text, err := json.Marshal(l.show(row))
		rows = append(rows, text...)
		return err
	})
	if err != nil {
		return err
	}
	body, err := s.pageOf(ctx, q, l.name, count, more, last)
	if err != nil {
		return err
	}
	return l.send(w, body, rows)
}

func (l paged[T]) send(w http.ResponseWriter, body pageBody, rows []byte) error {
	var head any = body
	if l.head != nil {
		head = l.head(body)
	}
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	text = append(append(text[:len(text)-1], `,"`+l.array+`":[`...), rows...)
	edge.Text(w, http.StatusOK, append(text, "]}\n"...))
	return nil
}

// pageOf describes a page of count rows that ends at last. An empty page ends where it
// began, so a caller may always store next_cursor.
func (s *Server) pageOf(ctx context.Context, q *query, list string, count int, more bool, last page.Position) (pageBody, error) {
	cursor := q.text("cursor")
	if count > 0 || cursor == "" {
		var err error
		if cursor, err = s.Cursors.Encode(ctx, q.listOf(ctx, list), last); err != nil {
			return pageBody{}, err
		}
	}
	return pageBody{"ok", count, more, cursor}, nil
}

// errNoCourse is the fault of a course_id that names no course of the organization.
func errNoCourse(c id.Course) error {
	f := fault.New(fault.NotFound, "not_found", "course_id: the organization has no course %d; send the id of one of GET /courses/", c)
	f.Field = "course_id"
	return f
}

// narrow finds whom a list is of. Another organization's course, or student, does not exist
// for this one.
func (s *Server) narrow(ctx context.Context, c id.Course, who student.Ref) (n narrowed, err error) {
	n.org = principal(ctx).Organization.ID
	if c != 0 {
		if _, err := course.Find(ctx, s.DB, n.org, c); fault.KindOf(err) == fault.NotFound {
			return n, errNoCourse(c)
		} else if err != nil {
			return n, err
		}
		if n.few, err = course.Few(ctx, s.DB, n.org, c); err != nil {
			return n, err
		}
	}
	if who.Anybody() {
		return n, nil
	}
	a, err := student.Resolve(ctx, s.DB, n.org, who)
	n.user = a.ID
	return n, err
}

// each hands on rows that were read at once.
func each[T any](rows []T, err error, do func(T) error) error {
	for i := 0; err == nil && i < len(rows); i++ {
		err = do(rows[i])
	}
	return err
}
