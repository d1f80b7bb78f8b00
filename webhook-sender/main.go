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

	"github.com/registrar-dev/registrar/internal/kit/env"
	"github.com/registrar-dev/registrar/internal/kit/obs"
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
	c.Clock.Set(log)
	stopTraces, err := obs.StartTraces(ctx, "webhook-sender", getenv)
	if err != nil {
		return err
	}
	defer stopTraces()
	return send(ctx, c, log)
}
