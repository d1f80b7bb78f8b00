// Package lead shares work among processes so that each piece of it is done by one at a time.
//
// Who leads is a row with an end, which its holder keeps moving, and a token that grows with each
// change of the holder. It needs no session of PostgreSQL, so it works behind a transaction
// pooler. A holder that dies or is frozen is replaced within 5 seconds; one that shuts down hands
// over at its end. The clock of leases is PostgreSQL's.
//
// A process that was frozen, or whose machine was, may believe for a moment that it still leads.
// Where that matters, its transactions begin with Lease.Fence, and fail.
package lead

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// A Lease is the right to do a piece of work.
type Lease struct {
	Name  string
	Token int64 // greater than that of every earlier holder

	holder string
}

// Held is a gauge of the leases that this process holds, by work. Who serves metrics registers it.
var Held = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "registrar_leases_held",
	Help: "Pieces of the work that this process leads; over all processes, work of one piece has 1."}, []string{"work"})

const (
	// leaseTerm is how long a lease lasts that is not renewed, and pause how often it is. A
	// holder that dies is replaced after their sum at most.
	leaseTerm = 3500 * time.Millisecond
	pause     = time.Second

	// ownTerm is when a holder stops that cannot renew: before anybody takes over.
	ownTerm = 3 * time.Second

	// patience bounds a step, so that a lost connection does not use up the lease.
	patience = 1500 * time.Millisecond
)

// Lost says whether err means that another process leads now; see Fence.
func Lost(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "RL001"
}

// Check is Fence as a statement of its own: the first of a transaction.
func (l Lease) Check(ctx context.Context, tx *pg.Tx) error {
	var b pg.Batch
	Fence(&b, l)
	return b.Send(ctx, tx)
}

// Lead calls run in one process at a time. It returns when ctx ends and run has returned. The
// context of run ends when the lease may be lost; when run returns early it is called again, here
// or in another process, after a pause of up to a second.
func Lead(ctx context.Context, db *pg.DB, name string, run func(context.Context, Lease)) error {
	return Share(ctx, db, name, []string{name}, run)
}

// Share divides a job of many names, which are unique among all jobs, among the processes that
// call it: each does its fair share, and each name is done by one at a time, as with Lead. run is
// called for each name on its own goroutine. The same names must be given everywhere. When
// another process arrives, names are moved to it within a few seconds, and no name moves but for
// a fair share.
func Share(ctx context.Context, db *pg.DB, job string, names []string, run func(context.Context, Lease)) error {
	own, err := db.Apart(ctx, 1) // a pool whose connections are all in use must not cost the lease
	if err != nil {
		return err
	}
	defer own.Close()
	c := &candidate{db: own, job: job, names: names, run: run, holder: holder(),
		held: map[string]*tenure{}, ended: make(chan *tenure, len(names))}
	c.lead(ctx)
	return nil
}

// holder names the process for those who read the table, and is unique.
func holder() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text())
}

// candidate is this process's part in a job. One goroutine uses it.
type candidate struct {
	db     *pg.DB
	job    string
	names  []string
	holder string
	run    func(context.Context, Lease)

	held   map[string]*tenure
	ended  chan *tenure
	failed bool // the last step failed
}

// tenure is one call of run.
type tenure struct {
	Lease
	cancel context.CancelFunc
	limit  *time.Timer // cancels when the lease is not renewed in time
	ending bool        // it was told to end
	lost   bool        // another process leads
}

func (c *candidate) lead(ctx context.Context) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		c.step(ctx)
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				c.leave(context.WithoutCancel(ctx), tick)
				return
			case t := <-c.ended:
				c.end(ctx, t)
			case <-tick.C:
				waiting = false
			}
		}
	}
}

// step renews what is held, and takes or gives away until it is the fair share.
func (c *candidate) step(ctx context.Context) {
	share, err := c.keep(ctx, c.renew)
	if err == nil && share > len(c.held) {
		err = c.takeOver(ctx, share-len(c.held))
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil && !c.failed {
		slog.WarnContext(ctx, "the lead is not renewed; trying again", "job", c.job, "error", err)
	}
	c.failed = err != nil
	if err == nil {
		c.giveAway(ctx, share)
	}
}

// keep renews the leases by a statement of sql.go, and ends the runs of those that were lost.
func (c *candidate) keep(ctx context.Context, renew func(context.Context, []Lease) (kept []string, share int, err error)) (share int, err error) {
	leases := make([]Lease, 0, len(c.held))
	for _, t := range c.held {
		leases = append(leases, t.Lease)
	}
	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	kept, share, err := renew(ctx, leases)
	if err != nil {
		return 0, err
	}
	for name, t := range c.held {
		switch {
		case !slices.Contains(kept, name):
			t.lost = true
			t.stop()
		case !t.ending:
			t.limit.Reset(time.Until(asked.Add(ownTerm)))
		}
	}
	return share, nil
}

func (c *candidate) takeOver(ctx context.Context, n int) error {
	held := slices.AppendSeq([]string{}, maps.Keys(c.held)) // not nil, which is NULL
	asked := time.Now()
	step, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	taken, err := c.take(step, held, n)
	if err != nil {
		return err
	}
	for _, l := range taken {
		c.begin(ctx, l, asked)
	}
	return nil
}

// begin calls run for a lease that was asked for at the given time.
func (c *candidate) begin(ctx context.Context, l Lease, asked time.Time) {
	slog.InfoContext(ctx, "leading", "job", l.Name, "token", l.Token)
	ctx, cancel := context.WithCancel(ctx)
	t := &tenure{Lease: l, cancel: cancel, limit: time.AfterFunc(time.Until(asked.Add(ownTerm)), cancel)}
	c.held[l.Name] = t
	Held.WithLabelValues(c.job).Inc()
	go func() {
		c.run(ctx, l)
		c.ended <- t
	}()
}

// giveAway ends what is more than the share. What has ended is released by end.
func (c *candidate) giveAway(ctx context.Context, share int) {
	staying := slices.DeleteFunc(slices.Collect(maps.Values(c.held)), func(t *tenure) bool { return t.ending })
	for len(staying) > share {
		slog.InfoContext(ctx, "handing over to another process", "job", staying[0].Name)
		staying[0].stop()
		staying = staying[1:]
	}
}

// stop tells run to end.
func (t *tenure) stop() {
	t.ending = true
	t.limit.Stop()
	t.cancel()
}

// end releases the leases of runs that have returned: of t, and of others that have by now.
func (c *candidate) end(ctx context.Context, t *tenure) {
	var over []Lease
	for more := true; more; {
		t.stop()
		delete(c.held, t.Name)
		Held.WithLabelValues(c.job).Dec()
		if t.lost {
			slog.WarnContext(ctx, "another process leads", "job", t.Name)
		} else {
			over = append(over, t.Lease)
		}
		select {
		case t = <-c.ended:
		default:
			more = false
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := c.release(ctx, over); err != nil {
		slog.WarnContext(ctx, "the lead is not given back; it runs out by itself", "job", c.job, "error", err)
	}
}

// leave ends all runs, and keeps each lease until its run has ended.
func (c *candidate) leave(ctx context.Context, tick *time.Ticker) {
	for _, t := range c.held {
		t.stop()
	}
	for {
		if _, err := c.keep(ctx, c.keepOnly); err != nil {
			slog.WarnContext(ctx, "the lead is not renewed while its work ends", "job", c.job, "error", err)
		}
		if len(c.held) == 0 {
			return
		}
		select {
		case t := <-c.ended:
			c.end(ctx, t)
		case <-tick.C:
		}
	}
}
