package pg_test

import (
	"context"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// line leads to PostgreSQL until it is cut: then connections stay, and nothing arrives, as
// when a machine is lost.
type line struct {
	url string
	cut func()
}

func newLine(t *testing.T, to string) *line {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, cut := u.Host, make(chan struct{})
	u.Host = listener.Addr().String()
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); _ = listener.Close(); all.Wait() })
	all.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", server)
			if err != nil {
				_ = near.Close()
				continue
			}
			context.AfterFunc(ctx, func() { _, _ = near.Close(), far.Close() })
			all.Go(func() { carry(ctx, near, far, cut) })
			all.Go(func() { carry(ctx, far, near, cut) })
		}
	})
	return &line{url: u.String(), cut: func() { close(cut) }}
}

// carry copies until the line is cut, and then takes nothing and says nothing.
func carry(ctx context.Context, from, to net.Conn, cut <-chan struct{}) {
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		select {
		case <-cut:
			<-ctx.Done()
			return
		default:
		}
		if _, wrong := to.Write(buffer[:n]); err != nil || wrong != nil {
			_, _ = from.Close(), to.Close()
			return
		}
	}
}

// A leader whose machine is lost does not keep its lock until PostgreSQL notices.
func TestASilentLeaderIsReplaced(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	away := newLine(t, db.Config().ConnString())
	lost, err := pg.Open(t.Context(), away.url)
	if err != nil {
		t.Fatal(err)
	}
	defer lost.Close()
	led := make(chan string, 2)
	lead := func(ctx context.Context, db *pg.DB, name string) (done chan struct{}) {
		done = make(chan struct{})
		go func() {
			defer close(done)
			pg.Lead(ctx, db, "duty", func(ctx context.Context) { led <- name; <-ctx.Done() })
		}()
		return done
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := lead(ctx, lost, "first")
	if got := <-led; got != "first" {
		t.Fatal(got)
	}
	second := lead(ctx, db, "second")
	away.cut()
	select {
	case got := <-led:
		if got != "second" {
			t.Error(got)
		}
	case <-time.After(time.Minute):
		t.Error("nobody took over")
	}
	cancel()
	for name, done := range map[string]chan struct{}{"first": first, "second": second} {
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Errorf("the %s does not end", name)
		}
	}
}

// A program that vanished in the middle of a transaction does not keep its locks.
func TestASilentTransactionLetsItsLocksGo(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var setting string
	if err := db.QueryRow(t.Context(), `SHOW idle_in_transaction_session_timeout`).Scan(&setting); check.NoError(t, err, "a transaction may stand still for %s, %v", setting, err) {
		check.Equal(t, "setting", setting, "1min", "a transaction may stand still for %s, %v", setting, err)
	}
	u, err := url.Parse(db.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("idle_in_transaction_session_timeout", "300ms")
	u.RawQuery = query.Encode()
	impatient, err := pg.Open(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer impatient.Close()
	vanished, err := impatient.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := vanished.Exec(t.Context(), `UPDATE course_types SET active = active`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := db.Exec(ctx, `UPDATE course_types SET active = active`); err != nil {
		t.Errorf("it keeps its locks: %v", err)
	}
	if err := vanished.Commit(t.Context()); err == nil {
		t.Error("it was committed all the same")
	}
}
