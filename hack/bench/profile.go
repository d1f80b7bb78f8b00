package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// profileEnd is how the names of profiles end: `go tool pprof` reads them.
const profileEnd = ".cpu"

// profiles takes CPU profiles of the running programs into the run's folder, when it has one,
// and returns what waits for them.
func (h *house) profiles(ctx context.Context, r *run, during time.Duration) (wait func()) {
	if r.keep == "" {
		return func() {}
	}
	done := make(chan struct{})
	ports := h.privatePorts()
	for p, port := range ports {
		go func() {
			defer func() { done <- struct{}{} }()
			text, err := private(ctx, port, fmt.Sprintf("/debug/pprof/profile?seconds=%d", max(1, int(during.Seconds()))))
			if err == nil { // else it is stopped
				_ = os.WriteFile(filepath.Join(r.keep, p.Name+profileEnd), text, 0o600) // a profile is a by-product
			}
		}()
	}
	return func() {
		for range ports {
			<-done
		}
	}
}

// wrapper begins the names of functions that hand everybody's statements on: their callers tell more.
const wrapper = "internal/kit/pg."

// own is how the names of the product's functions begin.
const own = "github.com/registrar-dev/registrar/"

// cost is a function's share of a program's CPU time, with what it calls of others: the time
// counts for the product's innermost function on the stack.
type cost struct {
	Function string
	Share    float64
}

// Costs are the most expensive of the product's functions, by program, of the profiles in a folder.
func costs(folder string, most int) (map[string][]cost, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*"+profileEnd))
	if err != nil {
		return nil, err
	}
	all := map[string][]cost{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		p, err := profile.ParseData(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if found := costsOf(p, most); len(found) > 0 {
			all[strings.TrimSuffix(filepath.Base(file), profileEnd)] = found
		}
	}
	return all, nil
}

// mostCosts is how many functions of a program the report names.
const mostCosts = 5

// leastSamples is how many samples tell anything: a hundred are one second of CPU.
const leastSamples = 50

func costsOf(p *profile.Profile, most int) []cost {
	by := map[string]int64{}
	var total, samples int64
	for _, s := range p.Sample {
		v := s.Value[len(s.Value)-1] // the last is the CPU time, in nanoseconds; the first counts samples
		samples, total = samples+s.Value[0], total+v
		by[innermost(s)] += v
	}
	if samples < leastSamples {
		return nil
	}
	var all []cost
	for function, v := range by {
		all = append(all, cost{function, float64(v) / float64(total)})
	}
	slices.SortFunc(all, func(a, b cost) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.Function, b.Function))
	})
	return all[:min(most, len(all))]
}

// elsewhere is where no function of the product is on the stack.
const elsewhere = "the runtime, HTTP servers and task servers by themselves"

func innermost(s *profile.Sample) string {
	for _, l := range s.Location { // the innermost comes first
		for _, line := range l.Line {
			if name, ok := strings.CutPrefix(line.Function.Name, own); ok && !strings.HasPrefix(name, wrapper) {
				return name
			}
		}
	}
	return elsewhere
}

// folder is a case's own of the run's folder, made; "" when the run has none.
func (r *run) folder(name string) (string, error) {
	if r.keep == "" {
		return "", nil
	}
	dir := filepath.Join(r.keep, name)
	return dir, os.MkdirAll(dir, 0o755)
}
