package relay_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/queue/queuetest"
	"github.com/registrar-dev/registrar/internal/kit/task"
	"github.com/registrar-dev/registrar/worker/internal/relay"
)

var quiet = slog.New(slog.DiscardHandler)

func newOutbox(db *pg.DB, rdb redis.UniversalClient) *relay.Outbox {
	return &relay.Outbox{DB: db, Queue: queue.NewClient(rdb), Clock: clock.System, Log: quiet,
		Kinds: map[task.Kind]time.Duration{task.EmailSend: 0, task.WebhookSkip: 0}}
}

func add(t *testing.T, db *pg.DB, kind task.Kind, subjects ...int64) {
	t.Helper()
	err := db.InTx(t.Context(), func(tx *pg.Tx) error {
		for _, s := range subjects {
			if err := outbox.Add(t.Context(), tx, kind, s, 0, time.Now()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// work is a handler as all are: it holds the claim, does something and finishes.
func work(db *pg.DB, done chan<- int64) queue.Handler {
	return func(ctx context.Context, payload []byte) error {
		ref, err := task.Decode[task.Outbox](payload)
		if err != nil {
			return err
		}
		claimed, err := outbox.Hold(ctx, db, ref, time.Now().Add(time.Minute))
		if err != nil {
			return err
		}
		done <- claimed.Subject
		return outbox.Done(ctx, db, ref)
	}
}

// background runs pieces until the returned function is called or the test ends.
func background(t *testing.T, pieces ...func(context.Context)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, p := range pieces {
		wg.Go(func() { p(ctx) })
	}
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(stop)
	return stop
}

func server(rdb redis.UniversalClient, h queue.Handler) func(context.Context) {
	return func(ctx context.Context) {
		_ = queue.Serve(ctx, rdb, queue.Options{Queue: queue.Email, Concurrency: 4, Log: quiet,
			Handlers: map[task.Kind]queue.Handler{task.EmailSend: h}})
	}
}

func receive(t *testing.T, c <-chan int64) int64 {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatal("nothing was run")
		panic("unreachable")
	}
}

func pendingRows(t *testing.T, db *pg.DB) (rows int) {
	t.Helper()
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM outbox_tasks`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestPendingWorkIsRunOnce(t *testing.T) {
	t.Parallel()
	db, rdb := pgtest.New(t), queuetest.New(t)
	o := newOutbox(db, rdb)
	o.Depth = 3 // smaller than the work
	done := make(chan int64, 100)
	stop := background(t, o.Run, server(rdb, work(db, done)))
	var subjects []int64
	for i := range int64(20) {
		subjects = append(subjects, i)
	}
	add(t, db, task.EmailSend, subjects...)
	seen := map[int64]int{}
	for range subjects {
		seen[receive(t, done)]++
	}
	stop()
	if rows := pendingRows(t, db); check.Equal(check.Now(t), "number of tasks that ran", len(seen), 20, "ran %v and %d more; %d rows left", seen, len(done), rows) &&
		check.Equal(check.Now(t), "number of runs beside those", len(done), 0, "ran %v and %d more; %d rows left", seen, len(done), rows) {
		check.Equal(check.Now(t), "rows", rows, 0, "ran %v and %d more; %d rows left", seen, len(done), rows)
	}
}

func TestABoundedNumberWaitsOnTheQueue(t *testing.T) {
	t.Parallel()
	db, rdb := pgtest.New(t), queuetest.New(t)
	o := newOutbox(db, rdb)
	o.Depth = 5
	add(t, db, task.EmailSend, 1, 2, 3, 4, 5, 6, 7, 8)
	add(t, db, task.WebhookSkip, 1)
	for range 3 {
		if more, err := o.Pump(t.Context()); check.NoError(check.Now(t), err, "more = %v, %v", more, err) {
			check.True(check.Now(t), "more", more, "more = %v, %v", more, err)
		}
	}
	depths, err := o.Queue.Depths(t.Context(), queue.Email, queue.Maintenance)
	check.NoError(check.Now(t), err, "%+v %v", depths, err)
	check.Equal(check.Now(t), "pending mails", depths[queue.Email].Pending, 5, "%+v %v", depths, err)
	check.Equal(check.Now(t), "pending maintenance", depths[queue.Maintenance].Pending, 1, "%+v %v", depths, err)
	lags, err := outbox.Measure(t.Context(), db, time.Now())
	check.NoError(check.Now(t), err, "lag = %+v, %v", lags, err)
	check.Equal(check.Now(t), "due mails", lags[task.EmailSend].Due, 3, "lag = %+v, %v", lags, err)
	if n := testutil.CollectAndCount(o); n != 5 {
		t.Errorf("%d metrics, want the last pass and two for each kind", n)
	}
	if problems, err := testutil.CollectAndLint(o); check.NoError(t, err, "metrics: %v %v", problems, err) {
		check.Equal(t, "number of problems", len(problems), 0, "metrics: %v %v", problems, err)
	}
}

func TestWorkThatRedisLostIsRunOnceAfterTheLease(t *testing.T) {
	t.Parallel()
	db, rdb := pgtest.New(t), queuetest.New(t)
	o := newOutbox(db, rdb)
	o.Lease, o.Poll = 200*time.Millisecond, 20*time.Millisecond
	add(t, db, task.EmailSend, 7)
	if _, err := o.Pump(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := rdb.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	done := make(chan int64, 10)
	stop := background(t, o.Run, server(rdb, work(db, done)))
	if got := receive(t, done); got != 7 {
		t.Fatalf("ran %d", got)
	}
	stop()
	check.Equal(check.Now(t), "number of runs beside those", len(done), 0, "%d more runs, %d rows left", len(done), pendingRows(t, db))
	check.Equal(check.Now(t), "number of rows left", pendingRows(t, db), 0, "%d more runs, %d rows left", len(done), pendingRows(t, db))
}

// Work whose turn on the queue is long in coming was not begun, and so is not begun again:
// who counts claims, as imports do before they are given up, counts workers that died.
func TestWorkThatWaitsForItsTurnKeepsItsClaim(t *testing.T) {
	t.Parallel()
	db, rdb := pgtest.New(t), queuetest.New(t)
	o := newOutbox(db, rdb)
	now := time.Now()
	o.Clock = func() time.Time { return now }
	add(t, db, task.EmailSend, 7, 8)
	state := func() (claims int, waiting int64) {
		t.Helper()
		now = now.Add(21 * time.Second) // a claim's length, and more
		if _, err := o.Pump(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := db.QueryRow(t.Context(), `SELECT max(claims) FROM outbox_tasks`).Scan(&claims); err != nil {
			t.Fatal(err)
		}
		depths, err := o.Queue.Depths(t.Context(), queue.Email)
		if err != nil {
			t.Fatal(err)
		}
		return claims, depths[queue.Email].Pending
	}
	for range 25 {
		if claims, waiting := state(); check.Equal(check.Now(t), "claims", claims, 1, "%d claims, and %d tasks on the queue", claims, waiting) {
			check.Equal(check.Now(t), "waiting", waiting, 2, "%d claims, and %d tasks on the queue", claims, waiting)
		}
	}
	if err := rdb.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	add(t, db, task.EmailSend, 9) // something waits there again
	if claims, waiting := state(); check.Equal(check.Now(t), "claims", claims, 2, "after Redis lost the tasks: %d claims, and %d tasks on the queue", claims, waiting) {
		check.Equal(check.Now(t), "waiting", waiting, 3, "after Redis lost the tasks: %d claims, and %d tasks on the queue", claims, waiting)
	}
	if claims, waiting := state(); check.Equal(check.Now(t), "claims", claims, 2, "while they wait again: %d claims, and %d tasks on the queue", claims, waiting) {
		check.Equal(check.Now(t), "waiting", waiting, 3, "while they wait again: %d claims, and %d tasks on the queue", claims, waiting)
	}
}

func TestWorkWaitsInPostgreSQLWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	db, mini := pgtest.New(t), miniredis.RunT(t)
	rdb, err := queue.Connect("redis://"+mini.Addr(), queue.TLS{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	o := newOutbox(db, rdb)
	o.Poll = 20 * time.Millisecond
	mini.Close()
	add(t, db, task.EmailSend, 7)
	if _, err := o.Pump(t.Context()); err == nil {
		t.Fatal("relayed without Redis")
	}
	var claims int
	if err := db.QueryRow(t.Context(), `SELECT claims FROM outbox_tasks`).Scan(&claims); check.NoError(check.Now(t), err, "claimed %d times without Redis (%v)", claims, err) {
		check.Equal(check.Now(t), "claims", claims, 0, "claimed %d times without Redis (%v)", claims, err)
	}
	done := make(chan int64, 10)
	background(t, o.Run, server(rdb, work(db, done)))
	if err := mini.Restart(); err != nil {
		t.Fatal(err)
	}
	receive(t, done)
}

// refusing lets Redis answer everything but enqueues.
type refusing struct{ redis.Hook }

func (refusing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (refusing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (refusing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" || cmd.Name() == "eval" {
			cmd.SetErr(redis.ErrClosed)
			return redis.ErrClosed
		}
		return next(ctx, cmd)
	}
}

func TestClaimsThatCouldNotBeEnqueuedAreGivenBack(t *testing.T) {
	t.Parallel()
	db, rdb := pgtest.New(t), queuetest.New(t)
	rdb.AddHook(refusing{})
	o := newOutbox(db, rdb)
	add(t, db, task.EmailSend, 7, 8)
	if _, err := o.Pump(t.Context()); err == nil {
		t.Fatal("enqueued all the same")
	}
	if again, err := outbox.Claim(t.Context(), db, task.EmailSend, time.Now(), time.Minute, 10); check.NoError(check.Now(t), err, "due again = %+v, %v", again, err) &&
		check.Equal(check.Now(t), "number of tasks", len(again), 2, "due again = %+v, %v", again, err) {
		check.Equal(check.Now(t), "the first task's claim", again[0].Claim, 2, "due again = %+v, %v", again, err)
	}
}
