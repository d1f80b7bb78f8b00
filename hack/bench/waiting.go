package main

import (
	"context"
	"fmt"
	"time"

	"github.com/registrar-dev/registrar/hack/internal/chart"
)

// waiting compares a system whose backlog is empty with one in which a million deliveries wait for
// their retry: what the relay costs, what the programs and Redis hold in memory, and how long a
// fresh event takes.
func waiting(ctx context.Context, r *run, s *scene) error {
	before, err := s.burden(ctx, r)
	if err != nil {
		return err
	}
	n := r.size(1_000_000)
	_, err = s.db.Exec(ctx, `
		WITH event AS (
			INSERT INTO webhook_events (id, organization_id, type, created_at, data) VALUES (uuid7(), $1, 'result.final', now(), $2::json) RETURNING id
		)
		INSERT INTO webhook_queue (id, event_id, organization_id, endpoint_id, tries, entries, due_at)
		SELECT uuid7(), event.id, $1, e.id, 3, 3, now() + interval '1 hour'
		FROM event, webhook_endpoints e, generate_series(1, $3::int / 4) WHERE e.organization_id = $1`, s.org, string(resultData), n)
	if err != nil {
		return err
	}
	if err := s.superuser(ctx, "registrar", `CHECKPOINT`); err != nil {
		return err
	}
	after, err := s.burden(ctx, r)
	if err != nil {
		return err
	}
	full := fmt.Sprintf("%d waiting", n)
	r.printf("  empty backlog: %s", before)
	r.printf("  %s: %s", full, after)
	r.step("commit to receipt, empty backlog", before.delays, 0)
	r.step("commit to receipt, "+full, after.delays, 0)
	r.draw(chart.Rows{Title: "Memory of the programs and of Redis, over the backlog", Unit: "MiB", Rows: []chart.Row{before.memory("empty backlog"), after.memory(full)}})
	r.draw(chart.Rows{Title: "CPU of the worker, which holds the relay", Unit: "ms a second", Rows: []chart.Row{
		bar("empty backlog", milliseconds(before.cpu), 0, chart.Blue), bar(full, milliseconds(after.cpu), 0, chart.Blue)}})
	r.verdict("memory", after.resident <= before.resident*5/4+32<<20 && after.redis <= before.redis*5/4+1<<20, "does not grow: at most 5/4, and 32 MiB of programs, 1 MiB of Redis",
		"programs %d → %d MiB, Redis %d → %d KiB", before.resident>>20, after.resident>>20, before.redis>>10, after.redis>>10)
	r.verdict("worker's CPU", after.cpu <= before.cpu*3/2+20*time.Millisecond, "flat: at most 3/2, and 20 ms", "%s → %s a second", round(before.cpu), round(after.cpu))
	return nil
}

// burden is what a running system costs.
type burden struct {
	resident, redis int64         // bytes: worker and sender; Redis
	cpu             time.Duration // of the worker, a second
	delays          times         // of fresh events, 50 a second
}

// memory is the chart's row.
func (b burden) memory(name string) chart.Row {
	return chart.Row{Name: name, Parts: []chart.Part{{Name: "worker and webhook-sender", Color: chart.Blue, Value: float64(b.resident) / (1 << 20)},
		{Name: "Redis", Color: chart.Amber, Value: float64(b.redis) / (1 << 20)}}}
}

func (b burden) String() string {
	return fmt.Sprintf("worker %s CPU a second, programs %d MiB, Redis %d KiB", b.cpu.Round(time.Millisecond), b.resident>>20, b.redis>>10)
}

func (s *scene) burden(ctx context.Context, r *run) (b burden, err error) {
	s.sink.reset()
	during := r.lasting(10 * time.Second)
	worker, sender := s.worker.Identity().PID, s.sender.Identity().PID
	cpu := procTime(worker)
	committed, err := s.offer(ctx, 50, during)
	if err != nil {
		return b, err
	}
	if err := s.sink.await(ctx, len(committed)*s.urls); err != nil {
		return b, err
	}
	used := procTime(worker) - cpu
	delays, err := s.delays(ctx, committed)
	if err != nil {
		return b, err
	}
	b = burden{resident: residentMemory(worker) + residentMemory(sender), cpu: time.Duration(float64(used) / during.Seconds()), delays: delays}
	b.redis, err = redisMemory(ctx, s.settings.RedisURL)
	return b, err
}
