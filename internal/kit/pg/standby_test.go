package pg_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// address is that of a test's database, changed.
func address(t *testing.T, db *pg.DB, change func(*url.URL)) string {
	t.Helper()
	u, err := url.Parse(db.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	change(u)
	return u.String()
}

func with(key, value string) func(*url.URL) {
	return func(u *url.URL) {
		query := u.Query()
		query.Set(key, value)
		u.RawQuery = query.Encode()
	}
}

// takeNoWrites has new connections to the database be as those to a standby are, or no longer.
func takeNoWrites(t *testing.T, through pg.Querier, none bool) {
	t.Helper()
	verb := "RESET default_transaction_read_only"
	if none {
		verb = "SET default_transaction_read_only = on"
	}
	if _, err := through.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I `+verb+`', current_database()); END $$`); err != nil {
		t.Fatal(err)
	}
}

// A server that takes no writes is away, for what reads too, until it takes some.
func TestAServerThatTakesNoWritesIsAway(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	before, err := db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer before.Release()
	pool, err := pg.Open(t.Context(), db.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	probe := pg.NewProbe(pool)
	defer probe.Close(context.WithoutCancel(t.Context()))
	check.NoError(check.Now(t), probe.Ping(t.Context()), "a server that takes writes")

	takeNoWrites(t, before.Conn(), true)
	pool.Reset() // as when the connections to a primary end that becomes a standby
	var one int
	if err := pool.QueryRow(t.Context(), `SELECT 1`).Scan(&one); !pg.Away(err) {
		t.Errorf("a query ends with %v", err)
	}
	if err := pool.InTx(t.Context(), func(tx *pg.Tx) error { return pg.GiveWay(t.Context(), tx) }); !pg.Away(err) {
		t.Errorf("a transaction ends with %v", err)
	}
	if _, err := pg.Open(t.Context(), address(t, db, with("target_session_attrs", "any"))); !pg.Away(err) {
		t.Errorf("it is opened, with %v", err)
	}
	closeProbes(t, before.Conn())
	if err := probe.Ping(t.Context()); !errors.Is(err, pgconn.ErrReadOnlyConnection) {
		t.Errorf("the probe says %v", err)
	}

	takeNoWrites(t, before.Conn(), false)
	check.NoError(t, pool.QueryRow(t.Context(), `SELECT 1`).Scan(&one), "it is back")
	check.NoError(t, probe.Ping(t.Context()), "it is back")
}

// closeProbes ends the connections over which probes ask.
func closeProbes(t *testing.T, through pg.Querier) {
	t.Helper()
	_, err := through.Exec(t.Context(), `
		SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity
		WHERE datname = current_database() AND query LIKE '%pg_is_in_recovery%' AND pid <> pg_backend_pid()`)
	if err != nil {
		t.Fatal(err)
	}
}

// A connection that turns out to take no writes, as behind a pooler, is not used a second time.
func TestAConnectionThatTakesNoWritesIsClosed(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	pool, err := pg.Open(t.Context(), address(t, db, with("pool_max_conns", "1")))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), `SET default_transaction_read_only = on`); err != nil {
		t.Fatal(err)
	}
	write := func() error {
		return pool.InTx(t.Context(), func(tx *pg.Tx) error {
			_, err := tx.Exec(t.Context(), `UPDATE course_types SET active = active`)
			return err
		})
	}
	if err := write(); !pg.Away(err) {
		t.Errorf("a write ends with %v", err)
	}
	check.NoError(t, write(), "the next connection takes it")
}

// Of several servers the one that answers is found, and a silent one costs little.
func TestAnAddressMayNameSeveralServers(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = nobody.Close()
	pool, err := pg.Open(t.Context(), address(t, db, func(u *url.URL) { u.Host = nobody.Addr().String() + "," + u.Host }))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	check.Equal(t, "how long a server is waited for", pool.Config().ConnConfig.ConnectTimeout, 2*time.Second, "")
	check.Equal(t, "the life of a connection", pool.Config().MaxConnLifetime, 5*time.Minute, "")
	check.Equal(t, "how long a server alone is waited for", db.Config().ConnConfig.ConnectTimeout, 10*time.Second, "")
}

// relay leads to PostgreSQL until it is cut, which closes its connections.
func relay(t *testing.T, to string) (addr string, cut func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var open []net.Conn
	var all sync.WaitGroup
	all.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			mu.Lock()
			open = append(open, near, far)
			mu.Unlock()
			all.Go(func() { _, _ = io.Copy(far, near) })
			all.Go(func() { _, _ = io.Copy(near, far) })
		}
	})
	cut = sync.OnceFunc(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
	})
	t.Cleanup(func() { cut(); all.Wait() })
	return l.Addr().String(), cut
}

// A connection that is lost in the middle of a statement, or of a commit, is PostgreSQL away.
func TestALostConnectionIsAway(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for name, statement := range map[string]func(pool *pg.DB) error{
		"a statement": func(pool *pg.DB) error {
			_, err := pool.Exec(t.Context(), `SELECT pg_sleep(60)`)
			return err
		},
		"rows": func(pool *pg.DB) error {
			_, err := pg.Column[string](t.Context(), pool, `SELECT pg_sleep(60)::text`)
			return err
		},
		"a batch": func(pool *pg.DB) error {
			return pool.InTx(t.Context(), func(tx *pg.Tx) error {
				var b pg.Batch
				b.Queue(`SELECT pg_sleep(60)`)
				return b.Commit(t.Context(), tx)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var cut func()
			marked := "lost-" + strings.ReplaceAll(name, " ", "-")
			pool, err := pg.Open(t.Context(), address(t, db, func(u *url.URL) {
				u.Host, cut = relay(t, u.Host)
				with("application_name", marked)(u)
			}))
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			ended := make(chan error, 1)
			go func() { ended <- statement(pool) }()
			awaitStatement(t, db, marked, "pg_sleep")
			cut()
			if err := <-ended; !pg.Away(err) {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}

// awaitStatement waits until one runs.
func awaitStatement(t *testing.T, db *pg.DB, application, text string) {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		var n int
		err := db.QueryRow(t.Context(), `
			SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = $1 AND state = 'active' AND query LIKE $2`,
			application, "%"+text+"%").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the statement does not run")
		}
	}
}

// While commits wait, transactions are refused, and what waits is given up here and on the server.
func TestWhileCommitsWaitNobodyWaits(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const marked = "waits"
	pool, err := pg.Open(t.Context(), address(t, db, with("application_name", marked)))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := pool.Exec(t.Context(), `SELECT pg_sleep(600)`)
		ended <- err
	}()
	awaitStatement(t, db, marked, "pg_sleep")
	pool.CommitsWait(true, time.Now())
	select {
	case err := <-ended:
		t.Fatalf("it is given up at once: %v", err)
	default:
	}
	write := func() error {
		return pool.InTx(t.Context(), func(tx *pg.Tx) error { return pg.GiveWay(t.Context(), tx) })
	}
	if err := write(); !pg.Away(err) {
		t.Errorf("a transaction ends with %v", err)
	}
	if _, err := pool.Exec(t.Context(), `UPDATE course_types SET active = active`); !pg.Away(err) {
		t.Errorf("a statement ends with %v", err)
	}
	var one int
	check.NoError(t, pool.QueryRow(t.Context(), `SELECT 1`).Scan(&one), "what only reads goes on")
	pool.CommitsWait(true, time.Now().Add(5*time.Second))
	if err := <-ended; !pg.Away(err) {
		t.Errorf("what waits ends with %v", err)
	}
	for end := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		var left int
		err := db.QueryRow(t.Context(), `
			SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()`).Scan(&left)
		if err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it goes on on the server")
		}
	}
	pool.CommitsWait(false, time.Now())
	check.NoError(t, write(), "commits no longer wait")
}

// What is known of connections goes with them.
func TestClosedConnectionsAreForgotten(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	pool, err := pg.Open(t.Context(), db.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		pool.Reset()
		if _, err := pool.Exec(t.Context(), `SELECT 1`); err != nil {
			t.Fatal(err)
		}
	}
	if n := pool.Links(); n == 0 {
		t.Error("no connection is known")
	}
	pool.Close()
	for end := time.Now().Add(limit); pool.Links() > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(fmt.Sprint(pool.Links(), " connections are known"))
		}
	}
}
