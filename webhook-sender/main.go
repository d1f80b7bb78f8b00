// Command webhook-sender delivers events: it takes leases from the run queue and makes
// one attempt for each delivery that they hold.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	_ "golang.org/x/crypto/x509roots/fallback" // the roots where an image holds none

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/env"
	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/task"
	"github.com/registrar-dev/registrar/webhook-sender/internal/deliver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 {
		fmt.Print("webhook-sender delivers webhook events. It is configured by its environment:\n\n", env.Usage[config]())
		return
	}
	if err := run(ctx, os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "webhook-sender:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be deferred
	}
}

func run(ctx context.Context, getenv func(string) string, stdout io.Writer) error {
	c, err := env.Parse[config](getenv)
	if err != nil {
		return err
	}
	if getenv("GOGC") == "" {
		debug.SetGCPercent(400) // little is kept and much passes through: memory for time
	}
	log := obs.Logger(stdout, c.LogLevel, "webhook-sender")
	slog.SetDefault(log)
	policy := egress.New(c.Egress)
	if err := policy.Through(c.ProxyURL); err != nil {
		return fmt.Errorf("WEBHOOK_PROXY_URL: %w", err)
	}
	if policy.Loosened() {
		log.Warn("receivers that are not public https addresses are allowed", "networks", c.Egress.AllowNetworks, "http", c.Egress.AllowHTTP)
	}
	box, err := seal.Open(c.Secrets)
	if err != nil {
		return err
	}
	caller, err := deliver.NewCaller(policy, c.CAFile, clock.System)
	if err != nil {
		return err
	}
	defer caller.Close()
	db, err := pg.OpenCurrent(ctx, c.DatabaseURL, c.SchemaWait)
	if err != nil {
		return err
	}
	defer db.Close()
	steady, err := db.Steady(ctx, c.PoolSize)
	if err != nil {
		return err
	}
	defer steady.Close()
	rdb, err := queue.Connect(c.RedisURL)
	if err != nil {
		return err
	}
	defer func() { _ = rdb.Close() }()
	recorder := deliver.StartRecorder(context.WithoutCancel(ctx), steady, log)
	defer recorder.Close()
	reg := obs.NewRegistry()
	obs.PoolMetrics(reg, steady.Pool)
	pg.SchemaMetrics(reg, db)
	handler := &deliver.Handler{DB: steady, Box: box, Caller: caller, Recorder: recorder, Clock: clock.System, Log: log, Metrics: deliver.NewMetrics(reg)}
	private := obs.NewPrivate(reg,
		obs.Check{Name: "postgresql", Probe: steady.Ping},
		obs.Check{Name: "redis", Probe: func(ctx context.Context) error { return rdb.Ping(ctx).Err() }})
	return obs.Run(ctx, private, c.PrivateAddr, func(ctx context.Context) error {
		return queue.Serve(ctx, rdb, queue.Options{Queue: queue.Webhook, Concurrency: c.Concurrency, Log: log, Metrics: queue.NewMetrics(reg),
			Handlers: map[task.Kind]queue.Handler{task.WebhookDeliver: handler.Handle}})
	})
}
