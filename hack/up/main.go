// Command up runs a whole Registrar on this machine: PostgreSQL, Redis, a mail catcher, a webhook
// receiver and the programs, with a demonstration organization in it. `make up` and `make down`
// call it; with -kube it runs a Kubernetes and the operator beside that, for `make kube-up` and
// `make kube-down`. What it knows and keeps lies in .registrar.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/registrar-dev/registrar/hack/stack"
)

func main() {
	detached := flag.Bool("detach", false, "return once everything is ready and leave it running")
	down := flag.Bool("down", false, "stop what runs")
	kube := flag.Bool("kube", false, "the local Kubernetes with the operator, instead of Registrar itself")
	supervised := flag.Bool("supervised", false, "internal: run as the background half of -detach")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, *kube, *detached, *down, *supervised)
	stop()
	if err != nil {
		if !errors.Is(err, errSaid) {
			fmt.Fprintln(os.Stderr, "\n"+err.Error())
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, kube, detached, down, supervised bool) error {
	root, err := stack.Root()
	if err != nil {
		return err
	}
	s := site{root: root, part: registrarPart}
	if kube {
		s.part = kubePart
	}
	if err := os.MkdirAll(s.path("logs"), 0o755); err != nil {
		return err
	}
	switch {
	case down:
		return s.down(os.Stdout)
	case detached:
		return s.detach(ctx, os.Stdout)
	case supervised:
		return s.supervise(ctx)
	default:
		return s.up(ctx, &progress{to: os.Stdout}, func() {})
	}
}
