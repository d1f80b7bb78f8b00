package assign_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/assign"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

func quiz(f *flowtest.Fixture, o flowtest.Organization, code string) (item id.Item) {
	f.Scan(&item, `INSERT INTO catalog_items (organization_id, kind, code, title, type, max_score_e4, created_at, updated_at)
		VALUES ($1, 'quiz', $2, 'Quiz', 'quiz', 100000, now(), now()) RETURNING id`, o.ID, code)
	return item
}

func students(o flowtest.Organization, n int) []id.User {
	course, users := o.Course("ielts", "Morning"), o.Students(n)
	for _, u := range users {
		o.Enroll(u, course, "2026-01-01", "9999-01-01")
	}
	return users
}

// Calls that come together give each piece of work once, with its event, and none waits for the organization
// whose positions are held.
func TestWorkIsGivenTogether(t *testing.T) {
	t.Parallel()
	const people = 10
	f := flowtest.New(t)
	north, south, held := f.Organization("north"), f.Organization("south"), f.Organization("held")
	north.Endpoint()
	d := &assign.Service{DB: f.Database, Clock: clock.System, Zone: time.UTC, PublicURL: "https://registrar.test"}
	holder, err := f.Database.Begin(t.Context())
	check.NoError(check.Now(t), err, "")
	_, err = holder.Exec(t.Context(), `UPDATE assignment_positions SET last = last WHERE organization_id = $1`, held.ID)
	check.NoError(check.Now(t), err, "")

	var mu sync.Mutex
	created := map[string]int{}
	give := func(o flowtest.Organization, user id.User, item id.Item) {
		shown, fresh, err := d.Assign(t.Context(), org.Organization{ID: o.ID, Slug: o.Slug}, assign.Command{Who: student.Ref{User: user}, Kind: catalog.Quiz, Item: item})
		if check.NoError(t, err, "") && fresh {
			mu.Lock()
			created[fmt.Sprint(shown.Student.UserID, shown.Item.ID)]++
			mu.Unlock()
		}
	}
	var waits, others sync.WaitGroup
	stuck, stuckQuiz := students(held, 1), quiz(f, held, "q")
	waits.Go(func() { give(held, stuck[0], stuckQuiz) })
	pgtest.AwaitBlocked(t, f.Database, holder)
	for _, o := range []flowtest.Organization{north, south} {
		item, users := quiz(f, o, "q"), students(o, people)
		for _, u := range users {
			for range 3 {
				others.Go(func() { give(o, u, item) })
			}
		}
		others.Go(func() {
			_, _, err := d.Assign(t.Context(), org.Organization{ID: o.ID, Slug: o.Slug}, assign.Command{Who: student.Ref{User: stuck[0]}, Kind: catalog.Quiz, Item: item})
			var fa *fault.Error
			check.True(t, "another organization's student is not found", errors.As(err, &fa) && fa.Kind == fault.NotFound, "%v", err)
		})
	}
	others.Wait()
	check.Equal(t, "pieces of work", len(created), 2*people, "")
	for work, n := range created {
		check.Equal(t, "times created", n, 1, "%s", work)
	}
	check.Equal(t, "assignments", f.Count("assignments"), 2*people, "")
	check.Equal(t, "events", f.Count("webhook_events WHERE organization_id = $1", north.ID), people, "")
	check.Equal(t, "all events", f.Count("webhook_events"), 2*people, "")
	check.Equal(t, "deliveries", f.Count("webhook_queue"), people, "")
	check.NoError(t, holder.Rollback(t.Context()), "")
	waits.Wait()
	check.Equal(t, "assignments of the held organization", f.Count("assignments WHERE organization_id = $1", held.ID), 1, "")
}
