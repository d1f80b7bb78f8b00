package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// report gathers what a run did and found.
type report struct {
	mu       sync.Mutex
	began    time.Time
	broke    time.Duration // how long things were broken
	settled  time.Duration // how long it took until nothing was pending
	seed     uint64
	options  options
	site     *site
	ops      map[string]int
	faults   map[string]int
	retries  map[string]int
	restores []restored
	counts   []string
	tallies  map[string]int
	notes    map[string]int
	findings []string
	rules    []verdict
	times    timeline
}

// verdict is what became of a rule.
type verdict struct {
	rule     string
	checked  []string
	findings int
}

// duringTheRun is the rule that whatever is found is about while things break.
const duringTheRun = "calls are answered as the model says, and programs end only when they are told to"

func newReport(o options, s *site) *report {
	return &report{began: time.Now(), seed: o.seed, options: o, site: s, rules: []verdict{{rule: duringTheRun}}, tallies: map[string]int{}}
}

func count(m *map[string]int, key string) {
	if *m == nil {
		*m = map[string]int{}
	}
	(*m)[key]++
}

func (r *report) accepted(kind string) {
	r.locked(func() { count(&r.ops, kind); r.times.called() })
}

func (r *report) fault(f fault, began time.Time) {
	r.locked(func() { count(&r.faults, f.name); r.times.broke(f.kind, began, time.Now()) })
}

func (r *report) note(text string) { r.locked(func() { count(&r.notes, text) }) }

func (r *report) retried(status int) {
	name := fmt.Sprintf("answered %d", status)
	if status == 0 {
		name = "without an answer"
	}
	r.locked(func() { count(&r.retries, name); r.times.retried() })
}

// hold holds a rule: what is checked and found meanwhile is about it.
func (r *report) hold(rule string, part func() error) error {
	r.locked(func() { r.rules = append(r.rules, verdict{rule: rule}) })
	return part()
}

// checked says how many of a thing were held against the present rule.
func (r *report) checked(what string, n int) {
	r.locked(func() {
		last := &r.rules[len(r.rules)-1]
		last.checked = append(last.checked, fmt.Sprintf("%s %s", thousands(n), what))
	})
}

// counted says how many of a thing there were.
func (r *report) counted(what string, n int) {
	r.locked(func() { r.counts = append(r.counts, fmt.Sprintf("%s: %s", what, thousands(n))) })
}

// tally adds to a count.
func (r *report) tally(what string, n int) { r.locked(func() { r.tallies[what] += n }) }

// Of what healthy URLs accept, so much may come twice: what a sender that was killed had in hand. Among few events, that says
// nothing of the service.
const mostTwice, tooFew = 0.005, 50_000

// twice holds how many events came twice.
func (r *report) twice(total, twice int) {
	r.checked(fmt.Sprintf("of %s events came twice: %.3f %%", thousands(total), 100*float64(twice)/float64(max(total, 1))), twice)
	switch {
	case total < tooFew:
		r.note(fmt.Sprintf("fewer than %s events: the share of those that come twice is not held against its bound of %.1f %%", thousands(tooFew), 100*mostTwice))
	case float64(twice) > mostTwice*float64(total):
		r.find("%d of %d events were accepted twice, %.1f %% may be", twice, total, 100*mostTwice)
	}
}

// find is something lost or wrong.
func (r *report) find(format string, args ...any) {
	const enough, most = 1000, 200 // a roster's file is longer than anyone reads
	text := fmt.Sprintf(format, args...)
	if len(text) > enough {
		text = text[:enough/2] + " … " + text[len(text)-enough/2:]
	}
	r.locked(func() {
		if r.rules[len(r.rules)-1].findings++; len(r.findings) < most {
			fmt.Fprintln(os.Stderr, "FOUND:", text)
			r.findings = append(r.findings, text)
		}
	})
}

func (r *report) locked(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// watch samples the backlog, and says now and then how far it is.
func (r *report) watch(ctx context.Context) {
	for n := 0; pause(ctx, sampled) == nil; n++ {
		asked, cancel := context.WithTimeout(ctx, 2*time.Second)
		healthy, err := r.site.backlog(asked)
		cancel()
		r.locked(func() {
			if err == nil {
				r.times.waits(healthy)
			}
			if n%6 == 5 {
				fmt.Fprintf(os.Stderr, "%s of %s: %d calls accepted, %d tries made again, %d faults, %d findings\n",
					time.Since(r.began).Round(time.Second), r.options.lasting, sum(r.ops), sum(r.retries), sum(r.faults), len(r.findings))
			}
		})
	}
}

func sum(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}

// broken is how many findings there are.
func (r *report) broken() (n int) {
	for _, v := range r.rules {
		n += v.findings
	}
	return n
}

func (r *report) text(picture string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	result := "Nothing was lost and nothing was wrong."
	if n := r.broken(); n > 0 {
		result = fmt.Sprintf("%d findings.", n)
	}
	o := r.options
	fmt.Fprintf(&b, "# Soak of %s\n\n%s Things broke for %s under the calls of %d clients, a school's files and an LMS; then it took %s until nothing was pending.\n\n",
		r.began.UTC().Format(time.DateOnly), result, r.broke.Round(time.Second), o.clients, r.settled.Round(time.Second))
	fmt.Fprintf(&b, "%d api-servers, %d workers and %d webhook-senders ran on %s and %s, each with a clock of its own, up to 90 s before or behind, and "+
		"minutes where it jumped. %s organizations had students, and there were %s webhook URLs, of which %d took requests and never answered. %d sandboxes lived a year an hour. Seed %d.\n",
		o.servers, o.workers, o.senders, r.site.database, r.site.redisName(), thousands(o.organizations), thousands(o.urls), o.hanging, o.sandboxes, r.seed)
	if r.site.versions.before != "" {
		fmt.Fprintf(&b, "Programs were rolled out from %s and back.\n", r.site.versions.commit)
	}
	if r.site.link == nil {
		b.WriteString("There was no slow network to receivers.\n")
	}
	if picture != "" {
		fmt.Fprintf(&b, "\n![Over the time of the run: faults by their kind, calls and tries made again, how long deliveries took, and the backlog.](%s)\n", picture)
	}
	b.WriteString("\n## Rules\n\n| rule | held against it | |\n|---|---|---|\n")
	for _, v := range r.rules {
		word := "held"
		if v.findings > 0 {
			word = fmt.Sprintf("**broken: %d**", v.findings)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", v.rule, strings.Join(v.checked, "; "), word)
	}
	if len(r.findings) > 0 {
		list(&b, "Findings", r.findings)
	}
	for _, what := range slices.Sorted(maps.Keys(r.tallies)) {
		r.counts = append(r.counts, fmt.Sprintf("%s: %s", what, thousands(r.tallies[what])))
	}
	r.tallies = nil
	list(&b, "Counts", r.counts)
	table(&b, "Faults", "what broke", r.faults)
	table(&b, "Accepted calls", "call", r.ops)
	table(&b, "Tries made again", "because they were", r.retries)
	if len(r.notes) > 0 {
		table(&b, "Notes", "what was seen", r.notes)
	}
	return b.String()
}

// write writes the report, and its picture beside it.
func (r *report) write(file string) (text string, err error) {
	if file == "" {
		return r.text(""), nil
	}
	folder := strings.TrimSuffix(file, ".md")
	drawn, err := r.times.draw(r.began)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(folder, "run.svg"), []byte(drawn), 0o644); err != nil {
		return "", err
	}
	text = r.text(filepath.Base(folder) + "/run.svg")
	return text, os.WriteFile(file, []byte(text), 0o644)
}

func table(b *strings.Builder, title, what string, m map[string]int) {
	fmt.Fprintf(b, "\n## %s\n\n| %s | times |\n|---|---|\n", title, what)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(b, "| %s | %s |\n", key, thousands(m[key]))
	}
	fmt.Fprintf(b, "| together | %s |\n", thousands(sum(m)))
}

func list(b *strings.Builder, title string, lines []string) {
	fmt.Fprintf(b, "\n## %s\n\n", title)
	for _, line := range lines {
		fmt.Fprintf(b, "- %s\n", line)
	}
}

// thousands writes a number with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
