package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
)

// cpuTimes is the CPU time that each part has used, so that where the time goes can be told on a
// machine that does other things as well.
type cpuTimes map[string]time.Duration

// cpu reads /proc; elsewhere it knows nothing.
func (h *house) cpu() cpuTimes {
	times := cpuTimes{"bench": procTime(os.Getpid())}
	for name, p := range map[string]*stack.Program{"api-server": h.api, "worker": h.worker, "sender": h.sender} {
		times[name] = procTime(p.Identity().PID)
	}
	times["postgres"] = familyTime(h.postgres.Identity().PID)
	times["redis"] = familyTime(h.redis.PID())
	return times
}

// since says what each part used after before, per n things.
func (c cpuTimes) since(before cpuTimes, n int) string {
	var parts []string
	var total time.Duration
	for _, name := range []string{"postgres", "redis", "sender", "worker", "api-server", "bench"} {
		used := c[name] - before[name]
		total += used
		parts = append(parts, fmt.Sprintf("%s %d", name, (used/time.Duration(n)).Microseconds()))
	}
	return fmt.Sprintf("%d µs (%s)", (total / time.Duration(n)).Microseconds(), strings.Join(parts, ", "))
}

// procTime is the CPU time of one process, in ticks of 10 ms.
func procTime(pid int) time.Duration {
	fields := statOf(pid)
	if len(fields) < 15 {
		return 0
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, _ := strconv.ParseInt(f, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// statOf is /proc/<pid>/stat after the name, which may hold spaces.
func statOf(pid int) []string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

// familyTime adds up a process and its children, ended ones included.
func familyTime(pid int) time.Duration {
	total := procTime(pid)
	if fields := statOf(pid); len(fields) > 15 {
		for _, f := range fields[13:15] {
			n, _ := strconv.ParseInt(f, 10, 64)
			total += time.Duration(n) * 10 * time.Millisecond
		}
	}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if fields := statOf(child); len(fields) > 2 && fields[1] == strconv.Itoa(pid) {
			total += procTime(child)
		}
	}
	return total
}
