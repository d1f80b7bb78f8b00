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
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// school makes an organization with students, one IELTS test and a receiver URL.
func school(t testing.TB, db *pg.DB, students int) (org id.Organization, users []id.User, item id.Item) {
	t.Helper()
	f := flowtest.On(t, db)
	north := f.Organization("north")
	north.Endpoint()
	return north.ID, north.Students(students), f.Paper("i1", "ielts")
}

func session(name string, user id.User, item id.Item, halfBands int) work.Record {
	return work.Record{Kind: catalog.Test, Session: name, Organization: "north", User: user, Item: item, State: result.Finished,
		Mark: catalog.Mark{Score: new(decimal.Number(halfBands) * decimal.One / 2)}}
}

// A reader that follows the list by its stored position, while many writers finish work and
// mark it again in transactions of random length, ends up with the last state of everything.
// Reference: results#order.
func TestAReaderMissesNothing(t *testing.T) {
	t.Parallel()
	const writers, sessions, rounds = 16, 1500, 30
	db := pgtest.New(t)
	org, users, item := school(t, db, 20)
	service := &work.Service{DB: db, Clock: clock.System, Zone: time.UTC, PublicURL: "https://registrar.test"}
	// Others hold the organization's counter now and then, as a slow commit would.
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 7))
			for range rounds {
				records := make([]work.Record, 1+random.IntN(12))
				for i := range records {
					n := random.IntN(sessions)
					records[i] = session(fmt.Sprint("s", n), users[n%len(users)], item, random.IntN(19))
				}
				if random.IntN(3) == 0 {
					linger(t, db, org, random)
				}
				outcomes, err := service.Work(t.Context(), records)
				if err != nil {
					t.Error(err)
					return
				}
				for _, o := range outcomes {
					if o.Err != nil {
						t.Error(o.Err)
					}
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()
	seen, pages := follow(t, db, org, done)
	rows := list(t, db, org, 0, 10*sessions)
	if check.Equal(t, "number of rows", len(rows), len(seen), "%d results, %d seen on %d pages", len(rows), len(seen), pages) &&
		check.True(t, "number of rows is at least sessions/2", len(rows) >= sessions/2, "%d results, %d seen on %d pages", len(rows), len(seen), pages) {
		check.True(t, "there were ten pages at least", pages >= 10, "%d results, %d seen on %d pages", len(rows), len(seen), pages)
	}
	for _, r := range rows {
		if seen[r.ref] != r.score {
			t.Errorf("%s is %v, and was last seen as %v", r.ref, r.score, seen[r.ref])
		}
	}
	var events, positions int64
	err := db.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM webhook_events), (SELECT last FROM result_positions)`).Scan(&events, &positions)
	if check.NoError(t, err, "%d events of %d times that a result became final (%v)", events, positions, err) {
		check.Equal(t, "events", events, positions, "%d events of %d times that a result became final (%v)", events, positions, err)
	}
}

// row is what the test needs of a listed result.
type row struct {
	ref      string
	score    decimal.Number
	position int64
}

func list(t *testing.T, db *pg.DB, org id.Organization, after int64, limit int) (rows []row) {
	t.Helper()
	err := result.List(t.Context(), db, org, result.Filter{Today: clock.DateIn(time.Now(), time.UTC)}, after, limit, func(l *result.Listed) error {
		rows = append(rows, row{l.Ref, *l.Score, l.Position})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// linger is a transaction that stores a result, takes the counter and commits late, or
// thinks better of it.
func linger(t *testing.T, db *pg.DB, org id.Organization, random *rand.Rand) {
	undo := errors.New("rolled back")
	err := db.InTx(t.Context(), func(tx *pg.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE result_positions SET last = last WHERE organization_id = $1`, org)
		if err != nil {
			return err
		}
		_, err = tx.Exec(t.Context(), `SELECT pg_sleep($1)`, random.Float64()*0.02)
		if err == nil && random.IntN(2) == 0 {
			err = undo
		}
		return err
	})
	if errors.Is(err, undo) {
		return
	}
	check.NoError(t, err, "a transaction that takes long")
}

// follow reads page after page until the writers are done and nothing is left.
func follow(t *testing.T, db *pg.DB, org id.Organization, done <-chan struct{}) (seen map[string]decimal.Number, pages int) {
	t.Helper()
	seen = map[string]decimal.Number{}
	position, last := int64(0), false
	for {
		select {
		case <-done:
			last = true
		default:
		}
		rows := list(t, db, org, position, 7)
		for _, r := range rows {
			if r.position <= position {
				t.Fatalf("position %d after %d", r.position, position)
			}
			position, seen[r.ref] = r.position, r.score
		}
		pages++
		if last && len(rows) == 0 {
			return seen, pages
		}
	}
}

// Of equal reports at the same time one makes the result and one event is sent.
func TestTheSameReportAtTheSameTime(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, users, item := school(t, db, 1)
	service := &work.Service{DB: db, Clock: clock.System, Zone: time.UTC}
	completed := time.Now()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range 20 {
				r := session(fmt.Sprint("s", n), users[0], item, 13)
				r.CompletedAt = &completed
				if _, err := service.Result(t.Context(), r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var results, events int
	err := db.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM results), (SELECT count(*) FROM webhook_events)`).Scan(&results, &events)
	if check.NoError(t, err, "%d results, %d events (%v)", results, events, err) &&
		check.Equal(t, "results", results, 20, "%d results, %d events (%v)", results, events, err) {
		check.Equal(t, "events", events, 20, "%d results, %d events (%v)", results, events, err)
	}
}

// BenchmarkWork finalizes 1,000 results a call, with events and deliveries for one URL.
func BenchmarkWork(b *testing.B) {
	db := pgtest.New(b)
	_, users, item := school(b, db, 1000)
	service := &work.Service{DB: db, Clock: clock.System, Zone: time.UTC, PublicURL: "https://registrar.test"}
	records := make([]work.Record, 1000)
	for call := 0; b.Loop(); call++ {
		for i := range records {
			records[i] = session(fmt.Sprintf("s%d-%d", call, i), users[i], item, i%19)
		}
		outcomes, err := service.Work(b.Context(), records)
		check.NoError(check.Now(b), err, "%v %v", err, outcomes[0].Err)
		check.NoError(check.Now(b), outcomes[0].Err, "%v %v", err, outcomes[0].Err)
	}
	b.ReportMetric(float64(b.N*len(records))/b.Elapsed().Seconds(), "results/s")
}
