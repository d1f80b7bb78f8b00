package lead_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/lead"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// limit is how long anything that is waited for may take. It is no measure of speed.
const limit = time.Minute

// processOf is the environment variable that makes the test binary a holder.
const processOf = "LEAD_TEST_DATABASE"

func TestMain(m *testing.M) {
	if address := os.Getenv(processOf); address != "" {
		hold(address)
		return
	}
	goleak.VerifyTestMain(m)
}

// change is a run that began, or ended.
type change struct {
	who, name string
	token     int64
	begins    bool
}

// party are candidates of one job in this process.
type party struct {
	t       *testing.T
	names   []string
	changes chan change
	leads   map[string]string // name → who
	tokens  map[string]int64
}

func newParty(t *testing.T, names ...string) *party {
	return &party{t: t, names: names, changes: make(chan change, 1000), leads: map[string]string{}, tokens: map[string]int64{}}
}

// join adds a candidate, which leaves with its function or at the end of the test.
func (p *party) join(db *pg.DB, who string) (leave func()) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	done := make(chan error, 1)
	go func() {
		done <- lead.Share(ctx, db, "job", p.names, func(ctx context.Context, l lead.Lease) {
			p.changes <- change{who, l.Name, l.Token, true}
			<-ctx.Done()
			p.changes <- change{who, l.Name, l.Token, false}
		})
	}()
	leave = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				p.t.Error(err)
			}
		case <-time.After(limit):
			p.t.Errorf("%s does not leave", who)
		}
	})
	p.t.Cleanup(leave)
	return leave
}

// next reads changes until the names are shared as wanted. A name must have ended at one before
// it begins at another, and each beginning needs a greater token.
func (p *party) next(want map[string]int) {
	p.t.Helper()
	over := time.After(limit)
	for !p.shared(want) {
		select {
		case c := <-p.changes:
			p.note(c)
		case <-over:
			p.t.Fatalf("they are led by %v; want %v", p.leads, want)
		}
	}
}

func (p *party) note(c change) {
	p.t.Helper()
	if !c.begins {
		if p.leads[c.name] == c.who {
			delete(p.leads, c.name)
		}
		return
	}
	if other := p.leads[c.name]; other != "" {
		p.t.Errorf("%s begins %s, which %s leads", c.who, c.name, other)
	}
	if c.token <= p.tokens[c.name] {
		p.t.Errorf("%s begins %s with token %d after %d", c.who, c.name, c.token, p.tokens[c.name])
	}
	p.leads[c.name], p.tokens[c.name] = c.who, c.token
}

func (p *party) shared(want map[string]int) bool {
	have, all := map[string]int{}, 0
	for _, who := range p.leads {
		have[who]++
	}
	for who, n := range want {
		if have[who] != n {
			return false
		}
		all += n
	}
	return all == len(p.leads)
}

func TestOneLeadsAndHandsOverAtItsEnd(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	p := newParty(t, "work")
	leave := p.join(db, "first")
	p.next(map[string]int{"first": 1})
	p.join(db, "second")
	p.join(db, "third")
	leave()
	over := time.After(limit)
	for len(p.leads) != 1 || p.leads["work"] == "first" {
		select {
		case c := <-p.changes:
			p.note(c)
		case <-over:
			t.Fatal("nobody took over")
		}
	}
}

func TestARunThatReturnsIsCalledAgain(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	var tokens []int64
	err := lead.Lead(ctx, db, "work", func(_ context.Context, l lead.Lease) {
		if tokens = append(tokens, l.Token); len(tokens) == 3 {
			cancel()
		}
	})
	check.NoError(t, err, "leading ends with %v", err)
	check.Slices(t, "tokens", tokens, []int64{1, 2, 3}, "each call has a token of its own")
}

func TestNamesAreSharedFairly(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	names := make([]string, 16)
	for i := range names {
		names[i] = fmt.Sprintf("shard/%02d", i)
	}
	p := newParty(t, names...)
	leaveA := p.join(db, "a")
	p.next(map[string]int{"a": 16})
	leaveB := p.join(db, "b")
	p.next(map[string]int{"a": 8, "b": 8})
	p.join(db, "c")
	p.next(map[string]int{"a": 6, "b": 5, "c": 5})
	leaveB()
	p.next(map[string]int{"a": 8, "c": 8})
	leaveA()
	p.next(map[string]int{"c": 16})
}

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

// A leader whose machine is lost is replaced, and stops by itself.
func TestASilentLeaderIsReplaced(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	away := newLine(t, db.Config().ConnString())
	lost, err := pg.Open(t.Context(), away.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lost.Close)
	p := newParty(t, "work")
	p.join(lost, "lost")
	p.next(map[string]int{"lost": 1})
	p.join(db, "other")
	away.cut()
	p.next(map[string]int{"other": 1})
}

// A transaction of an earlier holder fails, whatever comes after its fence in the same trip.
func TestAFencedTransactionOfAnEarlierHolderFails(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	leases := make(chan lead.Lease, 2)
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		_ = lead.Lead(ctx, db, "work", func(_ context.Context, l lead.Lease) { leases <- l; cancel() })
	}
	earlier := <-leases
	err := db.InTx(t.Context(), func(tx *pg.Tx) error {
		var b pg.Batch
		lead.Fence(&b, earlier)
		b.Queue(`UPDATE course_types SET active = false`)
		return b.Commit(t.Context(), tx)
	})
	check.True(t, "lost", lead.Lost(err), "the transaction ended with %v", err)
	err = db.InTx(t.Context(), func(tx *pg.Tx) error { return earlier.Check(t.Context(), tx) })
	check.True(t, "lost", lead.Lost(err), "the transaction ended with %v", err)
	var off int
	err = db.QueryRow(t.Context(), `SELECT count(*) FROM course_types WHERE NOT active`).Scan(&off)
	check.NoError(t, err, "counting: %v", err)
	check.Equal(t, "changed rows", off, 0, "it was committed all the same")
}

// Nobody takes over in the middle of a fenced transaction, however late it is, and one that
// stands still is ended.
func TestAFencedTransactionKeepsOthersOut(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var held lead.Lease
	ctx, cancel := context.WithCancel(t.Context())
	tx := make(chan error, 1)
	taken := make(chan struct{})
	err := lead.Lead(ctx, db, "work", func(runs context.Context, l lead.Lease) {
		defer cancel()
		held = l
		began := make(chan struct{})
		go func() {
			tx <- db.InTx(t.Context(), func(tx *pg.Tx) error {
				if err := held.Check(t.Context(), tx); err != nil {
					close(began)
					return err
				}
				close(began)
				// Its statement is under way when the lease is given back.
				if _, err := tx.Exec(t.Context(), `SELECT pg_sleep(2)`); err != nil {
					return err
				}
				select {
				case <-taken:
					return fmt.Errorf("another process leads before the transaction has ended")
				default:
				}
				<-taken // it stands still, and is ended for that
				_, err := tx.Exec(t.Context(), `SELECT 1`)
				return err
			})
		}()
		<-began
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), limit)
	defer cancel()
	err = lead.Lead(ctx, db, "work", func(context.Context, lead.Lease) { close(taken); cancel() })
	check.NoError(t, err, "leading ends with %v", err)
	if got := <-tx; !pg.Away(got) {
		t.Errorf("the transaction of the earlier holder ended with %v", got)
	}
}

// hold is the process of a holder: each lease writes, and writes once more when it should end.
func hold(address string) {
	ctx := context.Background()
	db, err := pg.Open(ctx, address)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	names := strings.Split(os.Getenv("LEAD_TEST_NAMES"), ",")
	err = lead.Share(ctx, db, "job", names, func(running context.Context, l lead.Lease) {
		fmt.Println("leads", l.Name, l.Token)
		for last := false; !last; {
			last = running.Err() != nil
			err := db.InTx(ctx, func(tx *pg.Tx) error {
				if err := l.Check(ctx, tx); err != nil {
					return err
				}
				_, err := tx.Exec(ctx, `INSERT INTO writes (name, token) VALUES ($1, $2)`, l.Name, l.Token)
				return err
			})
			if lead.Lost(err) {
				fmt.Println("fenced", l.Name, l.Token)
				return
			}
		}
	})
	fmt.Println("ended", err)
}

// process is another process that holds leases.
type process struct {
	*exec.Cmd
	lines chan string
}

func start(t *testing.T, db *pg.DB, names ...string) *process {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(program), lines: make(chan string, 10_000)}
	p.Env = append(os.Environ(), processOf+"="+db.Config().ConnString(), "LEAD_TEST_NAMES="+strings.Join(names, ","))
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() { _ = p.Process.Kill(); <-read; _ = p.Wait() })
	return p
}

// says waits for a line of the process that begins so.
func (p *process) says(t *testing.T, prefix string) {
	t.Helper()
	over := time.After(limit)
	for {
		select {
		case line := <-p.lines:
			if strings.HasPrefix(line, prefix) {
				return
			}
		case <-over:
			t.Fatalf("it does not say %q", prefix)
		}
	}
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

const createWrites = `CREATE TABLE writes (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text, token bigint)`

// wantInOrder fails when something was written with a token after a greater one.
func wantInOrder(t *testing.T, db *pg.DB) {
	t.Helper()
	var late, all int
	err := db.QueryRow(t.Context(), `
		SELECT count(*) FILTER (WHERE token < latest), count(*)
		FROM (SELECT token, max(token) OVER (PARTITION BY name ORDER BY id) AS latest FROM writes) AS w`).Scan(&late, &all)
	check.NoError(t, err, "reading what was written: %v", err)
	check.Equal(t, "late writes", late, 0, "of %d", all)
}

// A process that is frozen while it leads is replaced, and cannot commit when it wakes.
func TestAFrozenProcessIsReplacedAndFenced(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	if _, err := db.Exec(t.Context(), createWrites); err != nil {
		t.Fatal(err)
	}
	frozen := start(t, db, "work")
	frozen.says(t, "leads work 1")
	other := start(t, db, "work")
	frozen.signal(t, syscall.SIGSTOP)
	began := time.Now()
	other.says(t, "leads work 2")
	t.Logf("taken over after %s", time.Since(began))
	frozen.signal(t, syscall.SIGCONT)
	frozen.says(t, "fenced work 1")
	wantInOrder(t, db)
}

// Whatever is killed or frozen, and whenever, nobody writes after a later holder.
func TestNobodyWritesAfterALaterHolder(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	if _, err := db.Exec(t.Context(), createWrites); err != nil {
		t.Fatal(err)
	}
	names := []string{"0", "1", "2", "3", "4"}
	steps := 8
	if testing.Short() {
		steps = 3
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	all := []*process{start(t, db, names...), start(t, db, names...), start(t, db, names...)}
	for _, p := range all {
		p.says(t, "leads")
	}
	for range steps {
		nth := random.IntN(len(all))
		if p := all[nth]; random.IntN(3) == 0 {
			_ = p.Process.Kill()
			all[nth] = start(t, db, names...)
			wantTakenOver(t, db, p)
		} else {
			p.signal(t, syscall.SIGSTOP)
			wantTakenOver(t, db, p)
			p.signal(t, syscall.SIGCONT)
		}
	}
	wantInOrder(t, db)
}

// wantTakenOver waits until others lead all names.
func wantTakenOver(t *testing.T, db *pg.DB, from *process) {
	t.Helper()
	for over := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		var rest int
		err := db.QueryRow(t.Context(), `SELECT count(*) FROM leaders WHERE expires < clock_timestamp() OR holder LIKE $1`,
			fmt.Sprintf("%%/%d/%%", from.Process.Pid)).Scan(&rest)
		if err != nil {
			t.Fatal(err)
		}
		if rest == 0 {
			return
		}
		if time.Now().After(over) {
			t.Fatalf("%d names are led by no other process", rest)
		}
	}
}
