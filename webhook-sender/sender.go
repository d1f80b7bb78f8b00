package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/flow/simulate"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/task"
	"github.com/registrar-dev/registrar/internal/kit/wake"
	"github.com/registrar-dev/registrar/webhook-sender/internal/advantage"
	"github.com/registrar-dev/registrar/webhook-sender/internal/deliver"
	"github.com/registrar-dev/registrar/webhook-sender/internal/grade"
	"github.com/registrar-dev/registrar/webhook-sender/internal/names"
)

// newCaller is the outbound client that the configuration asks for.
func newCaller(c config, now clock.Clock, log *slog.Logger) (*deliver.Dispatcher, *egress.Policy, error) {
	policy := egress.New(c.Egress)
	if err := policy.Through(c.ProxyURL); err != nil {
		return nil, nil, fmt.Errorf("WEBHOOK_PROXY_URL: %w", err)
	}
	if policy.Loosened() {
		log.Warn("receivers that are not public https addresses are allowed", "networks", c.Egress.AllowNetworks, "http", c.Egress.AllowHTTP)
	}
	return deliver.NewDispatcher(policy, now), policy, nil
}

// send takes leases from the run queue and attempts them until ctx ends.
func send(ctx context.Context, c config, log *slog.Logger) error {
	box, err := seal.Open(c.Secrets)
	if err != nil {
		return err
	}
	db, err := pg.OpenCurrent(ctx, c.DatabaseURL, c.SchemaWait)
	if err != nil {
		return err
	}
	defer db.Close()
	now, err := pg.StartClock(ctx, db, clock.System, log)
	if err != nil {
		return err
	}
	dispatcher, policy, err := newCaller(c, now.Now, log)
	if err != nil {
		return err
	}
	defer dispatcher.Close()
	rdb, err := queue.Connect(c.RedisURL, c.RedisTLS)
	if err != nil {
		return err
	}
	defer func() { _ = rdb.Close() }()
	db.Wakes = wake.Start(rdb, wake.Installation)
	defer db.Wakes.Close()
	steady, err := db.Steady(ctx, c.PoolSize)
	if err != nil {
		return err
	}
	defer steady.Close()
	recorder := deliver.StartRecorder(context.WithoutCancel(ctx), steady, log)
	defer recorder.Close()
	reg := obs.NewRegistry()
	obs.PoolMetrics(reg, steady.Pool)
	pg.SchemaMetrics(reg, db)
	now.Metrics(reg)
	db.Wakes.Metrics(reg)
	handler := &deliver.Handler{DB: steady, Loads: deliver.NewLoads(steady), Box: box, Dispatcher: dispatcher, Recorder: recorder, Clock: now.Now, Metrics: deliver.NewMetrics(reg)}
	handlers := map[task.Kind]queue.Handler{task.WebhookDeliver: handler.Handle}
	sandboxes, err := simulate.New(c.SandboxURL, db, now.Now, log)
	if err != nil {
		return err
	}
	if sandboxes != nil {
		opened := &simulate.Opened{Service: sandboxes}
		defer opened.Close()
		handlers[task.WebhookSandbox] = (&deliver.Sandboxes{Opened: opened, Box: box, Dispatcher: dispatcher}).Handle
	}
	probe := pg.NewProbe(db)
	defer probe.Close(ctx)
	private := obs.NewPrivate(reg,
		obs.Check{Name: "postgresql", Probe: probe.Ping},
		obs.Check{Name: "redis", Probe: func(ctx context.Context) error { return queue.Ping(ctx, rdb) }})
	private.Profiles(c.Profiles)
	lmses := advantage.New(policy, lms.Keys{DB: steady, Box: box}, now.Now)
	grades, rosters := grade.New(steady, lmses, now.Now, log), names.New(steady, lmses, now.Now, log)
	reg.MustRegister(&grade.Backlog{DB: steady, Clock: now.Now, Log: log})
	return obs.Run(ctx, private, c.PrivateAddr, func(ctx context.Context) error { grades.Run(ctx); return nil }, func(ctx context.Context) error { rosters.Run(ctx); return nil }, func(ctx context.Context) error {
		return queue.Serve(ctx, rdb, queue.Options{Queue: queue.Webhook, Concurrency: c.Concurrency, Log: log, Metrics: queue.NewMetrics(reg),
			Handlers: handlers})
	})
}
