package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// report is what a run leaves behind: each case's figures against their bounds, and its words.
type report struct {
	began time.Time
	cases []outcome
}

// outcome is what one case came to.
type outcome struct {
	name, about string
	took        time.Duration
	figures     []figure
	said        string
	err         error
}

// figure is one measured thing beside its bound.
type figure struct {
	what, text string
	reached    bool
}

// missed counts the figures that did not reach their bound, and the cases that failed.
func (p *report) missed() (n int) {
	for _, c := range p.cases {
		if c.err != nil {
			n++
		}
		for _, f := range c.figures {
			if !f.reached {
				n++
			}
		}
	}
	return n
}

// markdown is the report as a page of the documentation.
func (p *report) markdown(ctx context.Context, scale float64) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Benchmarks\n\nWhat `make bench` printed on %s, at commit %s, on %s. All processes, PostgreSQL with fsync, Redis and the receivers shared that machine.\n",
		p.began.UTC().Format(time.DateOnly), command(ctx, "git", "rev-parse", "--short", "HEAD"), machine(ctx))
	if scale != 1 {
		fmt.Fprintf(&b, "The cases had %g of their full size: these are no results, but a look.\n", scale)
	}
	b.WriteString("\n| case | what | | measured |\n|---|---|---|---|\n")
	for _, c := range p.cases {
		for _, f := range c.figures {
			verdict := "reached"
			if !f.reached {
				verdict = "**missed**"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.name, f.what, verdict, strings.ReplaceAll(f.text, "|", `\|`))
		}
		if c.err != nil {
			fmt.Fprintf(&b, "| %s | | **failed** | %s |\n", c.name, c.err)
		}
	}
	for _, c := range p.cases {
		fmt.Fprintf(&b, "\n## %s\n\n%s. It took %s.\n\n```text\n%s```\n", c.name, strings.ToUpper(c.about[:1])+c.about[1:], c.took.Round(time.Second), c.said)
	}
	return b.Bytes()
}

// machine describes where it ran, in a line.
func machine(ctx context.Context) string {
	model := runtime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	memory := ""
	if info, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kib int
		if _, err := fmt.Sscanf(string(info), "MemTotal: %d kB", &kib); err == nil {
			memory = fmt.Sprintf(", %d GiB", kib>>20)
		}
	}
	return fmt.Sprintf("%d cores of %s%s, %s %s, %s", runtime.NumCPU(), model, memory, command(ctx, "uname", "-s"), command(ctx, "uname", "-r"), runtime.Version())
}

// command is what a command prints; "unknown" where there is none such.
func command(ctx context.Context, name string, args ...string) string {
	text, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}
