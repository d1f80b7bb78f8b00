// Package wake tells other processes over Redis that rows have changed, so that they need not
// wait for their next poll. A wake-up is sent after the commit, carries ids only and may be lost
// with Redis or with its process: only the rows count.
//
// It needs no session of PostgreSQL, unlike LISTEN, so it works behind a transaction pooler.
package wake

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// Bus carries the wake-ups between the processes of one installation. A nil *Bus carries none.
type Bus struct {
	rdb    redis.UniversalClient
	prefix string
	beat   time.Duration

	mu     sync.Mutex
	order  []note
	known  map[note]struct{}
	signal chan struct{}
	stop   chan struct{}
	done   chan struct{}

	sent      *prometheus.CounterVec
	connected prometheus.Gauge
}

type note struct{ channel, payload string }

// Installation is the name that all programs give.
const Installation = "registrar"

const (
	// rest bounds the trips a second, and what a wake-up may be late under load. Each trip
	// wakes every process that is subscribed.
	rest = 5 * time.Millisecond

	// patience bounds a trip; the caller of Wake waits for none.
	patience = 3 * time.Second

	// retryPause is the pause after a trip that failed.
	retryPause = 500 * time.Millisecond

	// maxNotes bounds what is remembered while Redis is away; receivers poll anyway.
	maxNotes = 10_000

	// beatEvery is how often a subscription checks that what is published reaches it, and
	// silence the number of such times after which it counts as lost.
	beatEvery = 2 * time.Second
	silence   = 3
)

// Start starts sending through rdb, which stays the caller's to close, later than the bus. The
// processes of an installation give the same name; Redis itself does not keep the channels of its
// numbered databases apart, so their number is added.
func Start(rdb redis.UniversalClient, name string) *Bus {
	db := 0 // of a Cluster
	if c, numbered := rdb.(*redis.Client); numbered {
		db = c.Options().DB
	}
	b := &Bus{rdb: rdb, prefix: name + ":" + strconv.Itoa(db) + ":", beat: beatEvery, known: map[note]struct{}{},
		signal: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "registrar_wakeups_total",
			Help: "Wake-ups of other processes, by outcome (sent; failed: tried again; dropped: receivers find the rows by polling)."}, []string{"outcome"}),
		connected: prometheus.NewGauge(prometheus.GaugeOpts{Name: "registrar_wakeup_subscriptions",
			Help: "Subscriptions to wake-ups that Redis serves now."}),
	}
	go b.run()
	return b
}

// Metrics makes visible what becomes of wake-ups.
func (b *Bus) Metrics(reg prometheus.Registerer) { reg.MustRegister(b.sent, b.connected) }

// Close sends what is left, for a few seconds at most. What is asked for later is not sent.
func (b *Bus) Close() {
	if b == nil {
		return
	}
	close(b.stop)
	<-b.done
}

// Wake sends a wake-up soon, and returns at once. Equal ones that have not been sent are merged.
// While Redis is away it is tried again.
func (b *Bus) Wake(channel, payload string) {
	if b == nil {
		return
	}
	b.add(note{channel, payload})
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

func (b *Bus) add(notes ...note) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range notes {
		if _, ok := b.known[n]; ok {
			continue
		}
		if len(b.order) >= maxNotes {
			b.sent.WithLabelValues("dropped").Inc()
			continue
		}
		b.known[n] = struct{}{}
		b.order = append(b.order, n)
	}
}

func (b *Bus) take() []note {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.order
	b.order = nil
	clear(b.known)
	return out
}

// run sends, one round trip at a time. What arrives during a trip, or in the short rest after it,
// is merged and sent with the next; a single wake-up is sent at once.
func (b *Bus) run() {
	defer close(b.done)
	var retry <-chan time.Time
	away := false
	for {
		select {
		case <-b.signal:
			if retry != nil {
				continue // it goes with what is tried again
			}
		case <-retry:
		case <-b.stop:
			_ = b.send(context.Background())
			return
		}
		err := b.send(context.Background())
		if retry = nil; err != nil {
			retry = time.After(retryPause)
		}
		if (err != nil) != away {
			away = err != nil
			report(away, err)
		}
		b.pause(rest)
	}
}

func report(away bool, err error) {
	if away {
		slog.Warn("wake-ups are not sent; receivers find the rows by polling", "error", err)
		return
	}
	slog.Info("wake-ups are sent again")
}

// pause ends early at Close, which sends what is left.
func (b *Bus) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.stop:
	}
}

func (b *Bus) send(ctx context.Context) error {
	notes := b.take()
	if len(notes) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := b.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, n := range notes {
			p.Publish(ctx, b.prefix+n.channel, n.payload)
		}
		return nil
	})
	if err != nil {
		b.sent.WithLabelValues("failed").Add(float64(len(notes)))
		b.add(notes...)
		return err
	}
	b.sent.WithLabelValues("sent").Add(float64(len(notes)))
	return nil
}

// Notification is one wake-up, or news of the subscription.
type Notification struct {
	Channel, Payload string

	Reset bool // the subscription is new, so that wake-ups may have been missed: read the rows
	Lost  bool // the subscription is lost; until the next Reset nothing arrives
}

// Subscribe calls handle for every wake-up on the channels until ctx ends. It uses a connection of
// its own and opens it again after a loss, with pauses of 0.1 to 5 s. A connection on which what
// this process publishes does not arrive for 6 s counts as lost.
func (b *Bus) Subscribe(ctx context.Context, handle func(Notification), channels ...string) {
	if b == nil {
		<-ctx.Done()
		return
	}
	const least, most = 100 * time.Millisecond, 5 * time.Second
	pause := least
	for ctx.Err() == nil {
		began, subscribed := time.Now(), false
		err := b.listen(ctx, channels, func(n Notification) {
			subscribed = subscribed || n.Reset
			handle(n)
		})
		if subscribed {
			handle(Notification{Lost: true})
		}
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > 10*time.Second {
			pause = least
		}
		slog.WarnContext(ctx, "no wake-ups arrive; subscribing again", "error", err, "pause", pause.String())
		_ = clock.Pause(ctx, pause) // the loop asks ctx
		pause = min(2*pause, most)
	}
}

var errSilent = errors.New("what is published on Redis does not arrive")

// listen subscribes once. It returns why the subscription ended.
func (b *Bus) listen(ctx context.Context, channels []string, handle func(Notification)) error {
	beat := b.prefix + "beat:" + rand.Text()
	names := []string{beat}
	for _, c := range channels {
		names = append(names, b.prefix+c)
	}
	ctx, cancel := context.WithCancel(ctx)
	sub := b.rdb.Subscribe(ctx, names...)
	defer func() { _ = sub.Close() }()
	defer context.AfterFunc(ctx, func() { _ = sub.Close() })() // a read that waits does not end with its context
	var beating sync.WaitGroup
	defer beating.Wait()
	defer cancel()
	limit := silence * b.beat
	confirmed, last := 0, time.Now()
	for {
		message, err := sub.ReceiveTimeout(ctx, max(limit-time.Since(last), time.Millisecond))
		switch m := message.(type) {
		case *redis.Subscription:
			switch confirmed++; {
			case confirmed == len(names):
				b.connected.Inc()
				defer b.connected.Dec()
				handle(Notification{Reset: true})
				last = time.Now()
				beating.Go(func() { b.beats(ctx, beat) })
			case confirmed > len(names):
				return errors.New("the connection was lost") // and opened again by the client
			}
		case *redis.Message:
			if m.Channel == beat {
				last = time.Now()
				break
			}
			handle(Notification{Channel: strings.TrimPrefix(m.Channel, b.prefix), Payload: m.Payload})
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Since(last) >= limit:
			return errSilent
		case err != nil:
			return err
		}
	}
}

// beats publishes to the subscription's own channel, by the way that all wake-ups take.
func (b *Bus) beats(ctx context.Context, channel string) {
	for range clock.Ticks(ctx, b.beat) {
		trip, cancel := context.WithTimeout(ctx, b.beat)
		_ = b.rdb.Publish(trip, channel, "").Err() // silence shows
		cancel()
	}
}
