package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Replicates are the settings of a server that has standbys.
var Replicates = []string{"wal_level=replica", "max_wal_senders=10", "synchronous_commit=on", "full_page_writes=on"}

// StartStandby copies a running server, which has the settings Replicates, and returns once the copy
// follows it and takes connections that read.
func StartStandby(ctx context.Context, primary *Postgres, o PostgresOptions) (*Postgres, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := o.User.own(o.Dir); err != nil {
		return nil, err
	}
	err := o.run(ctx, "pg_basebackup", "--pgdata="+o.Dir, "--dbname="+primary.URL("postgres"), "--write-recovery-conf",
		"--wal-method=stream", "--checkpoint=fast", "--no-sync")
	if err != nil {
		return nil, err
	}
	o.Password = primary.options.Password
	standby, err := StartPostgres(ctx, o)
	if err != nil {
		return nil, err
	}
	return standby, primary.AwaitStandby(ctx)
}

// AwaitStandby returns once a standby follows the server.
func (p *Postgres) AwaitStandby(ctx context.Context) error {
	return p.ask(ctx, `SELECT count(*) > 0 FROM pg_stat_replication WHERE state = 'streaming'`)
}

// Configure changes settings of the running server that a reload brings about.
func (p *Postgres) Configure(ctx context.Context, name, value string) error {
	return p.do(ctx, "ALTER SYSTEM SET "+name+" = '"+value+"'", "SELECT pg_reload_conf()")
}

// Promote makes a standby a primary, and returns once it takes writes.
func (p *Postgres) Promote(ctx context.Context) error {
	return p.do(ctx, "SELECT pg_promote()")
}

// Replay has a standby go on with what it gets from the primary, or stand still.
func (p *Postgres) Replay(ctx context.Context, goes bool) error {
	if goes {
		return p.do(ctx, "SELECT pg_wal_replay_resume()")
	}
	return p.do(ctx, "SELECT pg_wal_replay_pause()")
}

func (p *Postgres) do(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// ask waits until a question is answered with yes.
func (p *Postgres) ask(ctx context.Context, question string) error {
	ctx, cancel := context.WithTimeout(ctx, postgresStartsWithin)
	defer cancel()
	return p.Await(ctx, func(ctx context.Context) error { return p.check(ctx, question) })
}

// check asks once, and fails unless the answer is yes.
func (p *Postgres) check(ctx context.Context, question string) error {
	conn, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var yes bool
	err = conn.QueryRow(ctx, question).Scan(&yes)
	if err == nil && !yes {
		err = errors.New("not yet: " + question)
	}
	return err
}

// Address is where the server listens.
func (p *Postgres) Address() string { return hostPort(p.options.Port) }

// Relay is an address of its own that leads to another one, as a virtual address or a Service does.
type Relay struct {
	listener net.Listener
	all      sync.WaitGroup

	mu     sync.Mutex
	to     string
	open   map[net.Conn]bool
	cut    chan struct{} // closed when the network is there again; nil while it is
	slow   time.Duration // that each piece takes longer
	closed chan struct{}
}

// StartRelay starts one.
func StartRelay(ctx context.Context, to string) (*Relay, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Relay{listener: l, to: to, open: map[net.Conn]bool{}, closed: make(chan struct{})}
	r.all.Go(func() { r.serve(ctx) })
	return r, nil
}

// Address is where it listens.
func (r *Relay) Address() string { return r.listener.Addr().String() }

// LeadTo changes where new connections lead to. Those that are open stay.
func (r *Relay) LeadTo(to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = to
}

// Cut has nothing arrive any more, as on a network that is cut: connections stay open, and what was
// written arrives once Heal is called.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cut == nil {
		r.cut = make(chan struct{})
	}
}

// Heal ends what Cut began.
func (r *Relay) Heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cut != nil {
		close(r.cut)
		r.cut = nil
	}
}

// Slow has each piece of what is sent arrive so much later, one after the other; 0 ends it.
func (r *Relay) Slow(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slow = d
}

// await returns when the network is there, or the relay is closed.
func (r *Relay) await() {
	r.mu.Lock()
	cut, slow := r.cut, r.slow
	r.mu.Unlock()
	if slow > 0 {
		select {
		case <-time.After(slow):
		case <-r.closed:
		}
	}
	if cut != nil {
		select {
		case <-cut:
		case <-r.closed:
		}
	}
}

// Close ends all connections.
func (r *Relay) Close() error {
	err := r.listener.Close()
	r.mu.Lock()
	close(r.closed)
	for c := range r.open {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.all.Wait()
	return err
}

func (r *Relay) serve(ctx context.Context) {
	for {
		near, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.all.Go(func() {
			defer near.Close()
			if far := r.dial(ctx, near); far != nil {
				defer far.Close()
				r.carry(near, far)
			}
		})
	}
}

// dial connects to where the relay leads now; nil when nobody is there.
func (r *Relay) dial(ctx context.Context, near net.Conn) net.Conn {
	r.await()
	r.mu.Lock()
	to := r.to
	r.mu.Unlock()
	far, err := new(net.Dialer).DialContext(ctx, "tcp", to)
	if err != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.closed:
		_ = far.Close()
		return nil
	default:
	}
	r.open[near], r.open[far] = true, true
	return far
}

func (r *Relay) carry(near, far net.Conn) {
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(gate{r, near}, far)
		_ = near.Close()
	})
	_, _ = io.Copy(gate{r, far}, near)
	_ = far.Close()
	back.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, near)
	delete(r.open, far)
}

// gate writes while the relay's network is there.
type gate struct {
	relay *Relay
	to    io.Writer
}

func (g gate) Write(p []byte) (int, error) {
	g.relay.await()
	return g.to.Write(p)
}
