package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/queue/monitor"
	"github.com/registrar-dev/registrar/internal/kit/queue/queuetest"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

func item(id, payload string) queue.Item {
	return queue.Item{Queue: queue.Email, Kind: task.EmailSend, ID: id, Payload: []byte(payload)}
}

func enqueue(t *testing.T, c *queue.Client, it queue.Item) {
	t.Helper()
	if err := c.Enqueue(t.Context(), it); err != nil {
		t.Fatal(err)
	}
}

// serve runs a server and returns what stops it and waits.
func serve(t *testing.T, rdb redis.UniversalClient, o queue.Options) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	if o.Queue == "" {
		o.Queue = queue.Email
	}
	if o.Concurrency == 0 {
		o.Concurrency = 4
	}
	if o.Log == nil {
		o.Log = quiet
	}
	go func() { done <- queue.Serve(ctx, rdb, o) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func handlers(h queue.Handler) map[task.Kind]queue.Handler {
	return map[task.Kind]queue.Handler{task.EmailSend: h}
}

// lines is a log that tells of a line with the text.
type lines struct {
	text string
	seen chan struct{}
}

func (l lines) Write(line []byte) (int, error) {
	if strings.Contains(string(line), l.text) {
		l.seen <- struct{}{}
	}
	return len(line), nil
}

// collect hands each payload to a channel.
func collect(n int) (chan string, map[task.Kind]queue.Handler) {
	got := make(chan string, n)
	return got, handlers(func(_ context.Context, payload []byte) error {
		got <- string(payload)
		return nil
	})
}

func receive[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(30 * time.Second):
		t.Fatal("nothing arrived")
		panic("unreachable")
	}
}

// await polls for what no event tells of.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
	}
}

func TestATaskIsRunOnceHoweverOftenItIsPutIn(t *testing.T) {
	t.Parallel()
	rdb := queuetest.New(t)
	c := queue.NewClient(rdb)
	for range 3 {
		enqueue(t, c, item("a:1", "first"))
	}
	enqueue(t, c, item("a:2", "second"))
	if s, err := c.TaskState(t.Context(), queue.Email, "a:1"); check.NoError(check.Now(t), err, "state = %q, %v", s, err) {
		check.Equal(check.Now(t), "s", s, queue.Pending, "state = %q, %v", s, err)
	}
	got, hs := collect(10)
	stop := serve(t, rdb, queue.Options{Handlers: hs})
	seen := map[string]int{}
	for range 2 {
		seen[receive(t, got)]++
	}
	stop()
	check.Equal(check.Now(t), "runs of the first", seen["first"], 1, "runs = %v and %d more", seen, len(got))
	check.Equal(check.Now(t), "runs of the second", seen["second"], 1, "runs = %v and %d more", seen, len(got))
	check.Equal(check.Now(t), "number of runs beside those", len(got), 0, "runs = %v and %d more", seen, len(got))
	if s, err := c.TaskState(t.Context(), queue.Email, "a:1"); check.NoError(check.Now(t), err, "state after the run = %q, %v", s, err) {
		check.Equal(check.Now(t), "s", s, queue.Absent, "state after the run = %q, %v", s, err)
	}
	// What was run may be put in again under its old name.
	enqueue(t, c, item("a:1", "again"))
	if s, _ := c.TaskState(t.Context(), queue.Email, "a:1"); s != queue.Pending {
		t.Fatalf("state of the second run = %q", s)
	}
}

func TestAFailedTaskIsNeitherRetriedNorArchived(t *testing.T) {
	t.Parallel()
	rdb := queuetest.New(t)
	c, reg := queue.NewClient(rdb), prometheus.NewRegistry()
	for _, p := range []string{"error", "panic", "fine"} {
		enqueue(t, c, item(p, p))
	}
	enqueue(t, c, queue.Item{Queue: queue.Email, Kind: "email.unknown", ID: "unknown", Payload: []byte("{}")})
	var runs atomic.Int64
	stop := serve(t, rdb, queue.Options{Metrics: queue.NewMetrics(reg), Handlers: handlers(
		func(_ context.Context, payload []byte) error {
			runs.Add(1)
			switch string(payload) {
			case "error":
				return errors.New("no")
			case "panic":
				panic("no")
			}
			return nil
		})})
	depth := func() queue.Depth {
		d, err := c.Depths(t.Context(), queue.Email)
		if err != nil {
			t.Fatal(err)
		}
		return d[queue.Email]
	}
	await(t, "an empty queue", func() bool { return depth() == queue.Depth{} })
	stop()
	check.Equal(check.Now(t), "number of runs", runs.Load(), 3, "%d runs, depth %+v", runs.Load(), depth())
	check.Equal(check.Now(t), "depth", depth(), (queue.Depth{}), "%d runs, depth %+v", runs.Load(), depth())
	err := testutil.GatherAndCompare(reg, strings.NewReader(`
		# HELP registrar_queue_tasks_total Tasks run, by queue, kind and outcome (done or error).
		# TYPE registrar_queue_tasks_total counter
		registrar_queue_tasks_total{kind="email.send",outcome="done",queue="email"} 1
		registrar_queue_tasks_total{kind="email.send",outcome="error",queue="email"} 2
		registrar_queue_tasks_total{kind="email.unknown",outcome="error",queue="email"} 1
	`), "registrar_queue_tasks_total")
	if err != nil {
		t.Error(err)
	}
}

func TestStoppingFinishesTheWorkInHand(t *testing.T) {
	t.Parallel()
	rdb := queuetest.New(t)
	c := queue.NewClient(rdb)
	enqueue(t, c, item("slow", "slow"))
	inside, release, finished := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	// Until Asynq says that it waits, it may still take a task, and finish that one, too.
	waits := lines{text: "Waiting for all workers", seen: make(chan struct{}, 1)}
	log := slog.New(slog.NewTextHandler(waits, &slog.HandlerOptions{Level: slog.LevelDebug}))
	go func() {
		ended <- queue.Serve(ctx, rdb, queue.Options{Queue: queue.Email, Concurrency: 1, Log: log, Handlers: handlers(
			func(ctx context.Context, _ []byte) error {
				close(inside)
				<-release
				finished <- ctx.Err()
				return nil
			})})
	}()
	receive(t, inside)
	cancel()
	receive(t, waits.seen)
	enqueue(t, c, item("late", "late"))
	close(release)
	if err := receive(t, finished); err != nil {
		t.Errorf("the handler in hand was cancelled: %v", err)
	}
	if err := receive(t, ended); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]queue.State{"slow": queue.Absent, "late": queue.Pending} {
		if s, err := c.TaskState(t.Context(), queue.Email, id); check.NoError(t, err, "%s is %q, want %q (%v)", id, s, want, err) {
			check.Equal(t, "s", s, want, "%s is %q, want %q (%v)", id, s, want, err)
		}
	}
}

func TestAHandlerThatOutlastsTheShutdownIsCancelledAndWaitedFor(t *testing.T) {
	t.Parallel()
	rdb := queuetest.New(t)
	c := queue.NewClient(rdb)
	enqueue(t, c, item("stuck", "stuck"))
	inside, finished := make(chan struct{}, 1), make(chan error, 1)
	stop := serve(t, rdb, queue.Options{ShutdownTimeout: time.Millisecond, Handlers: handlers(
		func(ctx context.Context, _ []byte) error {
			inside <- struct{}{}
			<-ctx.Done()
			finished <- ctx.Err()
			return ctx.Err()
		})})
	receive(t, inside)
	stop()
	if len(finished) != 1 {
		t.Fatal("Serve returned before its handler")
	}
	// Asynq put it back for another worker.
	if s, err := c.TaskState(t.Context(), queue.Email, "stuck"); check.NoError(check.Now(t), err, "state = %q, %v", s, err) {
		check.Equal(check.Now(t), "s", s, queue.Pending, "state = %q, %v", s, err)
	}
}

func TestTheItemsTimeoutEndsTheHandlersContext(t *testing.T) {
	t.Parallel()
	rdb := queuetest.New(t)
	it := item("timed", "timed")
	it.Timeout = time.Second
	enqueue(t, queue.NewClient(rdb), it)
	result := make(chan error, 1)
	serve(t, rdb, queue.Options{Handlers: handlers(func(ctx context.Context, _ []byte) error {
		<-ctx.Done()
		result <- ctx.Err()
		return nil
	})})
	if err := receive(t, result); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("err = %v", err)
	}
}

func TestKeysAreTheOnesThatAsynqUses(t *testing.T) {
	t.Parallel()
	rdb := queuetest.New(t)
	c, inspector := queue.NewClient(rdb), asynq.NewInspectorFromRedisClient(rdb)
	var items []queue.Item
	for i := range 50 {
		items = append(items, item(fmt.Sprintf("t%d", i), "x"))
	}
	if err := c.EnqueueMany(t.Context(), append(items, items[:10]...)); err != nil {
		t.Fatal(err)
	}
	if err := inspector.ArchiveTask(string(queue.Email), "t3"); err != nil {
		t.Fatal(err)
	}
	info, err := inspector.GetQueueInfo(string(queue.Email))
	if err != nil {
		t.Fatal(err)
	}
	depths, err := c.Depths(t.Context(), queue.Email, queue.Webhook)
	d := depths[queue.Email]
	check.NoError(check.Now(t), err, "depths = %+v, inspector says %+v (%v)", d, info, err)
	check.Equal(check.Now(t), "d.Pending", d.Pending, 49, "depths = %+v, inspector says %+v (%v)", d, info, err)
	check.Equal(check.Now(t), "d.Archived", d.Archived, 1, "depths = %+v, inspector says %+v (%v)", d, info, err)
	check.Equal(check.Now(t), "d.Pending", d.Pending, int64(info.Pending), "depths = %+v, inspector says %+v (%v)", d, info, err)
	check.Equal(check.Now(t), "d.Archived", d.Archived, int64(info.Archived), "depths = %+v, inspector says %+v (%v)", d, info, err)
	if check.True(t, "something waits", d.Oldest > 0, "oldest = %s, inspector said %s before", d.Oldest, info.Latency) {
		check.True(t, "the oldest has waited as long as before at least", d.Oldest >= info.Latency, "oldest = %s, inspector said %s before", d.Oldest, info.Latency)
	}
	if depths[queue.Webhook] != (queue.Depth{}) {
		t.Errorf("an unused queue has %+v", depths[queue.Webhook])
	}
	if s, err := c.TaskState(t.Context(), queue.Email, "t3"); check.NoError(t, err, "state = %q, %v", s, err) {
		check.Equal(t, "s", s, queue.Archived, "state = %q, %v", s, err)
	}
	problems, err := testutil.CollectAndLint(queue.Collector(rdb, queue.Email, queue.Webhook))
	if check.NoError(t, err, "metrics: %v %v", problems, err) {
		check.Equal(t, "number of problems", len(problems), 0, "metrics: %v %v", problems, err)
	}
}

func TestEverythingResumesAfterRedisWasAway(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	rdb, err := queue.Connect("redis://"+mini.Addr(), queue.TLS{})
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	c := queue.NewClient(rdb)
	got, hs := collect(10)
	stop := serve(t, rdb, queue.Options{Handlers: hs})
	enqueue(t, c, item("1", "before"))
	receive(t, got)
	mini.Close()
	if err := c.EnqueueMany(t.Context(), []queue.Item{item("2", "lost"), item("3", "lost")}); err == nil {
		t.Fatal("an enqueue succeeded without Redis")
	}
	if n := testutil.CollectAndCount(queue.Collector(rdb, queue.Email)); n != 1 {
		t.Errorf("%d metrics without Redis, want redis_up alone", n)
	}
	if err := mini.Restart(); err != nil {
		t.Fatal(err)
	}
	mini.FlushAll()
	await(t, "an enqueue that succeeds", func() bool { return c.Enqueue(t.Context(), item("4", "after")) == nil })
	if p := receive(t, got); p != "after" {
		t.Fatalf("ran %q", p)
	}
	await(t, "the queue listed again", func() bool { ok, _ := mini.SIsMember("asynq:queues", "email"); return ok })
	stop()
}

func TestTheMonitorOnlyLooks(t *testing.T) {
	t.Parallel()
	rdb := queuetest.New(t)
	enqueue(t, queue.NewClient(rdb), item("1", "x"))
	h := monitor.Handler("/asynq", rdb)
	defer h.Close()
	for _, c := range []struct {
		method, path, want string
		code               int
	}{
		{"GET", "/asynq", "<!doctype html>", 200},
		{"GET", "/asynq/api/queues", `"queue":"email"`, 200},
		{"DELETE", "/asynq/api/queues/email", "", 405},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), c.method, c.path, nil))
		if check.Equal(t, "w.Code", w.Code, c.code, "%s %s: %d %.200s", c.method, c.path, w.Code, w.Body) {
			check.Contains(t, "the answer", w.Body.String(), c.want, "%s %s: %d %.200s", c.method, c.path, w.Code, w.Body)
		}
	}
}

func BenchmarkEnqueueMany(b *testing.B) {
	rdb := queuetest.New(b)
	c := queue.NewClient(rdb)
	items := make([]queue.Item, 200)
	n := 0
	for b.Loop() {
		for i := range items {
			n++
			items[i] = item(fmt.Sprintf("%d:1", n), `{"task":123456,"claim":1}`)
		}
		if err := c.EnqueueMany(b.Context(), items); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "tasks/s")
}

func BenchmarkServe(b *testing.B) {
	rdb := queuetest.New(b)
	c := queue.NewClient(rdb)
	items := make([]queue.Item, 5000)
	for i := range items {
		items[i] = item(fmt.Sprintf("%d:1", i), `{}`)
	}
	for b.Loop() {
		if err := c.EnqueueMany(b.Context(), items); err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		var ran atomic.Int64
		_ = queue.Serve(ctx, rdb, queue.Options{Queue: queue.Email, Concurrency: 50, Log: quiet,
			Handlers: handlers(func(context.Context, []byte) error {
				if ran.Add(1) == int64(len(items)) {
					cancel()
				}
				return nil
			})})
		cancel()
	}
	b.ReportMetric(float64(len(items)*b.N)/b.Elapsed().Seconds(), "tasks/s")
}
