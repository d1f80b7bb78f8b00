package pg

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

type wake struct{ channel, payload string }

// notifier sends wake-ups, one round trip at a time. Those that arrive during a trip, or in
// the short rest after it, are merged and sent with the next. A single wake-up is sent at
// once; merging matters because each trip wakes every listening connection of the database.
type notifier struct {
	pool   *pgxpool.Pool
	mu     sync.Mutex
	order  []wake
	known  map[wake]struct{}
	signal chan struct{}
	stop   chan struct{}
	done   chan struct{}
}

// restAfterWake bounds the trips a second, and what a wake-up may be late under load.
const restAfterWake = 5 * time.Millisecond

// maxWakes bounds what is remembered while PostgreSQL is away; receivers poll anyway.
const maxWakes = 10_000

// startNotifier starts sending; ctx must not end before close.
func startNotifier(ctx context.Context, pool *pgxpool.Pool) *notifier {
	n := &notifier{pool: pool, known: map[wake]struct{}{},
		signal: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go n.run(ctx)
	return n
}

func (n *notifier) add(w wake) {
	n.mu.Lock()
	if _, ok := n.known[w]; !ok && len(n.order) < maxWakes {
		n.known[w] = struct{}{}
		n.order = append(n.order, w)
	}
	n.mu.Unlock()
	select {
	case n.signal <- struct{}{}:
	default:
	}
}

func (n *notifier) take() []wake {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.order
	n.order = nil
	clear(n.known)
	return out
}

func (n *notifier) run(ctx context.Context) {
	defer close(n.done)
	for {
		select {
		case <-n.signal:
			n.send(ctx)
			n.rest()
		case <-n.stop:
			n.send(ctx)
			return
		}
	}
}

// rest ends early at close, which sends what is left.
func (n *notifier) rest() {
	timer := time.NewTimer(restAfterWake)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-n.stop:
	}
}

func (n *notifier) send(ctx context.Context) {
	wakes := n.take()
	if len(wakes) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	channels, payloads := make([]string, len(wakes)), make([]string, len(wakes))
	for i, w := range wakes {
		channels[i], payloads[i] = w.channel, w.payload
	}
	_, err := n.pool.Exec(ctx, `SELECT pg_notify(c, p) FROM unnest($1::text[], $2::text[]) AS w(c, p)`, channels, payloads)
	if err != nil {
		slog.WarnContext(ctx, "wake-up not sent; receivers find the rows by polling", "error", err, "count", len(wakes))
	}
}

func (n *notifier) close() {
	close(n.stop)
	<-n.done
}

// Notification is one wake-up. Reset means that the connection is new, so that notifications
// may have been missed: read the rows.
type Notification struct {
	Channel, Payload string
	Reset            bool
}

// Listen calls handle for every notification on the channels until ctx ends. It uses a
// connection of its own and reopens it after a loss, with pauses of 0.1 to 5 s.
func Listen(ctx context.Context, db *DB, handle func(Notification), channels ...string) {
	pause := 100 * time.Millisecond
	for ctx.Err() == nil {
		began := time.Now()
		err := listenOnce(ctx, db, handle, channels)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > 10*time.Second {
			pause = 100 * time.Millisecond
		}
		slog.WarnContext(ctx, "lost the listening connection; opening it again", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, 5*time.Second)
	}
}

func listenOnce(ctx context.Context, db *DB, handle func(Notification), channels []string) error {
	conn, err := pgx.ConnectConfig(ctx, db.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, c := range channels {
		if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{c}.Sanitize()); err != nil {
			return err
		}
	}
	handle(Notification{Reset: true})
	for {
		note, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		handle(Notification{Channel: note.Channel, Payload: note.Payload})
	}
}
