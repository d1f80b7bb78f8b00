package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// site is a Registrar with several of each program, and everything around it.
type site struct {
	dir       string
	link      *link // a slow network to one of the receivers; nil where there is none
	database  *database
	redis     *stack.Redis          // one server; nil with Sentinels
	sentinels *stack.RedisSentinels // nil without them
	mail      *stack.MailCatcher
	receiver  *stack.Receiver // beside the programs
	distant   *stack.Receiver // behind the link; nil without it
	settings  []stack.Settings
	servers   []stack.Settings // those of api-servers
	programs  []*replica
	versions  versions
	healed    atomic.Pointer[time.Time] // since when flaky receivers fail no more; nil: they do
	db        *pgxpool.Pool
	product   *pg.DB // the same database with the product's own code
}

// replica is one program, and the port that says whether it is ready.
type replica struct {
	*stack.Program

	private int
	env     []string // without the clock's offset
	title   string   // "worker 2"
}

// newSite starts everything. What was started is in the site also when an error comes with it.
func newSite(ctx context.Context, o options, dir string) (*site, error) {
	s := &site{dir: dir}
	root, err := stack.Root()
	if err != nil {
		return s, err
	}
	tools, err := stack.EnsureServers(ctx, os.Stderr)
	if err != nil {
		return s, err
	}
	if s.versions, err = buildVersions(ctx, root, o.before, dir); err != nil {
		return s, err
	}
	logs := filepath.Join(dir, "logs")
	if s.database, err = startDatabase(ctx, tools, o, logs); err != nil {
		return s, err
	}
	if err := s.startRedis(ctx, tools, o, logs); err != nil {
		return s, err
	}
	if s.mail, err = stack.StartMailCatcher(ctx, stack.MailOptions{Addr: "127.0.0.1:0"}); err != nil {
		return s, err
	}
	if err := s.startReceivers(ctx); err != nil {
		return s, err
	}
	if err := s.configure(ctx, o); err != nil {
		return s, err
	}
	return s, s.startPrograms(ctx, o)
}

func (s *site) startRedis(ctx context.Context, tools stack.Tools, o options, logs string) (err error) {
	if o.sentinels {
		s.sentinels, err = stack.StartRedisSentinels(ctx, stack.RedisSet{Server: tools.RedisServer, Dir: filepath.Join(logs, "redis")})
		return err
	}
	port, err := stack.FreePort(ctx)
	if err != nil {
		return err
	}
	s.redis, err = stack.StartRedis(ctx, stack.RedisOptions{Server: tools.RedisServer, Port: port, LogFile: filepath.Join(logs, "redis.log")})
	return err
}

func (s *site) startReceivers(ctx context.Context) error {
	var err error
	if s.link, err = newLink(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "no slow network:", err)
		s.link = nil
	}
	certs, err := stack.LoadCerts(filepath.Join(s.dir, "certs"), farAddress)
	if err != nil {
		return err
	}
	s.receiver, err = stack.StartReceiver(ctx, stack.ReceiverOptions{Addr: "127.0.0.1:0", Certs: certs,
		LogFile: filepath.Join(s.dir, nearLog), Forget: true, Respond: s.misbehave})
	if err != nil || s.link == nil {
		return err
	}
	s.distant, err = stack.StartReceiver(ctx, stack.ReceiverOptions{Addr: farAddress + ":0", Certs: certs,
		LogFile: filepath.Join(s.dir, farLog), Forget: true, Listen: s.link.listen})
	return err
}

// What the receivers received.
const nearLog, farLog = "received.jsonl", "received-far.jsonl"

// misbehave answers by the end of the path; everything else is well received.
func (s *site) misbehave(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/fails"):
		w.WriteHeader(http.StatusInternalServerError)
	case strings.HasSuffix(r.URL.Path, "/hangs"):
		stack.Hang(w, r)
	case strings.HasSuffix(r.URL.Path, "/drips"):
		stack.Drip(time.Second)(w, r)
	case strings.HasSuffix(r.URL.Path, "/flaky") && s.healed.Load() == nil && refuses(r.Header.Get("X-Service-Signature")):
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// refuses says whether a flaky receiver fails that attempt: three in ten, by the signature, which differs from second
// to second, so that the log alone says it later.
func refuses(signature string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(signature)) // never fails
	return h.Sum32()%10 < 3
}

func (s *site) configure(ctx context.Context, o options) error {
	file := filepath.Join(s.dir, "keyset.json")
	if _, err := stack.Keyset(file); err != nil {
		return err
	}
	extra := []string{"LOG_LEVEL=warn", "RATE_LIMIT_PER_SECOND=0", "WEBHOOK_ALLOW_NETWORKS=127.0.0.0/8," + farNetwork,
		"SCHEMA_WAIT=3m"} // as in the chart: a program may start while PostgreSQL is away
	if s.sentinels != nil {
		extra = append(extra, s.sentinels.Environment()...)
	} else {
		extra = append(extra, "REDIS_URL="+s.redis.URL())
	}
	platformKey := seal.Token()
	for i := range max(o.servers, o.workers, o.senders) {
		ports, err := stack.FreeProgramPorts(ctx)
		if err != nil {
			return err
		}
		s.settings = append(s.settings, stack.Settings{Bin: s.versions.first(), LogDir: filepath.Join(s.dir, "logs", fmt.Sprint(i+1)), DatabaseURL: s.database.programs, SandboxURL: s.database.sandboxes,
			SMTPURL: s.mail.URL(), PlatformKey: platformKey, KeysetFile: file, CAFile: filepath.Join(s.dir, "certs", "ca.pem"), Extra: extra, Ports: ports})
	}
	s.servers = s.settings[:o.servers]
	if err := s.migrate(ctx, s.versions.first()); err != nil {
		return err
	}
	var err error
	if s.db, err = pgxpool.New(ctx, s.database.direct); err != nil {
		return err
	}
	s.product, err = pg.Open(ctx, s.database.direct)
	return err
}

// owner are settings for what needs PostgreSQL's own address.
func (s *site) owner(bin string) stack.Settings {
	o := s.settings[0]
	o.Bin, o.DatabaseURL = bin, s.database.direct
	return o
}

func (s *site) migrate(ctx context.Context, bin string) error {
	return stack.Run(ctx, s.owner(bin).Migrate())
}

func (s *site) startPrograms(ctx context.Context, o options) error {
	for i, of := range s.settings {
		for _, p := range []struct {
			here    bool
			program *stack.Program
			private int
		}{
			{i < o.servers, of.APIServer(), of.Ports.APIPrivate},
			{i < o.workers, of.Worker(), of.Ports.WorkerPrivate},
			{i < o.senders, of.WebhookSender(), of.Ports.SenderPrivate},
		} {
			if p.here {
				s.programs = append(s.programs, &replica{Program: p.program, private: p.private, env: p.program.Env, title: fmt.Sprintf("%s %d", p.program.Name, i+1)})
			}
		}
	}
	for _, p := range s.programs {
		if err := p.start(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}

// start starts the program with its clock moved. A machine that is busy may take several tries.
func (p *replica) start(ctx context.Context, offset time.Duration) error {
	p.Env = append(p.env[:len(p.env):len(p.env)], "CLOCK_OFFSET="+offset.String())
	return patiently(ctx, func() error { return stack.StartReady(ctx, p.Program, p.private) })
}

// patiently tries a few times: what is asked for has a time of its own, which others' work on this machine may use up.
func patiently(ctx context.Context, try func() error) (err error) {
	for range 4 {
		if err = try(); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// close ends everything and takes the network away, also when ctx is over.
func (s *site) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var err error
	if s.db != nil {
		s.db.Close()
	}
	if s.product != nil {
		s.product.Close()
	}
	for _, p := range s.programs {
		if ended := p.Stop(); !errors.Is(ended, stack.ErrNotRunning) {
			err = errors.Join(err, ended)
		}
	}
	err = errors.Join(err, stopped(s.receiver), stopped(s.distant), stopped(s.mail), stopped(s.redis), stopped(s.sentinels), s.database.close(ctx))
	if s.link != nil {
		err = errors.Join(err, s.link.close(ctx))
	}
	return errors.Join(err, s.versions.remove(ctx))
}

// stopped ends a server that was started.
func stopped[T any, S interface {
	*T
	Stop() error
}](server S) error {
	if server == nil {
		return nil
	}
	return server.Stop()
}

// settle has flaky receivers fail no more, and waits until nothing is pending to anyone who is well: the backlog of healthy URLs, mails, marks and
// outbox rows. Retries of what failed while something was broken come minutes later; those that are due later still, after many
// failures in a row, are brought forward.
func (s *site) settle(ctx context.Context, r *report) error {
	const patience = 40 * time.Minute
	const well = `(e.url LIKE '%/healthy' OR e.url LIKE '%/flaky')`
	const soon = `
		UPDATE webhook_queue SET due_at = now() FROM webhook_endpoints e
		WHERE e.id = endpoint_id AND ` + well + ` AND due_at > now() + interval '15 minutes'`
	began := time.Now()
	s.healed.Store(&began)
	for last := time.Now(); ; {
		var deliveries, mails, marks, tasks int
		err := s.db.QueryRow(ctx, `
			SELECT (SELECT count(*) FROM webhook_queue q JOIN webhook_endpoints e ON e.id = q.endpoint_id
			          WHERE `+well+`),
			       (SELECT count(*) FROM emails WHERE status = 'queued'),
			       (SELECT count(*) FROM lms_marks WHERE due_at IS NOT NULL OR in_hand OR sent_version <> version),
			       (SELECT count(*) FROM outbox_tasks WHERE run_at < now() + interval '1 hour') +
			       (SELECT count(*) FROM assignments WHERE due_at < now() + interval '1 hour' AND overdue_at IS NULL AND status IN ('pending', 'in_progress'))`).Scan(&deliveries, &mails, &marks, &tasks)
		r.settled = time.Since(began)
		switch {
		case err != nil:
			return err
		case deliveries+mails+marks+tasks == 0:
			return nil
		case time.Since(began) > patience:
			r.find("after %s, %d deliveries to healthy URLs, %d mails, %d marks and %d tasks are still pending", patience, deliveries, mails, marks, tasks)
			return nil
		case time.Since(last) > 30*time.Second:
			if _, err := s.db.Exec(ctx, soon); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "settling: %d deliveries, %d mails, %d marks and %d tasks are pending\n", deliveries, mails, marks, tasks)
			last = time.Now()
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// gauge reads a number from a program's metrics; false when it is not there.
func (p *replica) gauge(ctx context.Context, name string) (string, bool) {
	text, err := stack.Get(ctx, fmt.Sprintf("http://127.0.0.1:%d/metrics", p.private))
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// versions are the programs of this checkout, and those of the commit before.
type versions struct {
	now    string // folders of programs
	before string // "": there are none
	commit string // of before

	root, tree string // the checkout, and where the commit before was checked out
}

// first is what the run begins with.
func (v versions) first() string {
	if v.before != "" {
		return v.before
	}
	return v.now
}

func buildVersions(ctx context.Context, root, before, dir string) (v versions, err error) {
	v.root = root
	if v.now, err = stack.Build(ctx, root); err != nil || before == "" {
		return v, err
	}
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...)
		text, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, text)
		}
		return strings.TrimSpace(string(text)), err
	}
	if v.commit, err = git("rev-parse", "--short", before); err != nil {
		return v, err
	}
	tree, err := filepath.Abs(filepath.Join(dir, "before"))
	if err != nil {
		return v, err
	}
	if _, err := git("worktree", "add", "--detach", tree, v.commit); err != nil {
		return v, err
	}
	v.tree = tree
	v.before, err = stack.Build(ctx, tree)
	return v, err
}

// remove takes the commit before away.
func (v versions) remove(ctx context.Context) error {
	if v.tree == "" {
		return nil
	}
	return exec.CommandContext(ctx, "git", "-C", v.root, "worktree", "remove", "--force", v.tree).Run()
}
