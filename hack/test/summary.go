package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"
)

// A summary says at the end what has failed: what go test prints of it may stand thousands of lines above, and of a test
// that waits for too long it prints every goroutine.
type summary struct {
	failed []string // of all packages

	tests []string // of the package whose output is read
	dump  bool     // goroutines are printed, and before them the tests that ran when go test lost its patience
	stack []string // of the goroutine whose lines are read
}

var (
	failedTest    = regexp.MustCompile(`^--- FAIL: (\S+ \(.*\))`)
	failedPackage = regexp.MustCompile(`^FAIL\t(\S+)(.*)`)
	goroutine     = regexp.MustCompile(`^goroutine \d+.* \[(.*)\]:$`)
)

const module = "github.com/registrar-dev/registrar/"

// output is what go test prints. It ends with go test: what a test has left running may hold the pipe for longer.
type output struct {
	*os.File

	over  <-chan struct{} // closed with go test's end
	quiet time.Duration   // when nothing comes for so long after it, nothing more is waited for
}

// Read fails with os.ErrDeadlineExceeded when nothing more comes.
func (o output) Read(b []byte) (int, error) {
	select {
	case <-o.over:
		if err := o.SetReadDeadline(time.Now().Add(o.quiet)); err != nil { // anew: who takes the output may be slow
			return 0, err
		}
	default:
	}
	return o.File.Read(b)
}

// copyFrom hands on what go test prints, unchanged, and reads it on the way.
func (s *summary) copyFrom(out io.Writer, from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if _, err := io.WriteString(out, line); err != nil {
			return err
		}
		s.read(strings.TrimSuffix(line, "\n"))
		if err == io.EOF || errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *summary) read(line string) {
	if found := failedPackage.FindStringSubmatch(line); found != nil {
		s.endStack()
		if len(s.tests) == 0 {
			s.tests = []string{strings.TrimSpace(found[2])} // "[build failed]", or how long it took to end without a test's name
		}
		for _, test := range s.tests {
			s.failed = append(s.failed, found[1]+": "+test)
		}
		s.tests, s.dump = nil, false
		return
	}
	if strings.HasPrefix(line, "ok  \t") { // what looked like a failure was printed by a test that expects it
		s.stack, s.tests, s.dump = nil, nil, false
		return
	}
	if found := failedTest.FindStringSubmatch(line); found != nil {
		s.tests = append(s.tests, found[1])
		return
	}
	switch {
	case strings.HasPrefix(line, "panic: "):
		s.dump = true
		s.tests = append(s.tests, line)
	case !s.dump:
	case s.stack == nil && strings.HasPrefix(line, "\t\t"):
		s.tests = append(s.tests, strings.TrimSpace(line))
	case strings.HasPrefix(line, "goroutine "):
		s.endStack()
		s.stack = []string{line}
	case line == "":
		s.endStack()
	case s.stack != nil:
		s.stack = append(s.stack, line)
	}
}

// endStack notes where a test was, by the lines of this repository, the innermost first.
func (s *summary) endStack() {
	lines := s.stack
	s.stack = nil
	all := strings.Join(lines, "\n")
	if !strings.Contains(all, "\ntesting.tRunner(") || strings.Contains(all, "\ntesting.(*T).Parallel(") || strings.Contains(all, "\ntesting.(*T).Run(") {
		return
	}
	var at []string
	for i, line := range lines[:len(lines)-1] {
		if strings.HasPrefix(line, module) { // a function; its place is on the next line
			place, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
			at = append(at, strings.TrimPrefix(place, module))
		}
	}
	state := goroutine.FindStringSubmatch(lines[0])
	if len(at) > 0 && state != nil {
		s.tests = append(s.tests, fmt.Sprintf("a test was [%s] at %s", state[1], strings.Join(at, ", ")))
	}
}

// write prints the summary, if anything has failed.
func (s *summary) write(out io.Writer) {
	for _, line := range s.failed {
		fmt.Fprintln(out, "FAILED:", line)
	}
}
