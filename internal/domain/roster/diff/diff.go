// Package diff keeps what a roster run does, row by row: the changes of people and of
// classes that its plan consists of, and the issues that there are to tell. The planner
// writes them, the importer carries them out stretch by stretch, and whoever reviews a run
// reads them.
package diff

import (
	"context"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// AddIssues stores issues; first is the place of the first one.
func AddIssues(ctx context.Context, q pg.Querier, run id.RosterRun, first int64, found []roster.Issue) error {
	return copyIssues(ctx, q, run, first, found)
}

// AddChanges stores changes of people.
func AddChanges(ctx context.Context, q pg.Querier, run id.RosterRun, changes []roster.Change) error {
	return copyChanges(ctx, q, run, changes)
}

// AddClassChanges stores changes of classes.
func AddClassChanges(ctx context.Context, q pg.Querier, run id.RosterRun, changes []roster.ClassChange) error {
	return copyClassChanges(ctx, q, run, changes)
}

// Changes reads up to limit changes after the given place.
func Changes(ctx context.Context, q pg.Querier, run id.RosterRun, after int64, limit int) ([]roster.Change, error) {
	return selectChanges(ctx, q, run, after, limit)
}

// NextChanges reads the changes of a stretch of the given length, in places, that begins
// with the first change after the given place; none after the last.
func NextChanges(ctx context.Context, q pg.Querier, run id.RosterRun, after int64, length int) ([]roster.Change, error) {
	return selectNextChanges(ctx, q, run, after, length)
}

// NextClassChanges does so for changes of classes, whose places have no gaps.
func NextClassChanges(ctx context.Context, q pg.Querier, run id.RosterRun, after int64, length int) ([]roster.ClassChange, error) {
	return selectNextClassChanges(ctx, q, run, after, length)
}

// ChangesOf reads up to limit changes of one action after the given place.
func ChangesOf(ctx context.Context, q pg.Querier, run id.RosterRun, action roster.Action, after int64, limit int) ([]roster.Change, error) {
	return selectChangesOf(ctx, q, run, action, after, limit)
}

// Issues reads up to limit issues after the given place; last is the place of the last.
func Issues(ctx context.Context, q pg.Querier, run id.RosterRun, after int64, limit int) (found []roster.Issue, last int64, err error) {
	return selectIssues(ctx, q, run, after, limit)
}

// Clear removes an earlier plan of the run.
func Clear(ctx context.Context, q pg.Querier, run id.RosterRun) error {
	return deleteAll(ctx, q, run)
}
