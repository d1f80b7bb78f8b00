package rest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/assign"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// teacher gives work to one student, and has it done.
type teacher struct {
	*apitest.Env
	in     id.Organization
	of     id.User
	items  []id.Item
	random *rand.Rand
}

// act does something at random.
func (w *teacher) act(ctx context.Context) error {
	item := w.items[w.random.IntN(len(w.items))]
	switch w.random.IntN(4) {
	case 0, 1:
		_, _, err := fixture(w.Env).Assign(ctx, org.Organization{ID: w.in}, assign.Command{Who: student.Ref{User: w.of}, Kind: catalog.Test, Item: item})
		return err
	case 2:
		return w.linger(ctx, item)
	default: // reportWork that is completed may be given again
		_, err := w.DB.Exec(ctx, `
			UPDATE assignments SET status = $3, completed_at = CASE $3 WHEN 'completed' THEN now() END, result_ref = CASE $3 WHEN 'completed' THEN 'test:' || id END
			WHERE organization_id = $1 AND user_id = $2 AND id % 3 = $4 AND status <> 'completed'`,
			w.in, w.of, []string{"in_progress", "submitted", "completed"}[w.random.IntN(3)], w.random.IntN(3))
		return err
	}
}

// linger assigns in a transaction that takes its time, or thinks better of it.
func (w *teacher) linger(ctx context.Context, item id.Item) error {
	undo := errors.New("rolled back")
	err := w.DB.InTx(ctx, func(tx *pg.Tx) error {
		_, _, err := assignment.Assign(ctx, tx, w.in, assignment.Draft{User: w.of, Item: item, Kind: string(catalog.Test), Source: assignment.ViaApp}, w.Now())
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `SELECT pg_sleep($1)`, w.random.Float64()*0.02)
		if err == nil && w.random.IntN(2) == 0 {
			err = undo
		}
		return err
	})
	if errors.Is(err, undo) {
		return nil
	}
	return err
}

// A reader that follows the list by its cursor sees every assignment once and in order,
// though between any two pages work is given, withdrawn, begun, completed and given again.
func TestAssignmentsChangeDuringAWalk(t *testing.T) {
	t.Parallel()
	const teachers, items, pages, between = 8, 25, 100, 4
	e := apitest.New(t)
	north := e.Organization(t, "north")
	var tests []id.Item
	for i := range items {
		tests = append(tests, id.Item(item(t, e, fmt.Sprintf("catalog/tests/i%d", i), `{"title": "IELTS", "type": "ielts"}`)))
	}
	turns, ended := make(chan struct{}), make(chan struct{})
	var acting sync.WaitGroup
	for n := range teachers {
		of := id.User(provision(t, north, fmt.Sprintf("s%d@school.example", n), `"courses": ["ielts"]`))
		w := &teacher{Env: e, in: north.ID, of: of, items: tests, random: rand.New(rand.NewPCG(uint64(n), 7))}
		acting.Go(func() {
			for range turns {
				if err := w.act(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() { acting.Wait(); close(ended) }()
	seen := follow(t, north.ReadOnly, ended, func(page int) {
		switch {
		case page < pages:
			for range between {
				turns <- struct{}{}
			}
		case page == pages:
			close(turns)
		}
	})
	rows, err := e.DB.Query(t.Context(), `SELECT 'test-assignment:' || id FROM assignments ORDER BY position`)
	if err != nil {
		t.Fatal(err)
	}
	there, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if check.NoError(t, err, "%d were seen:\n%v\nof %d (%v):\n%v", len(seen), seen, len(there), err, there) &&
		check.Slices(t, "the seen assignments", seen, there, "%d were seen:\n%v\nof %d (%v):\n%v", len(seen), seen, len(there), err, there) {
		check.True(t, "number of assignments is at least teachers*items/2", len(there) >= teachers*items/2, "%d were seen:\n%v\nof %d (%v):\n%v", len(seen), seen, len(there), err, there)
	}
	var done int
	if err := e.DB.QueryRow(t.Context(), `SELECT count(*) FROM assignments WHERE status = 'completed'`).Scan(&done); check.NoError(t, err, "%d were completed meanwhile (%v)", done, err) {
		check.True(t, "number of completed ones is at least teachers", done >= teachers, "%d were completed meanwhile (%v)", done, err)
	}
}

// follow reads page after page until it has ended and nothing is left. What happens between
// pages learns how many were read.
func follow(t *testing.T, c *apitest.Client, ended <-chan struct{}, between func(page int)) (seen []string) {
	t.Helper()
	cursor := ""
	for page, last := 0, false; ; page++ {
		select {
		case <-ended:
			last = true
		default:
		}
		var p listPage
		c.Get(t, "assignments/?limit=7&cursor="+url.QueryEscape(cursor)).Want(t, 200).Into(t, &p)
		seen, cursor = append(seen, p.ids()...), p.NextCursor
		if last && !p.HasMore {
			return seen
		}
		between(page)
	}
}

// Rows that leave the filter, or come into it, move nobody else off a page.
// Reference: conventions#cursors.
func TestAFilteredWalkGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.assign(t, s.ana, "test", s.ielts)
	s.assign(t, s.ana, "test", s.sat)
	s.assign(t, s.ana, "quiz", s.quiz)
	s.assign(t, s.bo, "test", s.ielts)
	s.assign(t, s.ana, "assessment", s.rubric)
	cursor := ""
	next := func(more bool, want ...string) {
		t.Helper()
		var p listPage
		s.Full.Get(t, "assignments/?status=open&limit=2&cursor="+url.QueryEscape(cursor)).Want(t, 200).Into(t, &p)
		check.Slices(t, "ids", p.ids(), want, "%+v", p)
		check.Equal(t, "has_more", p.HasMore, more, "%+v", p)
		if len(want) == 0 {
			check.Equal(t, "next_cursor", p.NextCursor, cursor, "%+v", p)
		}
		cursor = p.NextCursor
	}
	next(true, "test-assignment:1", "test-assignment:2")
	// The page's last row is completed, and so is the first that is to come.
	sql(t, s.Env, `UPDATE assignments SET status = 'completed', completed_at = now(), result_ref = 'test:' || id WHERE id IN (2, 3)`)
	next(false, "test-assignment:4", "assessment-assignment:5")
	// What was completed is given again, and a student whose work has been read leaves.
	second := s.assign(t, s.ana, "test", s.sat)
	sql(t, s.Env, `UPDATE enrollments SET state = 'dropped' WHERE user_id = $1`, s.bo)
	sql(t, s.Env, `UPDATE members SET status = 'inactive' WHERE user_id = $1`, s.bo)
	next(false, second)
	next(false)
	again := s.assign(t, s.ana, "quiz", s.quiz)
	next(false, again)
}
