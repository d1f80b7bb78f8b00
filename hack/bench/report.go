package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/template"
	"time"

	"github.com/prometheus/procfs"

	"github.com/registrar-dev/registrar/hack/stack"
)

// report is what a run leaves behind: each case's figures against what is asked, and its words.
type report struct {
	Began time.Time
	Took  time.Duration
	Scale float64
	Cases []outcome
}

// outcome is what one case came to.
type outcome struct {
	findings
	Name, About string
	Took        time.Duration
	Costs       map[string][]cost
	Said        string
	Err         error
}

// missed counts the figures that did not reach what is asked, and the cases that failed; all counts both.
func (p *report) missed() (n, all int) {
	for _, c := range p.Cases {
		if c.Err != nil {
			n++
			all++
		}
		for _, f := range c.Figures {
			all++
			if !f.Reached {
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
	page := rendered{report: p, Site: where(ctx), Charts: map[string]string{}}
	missed, all := p.missed()
	page.Reached, page.All, page.Beside = all-missed, all, p.beside()
	for _, c := range p.Cases {
		drawn, err := c.writeChart(folder)
		if err != nil {
			return err
		}
		if drawn != "" {
			page.Charts[c.Name] = filepath.Base(folder) + "/" + filepath.Base(drawn)
		}
	}
	var text bytes.Buffer
	if err := pageTemplate.Execute(&text, page); err != nil {
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o644)
}

// rendered is what the template of the report is given.
type rendered struct {
	*report

	Site         site
	Reached, All int
	Beside       []besideBare
	Charts       map[string]string // links, by case
}

// besideBare is a figure of a case that measures a bare limit in the same run.
type besideBare struct{ Case, What, Text string }

// bareLimits are these figures, by their cases.
var bareLimits = map[string]string{
	"webhook-throughput": "deliveries/s",
	"provision":          "creations",
	"roster":             "the import beside a bare COPY",
	"reading":            "results : bare select and encode",
}

func (p *report) beside() (found []besideBare) {
	for _, c := range p.Cases {
		for _, f := range c.Figures {
			if f.What == bareLimits[c.Name] {
				found = append(found, besideBare{c.Name, f.What, f.Text})
			}
		}
	}
	return found
}

//go:embed report.md.tmpl
var pageText string

var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"cell":      cell,
	"round":     round,
	"second":    func(d time.Duration) time.Duration { return d.Round(time.Second) },
	"sentence":  func(words string) string { return strings.ToUpper(words[:1]) + words[1:] },
	"percent":   func(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) },
	"elsewhere": func() string { return elsewhere },
	"mebibyte":  func(n int64) int64 { return n >> 20 },
}).Parse(pageText))

// writeChart draws a case's chart into a folder and says where it is; "" when there is nothing to draw.
func (c *outcome) writeChart(folder string) (string, error) {
	picture, err := c.chart()
	if err != nil || picture == "" {
		return "", err
	}
	file := filepath.Join(folder, c.Name+".svg")
	return file, os.WriteFile(file, []byte(picture), 0o644)
}

// cell keeps words within a cell of a table.
func cell(words string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(words)
}

// site is where a run took place.
type site struct {
	Commit, Machine, Versions string
}

func where(ctx context.Context) site {
	s := site{Commit: command(ctx, "git", "describe", "--always", "--dirty", "--exclude=*"), Machine: machine(ctx), Versions: runtime.Version()}
	if tools, err := stack.EnsureServers(ctx, os.Stderr); err == nil {
		for _, of := range [][]string{{filepath.Join(tools.PostgresBin, "postgres"), "--version"}, {tools.RedisServer, "--version"}} {
			s.Versions += ", " + command(ctx, of[0], of[1:]...)
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
