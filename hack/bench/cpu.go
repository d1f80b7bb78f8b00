package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/registrar-dev/registrar/hack/stack"
)

// cpuTimes is the CPU time that each part has used, so that where the time goes can be told on a
// machine that does other things as well.
type cpuTimes map[string]time.Duration

// cpu reads the times of all parts in /proc.
func (h *house) cpu() cpuTimes {
	times := cpuTimes{"bench": procTime(os.Getpid())}
	for name, p := range map[string]*stack.Program{"api-server": h.api, "worker": h.worker, "sender": h.sender} {
		times[name] = procTime(p.Identity().PID)
	}
	times["postgres"] = familyTime(h.Postgres.Identity().PID)
	times["redis"] = familyTime(h.Redis.Identity().PID)
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

// verdictsOfCPU judges what each part used after before, per one of n things.
func (r *run) verdictsOfCPU(per string, used, before cpuTimes, n int, most cpuTimes) {
	for _, part := range slices.Sorted(maps.Keys(most)) {
		each := (used[part] - before[part]) / time.Duration(n)
		r.verdict("CPU "+per+" of "+part, each <= most[part], "at most "+most[part].String(), "%s", round(each))
	}
}

// procTime is the CPU time of one process; 0 where /proc does not say.
func procTime(pid int) time.Duration {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0
	}
	stat, err := p.Stat()
	if err != nil {
		return 0
	}
	return seconds(stat.CPUTime())
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// familyTime adds up a process and its children, ended ones included.
func familyTime(pid int) time.Duration {
	const ticks = 100 // a second
	total := procTime(pid)
	all, _ := procfs.AllProcs()
	for _, p := range all {
		stat, err := p.Stat()
		switch {
		case err != nil: // it has ended meanwhile
		case stat.PID == pid:
			total += seconds(float64(stat.CUTime+stat.CSTime) / ticks)
		case stat.PPID == pid:
			total += seconds(stat.CPUTime())
		}
	}
	return total
}

// peakRSS is the most memory that a process has held, in bytes; 0 where /proc does not say.
func peakRSS(pid int) int64 { return int64(status(pid).VmHWM) }

// residentMemory is what a process holds now, in bytes; 0 where /proc does not say.
func residentMemory(pid int) int64 { return int64(status(pid).VmRSS) }

func status(pid int) procfs.ProcStatus {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return procfs.ProcStatus{}
	}
	status, _ := p.NewStatus() // empty when the process has ended
	return status
}
