package rosterimport

import (
	"context"
	"slices"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/roster/diff"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// planUndo plans the changes that take an applied run back.
func planUndo(ctx context.Context, tx *pg.Tx, run roster.Run, turn *turn, today clock.Date) (roster.Run, error) {
	run.Counts, run.Issues, run.State = roster.Counts{}, 0, roster.Applying
	done, err := roster.Find(ctx, tx, run.Organization, run.Undoes)
	if err != nil {
		return run, err
	}
	run.PeopleFile = done.PeopleFile
	p := &planner{tx: tx, run: run, turn: turn}
	if err := diff.Clear(ctx, tx, run.ID); err != nil {
		return run, err
	}
	err = eachDone(ctx, tx, run, done, func(rows []doneRow) error {
		enrolled, err := p.enrolled(ctx, rows, today)
		if err != nil {
			return err
		}
		for _, d := range rows {
			d.Enrolled = enrolled[d.User]
			back, notified := roster.DecideUndo(done.PeopleFile, d.Change, d.Since)
			p.addIssues(notified)
			if back.Effects == 0 {
				back.Action = roster.Skip
			} else {
				p.changes = append(p.changes, back)
			}
			p.count(roster.Decision{Action: back.Action})
		}
		return p.next(ctx, len(rows))
	})
	if err != nil {
		return run, err
	}
	err = eachDoneClass(ctx, tx, run, done, func(rows []roster.ClassChange) error {
		for _, c := range rows {
			p.addClass(c.Inverse())
		}
		return p.next(ctx, len(rows))
	})
	return p.run, err
}

func (p *planner) enrolled(ctx context.Context, rows []doneRow, today clock.Date) (map[id.User]bool, error) {
	var joined []id.User
	for _, d := range rows {
		if d.Effects&(roster.CreateMembership|roster.Activate) != 0 {
			joined = append(joined, d.User)
		}
	}
	return enrolled(ctx, p.tx, p.run.Organization, joined, today)
}

// enrolled says which of the people have an enrollment in the organization that is not over.
func enrolled(ctx context.Context, q pg.Querier, org id.Organization, users []id.User, today clock.Date) (map[id.User]bool, error) {
	if len(users) == 0 {
		return nil, nil
	}
	held, err := course.OfStudents(ctx, q, org, users)
	are := make(map[id.User]bool, len(held))
	for user, all := range held {
		are[user] = slices.ContainsFunc(all, func(e course.Enrollment) bool { return e.Current(today) })
	}
	return are, err
}

// keepEnrolled leaves out those whom an undoing would make inactive and who have got a course since
// it was planned.
func (b *batch) keepEnrolled(ctx context.Context, changes []roster.Change) ([]roster.Change, error) {
	if b.run.Undoes == 0 {
		return changes, nil
	}
	var leaving []id.User
	for _, c := range changes {
		if c.Effects.Has(roster.Deactivate) {
			leaving = append(leaving, c.User)
		}
	}
	stay, err := enrolled(ctx, b.tx, b.run.Organization, leaving, b.today)
	return slices.DeleteFunc(slices.Clone(changes), func(c roster.Change) bool {
		return c.Effects.Has(roster.Deactivate) && stay[c.User]
	}), err
}
