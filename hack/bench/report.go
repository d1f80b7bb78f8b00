package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/registrar-dev/registrar/hack/stack"
)

// report is what a run leaves behind: each case's figures against what is asked, and its words.
type report struct {
	began time.Time
	took  time.Duration
	scale float64
	cases []outcome
}

// outcome is what one case came to.
type outcome struct {
	findings
	name, about string
	took        time.Duration
	costs       map[string][]cost
	said        string
	err         error
}

// missed counts the figures that did not reach what is asked, and the cases that failed; all counts both.
func (p *report) missed() (n, all int) {
	for _, c := range p.cases {
		if c.err != nil {
			n++
			all++
		}
		for _, f := range c.figures {
			all++
			if !f.reached {
				n++
			}
		}
	}
	return n, all
}

// write leaves the report in a file, and the charts in a folder beside it that has its name.
func (p *report) write(ctx context.Context, file string) error {
	folder := strings.TrimSuffix(file, filepath.Ext(file))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	charts := map[string]bool{}
	for _, c := range p.cases {
		drawn, err := c.writeChart(folder)
		if err != nil {
			return err
		}
		charts[c.name] = drawn != ""
	}
	return os.WriteFile(file, p.markdown(where(ctx), func(name string) string {
		if !charts[name] {
			return ""
		}
		return filepath.Base(folder) + "/" + name + ".svg"
	}), 0o644)
}

// writeChart draws a case's chart into a folder and says where it is; "" when there is nothing to draw.
func (c *outcome) writeChart(folder string) (string, error) {
	picture, err := c.chart()
	if err != nil || picture == "" {
		return "", err
	}
	file := filepath.Join(folder, c.name+".svg")
	return file, os.WriteFile(file, []byte(picture), 0o644)
}

// markdown is the report as a page of the documentation; chart gives a case's chart as a link, or "".
func (p *report) markdown(site site, chart func(name string) string) []byte {
	var b bytes.Buffer
	missed, all := p.missed()
	fmt.Fprintf(&b, "# Benchmarks\n\nWhat `make bench` printed. All processes, PostgreSQL with fsync, Redis and the receivers shared the machine. "+
		"Bare limits were measured in the same run. %d of %d figures reached what is asked of them.\n\n", all-missed, all)
	fmt.Fprintf(&b, "| | |\n|---|---|\n| date | %s |\n| commit | %s |\n| machine | %s |\n| versions | %s |\n| scale | %g |\n| duration | %s |\n",
		p.began.UTC().Format("2006-01-02 15:04 UTC"), site.commit, site.machine, site.versions, p.scale, p.took.Round(time.Second))
	if p.scale != 1 {
		b.WriteString("\nThe cases did not have their full size: these are no results, but a look.\n")
	}
	b.WriteString("\n| case | figure | asked | measured | |\n|---|---|---|---|---|\n")
	for _, c := range p.cases {
		for _, f := range c.figures {
			fmt.Fprintf(&b, "| [%s](#%s) | %s | %s | %s | %s |\n", c.name, c.name, cell(f.what), cell(f.asked), cell(f.text), strings.ReplaceAll(f.word(), "MISSED", "**missed**"))
		}
		if c.err != nil {
			fmt.Fprintf(&b, "| [%s](#%s) | | | %s | **failed** |\n", c.name, c.name, cell(c.err.Error()))
		}
	}
	for _, c := range p.cases {
		c.section(&b, chart(c.name))
	}
	return b.Bytes()
}

// section tells of one case.
func (c outcome) section(b *bytes.Buffer, chart string) {
	fmt.Fprintf(b, "\n## %s\n\n%s. It took %s.\n", c.name, strings.ToUpper(c.about[:1])+c.about[1:], c.took.Round(time.Second))
	if chart != "" {
		fmt.Fprintf(b, "\n![%s](%s)\n", cell(c.about), chart)
	}
	if len(c.steps) > 0 {
		b.WriteString("\n| calls | number | a second | p50 | p90 | p99 | longest |\n|---|--:|--:|--:|--:|--:|--:|\n")
	}
	for _, s := range c.steps {
		rate := ""
		if s.rate > 0 {
			rate = fmt.Sprintf("%.0f", s.rate)
		}
		fmt.Fprintf(b, "| %s | %d | %s | %s | %s | %s | %s |\n", cell(s.name), len(s.times), rate,
			round(s.times.at(.5)), round(s.times.at(.9)), round(s.times.at(.99)), round(s.times.last()))
	}
	var peaks []string
	for _, name := range slices.Sorted(maps.Keys(c.peaks)) {
		peaks = append(peaks, fmt.Sprintf("%s %d MiB", name, c.peaks[name]>>20))
	}
	if len(peaks) > 0 {
		fmt.Fprintf(b, "\nPeak memory: %s.\n", strings.Join(peaks, ", "))
	}
	c.profiles(b)
	fmt.Fprintf(b, "\n<details><summary>What it printed</summary>\n\n```text\n%s```\n\n</details>\n", c.said)
}

// profiles tells where the programs' CPU time went.
func (c outcome) profiles(b *bytes.Buffer) {
	if len(c.costs) == 0 {
		return
	}
	b.WriteString("\nWhere CPU time went, by the product's innermost function, what it calls of libraries included:\n\n| program | share | function |\n|---|--:|---|\n")
	for _, program := range slices.Sorted(maps.Keys(c.costs)) {
		for _, f := range c.costs[program] {
			name := "`" + f.function + "`"
			if f.function == elsewhere {
				name = elsewhere
			}
			fmt.Fprintf(b, "| %s | %.1f %% | %s |\n", program, 100*f.share, name)
		}
	}
}

// cell keeps words within a cell of a table.
func cell(words string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(words)
}

// site is where a run took place.
type site struct {
	commit, machine, versions string
}

func where(ctx context.Context) site {
	s := site{commit: command(ctx, "git", "describe", "--always", "--dirty", "--exclude=*"), machine: machine(ctx), versions: runtime.Version()}
	if tools, err := stack.EnsureServers(ctx, os.Stderr); err == nil {
		for _, of := range [][]string{{filepath.Join(tools.PostgresBin, "postgres"), "--version"}, {tools.RedisServer, "--version"}} {
			s.versions += ", " + command(ctx, of[0], of[1:]...)
		}
	}
	return s
}

// machine describes where it ran, in a line.
func machine(ctx context.Context) string {
	model, memory := runtime.GOARCH, ""
	if proc, err := procfs.NewDefaultFS(); err == nil {
		if cores, err := proc.CPUInfo(); err == nil && len(cores) > 0 && cores[0].ModelName != "" {
			model = cores[0].ModelName
		}
		if info, err := proc.Meminfo(); err == nil && info.MemTotal != nil {
			memory = fmt.Sprintf(", %.1f GiB of memory", float64(*info.MemTotal)/(1<<20))
		}
	}
	return fmt.Sprintf("%d cores of %s%s, %s %s", runtime.NumCPU(), model, memory, command(ctx, "uname", "-s"), command(ctx, "uname", "-r"))
}

// command is what a command prints; "unknown" where there is none such.
func command(ctx context.Context, name string, args ...string) string {
	text, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}
