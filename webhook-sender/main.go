// Command webhook-sender delivers events: it takes leases from the run queue and makes
// one attempt for each delivery that they hold.
package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"runtime/debug"

	_ "golang.org/x/crypto/x509roots/fallback" // the roots where an image holds none

	"github.com/registrar-dev/registrar/internal/kit/env"
	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/internal/kit/obs/otlp"
)

func main() { os.Exit(obs.Main("webhook-sender", run)) }

func run(ctx context.Context, args []string, getenv func(string) string, stdout io.Writer) error {
	if len(args) > 0 {
		return env.Explain[config](stdout, "webhook-sender delivers webhook events. It is configured by its environment:", args)
	}
	c, err := env.Parse[config](getenv)
	if err != nil {
		return err
	}
	if getenv("GOGC") == "" {
		debug.SetGCPercent(400) // little is kept and much passes through: memory for time
	}
	log := obs.Logger(stdout, c.LogLevel, "webhook-sender")
	slog.SetDefault(log)
	c.Clock.Set(log)
	stopTraces, err := otlp.Start(ctx, "webhook-sender", getenv)
	if err != nil {
		return err
	}
	defer stopTraces()
	return send(ctx, c, log)
}
