package queue

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// bell is the client of an Asynq server that waits for a task where Asynq would look again and again:
// a task is taken when it is put in, and an idle server asks four times a second.
type bell struct {
	redis.UniversalClient
	queue Name
	stop  <-chan struct{} // closed when the server is to stop
	rung  bool            // the last wait ended with a task
}

const (
	// patience is how long one wait for a task lasts, and so what an idle server may take to stop.
	patience = 500 * time.Millisecond
	// idlePoll is the pause between two looks where waiting is not possible.
	idlePoll = 100 * time.Millisecond
)

// EvalSha runs a script. Asynq takes a task by one that answers nil where there is none or the queue is paused.
func (b *bell) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	taken := b.UniversalClient.EvalSha(ctx, sha, keys, args...)
	if len(keys) == 4 && keys[0] == key(b.queue, "pending") && keys[2] == key(b.queue, "active") {
		if missing(taken.Err()) {
			b.wait(ctx, keys[0], keys[1])
		} else {
			b.rung = false
		}
	}
	return taken
}

// wait returns when a task is pending, and after a while.
func (b *bell) wait(ctx context.Context, pending, paused string) {
	select {
	case <-b.stop:
		return
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, patience+time.Second)
	defer cancel()
	// What rang may be gone, to another server; if the queue is paused it stays.
	if b.rung && b.Exists(ctx, paused).Val() > 0 {
		_ = clock.Pause(ctx, idlePoll) // Asynq asks again
	}
	// Moved from the end of the list to its end, a task stays where it is.
	err := b.Do(ctx, "BLMOVE", pending, pending, "RIGHT", "RIGHT", patience.Seconds()).Err()
	b.rung = err == nil
	if err != nil && !errors.Is(err, redis.Nil) {
		_ = clock.Pause(ctx, idlePoll)
	}
}
