package wake

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit is how long anything that is waited for may take. It is no measure of speed.
const limit = time.Minute

// link is the way to Redis, which a test can close, or make swallow everything.
type link struct {
	addr, to string

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
	mute     bool
}

func newLink(t *testing.T) *link {
	t.Helper()
	o, err := redis.ParseURL(os.Getenv("TEST_REDIS_URL"))
	if err != nil {
		t.Fatalf("TEST_REDIS_URL: %v", err)
	}
	l := &link{to: o.Addr}
	l.open(t)
	t.Cleanup(l.close)
	return l
}

func (l *link) open(t *testing.T) {
	t.Helper()
	if l.addr == "" {
		l.addr = "127.0.0.1:0"
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", l.addr)
	for began := time.Now(); err != nil && time.Since(began) < limit; { // another process may have the port for a moment
		time.Sleep(50 * time.Millisecond)
		listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", l.addr)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.addr, l.listener = listener.Addr().String(), listener
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := new(net.Dialer).DialContext(context.WithoutCancel(t.Context()), "tcp", l.to)
			if err != nil {
				_ = in.Close()
				continue
			}
			l.mu.Lock()
			l.conns = append(l.conns, in, out)
			l.mu.Unlock()
			go l.copy(in, out)
			go l.copy(out, in)
		}
	}()
}

func (l *link) copy(to, from net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		l.mu.Lock()
		mute := l.mute
		l.mu.Unlock()
		if !mute && n > 0 {
			_, _ = to.Write(buffer[:n])
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

// swallow makes connections that stay open carry nothing.
func (l *link) swallow(yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mute = yes
}

// close breaks all connections, and refuses others until the link is opened again.
func (l *link) close() {
	_ = l.listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

func connect(t *testing.T, addr string) *redis.Client {
	t.Helper()
	rdb, err := queue.Connect("redis://"+addr, queue.TLS{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb.(*redis.Client)
}

func start(t *testing.T, l *link, name string) *Bus {
	t.Helper()
	b := Start(connect(t, l.addr), name)
	t.Cleanup(b.Close)
	return b
}

// subscribe returns what arrives, after the subscription stands.
func subscribe(t *testing.T, b *Bus, channels ...string) <-chan Notification {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	got, done := make(chan Notification, 1000), make(chan struct{})
	go func() {
		defer close(done)
		b.Subscribe(ctx, func(n Notification) {
			select {
			case got <- n:
			case <-ctx.Done():
			}
		}, channels...)
	}()
	t.Cleanup(func() { cancel(); <-done })
	check.True(check.Now(t), "the first is a reset", next(t, got).Reset, "the first notification")
	return got
}

func next(t *testing.T, got <-chan Notification) Notification {
	t.Helper()
	select {
	case n := <-got:
		return n
	case <-time.After(limit):
		t.Fatal("nothing arrives")
		panic("unreachable")
	}
}

func TestAWakeUpReachesThoseOfItsChannelAndInstallation(t *testing.T) {
	t.Parallel()
	l, name := newLink(t), uuid.NewString()
	sender := start(t, l, name)
	here, others := subscribe(t, start(t, l, name), "a", "b"), subscribe(t, start(t, l, name+"x"), "a", "b")
	sender.Wake("c", "1")
	sender.Wake("a", "2")
	sender.Wake("b", "3")
	check.Equal(t, "the first", next(t, here), Notification{Channel: "a", Payload: "2"}, "")
	check.Equal(t, "the second", next(t, here), Notification{Channel: "b", Payload: "3"}, "")
	check.Equal(t, "what others get", len(others), 0, "")
}

func TestNumberedDatabasesAreApart(t *testing.T) {
	t.Parallel()
	l, name := newLink(t), uuid.NewString()
	b := start(t, l, name)
	got := subscribe(t, b, "a")
	o := *connect(t, l.addr).Options()
	o.DB = 1
	other := redis.NewClient(&o)
	t.Cleanup(func() { _ = other.Close() })
	far := Start(other, name)
	far.Wake("a", "of the other")
	far.Close() // sends it
	b.Wake("a", "own")
	check.Equal(t, "what arrives", next(t, got).Payload, "own", "")
}

func TestEqualWakeUpsAreMergedAndCloseSendsTheRest(t *testing.T) {
	t.Parallel()
	l, name := newLink(t), uuid.NewString()
	got := subscribe(t, start(t, l, name), "a")
	b := Start(connect(t, l.addr), name)
	for range 1000 {
		b.Wake("a", "same")
	}
	b.Wake("a", "last")
	b.Close()
	arrived := 0
	for next(t, got).Payload != "last" {
		arrived++
	}
	check.True(t, "they are merged", arrived >= 1 && arrived < 500, "%d", arrived)
}

func TestWakingWaitsForNobodyAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	l, name := newLink(t), uuid.NewString()
	got := subscribe(t, start(t, l, name), "a")
	way := newLink(t)
	sender := start(t, way, name)
	reg := prometheus.NewRegistry()
	sender.Metrics(reg)
	way.close()
	began := time.Now()
	for i := range maxNotes + 10 {
		sender.Wake("a", fmt.Sprint(i))
	}
	check.True(t, "the caller does not wait", time.Since(began) < 2*time.Second, "%v", time.Since(began))
	for testutil.ToFloat64(sender.sent.WithLabelValues("failed")) == 0 {
		time.Sleep(time.Millisecond)
	}
	way.open(t)
	check.Equal(t, "the channel of what arrives", next(t, got).Channel, "a", "")
	check.True(t, "what is remembered is bounded", testutil.ToFloat64(sender.sent.WithLabelValues("dropped")) > 0, "%d were sent", maxNotes+10)
}

func TestASubscriptionTellsOfItsLossAndComesBack(t *testing.T) {
	t.Parallel()
	l, name := newLink(t), uuid.NewString()
	b := start(t, l, name)
	got := subscribe(t, b, "a")
	check.Equal(t, "subscriptions", testutil.ToFloat64(b.connected), 1, "")
	l.close()
	check.True(check.Now(t), "the loss is told", next(t, got).Lost, "")
	l.open(t)
	check.True(check.Now(t), "it is back", next(t, got).Reset, "")
	b.Wake("a", "again")
	check.Equal(t, "what arrives", next(t, got).Payload, "again", "")
}

// A connection that broke without an error, or leads to a Redis that others do not use, is no subscription.
func TestASilentSubscriptionIsLost(t *testing.T) {
	t.Parallel()
	l, name := newLink(t), uuid.NewString()
	b := start(t, l, name)
	b.beat = 100 * time.Millisecond
	got := subscribe(t, b, "a")
	l.swallow(true)
	check.True(check.Now(t), "the loss is told", next(t, got).Lost, "")
	l.swallow(false)
	l.close()
	l.open(t)
	for !next(t, got).Reset { // it may have tried while nothing was carried
	}
}

func TestABeatKeepsASubscription(t *testing.T) {
	t.Parallel()
	l := newLink(t)
	b := start(t, l, uuid.NewString())
	b.beat = time.Second // a busy machine may do nothing for some time
	got := subscribe(t, b, "a")
	select {
	case n := <-got:
		t.Fatalf("%+v", n)
	case <-time.After(3 * silence * b.beat): // more than what a silent one is given
	}
}

// Until a link is open nobody is subscribed, and a program starts all the same.
func TestNobodyWaitsForRedisAtTheStart(t *testing.T) {
	t.Parallel()
	l := newLink(t)
	l.close()
	b := start(t, l, uuid.NewString())
	ctx, cancel := context.WithCancel(t.Context())
	got, done := make(chan Notification, 10), make(chan struct{})
	go func() {
		defer close(done)
		b.Subscribe(ctx, func(n Notification) { got <- n }, "a")
	}()
	defer func() { cancel(); <-done }()
	l.open(t)
	check.True(check.Now(t), "it is a reset", next(t, got).Reset, "")
}

func TestNoBusIsQuiet(t *testing.T) {
	t.Parallel()
	var b *Bus
	b.Wake("a", "1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.Subscribe(ctx, func(n Notification) { t.Errorf("%+v", n) }, "a")
	b.Close()
}

func TestAWatchSeesChangesAtOnceAndWithoutWakeUps(t *testing.T) {
	t.Parallel()
	b := start(t, newLink(t), uuid.NewString())
	for name, sends := range map[string]bool{"woken": true, "by its poll": false} {
		w := NewWatch(b, "rows")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		looks := 0
		err := w.Until(t.Context(), "7", limit, func(context.Context) (bool, error) {
			if looks++; sends {
				b.Wake("rows", "7")
			}
			return looks == 3, nil
		})
		check.NoError(t, err, "%s", name)
		cancel()
		check.NoError(t, <-done, "%s", name)
	}
	err := NewWatch(nil, "rows").Until(t.Context(), "7", time.Millisecond, func(context.Context) (bool, error) { return false, nil })
	check.Equal(t, "err", err, context.DeadlineExceeded, "nothing changes")
}
