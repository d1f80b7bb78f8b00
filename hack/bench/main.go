// Command bench measures a whole Registrar on one machine: PostgreSQL with fsync, Redis, all
// programs and the receivers. Each case prints what it reached beside what it must reach and,
// where there is one, beside a bare limit that was measured in the same run.
//
//	make bench                                              all cases
//	make bench ARGS=webhook-throughput                      some
//	make bench ARGS='-scale 0.1'                            a tenth of the size, for a look
//	make bench ARGS='-keep /tmp/bench'                      keeps each case's logs, chart and CPU profiles
//	make bench ARGS='-report docs/benchmarks.md'
//
// The report has a chart of each case in the folder docs/benchmarks, and says which functions
// cost most. The cases "reading" and "console" need minutes to make their ten million results.
// A folder keeps them, so that they are made once and measured often:
//
//	make bench ARGS='-estate /var/tmp/estate reading'       makes what is not there; then measures
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

	"github.com/registrar-dev/registrar/hack/stack"
)

// benchCase is one thing that is measured. Files register theirs in cases.
type benchCase struct {
	name, about string
	run         func(ctx context.Context, r *run) error
}

// Cases are run in this order.
var cases = slices.Concat(webhookCases, crowdCases, provisionCases, singlyCases, rosterCases, readingCases, standbyCases, packedCases, planCases, calendarCases, consoleCases, attackCases, operatorCases)

// run is what a case is given.
type run struct {
	out   io.Writer
	scale float64 // of the case's size; 1 is the full one
	keep  string  // a folder for logs, charts and profiles, a case its own; "" for none

	estate string // a folder that keeps the estate of "reading" and "console"

	statements bool // show what each statement cost

	found *findings // of the case that runs
}

// size scales a number of things.
func (r *run) size(n int) int { return max(1, int(float64(n)*r.scale)) }

// lasting scales a duration.
func (r *run) lasting(d time.Duration) time.Duration {
	return max(2*time.Second, time.Duration(float64(d)*r.scale))
}

func (r *run) printf(format string, args ...any) { fmt.Fprintf(r.out, format+"\n", args...) }

func main() {
	scale := flag.Float64("scale", 1, "size of the cases; 0.1 is a tenth")
	keep := flag.String("keep", "", "folder for each case's logs, chart and CPU profiles")
	statements := flag.Bool("statements", false, "show what each SQL statement cost, and log the plans of slow ones (with -keep)")
	estate := flag.String("estate", "", "folder that keeps the data of reading and console: made when it is not there, else measured as it is")
	reportTo := flag.String("report", "", "file for a report in Markdown; its charts come into a folder beside it")
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
	r := &run{out: os.Stdout, scale: *scale, keep: *keep, estate: *estate, statements: *statements, found: &findings{}}
	if err := r.withFolders(ctx, *reportTo != "", func() error { return reported(ctx, r, flag.Args(), *reportTo) }); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be deferred
	}
}

// withFolders lends the run the folders that it needs and was not given: one for the estate, so
// that it is made once, and one for the profiles of a report.
func (r *run) withFolders(ctx context.Context, profiles bool, do func() error) (err error) {
	user, err := stack.ServiceUser()
	if err != nil {
		return err
	}
	for _, folder := range []struct {
		name   *string
		needed bool
	}{{&r.estate, true}, {&r.keep, profiles}} {
		if *folder.name != "" || !folder.needed {
			continue
		}
		if *folder.name, err = stack.TempDir(ctx, user); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(*folder.name)) }()
	}
	return do()
}

// reported runs the cases, says how many figures were missed, and writes the report to a file.
func reported(ctx context.Context, r *run, names []string, file string) error {
	p, err := runAll(ctx, r, names)
	if p == nil {
		return err
	}
	missed, all := p.missed()
	r.printf("%d of %d figures missed; all took %s", missed, all, p.Took.Round(time.Second))
	if file != "" {
		err = errors.Join(err, p.write(context.WithoutCancel(ctx), file))
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
	p := &report{Began: time.Now(), Scale: r.scale}
	var errs []error
	for _, c := range cases {
		chosen := len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(c.name, name) })
		if !chosen || ctx.Err() != nil {
			continue
		}
		o := r.one(ctx, c)
		p.Cases = append(p.Cases, o)
		if o.Err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.name, o.Err))
		}
	}
	p.Took = time.Since(p.Began)
	return p, errors.Join(append(errs, ctx.Err())...)
}

// caseLimit ends a case that hangs, so that the others still run.
const caseLimit = 45 * time.Minute

// one runs a case and keeps what it measures and says.
func (r *run) one(ctx context.Context, c benchCase) outcome {
	r.printf("%s: %s", c.name, c.about)
	ctx, cancel := context.WithTimeout(ctx, caseLimit)
	defer cancel()
	var said bytes.Buffer
	began, own := time.Now(), *r
	own.out, own.found = io.MultiWriter(r.out, &said), &findings{}
	var err error
	if own.keep, err = r.folder(c.name); err == nil {
		err = c.run(ctx, &own)
	}
	o := outcome{findings: *own.found, Name: c.name, About: c.about, Took: time.Since(began), Said: said.String()}
	if own.keep != "" {
		var later error
		o.Costs, later = costs(own.keep, mostCosts)
		_, drawn := o.writeChart(own.keep)
		err = errors.Join(err, later, drawn)
	}
	if o.Err = err; err != nil {
		r.printf("  FAILED: %v", err)
	}
	r.printf("  %s took %s", c.name, o.Took.Round(time.Second))
	return o
}
