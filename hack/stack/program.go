package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Command says how to start a program and how to end it.
type Command struct {
	Name string   // what people call it: "worker"
	Path string   // the executable
	Args []string // without the program's own name
	Env  []string // nil: this process's environment
	Dir  string   // "": this process's folder

	LogFile        string   // standard output and error are appended to it, unless the next two are set
	Stdout, Stderr *os.File // handed on unchanged

	User        *User          // nil: the user of this process
	Isolated    bool           // in surroundings of its own; see SettleIn
	StopSignal  syscall.Signal // asks for an orderly end; default SIGTERM
	CrashSignal syscall.Signal // ends it with no chance to tidy up; default SIGKILL
	StopWithin  time.Duration  // how long an orderly end may take; default 30 s
}

// A Program is a child process that can be started, stopped, killed and started again. It leads
// its own process group, and the kernel ends it when this process dies, however that happens.
type Program struct {
	Command

	mu  sync.Mutex
	run *run
}

// A run is one life of a program.
type run struct {
	cmd      *exec.Cmd
	identity Identity
	logStart int64
	stopping bool
	done     chan struct{}
	err      error // how it ended; to be read after done
}

// ErrNotRunning is returned when a program that does not run is asked to end.
var ErrNotRunning = errors.New("not running")

// NewProgram prepares a program; Start starts it.
func NewProgram(c Command) *Program {
	if c.StopSignal == 0 {
		c.StopSignal = syscall.SIGTERM
	}
	if c.CrashSignal == 0 {
		c.CrashSignal = syscall.SIGKILL
	}
	if c.StopWithin == 0 {
		c.StopWithin = 30 * time.Second
	}
	return &Program{Command: c}
}

// Start starts the program; it fails when it already runs.
func (p *Program) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil && !isClosed(p.run.done) {
		return fmt.Errorf("%s already runs", p.Name)
	}
	r := &run{done: make(chan struct{})}
	cmd := exec.Command(p.Path, p.Args...) //nolint:noctx // its life ends with Stop or Kill, which a context cannot tell apart
	cmd.Env, cmd.Dir = p.Env, p.Dir
	cmd.Stdout, cmd.Stderr = p.Stdout, p.Stderr
	cmd.SysProcAttr = childAttributes(p.StopSignal, p.User)
	if p.Isolated {
		isolate(cmd.SysProcAttr)
	}
	if p.LogFile != "" && p.Stdout == nil {
		log, size, err := openLog(p.LogFile)
		if err != nil {
			return err
		}
		defer log.Close()
		cmd.Stdout, cmd.Stderr, r.logStart = log, log, size
	}
	r.cmd = cmd
	if err := r.start(p.Name); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	p.run = r
	return nil
}

// start starts the process and waits for its end on a thread of its own: the kernel's parent-death
// signal follows the thread that started the child, so that thread has to live as long as the child.
func (r *run) start(name string) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := r.cmd.Start()
		if err == nil {
			r.identity = identify(name, r.cmd.Process.Pid)
		}
		started <- err
		if err == nil {
			r.err = r.cmd.Wait()
			close(r.done)
		}
	}()
	return <-started
}

// childAttributes puts a child into its own process group and has the kernel send it onDeath when
// the thread that started it dies.
func childAttributes(onDeath syscall.Signal, u *User) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: onDeath, Credential: u.credential()}
}

func openLog(name string) (*os.File, int64, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, 0, err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, 0, err
	}
	size, err := f.Seek(0, io.SeekEnd)
	return f, size, err
}

// Stop asks for an orderly end and waits for it. A program that takes longer than StopWithin is
// killed, which is an error; one that has already ended is not.
func (p *Program) Stop() error {
	r := p.ending()
	if r == nil || isClosed(r.done) {
		return nil
	}
	signalGroup(r.identity.PID, p.StopSignal)
	if waitFor(r.done, p.StopWithin) {
		return nil
	}
	signalGroup(r.identity.PID, syscall.SIGKILL)
	<-r.done
	return fmt.Errorf("%s did not stop within %s and was killed", p.Name, p.StopWithin)
}

// Kill ends the program as a crash would and waits until it is gone.
func (p *Program) Kill() error {
	r := p.ending()
	if r == nil || isClosed(r.done) {
		return fmt.Errorf("kill %s: %w", p.Name, ErrNotRunning)
	}
	signalGroup(r.identity.PID, p.CrashSignal)
	<-r.done
	return nil
}

// Signal sends a signal to the program and what it started: SIGSTOP freezes it, SIGCONT thaws it.
func (p *Program) Signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil || isClosed(p.run.done) {
		return fmt.Errorf("signal %s: %w", p.Name, ErrNotRunning)
	}
	return syscall.Kill(-p.run.identity.PID, s)
}

func (p *Program) ending() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil {
		p.run.stopping = true
	}
	return p.run
}

// Exited is closed when the current run has ended, for whatever reason. Before the first Start it
// is closed already.
func (p *Program) Exited() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		gone := make(chan struct{})
		close(gone)
		return gone
	}
	return p.run.done
}

// Asked reports whether the current run was told to end by Stop or Kill.
func (p *Program) Asked() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run != nil && p.run.stopping
}

// Err says how the program ended: nil while it runs and after exit status 0.
func (p *Program) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil || !isClosed(p.run.done) {
		return nil
	}
	return p.run.err
}

// Identity tells the running process from any later one that is given the same number.
func (p *Program) Identity() Identity {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return Identity{Name: p.Name}
	}
	return p.run.identity
}

// LogTail returns the last n lines that the current run wrote.
func (p *Program) LogTail(n int) string {
	p.mu.Lock()
	r := p.run
	p.mu.Unlock()
	if r == nil || p.LogFile == "" {
		return ""
	}
	f, err := os.Open(p.LogFile)
	if err != nil {
		return ""
	}
	defer f.Close()
	const enough = 64 << 10
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	from := max(r.logStart, size-enough)
	text, err := io.ReadAll(io.NewSectionReader(f, from, size-from))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Await calls try until it succeeds. It gives up when the program ends or ctx is done, and then
// says what was last wrong and what the program last wrote.
func (p *Program) Await(ctx context.Context, try func(context.Context) error) error {
	exited := p.Exited()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // a try in progress must not outlive the program
		select {
		case <-exited:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := retry(ctx, try)
	if err == nil {
		return nil
	}
	if isClosed(exited) {
		return fmt.Errorf("%s ended while starting (%s); its last lines:\n%s", p.Name, p.end(), p.LogTail(20))
	}
	return fmt.Errorf("%s did not become ready: %w; its last lines:\n%s", p.Name, err, p.LogTail(20))
}

// startUntil starts the program and returns once ready succeeds. One that does not get there within so long is stopped.
func (p *Program) startUntil(ctx context.Context, within time.Duration, ready func(context.Context) error) error {
	if err := p.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := p.Await(ctx, ready); err != nil {
		return errors.Join(err, p.Stop())
	}
	return nil
}

func (p *Program) end() string {
	if err := p.Err(); err != nil {
		return err.Error()
	}
	return "exit status 0"
}

// retry calls try again and again, with a breath between two calls, until it succeeds or ctx is done.
func retry(ctx context.Context, try func(context.Context) error) error {
	breath := time.NewTicker(20 * time.Millisecond)
	defer breath.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-breath.C:
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func waitFor(c <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
		return false
	}
}
