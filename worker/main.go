// Command worker moves pending work from PostgreSQL to the run queue, and does all of it but
// webhooks: mails, roster imports, test plans and periodic jobs.
package main

import (
	"context"
	"io"
	"log/slog"
	"os"

	_ "golang.org/x/crypto/x509roots/fallback" // the roots where an image holds none

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/env"
	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/internal/kit/obs/otlp"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

func main() { os.Exit(obs.Main("worker", run)) }

// relayConns is enough for the webhook relay, which does one thing after the other.
const relayConns = 3

func run(ctx context.Context, args []string, getenv func(string) string, stdout io.Writer) error {
	if len(args) > 0 {
		return env.Explain[config](stdout, "worker relays pending work and sends mails. It is configured by its environment:", args)
	}
	c, err := env.Parse[config](getenv)
	if err != nil {
		return err
	}
	log := obs.Logger(stdout, c.LogLevel, "worker")
	slog.SetDefault(log)
	c.Clock.Set(log)
	stopTraces, err := otlp.Start(ctx, "worker", getenv)
	if err != nil {
		return err
	}
	defer stopTraces()
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
	rdb, err := queue.Connect(c.RedisURL, c.RedisTLS)
	if err != nil {
		return err
	}
	defer func() { _ = rdb.Close() }()
	db.Wakes = wake.Start(rdb, wake.Installation)
	defer db.Wakes.Close()
	steady, err := db.Steady(ctx, relayConns)
	if err != nil {
		return err
	}
	defer steady.Close()
	w, err := newWorker(c, log, db, steady, now, box, rdb)
	if err != nil {
		return err
	}
	return w.run(ctx)
}
