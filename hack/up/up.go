package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
)

const receiverPath = "/webhooks"

// A supervisor starts the parts one after the other, keeps them running, and stops them in the
// opposite order.
type supervisor struct {
	site
	out *progress

	mu         sync.Mutex
	processes  []*stack.Program // those that run, in the order of their start
	stops      []func() error   // of all parts, in the same order
	supervised sync.WaitGroup
}

// A step starts one of the parts.
type step struct {
	name string
	run  func(ctx, keep context.Context) (detail string, err error)
}

// registrar is the whole of Registrar under a supervisor.
type registrar struct {
	*supervisor

	state    *state
	settings stack.Settings

	postgres *stack.Postgres
	redis    *stack.Redis
	mail     *stack.MailCatcher
	receiver *stack.Receiver
}

// up starts everything, says so, and stays until ctx is done. ready is called once all is ready.
func (s site) up(ctx context.Context, out *progress, ready func()) error {
	busy, err := s.lock(false)
	if err != nil {
		return err
	}
	if busy {
		return s.showRunning(out)
	}
	v := &supervisor{site: s, out: out}
	keep, release := context.WithCancel(ctx)
	err = v.endLeftovers(out)
	switch {
	case err != nil:
	case s.part == kubePart:
		err = (&kube{supervisor: v}).startAll(ctx, keep)
	default:
		err = (&registrar{supervisor: v}).startAll(ctx, keep)
	}
	if err == nil {
		ready()
		<-ctx.Done()
		v.out.printf("\nStopping.\n")
	}
	release()
	v.supervised.Wait()
	return errors.Join(err, v.stopAll())
}

// startAll starts the parts; those that are processes are started again when they end by
// themselves, until keep is done.
func (v *registrar) startAll(ctx, keep context.Context) error {
	if err := v.prepare(ctx); err != nil {
		return err
	}
	err := v.runSteps(ctx, keep,
		step{"Programs built", v.build},
		step{"PostgreSQL", v.startPostgres},
		step{"Redis", v.startRedis},
		step{"Mail catcher", v.startMail},
		step{"Webhook receiver", v.startReceiver},
		step{"Schema", v.migrate},
		step{"webhook-sender", v.startSender},
		step{"worker", v.startWorker},
		step{"api-server", v.startAPI},
		step{"Demo organization", v.seed},
	)
	if err != nil {
		return err
	}
	err = errors.Join(
		writeFile(v.own("summary"), []byte(v.summary())),
		writeFile(v.path("env"), []byte(v.environment())),
	)
	v.out.show("\n" + v.summary())
	return err
}

func (v *supervisor) runSteps(ctx, keep context.Context, steps ...step) error {
	began := time.Now()
	for _, s := range steps {
		start := time.Now()
		detail, err := s.run(ctx, keep)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		v.out.step(s.name, detail, time.Since(start))
	}
	v.out.step("Ready", "", time.Since(began))
	return nil
}

// prepare settles everything that the parts are told.
func (v *registrar) prepare(ctx context.Context) error {
	var err error
	if v.state, err = v.loadState(); err != nil {
		return err
	}
	if err := v.state.choosePorts(ctx, portNames); err != nil {
		return err
	}
	if err := v.saveState(v.state); err != nil {
		return err
	}
	if err := v.record(); err != nil {
		return err
	}
	keyset, err := v.keyset()
	if err != nil {
		return err
	}
	ports := v.state.Ports
	v.settings = stack.Settings{
		LogDir:      v.path("logs"),
		KeysetFile:  keyset,
		PlatformKey: v.state.PlatformKey,
		Ports: stack.Ports{
			API: ports[portAPI], Platform: ports[portPlatform], APIPrivate: ports[portAPIPrivate],
			WorkerPrivate: ports[portWorkerPrivate], SenderPrivate: ports[portSenderPrivate],
		},
	}
	return nil
}

func (v *registrar) build(ctx, _ context.Context) (string, error) {
	var err error
	v.settings.Bin, err = stack.Build(ctx, v.root)
	return "", err
}

func (v *registrar) startPostgres(ctx, keep context.Context) (string, error) {
	tools, err := stack.EnsureServers(ctx, v.out)
	if err != nil {
		return "", err
	}
	user, err := stack.ServiceUser()
	if err != nil {
		return "", err
	}
	dir, moved, err := stack.PostgresDir(ctx, v.path(), user)
	if err != nil {
		return "", err
	}
	v.postgres, err = stack.StartPostgres(ctx, stack.PostgresOptions{
		Bin: tools.PostgresBin, User: user, Dir: dir, Port: v.state.Ports[portPostgres],
		Password: v.state.PostgresPassword, Durable: true, LogFile: v.path("logs", "postgres.log"),
	})
	if err != nil {
		return "", err
	}
	v.keep(keep, v.postgres.Program, v.postgres.Start)
	v.settings.DatabaseURL, err = v.postgres.EnsureDatabase(ctx, "registrar", v.state.DatabasePassword)
	if err != nil {
		return "", err
	}
	v.settings.SandboxURL, err = v.postgres.EnsureSandboxes(ctx, "registrar_sandboxes", v.state.DatabasePassword)
	detail := fmt.Sprintf("port %d", v.state.Ports[portPostgres])
	if moved {
		detail += fmt.Sprintf(", data in %s because user %s may not enter this folder", dir, user.Name)
	}
	return detail, err
}

func (v *registrar) startRedis(ctx, keep context.Context) (string, error) {
	tools, err := stack.EnsureServers(ctx, v.out)
	if err != nil {
		return "", err
	}
	v.redis, err = stack.StartRedis(ctx, stack.RedisOptions{
		Server: tools.RedisServer, Port: v.state.Ports[portRedis], LogFile: v.path("logs", "redis.log"),
	})
	if err != nil {
		return "", err
	}
	v.settings.RedisURL = v.redis.URL()
	v.keep(keep, v.redis.Program, v.redis.Start)
	return fmt.Sprintf("port %d", v.state.Ports[portRedis]), nil
}

func (v *registrar) startMail(ctx, _ context.Context) (string, error) {
	var err error
	v.mail, err = stack.StartMailCatcher(ctx, stack.MailOptions{
		Addr: v.listenOn(portSMTP), Dir: v.path("mail"), Forget: true,
	})
	if err != nil {
		return "", err
	}
	v.stops = append(v.stops, v.mail.Stop)
	v.settings.SMTPURL = v.mail.URL()
	return "mail stays in .registrar/mail", nil
}

func (v *registrar) startReceiver(ctx, _ context.Context) (string, error) {
	certs, err := stack.LoadCerts(v.path("tls"))
	if err != nil {
		return "", err
	}
	v.receiver, err = stack.StartReceiver(ctx, stack.ReceiverOptions{
		Addr: v.listenOn(portReceiver), Certs: certs, LogFile: v.path("receiver.jsonl"), Forget: true,
	})
	if err != nil {
		return "", err
	}
	v.stops = append(v.stops, v.receiver.Stop)
	v.settings.CAFile = certs.CAFile
	return "requests are logged in .registrar/receiver.jsonl", nil
}

func (v *registrar) listenOn(port string) string {
	return fmt.Sprintf("127.0.0.1:%d", v.state.Ports[port])
}

func (v *registrar) migrate(ctx, _ context.Context) (string, error) {
	return "", stack.Run(ctx, v.settings.Migrate())
}

func (v *registrar) startSender(ctx, keep context.Context) (string, error) {
	return "", v.startProgram(ctx, keep, v.settings.WebhookSender(), v.settings.Ports.SenderPrivate)
}

func (v *registrar) startWorker(ctx, keep context.Context) (string, error) {
	return "", v.startProgram(ctx, keep, v.settings.Worker(), v.settings.Ports.WorkerPrivate)
}

func (v *registrar) startAPI(ctx, keep context.Context) (string, error) {
	return v.settings.PublicURL(), v.startProgram(ctx, keep, v.settings.APIServer(), v.settings.Ports.APIPrivate)
}

func (v *supervisor) startProgram(ctx, keep context.Context, p *stack.Program, port int) error {
	start := func(ctx context.Context) error { return stack.StartReady(ctx, p, port) }
	if err := start(ctx); err != nil {
		return err
	}
	v.keep(keep, p, start)
	return nil
}

// keep adds a process that runs to those that are stopped in the end, and starts it again, after a
// moment, whenever it ends by itself.
func (v *supervisor) keep(ctx context.Context, p *stack.Program, start func(context.Context) error) {
	v.mu.Lock()
	v.processes = append(v.processes, p)
	v.stops = append(v.stops, p.Stop)
	v.mu.Unlock()
	v.complain(v.record())
	v.supervised.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-p.Exited():
			}
			v.out.printf("%s ended (%s); it is started again.\n", p.Name, ending(p))
			v.startAgain(ctx, p, start)
		}
	})
}

// startAgain tries, ever more slowly, until the process runs or ctx is done.
func (v *supervisor) startAgain(ctx context.Context, p *stack.Program, start func(context.Context) error) {
	const shortest, longest = 2 * time.Second, 30 * time.Second
	for pause := shortest; ; pause = min(2*pause, longest) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		err := start(ctx)
		if err == nil {
			v.out.printf("%s runs again.\n", p.Name)
			v.complain(v.record())
			return
		}
		if ctx.Err() == nil {
			v.complain(err)
		}
	}
}

func ending(p *stack.Program) string {
	if err := p.Err(); err != nil {
		return err.Error()
	}
	return "exit status 0"
}

func (v *supervisor) complain(err error) {
	if err != nil {
		v.out.printf("%v\n", err)
	}
}

// record writes down which processes run, for a `make down` after this one was killed.
func (v *supervisor) record() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := running{Supervisor: stack.Self("supervisor")}
	for _, p := range v.processes {
		r.Parts = append(r.Parts, p.Identity())
	}
	return v.saveRunning(r)
}

// stopAll stops the parts in the opposite order of their start.
func (v *supervisor) stopAll() error {
	var errs []error
	for _, stop := range slices.Backward(v.stops) {
		errs = append(errs, stop())
	}
	return errors.Join(append(errs, v.forgetRunning())...)
}

// forgetRunning removes what is only true while the stack runs.
func (s site) forgetRunning() error {
	var errs []error
	names := []string{s.own("summary"), s.own("running.json")}
	if s.part == kubePart {
		names = append(names, s.path("kubeconfig"))
	} else {
		names = append(names, s.path("env"))
	}
	for _, name := range names {
		if err := os.Remove(name); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// progress is where the supervisor speaks to people.
type progress struct {
	mu sync.Mutex
	to io.Writer
}

func (p *progress) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.to.Write(text)
}

// redirect sends what follows elsewhere.
func (p *progress) redirect(to io.Writer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = to
}

func (p *progress) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (p *progress) show(text string) { fmt.Fprint(p, text) }

func (p *progress) step(name, detail string, took time.Duration) {
	p.printf("%6.1f s  %-18s %s\n", took.Seconds(), name, detail)
}
