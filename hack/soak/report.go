package main

import (
	"context"
	"fmt"
	"maps"
	"os"
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
	checks   []string
	notes    map[string]int
	findings []string
}

func count(m *map[string]int, key string) {
	if *m == nil {
		*m = map[string]int{}
	}
	(*m)[key]++
}

func (r *report) accepted(kind string) { r.locked(func() { count(&r.ops, kind) }) }
func (r *report) fault(name string)    { r.locked(func() { count(&r.faults, name) }) }
func (r *report) note(text string)     { r.locked(func() { count(&r.notes, text) }) }

func (r *report) retried(status int) {
	name := fmt.Sprintf("answered %d", status)
	if status == 0 {
		name = "without an answer"
	}
	r.locked(func() { count(&r.retries, name) })
}

func (r *report) checked(what string, n int) {
	r.locked(func() { r.checks = append(r.checks, fmt.Sprintf("%s: %d", what, n)) })
}

// find is something lost or wrong.
func (r *report) find(format string, args ...any) {
	const enough = 1000 // a roster's file is longer than anyone reads
	text := fmt.Sprintf(format, args...)
	if len(text) > enough {
		text = text[:enough/2] + " … " + text[len(text)-enough/2:]
	}
	fmt.Fprintln(os.Stderr, "FOUND:", text)
	r.locked(func() { r.findings = append(r.findings, text) })
}

func (r *report) locked(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// watch says now and then how far it is.
func (r *report) watch(ctx context.Context, l *load) {
	for pause(ctx, 30*time.Second) == nil {
		r.locked(func() {
			fmt.Fprintf(os.Stderr, "%s of %s: %d calls accepted, %d tries made again, %d faults, %d findings\n",
				time.Since(r.began).Round(time.Second), l.options.lasting, sum(r.ops), sum(r.retries), sum(r.faults), len(r.findings))
		})
	}
}

func sum(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}

func (r *report) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	verdict := "Nothing was lost and nothing was wrong."
	if len(r.findings) > 0 {
		verdict = fmt.Sprintf("%d findings.", len(r.findings))
	}
	fmt.Fprintf(&b, "# Soak of %s\n\n%s Things broke for %s under the calls of %d clients and a school's files; then it took %s until nothing was pending.\n"+
		"Two api-servers, two workers and two senders ran, each with a clock of its own, up to 90 s before or behind. Seed %d.\n",
		r.began.UTC().Format(time.DateOnly), verdict, r.broke.Round(time.Second), r.options.clients, r.settled.Round(time.Second), r.seed)
	if r.site.disk == "" {
		b.WriteString("There was no disk of limited size.\n")
	}
	if r.site.link == nil {
		b.WriteString("There was no slow network.\n")
	}
	table(&b, "Accepted calls", "call", r.ops)
	table(&b, "Tries made again", "because they were", r.retries)
	table(&b, "Faults", "what broke", r.faults)
	if len(r.notes) > 0 {
		table(&b, "Notes", "what was seen", r.notes)
	}
	list(&b, "Held against the model", r.checks)
	if len(r.findings) > 0 {
		list(&b, "Findings", r.findings)
	}
	return b.String()
}

func table(b *strings.Builder, title, what string, m map[string]int) {
	fmt.Fprintf(b, "\n## %s\n\n| %s | times |\n|---|---|\n", title, what)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(b, "| %s | %d |\n", key, m[key])
	}
	fmt.Fprintf(b, "| together | %d |\n", sum(m))
}

func list(b *strings.Builder, title string, lines []string) {
	fmt.Fprintf(b, "\n## %s\n\n", title)
	for _, line := range lines {
		fmt.Fprintf(b, "- %s\n", line)
	}
}
