// Command bench measures a whole Registrar on one machine: PostgreSQL with fsync, Redis, all
// programs and the receivers. Each case prints what it reached beside what it must reach and,
// where there is one, beside a bare limit that was measured in the same run.
//
//	go run ./hack/bench                      all cases
//	go run ./hack/bench webhook-throughput   some
//	go run ./hack/bench -scale 0.1           a tenth of the size, for a look
//	go run ./hack/bench -report docs/benchmarks.md
//
// The case "reading" needs minutes to make its ten million results. A folder keeps them, so that
// they are made once and measured often, also by hand:
//
//	go run ./hack/bench -estate /var/tmp/estate reading   makes what is not there; then measures
//	go run ./hack/bench -estate /var/tmp/estate -serve    serves it until Ctrl-C: prints the address and
//	                                                      an API key of the largest organization, and the
//	                                                      console's address with its owner's sign-in
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// benchCase is one thing that is measured. Files register theirs in cases.
type benchCase struct {
	name, about string
	run         func(ctx context.Context, r *run) error
}

// cases are run in this order.
var cases = slices.Concat(webhookCases, provisionCases, rosterCases, readingCases, planCases, consoleCases)

// run is what a case is given.
type run struct {
	out   io.Writer
	scale float64 // of the case's size; 1 is the full one
	keep  string  // a folder for logs and profiles; "" for none

	estate string // a folder that keeps the estate of "reading"; "" for none

	statements bool // show what each statement cost

	figures []figure // of the case that runs
}

// size scales a number of things.
func (r *run) size(n int) int { return max(1, int(float64(n)*r.scale)) }

// lasting scales a duration.
func (r *run) lasting(d time.Duration) time.Duration {
	return max(2*time.Second, time.Duration(float64(d)*r.scale))
}

func (r *run) printf(format string, args ...any) { fmt.Fprintf(r.out, format+"\n", args...) }

// verdict prints a figure beside its bound.
func (r *run) verdict(what string, ok bool, format string, args ...any) {
	word := "reached"
	if !ok {
		word = "MISSED"
	}
	f := figure{what: what, text: fmt.Sprintf(format, args...), reached: ok}
	r.figures = append(r.figures, f)
	r.printf("  %-34s %-8s %s", what, word, f.text)
}

func main() {
	scale := flag.Float64("scale", 1, "size of the cases; 0.1 is a tenth")
	keep := flag.String("keep", "", "folder for logs and CPU profiles")
	statements := flag.Bool("statements", false, "show what each SQL statement cost, and log the plans of slow ones (with -keep)")
	estate := flag.String("estate", "", "folder that keeps the data of reading: made when it is not there, else measured as it is")
	serve := flag.Bool("serve", false, "serve the estate until Ctrl-C, for measurements by hand, and measure nothing")
	reportTo := flag.String("report", "", "file for a report in Markdown")
	list := flag.Bool("list", false, "list the cases")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *list {
		for _, c := range cases {
			fmt.Printf("%-24s %s\n", c.name, c.about)
		}
		return
	}
	r := &run{out: os.Stdout, scale: *scale, keep: *keep, estate: *estate, statements: *statements}
	do := func() error { return reported(ctx, r, flag.Args(), *reportTo) }
	if *serve {
		do = func() error { return serveEstate(ctx, r) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be deferred
	}
}

// reported runs the cases, says how many figures were missed, and writes the report to a file.
func reported(ctx context.Context, r *run, names []string, file string) error {
	p, err := runAll(ctx, r, names)
	if p == nil {
		return err
	}
	r.printf("%d figures missed in %s", p.missed(), time.Since(p.began).Round(time.Second))
	if file != "" {
		err = errors.Join(err, os.WriteFile(file, p.markdown(context.WithoutCancel(ctx), r.scale), 0o644))
	}
	return err
}

// runAll runs the cases whose names begin with one of names, or all. A case that fails does not
// keep the others from running.
func runAll(ctx context.Context, r *run, names []string) (*report, error) {
	for _, name := range names {
		if !slices.ContainsFunc(cases, func(c benchCase) bool { return strings.HasPrefix(c.name, name) }) {
			return nil, fmt.Errorf("there is no case %q; -list shows them", name)
		}
	}
	p := &report{began: time.Now()}
	var errs []error
	for _, c := range cases {
		chosen := len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(c.name, name) })
		if !chosen || ctx.Err() != nil {
			continue
		}
		o := r.one(ctx, c)
		p.cases = append(p.cases, o)
		if o.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.name, o.err))
		}
	}
	return p, errors.Join(append(errs, ctx.Err())...)
}

// one runs a case and keeps what it says.
func (r *run) one(ctx context.Context, c benchCase) outcome {
	r.printf("%s: %s", c.name, c.about)
	var said bytes.Buffer
	began, own := time.Now(), *r
	own.out, own.figures = io.MultiWriter(r.out, &said), nil
	err := c.run(ctx, &own)
	if err != nil {
		r.printf("  FAILED: %v", err)
	}
	return outcome{name: c.name, about: c.about, took: time.Since(began), figures: own.figures, said: said.String(), err: err}
}
