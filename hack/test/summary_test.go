package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// What go test prints when a test fails, when one waits for too long, and when a package cannot be built.
const printed = `panic: expected
ok  	github.com/registrar-dev/registrar/hack/chart	15.251s
--- FAIL: TestA (0.10s)
    --- FAIL: TestA/part (0.05s)
        a_test.go:7: wrong
--- FAIL: TestB (2.00s)
FAIL
FAIL	github.com/registrar-dev/registrar/internal/a	2.348s
panic: test timed out after 30m0s
	running tests:
		TestC (29m3s)
		TestD (10m1s)

goroutine 1901 [running]:
testing.(*M).startAlarm.func1()
	testing/testing.go:2682 +0x345
created by time.goFunc
	time/sleep.go:215 +0x2d

goroutine 1 [chan receive, 30 minutes]:
testing.tRunner.func1()
	testing/testing.go:1891 +0x4a
testing.tRunner(0xc0001, 0xc0002)
	testing/testing.go:1940 +0x12
testing.(*T).Run(0x2, {0x1, 0x3}, 0x5)
	testing/testing.go:2005 +0x4

goroutine 54 [chan receive, 30 minutes]:
testing.(*testState).waitParallel(0xc0)
	testing/testing.go:2140 +0xaf
testing.(*T).Parallel(0x1)
	testing/testing.go:1698 +0x22a
github.com/registrar-dev/registrar/hack/e2e.TestE(0x2)
	github.com/registrar-dev/registrar/hack/e2e/e_test.go:20 +0x2
testing.tRunner(0xc0001, 0xc0002)
	testing/testing.go:1934 +0xea

goroutine 55 [syscall, 12 minutes]:
os/exec.(*Cmd).Wait(0xc0)
	os/exec/exec.go:922 +0x45
github.com/registrar-dev/registrar/hack/stack.cached({0x1, 0x2})
	github.com/registrar-dev/registrar/hack/stack/fetch.go:80 +0x1
github.com/registrar-dev/registrar/hack/e2e.(*house).lmsOfOthers(0x1)
	/home/me/registrar/hack/e2e/platform_test.go:35 +0x1
testing.tRunner(0xc0001, 0xc0002)
	testing/testing.go:1934 +0xea
created by testing.(*T).Run in goroutine 1
	testing/testing.go:1997 +0x465

goroutine 71 [IO wait]:
net.(*netFD).accept(0x3)
	net/fd_unix.go:150 +0x29
FAIL	github.com/registrar-dev/registrar/hack/e2e	1800.047s
FAIL	github.com/registrar-dev/registrar/worker [build failed]
FAIL`

func TestWhatFailedIsSaidOnceMoreAtTheEnd(t *testing.T) {
	var s summary
	var out, end bytes.Buffer
	check.NoError(t, s.copyFrom(&out, strings.NewReader(printed)), "")
	check.Equal(t, "what comes out", out.String(), printed, "")
	s.write(&end)
	check.Equal(t, "the end", end.String(), `FAILED: github.com/registrar-dev/registrar/internal/a: TestA (0.10s)
FAILED: github.com/registrar-dev/registrar/internal/a: TestB (2.00s)
FAILED: github.com/registrar-dev/registrar/hack/e2e: panic: test timed out after 30m0s
FAILED: github.com/registrar-dev/registrar/hack/e2e: TestC (29m3s)
FAILED: github.com/registrar-dev/registrar/hack/e2e: TestD (10m1s)
FAILED: github.com/registrar-dev/registrar/hack/e2e: a test was [syscall, 12 minutes] at hack/stack/fetch.go:80, /home/me/registrar/hack/e2e/platform_test.go:35
FAILED: github.com/registrar-dev/registrar/worker: [build failed]
`, "")
}

// Who takes the output may be slower than go test, and a program that outlives it may hold the pipe.
func TestOutputIsReadToItsEndAndNoFurther(t *testing.T) {
	t.Parallel()
	printed, prints, err := os.Pipe()
	check.NoError(check.Now(t), err, "")
	defer printed.Close()
	defer prints.Close() // the program that holds it
	over := make(chan struct{})
	close(over)
	_, err = prints.WriteString("the last line\n")
	check.NoError(check.Now(t), err, "")
	check.NoError(check.Now(t), printed.SetReadDeadline(time.Now()), "it was busy with an earlier line when go test ended")
	var s summary
	var out bytes.Buffer
	check.NoError(t, s.copyFrom(&out, output{printed, over, time.Millisecond}), "")
	check.Equal(t, "what comes out", out.String(), "the last line\n", "")
	_, err = printed.Read(make([]byte, 1))
	check.True(t, "the pipe is open", errors.Is(err, os.ErrDeadlineExceeded), "%v", err)
}
