package stack_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// The test binary itself plays the programs that are started, stopped and killed.
func TestMain(m *testing.M) {
	switch os.Getenv("STACK_TEST_PLAY") {
	case "":
		os.Exit(m.Run())
	case "orderly":
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		fmt.Println("running")
		<-asked
		fmt.Println("tidied up")
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("running")
		waitToBeKilled()
	case "failing":
		fmt.Println("cannot find the thing")
		os.Exit(3)
	case "supervisor":
		superviseOneChild()
	}
}

// superviseOneChild starts a child, tells its identity, and waits to be killed.
func superviseOneChild() {
	child := play("orderly", "")
	if err := child.Start(); err != nil {
		panic(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(child.Identity()); err != nil {
		panic(err)
	}
	waitToBeKilled()
}

// waitToBeKilled waits for no event: to Go, a program without cgo whose goroutines all wait for one is stuck.
func waitToBeKilled() {
	for {
		time.Sleep(time.Hour)
	}
}

func play(role, log string) *stack.Program {
	c := stack.Command{
		Name:    role,
		Path:    os.Args[0],
		Env:     append(os.Environ(), "STACK_TEST_PLAY="+role),
		LogFile: log,
	}
	if role == "stubborn" {
		c.StopWithin = 50 * time.Millisecond
	}
	return stack.NewProgram(c)
}

func startPlaying(t *testing.T, role string) *stack.Program {
	t.Helper()
	p := play(role, filepath.Join(t.TempDir(), "log"))
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	err := p.Await(t.Context(), func(context.Context) error {
		if !strings.Contains(p.LogTail(5), "running") {
			return errors.New("it has not said that it runs")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProgramStopsInOrderAndStartsAgain(t *testing.T) {
	t.Parallel()
	p := startPlaying(t, "orderly")
	first := p.Identity()
	if !first.Alive() {
		t.Fatal("a running program is not alive")
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := p.LogTail(1); got != "tidied up" {
		t.Errorf("last line = %q: it was not asked to end", got)
	}
	if check.False(t, "the program is alive", first.Alive(), "after Stop: alive %v, asked %v, err %v", first.Alive(), p.Asked(), p.Err()) &&
		check.True(t, "the program was asked to end", p.Asked(), "after Stop: alive %v, asked %v, err %v", first.Alive(), p.Asked(), p.Err()) {
		check.NoError(t, p.Err(), "after Stop: alive %v, asked %v, err %v", first.Alive(), p.Asked(), p.Err())
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if check.True(t, "the second run has another identity", p.Identity() != first, "the second run is told apart neither by identity nor by Asked") {
		check.False(t, "the program was asked to end", p.Asked(), "the second run is told apart neither by identity nor by Asked")
	}
	if got := p.LogTail(5); strings.Contains(got, "tidied up") {
		t.Errorf("the second run's log holds the first one's lines: %q", got)
	}
}

func TestProgramStopKillsWhoDoesNotListen(t *testing.T) {
	t.Parallel()
	p := startPlaying(t, "stubborn")
	if err := p.Stop(); check.True(t, "there is an error", err != nil, "Stop = %v, want that it was killed", err) {
		check.Contains(t, "the error", err.Error(), "was killed", "Stop = %v, want that it was killed", err)
	}
	if p.Identity().Alive() {
		t.Error("it still runs")
	}
}

func TestProgramKill(t *testing.T) {
	t.Parallel()
	p := startPlaying(t, "orderly")
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(p.LogTail(5), "tidied up") {
		t.Error("a killed program had time to tidy up")
	}
	if err := p.Kill(); !errors.Is(err, stack.ErrNotRunning) {
		t.Errorf("second Kill = %v", err)
	}
}

func TestAwaitReportsAProgramThatEnds(t *testing.T) {
	t.Parallel()
	p := play("failing", filepath.Join(t.TempDir(), "log"))
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	err := p.Await(t.Context(), func(context.Context) error { return errors.New("never ready") })
	if check.True(t, "there is an error", err != nil, "Await = %v, want the exit status and the last lines", err) &&
		check.Contains(t, "the error", err.Error(), "exit status 3", "Await = %v, want the exit status and the last lines", err) {
		check.Contains(t, "the error", err.Error(), "cannot find the thing", "Await = %v, want the exit status and the last lines", err)
	}
}

func TestChildrenDieWithAKilledSupervisor(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("only Linux has a parent-death signal")
	}
	supervisor := exec.CommandContext(t.Context(), os.Args[0])
	supervisor.Env = append(os.Environ(), "STACK_TEST_PLAY=supervisor")
	out, err := supervisor.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := supervisor.Start(); err != nil {
		t.Fatal(err)
	}
	var child stack.Identity
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&child); err != nil {
		t.Fatal(err)
	}
	if !child.Alive() {
		t.Fatal("the child does not run")
	}
	if err := supervisor.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = supervisor.Wait() // "signal: killed"
	if !child.Gone(10 * time.Second) {
		t.Error("the child outlived its supervisor")
	}
}

func TestIdentityEndsAForeignProcess(t *testing.T) {
	t.Parallel()
	p := startPlaying(t, "stubborn")
	stranger := p.Identity()
	stranger.Started += "0"
	if stranger.Alive() {
		t.Error("another process of the same number counts as the same")
	}
	if err := stranger.End(time.Millisecond); check.NoError(t, err, "End of a stranger = %v; it must leave the process alone", err) {
		check.True(t, "the program is alive", p.Identity().Alive(), "End of a stranger = %v; it must leave the process alone", err)
	}
	if err := p.Identity().End(50 * time.Millisecond); err != nil {
		t.Error(err)
	}
	if p.Identity().Alive() {
		t.Error("it still runs")
	}
}

func TestFreePort(t *testing.T) {
	t.Parallel()
	port, err := stack.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if stack.PortFree(port) {
		t.Error("a port with a listener counts as free")
	}
}

// A process that is being started has all sockets of this one until its program runs.
func TestAFreePortIsFreeWhileProgramsStart(t *testing.T) {
	t.Parallel()
	var over atomic.Bool
	var starters sync.WaitGroup
	defer starters.Wait()
	defer over.Store(true)
	for range 4 {
		starters.Go(func() {
			for !over.Load() {
				if err := exec.CommandContext(t.Context(), "true").Run(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 400 {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", freePort(t)))
		check.NoError(check.Now(t), err, "")
		check.NoError(t, l.Close(), "")
	}
}

// So many draws of so few ports would not all differ by chance: nobody listens on them yet.
func TestAFreePortIsGivenOnce(t *testing.T) {
	t.Parallel()
	ports, err := stack.FreePorts(t.Context(), 400)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ports)
	if different := slices.Compact(ports); len(different) != 400 {
		t.Errorf("%d of 400 ports differ", len(different))
	}
}

func TestAUsualPortIsGivenUnlessItIsTaken(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", freePort(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	got := func(usual int) int {
		ports, err := stack.UsualPorts(t.Context(), usual)
		if err != nil {
			t.Fatal(err)
		}
		return ports[0]
	}
	if got(taken) == taken {
		t.Error("a port with a listener was given")
	}
	// Another process may take one of these ports at any moment, but not every one of them.
	for usual := 15500; usual < 15600; usual++ {
		if got(usual) == usual {
			return
		}
	}
	t.Error("no usual port was given")
}
