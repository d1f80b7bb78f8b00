package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/registrar-dev/registrar/hack/stack"
)

// errSaid ends with status 1 after the reason has been shown already.
var errSaid = errors.New("failed")

// detach starts this program again as a supervisor that belongs to no terminal, shows what it says,
// and returns once it is ready or has failed.
func (s site) detach(ctx context.Context, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.path("logs", s.part+"up.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	readyRead, readyWrite, err := os.Pipe()
	if err != nil {
		return err
	}
	defer readyRead.Close()
	cmd := exec.Command(self, append(s.flags(), "-supervised")...) //nolint:noctx // it outlives this process
	cmd.Dir = s.root
	cmd.Stderr = log
	cmd.ExtraFiles = []*os.File{readyWrite}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	progress, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	err = errors.Join(cmd.Start(), readyWrite.Close())
	if err != nil {
		return err
	}
	giveUp := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer giveUp()
	if _, err := io.Copy(out, progress); err != nil {
		return err
	}
	if word, err := io.ReadAll(readyRead); err != nil || string(word) == "ready" {
		return err
	}
	if cmd.Wait() != nil { // it has said why
		return errSaid
	}
	return nil // something runs already
}

// flags are those by which this program knows the part again.
func (s site) flags() []string {
	if s.part == kubePart {
		return []string{"-kube"}
	}
	return nil
}

// supervise is the background half of detach: standard output is read until all is ready, then the
// log takes over.
func (s site) supervise(ctx context.Context) error {
	const readyFD = 3
	unix.CloseOnExec(readyFD) // the other side waits until nobody has it any more
	out := &progress{to: os.Stdout}
	err := s.up(ctx, out, func() {
		out.redirect(os.Stderr) // the log
		signal := os.NewFile(readyFD, "ready")
		_, err := signal.WriteString("ready")
		if err = errors.Join(err, signal.Close(), os.Stdout.Close()); err != nil {
			out.printf("%v\n", err)
		}
	})
	if err != nil {
		out.printf("\n%v\n", err)
		return errSaid
	}
	return nil
}

// down stops what runs and waits until nothing does.
func (s site) down(out io.Writer) error {
	r, err := s.loadRunning()
	if err != nil {
		return err
	}
	busy, err := s.lock(false)
	if err != nil {
		return err
	}
	if !busy && len(r.Parts) == 0 {
		fmt.Fprintln(out, "Nothing runs.")
		return nil
	}
	if busy {
		if err := s.endSupervisor(r.Supervisor); err != nil {
			return err
		}
	}
	if err := s.endLeftovers(out); err != nil {
		return err
	}
	if s.part == kubePart {
		fmt.Fprintln(out, "Kubernetes and the operator are stopped. The URLs stay registered.")
		return nil
	}
	fmt.Fprintln(out, "Everything is stopped. The data stay in .registrar for the next `make up`.")
	return nil
}

// endSupervisor asks the supervisor to stop its parts and itself. Its lock falls when it is gone.
func (s site) endSupervisor(i stack.Identity) error {
	const patience = 2 * time.Minute
	if i.Signal(syscall.SIGTERM) != nil {
		return errors.New("another `make` of this kind is at work; try again when it has ended")
	}
	gone := make(chan error, 1)
	go func() {
		_, err := s.lock(true)
		gone <- err
	}()
	select {
	case err := <-gone:
		return err
	case <-time.After(patience):
		return i.End(0)
	}
}

// endLeftovers ends what outlived a supervisor that was killed.
func (s site) endLeftovers(out io.Writer) error {
	r, err := s.loadRunning()
	if err != nil {
		return err
	}
	var errs []error
	for _, part := range r.Parts {
		if part.Alive() {
			fmt.Fprintf(out, "Ending %s (process %d), left by a supervisor that was killed.\n", part.Name, part.PID)
			errs = append(errs, part.End(30*time.Second))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return s.forgetRunning()
}
