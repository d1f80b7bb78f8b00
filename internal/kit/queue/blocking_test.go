package queue_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/queue/queuetest"
)

// waiting is how many servers wait in Redis for a task.
func waiting(t *testing.T, rdb redis.UniversalClient) (n int) {
	t.Helper()
	own := rdb.(*redis.Client).Options().DB
	clients, err := rdb.ClientList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for client := range strings.Lines(clients) {
		if strings.Contains(client, " cmd=blmove ") && strings.Contains(client, " flags=b ") && strings.Contains(client, " db="+strconv.Itoa(own)+" ") {
			n++
		}
	}
	return n
}

func TestIdleServersWaitInRedisForATask(t *testing.T) {
	t.Parallel()
	rdb := queuetest.New(t)
	c := queue.NewClient(rdb)
	got, hs := collect(10)
	const servers = 3
	for range servers {
		serve(t, rdb, queue.Options{Handlers: hs})
	}
	for _, id := range []string{"1", "2", "3"} {
		await(t, "servers that all wait", func() bool { return waiting(t, rdb) == servers })
		enqueue(t, c, item(id, id))
		if ran := receive(t, got); ran != id {
			t.Fatalf("ran %q, want %q", ran, id)
		}
	}
	await(t, "servers that wait again", func() bool { return waiting(t, rdb) == servers })
	check.Equal(t, "number of further runs", len(got), 0, "each task is for one server")
}

// counter counts a client's commands by name.
type counter struct {
	mu sync.Mutex
	of map[string]int
}

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.mu.Lock()
		c.of[cmd.Name()]++
		c.mu.Unlock()
		return next(ctx, cmd)
	}
}

func (c *counter) number(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[name]
}

func TestAPausedQueueIsAskedAboutAndGoesOn(t *testing.T) {
	t.Parallel()
	rdb := queuetest.New(t)
	commands := &counter{of: map[string]int{}}
	rdb.AddHook(commands)
	c := queue.NewClient(rdb)
	got, hs := collect(10)
	inspector := asynq.NewInspectorFromRedisClient(rdb)
	serve(t, rdb, queue.Options{Handlers: hs, Concurrency: 1})
	await(t, "a server that waits", func() bool { return waiting(t, rdb) == 1 })
	if err := inspector.PauseQueue(string(queue.Email)); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"1", "2", "3"} {
		enqueue(t, c, item(id, id))
	}
	asked, looked := commands.number("exists"), commands.number("blmove")
	await(t, "several looks at a paused queue", func() bool { return commands.number("blmove") >= looked+4 })
	check.True(t, "each look but the first comes after a question", commands.number("exists")-asked >= 3, "%v", commands.of)
	check.Equal(t, "number of runs while paused", len(got), 0, "the queue is paused")
	if err := inspector.UnpauseQueue(string(queue.Email)); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"1", "2", "3"} {
		if ran := receive(t, got); ran != id {
			t.Errorf("ran %q, want %q", ran, id)
		}
	}
}
