package queue

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/registrar-dev/registrar/internal/kit/task"
)

// Handler runs one task. Its context ends at the item's timeout, or when a stopping server
// has waited long enough. An error is only logged and counted: the row that the task is about
// says what happens next.
type Handler func(ctx context.Context, payload []byte) error

// Options configure Serve.
type Options struct {
	Queue           Name
	Concurrency     int // handlers at a time; past about 50 use a second server
	Handlers        map[task.Kind]Handler
	ShutdownTimeout time.Duration // for the handlers in hand when ctx ends; 0 is 25 s
	Log             *slog.Logger
	Metrics         *Metrics // nil: none
}

// Serve runs the tasks of one queue until ctx ends; then it waits for the running handlers.
// While Redis is away it waits for Redis to come back.
func Serve(ctx context.Context, rdb redis.UniversalClient, o Options) error {
	// Running handlers outlive ctx; base ends when the server stops waiting for them.
	base, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	s := &server{options: o}
	srv := asynq.NewServerFromRedisClient(&blockingClient{UniversalClient: rdb, queue: o.Queue, stop: ctx.Done()}, asynq.Config{
		Concurrency:       o.Concurrency,
		Queues:            map[string]int{string(o.Queue): 1},
		TaskCheckInterval: time.Microsecond, // blockingClient has waited
		BaseContext:       func() context.Context { return base },
		ShutdownTimeout:   cmp.Or(o.ShutdownTimeout, 25*time.Second),
		Logger:            asynqLog{o.Log.With("queue", string(o.Queue))},
		LogLevel:          asynq.InfoLevel,
	})
	if err := srv.Start(asynq.HandlerFunc(s.process)); err != nil {
		return fmt.Errorf("queue %s: %w", o.Queue, err)
	}
	announce(ctx, rdb, o.Queue)
	srv.Shutdown()
	abandon()
	s.running.Wait()
	return nil
}

// announce keeps the queue listed until ctx ends: after FLUSHALL Asynq would not list it
// again, and its page would show nothing.
func announce(ctx context.Context, rdb redis.UniversalClient, q Name) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		_ = rdb.SAdd(ctx, allQueues, string(q)).Err() // comes round again
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

type server struct {
	options Options
	running sync.WaitGroup
}

// process always succeeds for Asynq, so that it neither retries nor archives.
func (s *server) process(ctx context.Context, t *asynq.Task) error {
	s.running.Add(1)
	defer s.running.Done()
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-grace))
		defer cancel()
	}
	kind, began, enqueued := task.Kind(t.Type()), time.Now(), enqueuedAt(t)
	err := s.run(context.WithValue(ctx, enqueuedKey{}, enqueued), kind, t.Payload())
	s.options.Metrics.observe(s.options.Queue, kind, enqueued, began, err)
	if err != nil {
		s.options.Log.ErrorContext(ctx, "task failed", "kind", string(kind), "error", err,
			"payload", string(t.Payload()), "duration", time.Since(began).String())
	}
	return nil
}

func (s *server) run(ctx context.Context, kind task.Kind, payload []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	handle, ok := s.options.Handlers[kind]
	if !ok {
		return fmt.Errorf("this program version does not know %q", kind)
	}
	return handle(ctx, payload)
}

type enqueuedKey struct{}

// EnqueuedAt is when the task of a handler's context was enqueued; zero when that is unknown.
func EnqueuedAt(ctx context.Context) time.Time {
	at, _ := ctx.Value(enqueuedKey{}).(time.Time)
	return at
}

// enqueuedAt is zero for a task that does not say.
func enqueuedAt(t *asynq.Task) time.Time {
	us, err := strconv.ParseInt(t.Headers()[headerEnqueued], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMicro(us)
}

// asynqLog writes Asynq's log lines into the program's log; those about starting and stopping
// at level debug.
type asynqLog struct{ log *slog.Logger }

func (l asynqLog) Debug(args ...any) { l.log.Debug("asynq: " + fmt.Sprint(args...)) }
func (l asynqLog) Info(args ...any)  { l.log.Debug("asynq: " + fmt.Sprint(args...)) }
func (l asynqLog) Warn(args ...any)  { l.log.Warn("asynq: " + fmt.Sprint(args...)) }
func (l asynqLog) Error(args ...any) { l.log.Error("asynq: " + fmt.Sprint(args...)) }
func (l asynqLog) Fatal(args ...any) { l.log.Error("asynq: " + fmt.Sprint(args...)) }
