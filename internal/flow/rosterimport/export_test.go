package rosterimport

import "context"

// HoldTurns takes so many turns until the returned function is called.
func (t *Turns) HoldTurns(ctx context.Context, turns int64) (giveBack func(), err error) {
	err = t.turns.Acquire(ctx, turns)
	return func() { t.turns.Release(turns) }, err
}

// Work does so many batches as a run does them.
func (t *Turns) Work(ctx context.Context, batches int, batch func()) {
	turn, err := t.begin(ctx)
	if err != nil {
		return
	}
	defer turn.end()
	turn.did(turnRows)
	for range batches {
		if err := turn.next(ctx); err != nil {
			return
		}
		batch()
		turn.did(turnRows)
	}
}
