package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// site is a Registrar with two of each program, and everything around it.
type site struct {
	dir      string
	disk     string // a file system of its own for PostgreSQL; "" where there is none
	link     *link  // a slow network to one of the receivers; nil where there is none
	servers  *stack.Servers
	postgres *stack.Postgres
	redis    *stack.Redis
	mail     *stack.MailCatcher
	receiver *stack.Receiver // beside the programs
	distant  *stack.Receiver // behind the link; nil without it
	settings [2]stack.Settings
	programs []*replica
	db       *pgxpool.Pool
}

// replica is one program, and the port that says whether it is ready.
type replica struct {
	*stack.Program

	private int
	env     []string // without the clock's offset
}

const diskSize = 4 << 30

// newSite starts everything. What was started is in the site also when an error comes with it.
func newSite(ctx context.Context, dir string) (*site, error) {
	s := &site{dir: dir}
	root, err := stack.Root()
	if err != nil {
		return s, err
	}
	tools, err := stack.EnsureServers(ctx, os.Stderr)
	if err != nil {
		return s, err
	}
	bin, err := stack.Build(ctx, root)
	if err != nil {
		return s, err
	}
	if err := s.startServers(ctx, tools); err != nil {
		return s, err
	}
	if err := s.startReceivers(ctx); err != nil {
		return s, err
	}
	if err := s.configure(ctx, bin); err != nil {
		return s, err
	}
	return s, s.startPrograms(ctx)
}

func (s *site) startServers(ctx context.Context, tools stack.Tools) error {
	user, err := stack.ServiceUser()
	if err != nil {
		return err
	}
	data, err := stack.TempDir(ctx, user)
	if err != nil {
		return err
	}
	s.disk = data
	if text, err := exec.CommandContext(ctx, "mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d,mode=755", diskSize), "registrar-soak", data).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "no disk of limited size: %s", text)
		s.disk = ""
	}
	s.servers, err = stack.StartServers(ctx, tools, stack.PostgresOptions{Durable: true, Dir: filepath.Join(data, "postgres")}, filepath.Join(s.dir, "logs"))
	if err != nil {
		return err
	}
	s.postgres, s.redis = s.servers.Postgres, s.servers.Redis
	s.mail, err = stack.StartMailCatcher(ctx, stack.MailOptions{Addr: "127.0.0.1:0"})
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
		LogFile: filepath.Join(s.dir, "received.jsonl"), Forget: true, Respond: misbehave})
	if err != nil || s.link == nil {
		return err
	}
	s.distant, err = stack.StartReceiver(ctx, stack.ReceiverOptions{Addr: farAddress + ":0", Certs: certs,
		LogFile: filepath.Join(s.dir, "received-far.jsonl"), Forget: true, Listen: s.link.listen})
	return err
}

// misbehave answers by the end of the path; everything else is well received.
func misbehave(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/fails"):
		w.WriteHeader(http.StatusInternalServerError)
	case strings.HasSuffix(r.URL.Path, "/hangs"):
		stack.Hang(w, r)
	case strings.HasSuffix(r.URL.Path, "/drips"):
		stack.Drip(time.Second)(w, r)
	}
}

func (s *site) configure(ctx context.Context, bin string) error {
	database, err := s.postgres.EnsureDatabase(ctx, "registrar", seal.Token())
	if err != nil {
		return err
	}
	file := filepath.Join(s.dir, "keyset.json")
	if _, err := stack.Keyset(file); err != nil {
		return err
	}
	platformKey := seal.Token()
	for i := range s.settings {
		ports, err := stack.FreeProgramPorts(ctx)
		if err != nil {
			return err
		}
		s.settings[i] = stack.Settings{Bin: bin, LogDir: filepath.Join(s.dir, "logs", fmt.Sprint(i+1)), DatabaseURL: database, RedisURL: s.redis.URL(), SMTPURL: s.mail.URL(),
			PlatformKey: platformKey, KeysetFile: file, CAFile: filepath.Join(s.dir, "certs", "ca.pem"),
			Extra: []string{"LOG_LEVEL=warn", "RATE_LIMIT_PER_SECOND=0", "WEBHOOK_ALLOW_NETWORKS=127.0.0.0/8," + farNetwork},
			Ports: ports}
	}
	if err := stack.Run(ctx, s.settings[0].Migrate()); err != nil {
		return err
	}
	s.db, err = pgxpool.New(ctx, database)
	return err
}

func (s *site) startPrograms(ctx context.Context) error {
	for _, o := range s.settings {
		s.programs = append(s.programs, newReplica(o.APIServer(), o.Ports.APIPrivate), newReplica(o.Worker(), o.Ports.WorkerPrivate),
			newReplica(o.WebhookSender(), o.Ports.SenderPrivate))
	}
	for _, p := range s.programs {
		if err := stack.StartReady(ctx, p.Program, p.private); err != nil {
			return err
		}
	}
	return nil
}

func newReplica(p *stack.Program, private int) *replica {
	return &replica{Program: p, private: private, env: p.Env}
}

// start starts the program with its clock moved.
func (p *replica) start(ctx context.Context, offset time.Duration) error {
	p.Env = append(p.env[:len(p.env):len(p.env)], "CLOCK_OFFSET="+offset.String())
	return stack.StartReady(ctx, p.Program, p.private)
}

// close ends everything and takes the disk and the network away, also when ctx is over.
func (s *site) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var err error
	if s.db != nil {
		s.db.Close()
	}
	for _, p := range s.programs {
		if ended := p.Stop(); !errors.Is(ended, stack.ErrNotRunning) {
			err = errors.Join(err, ended)
		}
	}
	err = errors.Join(err, stopped(s.receiver), stopped(s.distant), stopped(s.mail), stopped(s.servers))
	if s.link != nil {
		err = errors.Join(err, s.link.close(ctx))
	}
	if s.disk != "" {
		err = errors.Join(err, exec.CommandContext(ctx, "umount", s.disk).Run(), os.RemoveAll(s.disk))
	}
	return err
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

// settle waits until nothing is pending to anyone who is well: the backlog of healthy URLs, mails and
// outbox rows. Retries of what failed while something was broken come minutes later.
func (s *site) settle(ctx context.Context, r *report) error {
	const patience = 40 * time.Minute
	began := time.Now()
	for last := time.Now(); ; {
		var deliveries, mails, tasks int
		err := s.db.QueryRow(ctx, `
			SELECT (SELECT count(*) FROM webhook_queue q JOIN webhook_endpoints e ON e.id = q.endpoint_id
			          WHERE e.url LIKE '%/healthy'),
			       (SELECT count(*) FROM emails WHERE status = 'queued'),
			       (SELECT count(*) FROM outbox_tasks WHERE run_at < now() + interval '1 hour') +
			       (SELECT count(*) FROM assignments WHERE due_at < now() + interval '1 hour' AND overdue_at IS NULL AND status IN ('pending', 'in_progress'))`).Scan(&deliveries, &mails, &tasks)
		switch {
		case err != nil:
			return err
		case deliveries+mails+tasks == 0:
			r.settled = time.Since(began)
			return nil
		case time.Since(began) > patience:
			r.find("after %s, %d deliveries to healthy URLs, %d mails and %d tasks are still pending", patience, deliveries, mails, tasks)
			r.settled = time.Since(began)
			return nil
		case time.Since(last) > 30*time.Second:
			fmt.Fprintf(os.Stderr, "settling: %d deliveries, %d mails and %d tasks are pending\n", deliveries, mails, tasks)
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
