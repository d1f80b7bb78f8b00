package stack

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// A Journal keeps what a server received, in order, and lets a test wait for more.
type Journal[T any] struct {
	mu      sync.Mutex
	entries []T
	grown   chan struct{} // closed and replaced at each entry
}

func (j *Journal[T]) add(entry T) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, entry)
	if j.grown != nil {
		close(j.grown)
		j.grown = nil
	}
}

// All returns what was received so far.
func (j *Journal[T]) All() []T {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries)
}

// Matching returns what was received so far and satisfies match.
func (j *Journal[T]) Matching(match func(T) bool) []T {
	return slices.DeleteFunc(j.All(), func(entry T) bool { return !match(entry) })
}

// Await waits until n entries satisfy match and returns all that do by then.
func (j *Journal[T]) Await(ctx context.Context, n int, match func(T) bool) ([]T, error) {
	for {
		grown := j.growth()
		found := j.Matching(match)
		if len(found) >= n {
			return found, nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return found, fmt.Errorf("%d of %d expected entries arrived: %w", len(found), n, ctx.Err())
		}
	}
}

func (j *Journal[T]) growth() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.grown == nil {
		j.grown = make(chan struct{})
	}
	return j.grown
}
