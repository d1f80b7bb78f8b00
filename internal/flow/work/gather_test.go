package work_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/flow/work"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// engine reports records one by one, each in a goroutine of its own.
type engine struct {
	*flowtest.Fixture
	*work.Service
	t     *testing.T
	item  id.Item
	calls sync.WaitGroup
}

func newEngine(t *testing.T) *engine {
	t.Helper()
	f := flowtest.New(t)
	return &engine{Fixture: f, t: t, item: f.Paper("i1", "ielts"),
		Service: &work.Service{DB: f.Database, Clock: clock.System, Zone: time.UTC, PublicURL: "https://registrar.test"}}
}

// finished is a report of a finished test.
func (e *engine) finished(o flowtest.Organization, name string, user id.User, halfBands int) work.Record {
	r := session(name, user, e.item, halfBands)
	r.Organization = o.Slug
	return r
}

// report sends one and has seen answer it.
func (e *engine) report(r work.Record, seen func(work.Outcome, error)) {
	e.calls.Go(func() { seen(e.Result(e.t.Context(), r)) })
}

// awaitWaiting waits until so many records wait.
func (e *engine) awaitWaiting(n int) {
	e.t.Helper()
	for end := time.Now().Add(time.Minute); e.Waiting() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			e.t.Fatalf("%d records wait instead of %d", e.Waiting(), n)
		}
	}
}

// hold keeps every transaction that makes results of the organizations final waiting, and the first of them
// wait. Others go together then, once release is called.
func (e *engine) hold(orgs ...flowtest.Organization) (release func()) {
	e.t.Helper()
	holder, err := e.Database.Begin(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	for _, o := range orgs {
		_, err := holder.Exec(e.t.Context(), `UPDATE result_positions SET last = last WHERE organization_id = $1`, o.ID)
		check.NoError(check.Now(e.t), err, "")
	}
	for i, o := range orgs {
		e.report(e.finished(o, "first", o.Student("held@"+o.Slug+".school"), 10), e.fine)
		pgtest.AwaitAllBlocked(e.t, e.Database, holder, i+1)
	}
	return func() { check.NoError(e.t, holder.Rollback(e.t.Context()), "") }
}

func (e *engine) fine(_ work.Outcome, err error) { check.NoError(e.t, err, "") }

// refused expects a fault.
func (e *engine) refused(field, code string) func(work.Outcome, error) {
	return func(o work.Outcome, err error) {
		var f *fault.Error
		if !errors.As(err, &f) || f.Field != field || f.Code != code {
			e.t.Errorf("%v %v instead of %s %s", o, err, field, code)
		}
	}
}

// transactions is how many have written results but the first ones of held organizations.
func (e *engine) transactions() (n int) {
	e.Scan(&n, `SELECT count(DISTINCT xmin::text) FROM results WHERE ref <> 'test:first'`)
	return n
}

// Records of several organizations share a transaction, and none sees what is another's.
func TestOrganizationsShareATransaction(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	a, b, north, south := e.Organization("a"), e.Organization("b"), e.Organization("north"), e.Organization("south")
	north.Endpoint()
	ana, sam := north.Student("ana@north.school"), south.Student("sam@south.school")
	var own id.Item
	var theirs id.Assignment
	e.Scan(&own, `INSERT INTO catalog_items (organization_id, kind, code, title, type, max_score_e4, created_at, updated_at)
		VALUES ($1, 'test', 'own', 'Own', 'ielts', 90000, now(), now()) RETURNING id`, south.ID)
	e.Scan(&theirs, `INSERT INTO assignments (organization_id, user_id, item_id, kind, status, source, notify, assigned_at, position, updated_at)
		VALUES ($1, $2, $3, 'test', 'pending', 'api', false, now(), 1, now()) RETURNING id`, south.ID, sam, own)
	release := e.hold(a, b)
	with := func(r work.Record, change func(*work.Record)) work.Record { change(&r); return r }
	e.report(e.finished(north, "same", ana, 12), e.fine)
	e.report(e.finished(south, "same", sam, 14), e.fine)
	e.report(with(e.finished(south, "own", sam, 14), func(r *work.Record) { r.Item, r.Assignment = own, fmt.Sprint(theirs) }), func(o work.Outcome, err error) {
		check.NoError(t, err, "")
		check.Equal(t, "the assignment", o.Result.Assignment, theirs, "")
	})
	e.report(e.finished(north, "student", sam, 12), e.refused("user_id", "student_not_found"))
	e.report(with(e.finished(north, "item", ana, 12), func(r *work.Record) { r.Item = own }), e.refused("item_id", "item_not_found"))
	e.report(with(e.finished(north, "assignment", ana, 12), func(r *work.Record) { r.Assignment = fmt.Sprint(theirs) }), e.refused("assignment_id", "assignment_not_found"))
	e.report(with(e.finished(north, "nowhere", ana, 12), func(r *work.Record) { r.Organization = "nowhere" }), e.refused("organization", "not_found"))
	e.awaitWaiting(7)
	release()
	e.calls.Wait()
	check.Equal(t, "transactions", e.transactions(), 1, "")
	check.Equal(t, "events", e.Count("webhook_events WHERE organization_id = $1 AND user_id = $2", north.ID, ana), 1, "")
	check.Equal(t, "events of south", e.Count("webhook_events WHERE organization_id = $1 AND user_id = $2", south.ID, sam), 2, "")
	check.Equal(t, "deliveries", e.Count("webhook_queue"), 1, "")
	check.Equal(t, "positions of north", e.Count("results WHERE organization_id = $1 AND position = 1", north.ID), 1, "")
	check.Equal(t, "positions of south", e.Count("results WHERE organization_id = $1 AND position IN (1, 2)", south.ID), 2, "")
	check.Equal(t, "completed", e.Count("assignments WHERE status = 'completed' AND result_ref = 'test:own'"), 1, "")
}

// Two reports of the same session have the effects of two calls, also when they go together.
func TestASessionIsReportedTwiceAtOnce(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	a, b, north := e.Organization("a"), e.Organization("b"), e.Organization("north")
	north.Endpoint()
	ana := north.Student("ana@north.school")
	release := e.hold(a, b)
	for i, halfBands := range []int{12, 13, 13} {
		e.report(e.finished(north, "s1", ana, halfBands), func(o work.Outcome, err error) {
			check.NoError(t, err, "")
			check.Equal(t, "it is new", o.New, i == 0, "report %d", i)
			check.Equal(t, "the status", o.Status, []work.Status{work.Applied, work.Applied, work.Unchanged}[i], "report %d", i)
			check.Equal(t, "the score", *o.Result.Score, decimal.Number(halfBands)*decimal.One/2, "report %d", i)
		})
		e.awaitWaiting(i + 1)
	}
	release()
	e.calls.Wait()
	check.Equal(t, "transactions", e.transactions(), 1, "")
	check.Equal(t, "events", e.Count("webhook_events WHERE user_id = $1", ana), 2, "")
	check.Equal(t, "positions", e.Count("results WHERE user_id = $1 AND position = 2", ana), 1, "")
}

// What holds one organization up does not hold up those whose records went with its own.
func TestAnOrganizationIsHeldUp(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	a, b, north, south := e.Organization("a"), e.Organization("b"), e.Organization("north"), e.Organization("south")
	ana, sam := north.Student("ana@north.school"), south.Student("sam@south.school")
	holder, err := e.Database.Begin(t.Context())
	check.NoError(check.Now(t), err, "")
	_, err = holder.Exec(t.Context(), `UPDATE result_positions SET last = last WHERE organization_id = $1`, north.ID)
	check.NoError(check.Now(t), err, "")
	release := e.hold(a, b)
	done := make(chan struct{})
	e.report(e.finished(north, "s1", ana, 12), e.fine)
	e.report(e.finished(south, "s1", sam, 12), func(_ work.Outcome, err error) { e.fine(work.Outcome{}, err); close(done) })
	e.awaitWaiting(2)
	release()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("the other organization waits as well")
	}
	pgtest.AwaitAllBlocked(t, e.Database, holder, 1)
	o, err := e.Result(t.Context(), e.finished(south, "s2", sam, 12))
	e.fine(o, err)
	check.Equal(t, "results of north", e.Count("results WHERE organization_id = $1", north.ID), 0, "")
	check.NoError(t, holder.Rollback(t.Context()), "")
	e.calls.Wait()
	check.Equal(t, "results of north", e.Count("results WHERE organization_id = $1", north.ID), 1, "")
}

// A call with records of several organizations waits for the one that is held up, and the others do not.
func TestOneOrganizationOfACallIsHeldUp(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	south, north := e.Organization("south"), e.Organization("north")
	ana, sam := north.Student("ana@north.school"), south.Student("sam@south.school")
	holder, err := e.Database.Begin(t.Context())
	check.NoError(check.Now(t), err, "")
	_, err = holder.Exec(t.Context(), `UPDATE result_positions SET last = last WHERE organization_id = $1`, north.ID)
	check.NoError(check.Now(t), err, "")
	e.calls.Go(func() {
		outcomes, err := e.Work(t.Context(), []work.Record{e.finished(north, "n1", ana, 12), e.finished(south, "s1", sam, 14), e.finished(north, "n2", sam, 12)})
		if check.NoError(t, err, "") {
			check.Equal(t, "the first", outcomes[0].Result.Ref, "test:n1", "")
			check.Equal(t, "the second", outcomes[1].Result.Ref, "test:s1", "")
			check.Equal(t, "the third", outcomes[2].Status, work.Rejected, "")
		}
	})
	for end := time.Now().Add(time.Minute); e.Count("results WHERE organization_id = $1", south.ID) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Error("the other organization waits as well")
			break
		}
	}
	check.Equal(t, "results of north", e.Count("results WHERE organization_id = $1", north.ID), 0, "")
	check.NoError(t, holder.Rollback(t.Context()), "")
	e.calls.Wait()
	check.Equal(t, "results of north", e.Count("results WHERE organization_id = $1", north.ID), 1, "")
}

// Of many engines that report at once, each gets its own answers, and positions, events and the last state
// are those of single calls.
func TestManyEnginesAtOnce(t *testing.T) {
	t.Parallel()
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	const orgs, engines, sessions = 3, 8, 5
	e := newEngine(t)
	other := &work.Service{DB: e.DB, Clock: e.Clock, Zone: e.Zone, PublicURL: e.PublicURL} // another replica
	for o := range orgs {
		school := e.Organization(fmt.Sprint("org", o))
		school.Endpoint()
		users := school.Students(engines * sessions)
		for w := range engines {
			service := []*work.Service{e.Service, other}[w%2]
			e.calls.Go(func() {
				random := rand.New(rand.NewPCG(uint64(o), uint64(w)))
				last := map[int]int{}
				for range rounds {
					n := random.IntN(sessions)
					r := e.finished(school, fmt.Sprintf("s%d-%d", w, n), users[w*sessions+n], random.IntN(19))
					if random.IntN(10) == 0 {
						r.Item = 1 << 40
						_, err := service.Result(t.Context(), r)
						e.refused("item_id", "item_not_found")(work.Outcome{}, err)
						continue
					}
					out, err := service.Result(t.Context(), r)
					if check.NoError(t, err, "") {
						_, known := last[n]
						check.Equal(t, "it is new", out.New, !known, "%s", r.Session)
						check.Equal(t, "the result", out.Result.Ref, "test:"+r.Session, "")
						last[n] = int(*r.Mark.Score)
					}
				}
				for n, score := range last {
					var stored int
					e.Scan(&stored, `SELECT score_e4 FROM results WHERE organization_id = $1 AND ref = $2`, school.ID, fmt.Sprintf("test:s%d-%d", w, n))
					check.Equal(t, "the last score", stored, score, "")
				}
			})
		}
	}
	e.calls.Wait()
	var events, positions int
	e.Scan(&events, `SELECT count(*) FROM webhook_events`)
	e.Scan(&positions, `SELECT sum(last) FROM result_positions`)
	check.Equal(t, "events", events, positions, "one each time that a result becomes final")
}

// Quizzes are gathered by the organization that their assignment names.
func TestAQuizIsGathered(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	north := e.Organization("north")
	ana := north.Student("ana@north.school")
	var quiz id.Item
	var given id.Assignment
	e.Scan(&quiz, `INSERT INTO catalog_items (organization_id, kind, code, title, type, max_score_e4, created_at, updated_at)
		VALUES ($1, 'quiz', 'q1', 'Q', 'quiz', 100000, now(), now()) RETURNING id`, north.ID)
	e.Scan(&given, `INSERT INTO assignments (organization_id, user_id, item_id, kind, status, source, notify, assigned_at, position, updated_at)
		VALUES ($1, $2, $3, 'quiz', 'pending', 'api', false, now(), 1, now()) RETURNING id`, north.ID, ana, quiz)
	r := work.Record{Kind: catalog.Quiz, Assignment: fmt.Sprint(given), State: result.Finished, Mark: catalog.Mark{Score: new(5 * decimal.One)}}
	o, err := e.Result(t.Context(), r)
	e.fine(o, err)
	check.Equal(t, "the result", o.Result.Ref, fmt.Sprint("quiz:", given), "")
	r.Assignment = "999"
	o, err = e.Result(t.Context(), r)
	e.refused("", "assignment_not_found")(o, err)
}
