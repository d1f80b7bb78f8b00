package queue

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// blockingClient is the client of an Asynq server. It waits in Redis for a task where Asynq would poll: a task is
// taken when it is put in, and an idle server asks four times a second.
type blockingClient struct {
	redis.UniversalClient
	queue Name
	stop  <-chan struct{} // closed when the server is to stop
	woken bool            // the last wait ended because a task was pending
}

const (
	// patience is how long one wait for a task lasts, and so what an idle server may take to stop.
	patience = 500 * time.Millisecond
	// idlePoll is the pause between two looks where waiting is not possible.
	idlePoll = 100 * time.Millisecond
)

// EvalSha runs a script. Asynq takes a task by one that answers nil where there is none or the queue is paused.
func (c *blockingClient) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	taken := c.UniversalClient.EvalSha(ctx, sha, keys, args...)
	if len(keys) == 4 && keys[0] == key(c.queue, "pending") && keys[2] == key(c.queue, "active") {
		if missing(taken.Err()) {
			c.wait(ctx, keys[0], keys[1])
		} else {
			c.woken = false
		}
	}
	return taken
}

// wait returns when a task is pending, and after a while.
func (c *blockingClient) wait(ctx context.Context, pending, paused string) {
	select {
	case <-c.stop:
		return
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, patience+time.Second)
	defer cancel()
	// Another server may have taken that task. It is still pending if the queue is paused.
	if c.woken && c.Exists(ctx, paused).Val() > 0 {
		_ = clock.Pause(ctx, idlePoll)
	}
	// Moved from the end of the list to its end, a task stays where it is.
	err := c.Do(ctx, "BLMOVE", pending, pending, "RIGHT", "RIGHT", patience.Seconds()).Err()
	c.woken = err == nil
	if err != nil && !missing(err) {
		_ = clock.Pause(ctx, idlePoll)
	}
}
