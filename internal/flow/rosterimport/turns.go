package rosterimport

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// Turns shares a worker's capacity between the runs that it has in hand, which are of as many
// organizations: a large file does not hold up another organization's longer than one batch takes.
//
// A run needs no turn for its first batch, so small files pass large ones by. After that it works
// in turns, which go round in the order in which runs ask for them, a batch each.
//
// A run that is planned has a transaction open while it waits for its turn, and so has one that
// works without a turn. Places bound how many of these there are.
type Turns struct {
	turns  *semaphore.Weighted // serves in the order of asking
	places *semaphore.Weighted
}

const (
	// turnRows is how many rows a run reads or decides in a turn.
	turnRows = 4000
	// placesAtOnce leaves most of a worker's 16 connections to others.
	placesAtOnce = 6
	// InHand is how many runs a worker may have in hand: many more than work at a time.
	InHand = 32
)

// NewTurns makes Turns that let so many runs work at a time, beside those in their first batch.
func NewTurns(atOnce int) *Turns {
	return &Turns{semaphore.NewWeighted(int64(atOnce)), semaphore.NewWeighted(placesAtOnce)}
}

// turn is one run's part in Turns. Turns of nil give every turn at once.
type turn struct {
	*Turns
	rows    int  // worked on since the turn began
	planned bool // the run has no transaction open between two batches
	place   bool // it has one
	mine    bool // it has a turn
}

// begin waits for a place. The caller calls end.
func (t *Turns) begin(ctx context.Context) (*turn, error) {
	if t == nil {
		return &turn{}, nil
	}
	err := t.places.Acquire(ctx, 1)
	return &turn{Turns: t, place: err == nil}, err
}

// did counts rows that were worked on.
func (t *turn) did(rows int) { t.rows += rows }

// next passes the turn on if the run has worked on a batch since it began, and waits for another.
// Call it between two steps of the work, with no lock that others wait for.
func (t *turn) next(ctx context.Context) error {
	if t.Turns == nil || t.rows < turnRows {
		return nil
	}
	t.rows = 0
	t.release(t.planned)
	err := t.turns.Acquire(ctx, 1)
	t.mine = err == nil
	return err
}

// end gives back what the run has.
func (t *turn) end() { t.release(true) }

func (t *turn) release(place bool) {
	if t.mine {
		t.turns.Release(1)
		t.mine = false
	}
	if place && t.place {
		t.places.Release(1)
		t.place = false
	}
}
