package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
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
		INSERT INTO webhook_deliveries (event_id, organization_id, endpoint_id, status, tries, attempts, due_at)
		SELECT event.id, $1, e.id, 'waiting', 3, 3, now() + interval '1 hour'
		FROM event, webhook_endpoints e, generate_series(1, $3::int / 4) WHERE e.organization_id = $1`, s.org, string(resultData), n)
	if err != nil {
		return err
	}
	if _, err := s.db.Exec(ctx, `CHECKPOINT`); err != nil {
		r.printf("  (no checkpoint: %v)", err)
	}
	after, err := s.burden(ctx, r)
	if err != nil {
		return err
	}
	r.printf("  empty backlog: %s", before)
	r.printf("  %d waiting: %s", n, after)
	r.verdict("memory", after.resident <= before.resident*5/4+32<<20 && after.redis <= before.redis*5/4+1<<20, "programs %d → %d MiB, Redis %d → %d KiB",
		before.resident>>20, after.resident>>20, before.redis>>10, after.redis>>10)
	r.verdict("worker's CPU", after.cpu <= before.cpu*3/2+20*time.Millisecond, "%s → %s a second", before.cpu, after.cpu)
	return nil
}

// burden is what a running system costs.
type burden struct {
	resident, redis int64         // bytes: worker and sender; Redis
	cpu             time.Duration // of the worker, a second
	p50, p99        time.Duration // of fresh events, 50 a second
}

func (b burden) String() string {
	return fmt.Sprintf("worker %s CPU a second, programs %d MiB, Redis %d KiB, commit to receipt p50 %s p99 %s", b.cpu.Round(time.Millisecond), b.resident>>20, b.redis>>10, round(b.p50), round(b.p99))
}

func (s *scene) burden(ctx context.Context, r *run) (b burden, err error) {
	s.sink.reset()
	during := r.lasting(10 * time.Second)
	cpu, _, err := process(ctx, s.settings.Ports.WorkerPrivate)
	if err != nil {
		return b, err
	}
	committed, err := s.offer(ctx, 50, during)
	if err != nil {
		return b, err
	}
	if err := s.sink.await(ctx, len(committed)*s.urls); err != nil {
		return b, err
	}
	again, resident, err := process(ctx, s.settings.Ports.WorkerPrivate)
	if err != nil {
		return b, err
	}
	_, sender, err := process(ctx, s.settings.Ports.SenderPrivate)
	if err != nil {
		return b, err
	}
	delays := s.delays(committed)
	b = burden{resident: resident + sender, cpu: time.Duration(float64(again-cpu) / during.Seconds()), p50: percentile(delays, .5), p99: percentile(delays, .99)}
	b.redis, err = redisMemory(ctx, s.settings.RedisURL)
	return b, err
}

// process reads a program's CPU time and resident memory from its metrics.
func process(ctx context.Context, port int) (cpu time.Duration, resident int64, err error) {
	text, err := private(ctx, port, "/metrics")
	if err != nil {
		return 0, 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue
		}
		switch name {
		case "process_cpu_seconds_total":
			cpu = time.Duration(n * float64(time.Second))
		case "process_resident_memory_bytes":
			resident = int64(n)
		}
	}
	return cpu, resident, nil
}
