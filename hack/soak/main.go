// Command soak runs a whole Registrar, two of each program, for hours under mixed load while one
// thing after the other breaks. Then it mends everything, waits until nothing is pending any more,
// and holds PostgreSQL, the lists, the webhooks that were received and the mails that were
// received against a model of its own, to which it tells every accepted call again. On the pages it tries
// what one organization knows of people who are also another's.
//
//	make soak                           an hour
//	make soak ARGS='-for 5m'            a look
//	make soak ARGS='-report docs/soak.md'
//
// Network namespaces, a disk of limited size and slow links need root on Linux; without it those
// faults are left out, and the report says so.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

type options struct {
	lasting time.Duration
	clients int
	pause   time.Duration // of a client between two calls
	seed    uint64
	keep    string
	report  string
}

func main() {
	var o options
	flag.DurationVar(&o.lasting, "for", time.Hour, "how long things break")
	flag.IntVar(&o.clients, "clients", 6, "clients that call at the same time")
	flag.DurationVar(&o.pause, "pause", 250*time.Millisecond, "a client's pause between two calls, on the average")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "chooses calls and faults; what the machine makes of them differs from run to run")
	flag.StringVar(&o.keep, "keep", "", "folder for journals and logs; a temporary one that goes when all is well")
	flag.StringVar(&o.report, "report", "", "file for the report, beside standard output")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := soak(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be deferred
	}
}

// errWrong ends a run that found something.
var errWrong = errors.New("something was lost or wrong; the report says what")

func soak(ctx context.Context, o options) (err error) {
	if o.keep == "" {
		if o.keep, err = os.MkdirTemp("", "soak-"); err != nil {
			return err
		}
	} else if err := os.MkdirAll(o.keep, 0o755); err != nil {
		return err
	}
	if old, err := filepath.Glob(filepath.Join(o.keep, "*.jsonl")); err != nil || len(old) > 0 {
		return errors.Join(err, fmt.Errorf("%s holds the journals of another run", o.keep))
	}
	s, err := newSite(ctx, o.keep)
	if err != nil {
		return errors.Join(err, s.close(ctx))
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	r := &report{began: time.Now(), seed: o.seed, options: o, site: s}
	if err := run(ctx, o, s, r); err != nil {
		return err
	}
	text := r.text()
	fmt.Print(text)
	if o.report != "" {
		if err := os.WriteFile(o.report, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if len(r.findings) > 0 {
		return fmt.Errorf("%w; journals and logs are in %s", errWrong, o.keep)
	}
	return os.RemoveAll(filepath.Join(o.keep, "logs"))
}

// run loads and breaks the site for its time, mends it, and checks what is left behind.
func run(ctx context.Context, o options, s *site, r *report) error {
	l, err := newLoad(ctx, s, o, r)
	if err != nil {
		return err
	}
	breaking, cancel := context.WithTimeout(ctx, o.lasting)
	defer cancel()
	l.start(ctx)
	go r.watch(breaking, l)
	c := &chaos{site: s, report: r, rand: rand.New(rand.NewPCG(o.seed, 1))}
	chaosErr := c.run(ctx, breaking)
	l.stop() // every call in hand is made to its end
	if err := errors.Join(chaosErr, l.journal.close(), ctx.Err()); err != nil {
		return err
	}
	r.broke = time.Since(r.began)
	if err := s.settle(ctx, r); err != nil {
		return err
	}
	l.stopReaders()
	return check(ctx, s, l, r)
}
