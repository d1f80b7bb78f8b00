package queue

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Asynq's inspector takes no context, and finds a queue only while asynq:queues names it, so
// this file reads a queue's keys itself. A test compares the result with the inspector's.

func key(q Name, suffix string) string { return "asynq:{" + string(q) + "}:" + suffix }

const allQueues = "asynq:queues"

// State is the state of a task.
type State string

// The states that our tasks can have. The worker of an archived one died, or its handler
// ignored its deadline.
const (
	Absent   State = "absent"
	Pending  State = "pending"
	Active   State = "active"
	Archived State = "archived"
)

// TaskState reads the state of a task; Absent when the queue does not have it (any more).
func (c *Client) TaskState(ctx context.Context, q Name, id string) (State, error) {
	states, err := c.TaskStates(ctx, q, []string{id})
	if err != nil {
		return "", err
	}
	return states[0], nil
}

// TaskStates is TaskState for many tasks, in their order and in one round trip.
func (c *Client) TaskStates(ctx context.Context, q Name, ids []string) ([]State, error) {
	pipe := c.rdb.Pipeline()
	answers := make([]*redis.StringCmd, len(ids))
	for i, id := range ids {
		answers[i] = pipe.HGet(ctx, key(q, "t:"+id), "state")
	}
	if _, err := pipe.Exec(ctx); err != nil && !missing(err) {
		return nil, fmt.Errorf("states of %d tasks: %w", len(ids), err)
	}
	states := make([]State, len(ids))
	for i, id := range ids {
		s, err := answers[i].Result()
		switch {
		case missing(err):
			s = string(Absent)
		case err != nil:
			return nil, fmt.Errorf("state of task %s: %w", id, err)
		}
		states[i] = State(s)
	}
	return states, nil
}

// missing says that Redis answered and has no such value. A failed connection may wrap redis.Nil,
// too: a Sentinel answers so that does not know the primary's name.
func missing(err error) bool { return err == redis.Nil } //nolint:errorlint // see above

// Depth is what a queue holds.
type Depth struct {
	Pending  int64
	Active   int64
	Archived int64
	Oldest   time.Duration // how long the oldest pending task has waited
}

// Depths reads each queue's depth in two round trips.
func (c *Client) Depths(ctx context.Context, queues ...Name) (map[Name]Depth, error) {
	return depths(ctx, c.rdb, queues)
}

func depths(ctx context.Context, rdb redis.UniversalClient, queues []Name) (map[Name]Depth, error) {
	type answer struct {
		pending, active, archived *redis.IntCmd
		oldest                    *redis.StringSliceCmd
		since                     *redis.StringCmd
	}
	answers := make([]answer, len(queues))
	pipe := rdb.Pipeline()
	for i, q := range queues {
		answers[i] = answer{
			pending: pipe.LLen(ctx, key(q, "pending")), active: pipe.LLen(ctx, key(q, "active")),
			archived: pipe.ZCard(ctx, key(q, "archived")), oldest: pipe.LRange(ctx, key(q, "pending"), -1, -1),
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("queue depths: %w", err)
	}
	for i, q := range queues {
		if ids := answers[i].oldest.Val(); len(ids) == 1 {
			answers[i].since = pipe.HGet(ctx, key(q, "t:"+ids[0]), "pending_since")
		}
	}
	// The task may have been taken since; it then has no age.
	if _, err := pipe.Exec(ctx); err != nil && !missing(err) {
		return nil, fmt.Errorf("queue ages: %w", err)
	}
	out := make(map[Name]Depth, len(queues))
	for i, q := range queues {
		a := answers[i]
		out[q] = Depth{Pending: a.pending.Val(), Active: a.active.Val(), Archived: a.archived.Val(), Oldest: age(a.since)}
	}
	return out, nil
}

func age(since *redis.StringCmd) time.Duration {
	if since == nil {
		return 0
	}
	ns, err := strconv.ParseInt(since.Val(), 10, 64)
	if err != nil {
		return 0
	}
	return max(0, time.Since(time.Unix(0, ns)))
}
