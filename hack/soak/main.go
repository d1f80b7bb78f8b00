// Command soak runs a whole Registrar, several of each program, for hours under mixed load while one
// thing after the other breaks. Then it mends everything, waits until nothing is pending any more,
// and holds PostgreSQL, the lists, the webhooks that were received and the mails that were
// received against a model of its own, to which it tells every accepted call again. On the pages it tries
// what one organization knows of people who are also another's.
//
//	make soak ARGS='-report docs/soak.md'                                    90 minutes
//	make soak ARGS='-for 4m -organizations 12 -urls 200 -hanging 5'          a look
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

	report    string
	overwrite bool

	servers, workers, senders  int
	patroni, pooler, sentinels bool
	disk                       string // of a server of PostgreSQL
	organizations              int
	urls, hanging              int
	sandboxes                  int
	before                     string // the commit that roll-outs begin from; "": there are none
	only                       string // a part of the names of faults
}

// usual is the page of the repository that a long run writes.
const usual, longEnough = "docs/soak.md", 20 * time.Minute

func main() {
	var o options
	flag.DurationVar(&o.lasting, "for", 90*time.Minute, "how long things break")
	flag.IntVar(&o.clients, "clients", 6, "clients that call at the same time")
	flag.DurationVar(&o.pause, "pause", 300*time.Millisecond, "a client's pause between two calls, on the average")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "chooses calls and faults; what the machine makes of them differs from run to run")
	flag.StringVar(&o.keep, "keep", "", "folder for journals and logs; a temporary one that goes when all is well")
	flag.StringVar(&o.report, "report", "", "Markdown file for the report, beside standard output; its pictures go to a folder of that name")
	flag.BoolVar(&o.overwrite, "overwrite", false, "let a run of less than "+longEnough.String()+" write "+usual)
	flag.IntVar(&o.servers, "api-servers", 2, "api-servers")
	flag.IntVar(&o.workers, "workers", 3, "workers")
	flag.IntVar(&o.senders, "webhook-senders", 2, "webhook-senders")
	flag.BoolVar(&o.patroni, "patroni", true, "a pair of PostgreSQL under Patroni, with etcd and HAProxy; false: one PostgreSQL")
	flag.BoolVar(&o.pooler, "pgbouncer", true, "PgBouncer before PostgreSQL")
	flag.BoolVar(&o.sentinels, "sentinels", true, "Redis with a replica and three Sentinels; false: one Redis")
	flag.StringVar(&o.disk, "disk", "4g", "size of the disk of a server of PostgreSQL, which is memory here")
	flag.IntVar(&o.organizations, "organizations", 300, "organizations whose students come and learn, 4 at least")
	flag.IntVar(&o.urls, "urls", 20_000, "webhook URLs; those beyond what the organizations use belong to others, where nothing happens")
	flag.IntVar(&o.hanging, "hanging", 200, "of them, those that take requests and never answer")
	flag.IntVar(&o.sandboxes, "sandboxes", 50, "sandboxes that live a year an hour")
	flag.StringVar(&o.before, "before", "HEAD~1", "the commit that the programs are rolled out from; \"\": no roll-outs")
	flag.StringVar(&o.only, "only", "", "only faults whose name has this, to look at one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := soak(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be deferred
	}
}

// check refuses what cannot be run.
func (o options) check() error {
	switch {
	case o.organizations < len(schools):
		return fmt.Errorf("-organizations: %d at least", len(schools))
	case o.servers < 1 || o.workers < 1 || o.senders < 1:
		return errors.New("-api-servers, -workers, -webhook-senders: one of each at least")
	case o.hanging > 3*o.organizations:
		return errors.New("-hanging: three for each of the -organizations at most")
	case o.sandboxes > o.organizations:
		return errors.New("-sandboxes: one for each of the -organizations at most")
	case filepath.Clean(o.report) == usual && o.lasting < longEnough && !o.overwrite:
		return fmt.Errorf("-report: a run of less than %s would overwrite %s; -overwrite says that it may", longEnough, usual)
	}
	return nil
}

// errWrong ends a run that found something.
var errWrong = errors.New("something was lost or wrong; the report says what")

func soak(ctx context.Context, o options) (err error) {
	if err := o.check(); err != nil {
		return err
	}
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
	s, err := newSite(ctx, o, o.keep)
	if err != nil {
		return errors.Join(err, s.close(ctx))
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	r := newReport(o, s)
	if err := run(ctx, o, s, r); err != nil {
		return err
	}
	text, err := r.write(o.report)
	if err != nil {
		return err
	}
	fmt.Print(text)
	if r.broken() > 0 {
		return fmt.Errorf("%w; journals and logs are in %s", errWrong, o.keep)
	}
	return os.RemoveAll(filepath.Join(o.keep, "logs"))
}

// run loads and breaks the site for its time, mends it, and checks what is left behind.
func run(ctx context.Context, o options, s *site, r *report) error {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	l, err := newLoad(ctx, s, o, r)
	if err != nil {
		return err
	}
	defer l.lms.server.Close()
	breaking, cancel := context.WithTimeout(ctx, o.lasting)
	defer cancel()
	l.start(ctx)
	go r.watch(breaking)
	c := &chaos{site: s, load: l, report: r, rand: rand.New(rand.NewPCG(o.seed, 1))}
	chaosErr := c.run(ctx, breaking)
	if chaosErr != nil {
		giveUp() // what is broken stays so, and nobody would get an answer
	}
	l.stop() // every call in hand is made to its end
	if err := errors.Join(chaosErr, ctx.Err(), l.journal.close()); err != nil {
		return err
	}
	r.broke = time.Since(r.began)
	if err := s.settle(ctx, r); err != nil {
		return err
	}
	l.stopReaders()
	return check(ctx, s, l, r)
}
