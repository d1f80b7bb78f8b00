package rosterimport

import (
	"context"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/roster/diff"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// planUndo plans the changes that take an applied run back.
func planUndo(ctx context.Context, tx *pg.Tx, run roster.Run) (roster.Run, error) {
	run.Counts, run.Issues, run.State = roster.Counts{}, 0, roster.Applying
	done, err := roster.Find(ctx, tx, run.Organization, run.Undoes)
	if err != nil {
		return run, err
	}
	p := &planner{tx: tx, run: run}
	if err := diff.Clear(ctx, tx, run.ID); err != nil {
		return run, err
	}
	err = eachDone(ctx, tx, run, done, func(rows []doneRow) error {
		for _, d := range rows {
			back, notified := roster.DecideUndo(d.Change, d.Since)
			p.addIssues(notified)
			if back.Effects == 0 {
				back.Action = roster.Skip
			} else {
				p.changes = append(p.changes, back)
			}
			p.count(roster.Decision{Action: back.Action})
		}
		return p.flush(ctx)
	})
	if err != nil {
		return run, err
	}
	err = eachDoneClass(ctx, tx, run, done, func(rows []roster.ClassChange) error {
		for _, c := range rows {
			p.addClass(c.Inverse())
		}
		return p.flush(ctx)
	})
	return p.run, err
}
