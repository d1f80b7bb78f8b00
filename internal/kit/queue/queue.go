// Package queue is the run queue between the programs: Asynq over Redis, and the only
// importer of either's task machinery.
//
// The queue is disposable. PostgreSQL holds the pending work and says when it is tried again,
// so a task here carries ids only, is run at most once by Asynq, and may vanish with Redis at
// any moment: the relay puts it in again when its lease has run out. Hence Asynq's retries,
// archive and retention are not used.
package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/registrar-dev/registrar/internal/kit/task"
)

// Name is a queue. A task.Kind's part before the dot is its queue's name.
type Name string

// The queues. Asynq's keys of one have its name as hash tag, and so are in one slot of a Cluster.
const (
	Email       Name = "email"
	Webhook     Name = "webhook"
	Plan        Name = "plan"
	Maintenance Name = "maintenance"
	Roster      Name = "roster"
)

var all = []Name{Email, Webhook, Plan, Maintenance, Roster}

// Of is the queue of a kind.
func Of(kind task.Kind) Name {
	name, _, _ := strings.Cut(string(kind), ".")
	return Name(name)
}

// Item is a task to be run.
type Item struct {
	Queue   Name
	Kind    task.Kind
	ID      string // an equal one that is queued or running makes this one superfluous
	Payload []byte
	Timeout time.Duration // the handler's; 0 is 5 minutes
}

const (
	defaultTimeout = 5 * time.Minute
	// grace is what a handler gets after its context has ended to hand its work back.
	// Asynq gives a task up at that moment and leaves the handler running uncounted.
	grace = 30 * time.Second
	// enqueueTimeout bounds one task's way into Redis.
	enqueueTimeout = 3 * time.Second
	// parallel enqueues fill the waits for round trips: several times the rate of one
	// after the other.
	parallel = 16
	// headerEnqueued says when the task was put in, in Unix microseconds.
	headerEnqueued = "enqueued"
)

// Client puts tasks in.
type Client struct {
	rdb   redis.UniversalClient
	asynq *asynq.Client
}

// NewClient uses rdb, which stays the caller's to close.
func NewClient(rdb redis.UniversalClient) *Client {
	return &Client{rdb: rdb, asynq: asynq.NewClientFromRedisClient(rdb)}
}

// Enqueue puts one task in; a task that is there already is a success. While Redis is away it
// fails within 3 s, and at once when the connection is refused.
func (c *Client) Enqueue(ctx context.Context, it Item) error {
	ctx, cancel := context.WithTimeout(ctx, enqueueTimeout)
	defer cancel()
	timeout := cmp.Or(it.Timeout, defaultTimeout) + grace
	t := asynq.NewTaskWithHeaders(string(it.Kind), it.Payload,
		map[string]string{headerEnqueued: strconv.FormatInt(time.Now().UnixMicro(), 10)})
	_, err := c.asynq.EnqueueContext(ctx, t, asynq.Queue(string(it.Queue)), asynq.TaskID(it.ID),
		asynq.MaxRetry(0), asynq.Timeout(timeout.Round(time.Second)))
	if errors.Is(err, asynq.ErrTaskIDConflict) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("enqueue %s: %w", it.Kind, err)
	}
	return nil
}

// EnqueueMany puts tasks in, several at a time. After a failure it does not begin others; any
// of the tasks may or may not be in the queue.
func (c *Client) EnqueueMany(ctx context.Context, items []Item) error {
	if len(items) == 1 {
		return c.Enqueue(ctx, items[0])
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, it := range items {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return c.Enqueue(ctx, it) })
	}
	return group.Wait()
}
