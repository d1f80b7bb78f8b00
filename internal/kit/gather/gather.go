// Package gather lets calls that come one by one go together. While a set of calls is worked on, others
// arrive, and they are the next set: nobody waits for company, and the more callers there are, the less
// each of them costs.
//
// A call has a key. The calls of a key are done in the order in which they came, and never in two sets at
// once. Sets take calls of the waiting keys in turns, so a key with many calls does not keep those of
// others waiting.
package gather

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// ErrFull is for a caller who would only wait in vain: too many wait already.
var ErrFull = fault.New(fault.Unavailable, "overloaded", "too many requests at once; send the same request again after the time in Retry-After")

// Group gathers calls. Its fields are set before the first call and stay as they are.
type Group[K comparable, T, R any] struct {
	// Run does a set of calls and returns an answer for each, in their order: also what is wrong with a
	// single one. Its error means that nothing was done for any of them. The context has the values of
	// the set's first call, and lives for Limit: it does not end when callers hang up.
	Run func(ctx context.Context, of []T) ([]R, error)
	// Apart says whether an error of Run may be the fault of single calls; a panic may always be. Each key's
	// calls are then a set of their own, and if that fails, too, each call is.
	Apart func(error) bool

	Sets    int           // how many run at once
	Size    int           // how many calls one has at most
	Waiting int           // how many calls wait at most, of all keys
	Limit   time.Duration // how long Run may take

	mu      sync.Mutex
	running int
	waiting int
	lines   map[K]*line[K, T, R]
	ready   []*line[K, T, R] // with calls that wait, and none that is worked on; whose turn it is comes first
}

// New makes a group whose sets are transactions of requests. While one is committed, another one is worked out.
// A set may take longer than a request, so a caller who waits for long learns of that first.
func New[K comparable, T, R any](run func(ctx context.Context, of []T) ([]R, error)) *Group[K, T, R] {
	return &Group[K, T, R]{Run: run, Apart: pg.Refused, Sets: 2, Size: 256, Waiting: 4096, Limit: time.Minute}
}

// line is a key's calls.
type line[K comparable, T, R any] struct {
	key   K
	busy  bool // some of its calls are worked on
	calls []*call[T, R]
}

type call[T, R any] struct {
	ctx    context.Context // whose values its set may take over
	of     T
	answer chan answer[R]
}

type answer[R any] struct {
	value R
	err   error
}

// Do does one call, together with those that wait as well, and returns its answer. When ctx ends, Do
// returns its cause: a call that still waited is not done then, and one that was being worked on may be.
func (g *Group[K, T, R]) Do(ctx context.Context, key K, of T) (R, error) {
	c := &call[T, R]{ctx: ctx, of: of, answer: make(chan answer[R], 1)}
	l, err := g.enter(key, c)
	if err != nil {
		var none R
		return none, err
	}
	select {
	case a := <-c.answer:
		return a.value, a.err
	case <-ctx.Done():
		g.leave(l, c)
		var none R
		return none, context.Cause(ctx)
	}
}

// Len is how many calls wait.
func (g *Group[K, T, R]) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting
}

func (g *Group[K, T, R]) enter(key K, c *call[T, R]) (*line[K, T, R], error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting >= g.Waiting {
		return nil, ErrFull
	}
	if g.lines == nil {
		g.lines = map[K]*line[K, T, R]{}
	}
	l := g.lines[key]
	if l == nil {
		l = &line[K, T, R]{key: key}
		g.lines[key] = l
	}
	l.calls = append(l.calls, c)
	g.waiting++
	if len(l.calls) == 1 && !l.busy {
		g.ready = append(g.ready, l)
	}
	g.start()
	return l, nil
}

// leave takes a call back that still waits.
func (g *Group[K, T, R]) leave(l *line[K, T, R], c *call[T, R]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(l.calls, c)
	if i < 0 {
		return // it is being worked on, or done
	}
	l.calls = slices.Delete(l.calls, i, i+1)
	g.waiting--
	if len(l.calls) == 0 && !l.busy {
		g.ready = slices.DeleteFunc(g.ready, func(o *line[K, T, R]) bool { return o == l })
		delete(g.lines, l.key)
	}
}

// start starts a set if there is one and it may. The caller holds the lock.
func (g *Group[K, T, R]) start() {
	if g.running < g.Sets && len(g.ready) > 0 {
		g.running++
		go g.work()
	}
}

// work does set after set until nothing waits.
func (g *Group[K, T, R]) work() {
	for {
		set := g.take()
		if set == nil {
			return
		}
		g.serve(set)
	}
}

// part is the calls of one key in a set.
type part[K comparable, T, R any] struct {
	line  *line[K, T, R]
	calls []*call[T, R]
}

// take makes a set of what waits: a call of each key, then another one of each, until it is full. It
// returns nil, and the worker has ended, when nothing waits.
func (g *Group[K, T, R]) take() []*part[K, T, R] {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.ready) == 0 {
		g.running--
		return nil
	}
	var set []*part[K, T, R]
	parts := map[*line[K, T, R]]*part[K, T, R]{}
	for size := 0; size < g.Size && len(g.ready) > 0; size++ {
		l := g.ready[0]
		g.ready = g.ready[1:]
		p := parts[l]
		if p == nil {
			p = &part[K, T, R]{line: l}
			parts[l], l.busy, set = p, true, append(set, p)
		}
		p.calls, l.calls = append(p.calls, l.calls[0]), l.calls[1:]
		g.waiting--
		if len(l.calls) > 0 {
			g.ready = append(g.ready, l)
		}
	}
	g.ready = slices.DeleteFunc(g.ready, func(l *line[K, T, R]) bool { return l.busy })
	g.start() // another set for those that had no room in this one
	return set
}

// free makes the key's next calls ready.
func (g *Group[K, T, R]) free(l *line[K, T, R]) {
	l.busy = false
	if len(l.calls) > 0 {
		g.ready = append(g.ready, l)
	} else {
		delete(g.lines, l.key)
	}
}

// done frees the lines and only then answers the calls, whose callers may call again at once.
func (g *Group[K, T, R]) done(set []*part[K, T, R], answers []answer[R]) {
	g.mu.Lock()
	for _, p := range set {
		g.free(p.line)
	}
	g.start()
	g.mu.Unlock()
	for i, c := range calls(set) {
		c.answer <- answers[i]
	}
}

func calls[K comparable, T, R any](set []*part[K, T, R]) []*call[T, R] {
	if len(set) == 1 {
		return set[0].calls
	}
	var all []*call[T, R]
	for _, p := range set {
		all = append(all, p.calls...)
	}
	return all
}

// serve does a set. One that fails comes apart into its keys, each of which then takes its own time, while
// the next set is worked on.
func (g *Group[K, T, R]) serve(set []*part[K, T, R]) {
	answers, err := g.try(calls(set))
	switch {
	case err == nil || !g.apart(err) || len(set) == 1 && len(set[0].calls) == 1:
		g.done(set, answers)
	case len(set) == 1:
		g.singly(set[0])
	default:
		for _, p := range set {
			go func() {
				own := []*part[K, T, R]{p}
				answers, err := g.try(p.calls)
				if err != nil && g.apart(err) && len(p.calls) > 1 {
					g.singly(p)
					return
				}
				g.done(own, answers)
			}()
		}
	}
}

func (g *Group[K, T, R]) apart(err error) bool { return errors.Is(err, ErrPanic) || g.Apart(err) }

// singly does a key's calls one after the other.
func (g *Group[K, T, R]) singly(p *part[K, T, R]) {
	answers := make([]answer[R], len(p.calls))
	for i, c := range p.calls {
		if c.ctx.Err() != nil { // its caller is gone
			continue
		}
		one, _ := g.try(p.calls[i : i+1])
		answers[i] = one[0]
	}
	g.done([]*part[K, T, R]{p}, answers)
}

// try runs the calls. Each has an answer, which is the error if there is one.
func (g *Group[K, T, R]) try(calls []*call[T, R]) ([]answer[R], error) {
	of := make([]T, len(calls))
	for i, c := range calls {
		of[i] = c.of
	}
	values, err := g.run(calls[0].ctx, of)
	answers := make([]answer[R], len(calls))
	for i := range answers {
		if err != nil {
			answers[i].err = err
			continue
		}
		answers[i].value = values[i]
	}
	return answers, err
}

// ErrPanic is a panic of Run, whose text and stack are in the error.
var ErrPanic = errors.New("gather: panic")

func (g *Group[K, T, R]) run(ctx context.Context, of []T) (values []R, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.Limit)
	defer cancel()
	defer func() {
		if p := recover(); p != nil { // a request's own goroutine would have survived it
			err = fmt.Errorf("%w: %v\n%s", ErrPanic, p, debug.Stack())
		}
	}()
	return g.Run(ctx, of)
}
