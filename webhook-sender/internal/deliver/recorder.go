package deliver

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// groupLimit bounds the outcomes of one transaction.
const groupLimit = 512

// recordLimit is how long a group is retried while PostgreSQL is away. By the end of it the
// leases have run out, and the deliveries are attempted again.
const recordLimit = time.Minute

// A group of fewer than smallGroup outcomes waits gatherFor for others: an event's deliveries to several
// URLs end within milliseconds, and would each take a commit.
const (
	smallGroup = 16
	gatherFor  = 3 * time.Millisecond
)

// Recorder commits outcomes in groups. While one commit is under way, the next group gathers.
type Recorder struct {
	db   *pg.DB
	log  *slog.Logger
	in   chan entry
	done chan struct{}
}

type entry struct {
	outcomes []webhook.Outcome
	settled  chan error
}

// StartRecorder starts committing, until Close. ctx must not end before, because every attempt
// has to be recorded.
func StartRecorder(ctx context.Context, db *pg.DB, log *slog.Logger) *Recorder {
	r := &Recorder{db: db, log: log, in: make(chan entry, groupLimit), done: make(chan struct{})}
	go r.run(ctx)
	return r
}

// Close waits until everything is settled. Add must not be called afterwards.
func (r *Recorder) Close() {
	close(r.in)
	<-r.done
}

// Add hands outcomes over, to be committed after those that came before. wait returns when they are, or
// cannot be.
func (r *Recorder) Add(outcomes []webhook.Outcome) (wait func() error) {
	if len(outcomes) == 0 {
		return func() error { return nil }
	}
	e := entry{outcomes, make(chan error, 1)}
	r.in <- e
	return func() error { return <-e.settled }
}

func (r *Recorder) run(ctx context.Context) {
	defer close(r.done)
	for first := range r.in {
		r.commit(ctx, r.gather(first))
	}
}

// gather takes the entries that are there, after a moment if these are few.
func (r *Recorder) gather(first entry) []entry {
	group, size := []entry{first}, len(first.outcomes)
	if size+len(r.in) < smallGroup {
		time.Sleep(gatherFor)
	}
	for size < groupLimit {
		select {
		case e, ok := <-r.in:
			if !ok {
				return group
			}
			group, size = append(group, e), size+len(e.outcomes)
		default:
			return group
		}
	}
	return group
}

func (r *Recorder) commit(ctx context.Context, group []entry) {
	ctx, cancel := context.WithTimeout(ctx, recordLimit)
	defer cancel()
	var all []webhook.Outcome
	for _, e := range group {
		all = append(all, e.outcomes...)
	}
	err := r.settle(ctx, all)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && len(group) > 1 {
		// One entry that the database refuses must not take the others with it.
		for _, e := range group {
			e.settled <- r.settle(ctx, e.outcomes)
		}
		return
	}
	for _, e := range group {
		e.settled <- err
	}
}

// settle retries until PostgreSQL answers, with pauses of 50 ms to 1 s.
func (r *Recorder) settle(ctx context.Context, outcomes []webhook.Outcome) error {
	pause := 50 * time.Millisecond
	for {
		err := r.db.InTx(ctx, func(tx *pg.Tx) error { return webhook.Settle(ctx, tx, outcomes) })
		if err == nil || ctx.Err() != nil || !transient(err) {
			return err
		}
		r.log.WarnContext(ctx, "outcomes not recorded yet; trying again", "error", err, "outcomes", len(outcomes))
		if clock.Pause(ctx, pause) != nil {
			return err
		}
		pause = min(2*pause, time.Second)
	}
}

// transient says whether the same transaction may succeed later: PostgreSQL is away,
// starting, stopping or out of connections, or has ended a transaction that stood still.
func transient(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return true
	}
	switch e.Code[:2] {
	case "08", "53", "57", "40":
		return true
	}
	return e.Code == "25P03"
}
