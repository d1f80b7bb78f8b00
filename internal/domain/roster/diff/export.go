package diff

import (
	"context"
	"encoding/csv"
	"strconv"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// exportGroup is how many rows are in memory at a time.
const exportGroup = 2000

// WriteIssues writes the run's issues as CSV. Values that a spreadsheet would take for
// formulas get an apostrophe in front (roster.Defuse).
func WriteIssues(ctx context.Context, q pg.Querier, run id.RosterRun, w *csv.Writer) error {
	header := []string{"file", "line", "person_external_id", "code", "severity", "message"}
	return export(w, header, func(after int64) ([]roster.Issue, int64, error) {
		return Issues(ctx, q, run, after, exportGroup)
	}, func(i roster.Issue) []string {
		return []string{i.File, strconv.Itoa(i.Line), i.PersonExternalID, string(i.Code), string(i.Severity), i.Message}
	})
}

// WriteChanges writes the run's changes of people with the action as CSV, with formulas as WriteIssues has them.
func WriteChanges(ctx context.Context, q pg.Querier, run id.RosterRun, action roster.Action, w *csv.Writer) error {
	header := []string{"action", "line", "person_external_id", "email", "first_name", "last_name",
		"before_external_id", "before_email", "before_first_name", "before_last_name"}
	return export(w, header, func(after int64) ([]roster.Change, int64, error) {
		group, err := ChangesOf(ctx, q, run, action, after, exportGroup)
		if len(group) > 0 {
			after = group[len(group)-1].N
		}
		return group, after, err
	}, func(c roster.Change) []string {
		return []string{string(c.Action), strconv.Itoa(c.Line), c.ExternalID, c.Email, c.FirstName, c.LastName,
			c.BeforeID, c.BeforeEmail, c.BeforeFirst, c.BeforeLast}
	})
}

// WriteClassChanges writes the run's changes of classes as CSV, with formulas as WriteIssues has them.
func WriteClassChanges(ctx context.Context, q pg.Querier, run id.RosterRun, w *csv.Writer) error {
	header := []string{"action", "class_external_id", "class_name", "before_class_name", "person_external_id",
		"start_date", "end_date", "before_start_date", "before_end_date"}
	day := func(d clock.Date) string {
		if d.IsZero() {
			return ""
		}
		return d.String()
	}
	return export(w, header, func(after int64) ([]roster.ClassChange, int64, error) {
		group, err := NextClassChanges(ctx, q, run, after, exportGroup)
		if len(group) > 0 {
			after = group[len(group)-1].N
		}
		return group, after, err
	}, func(c roster.ClassChange) []string {
		return []string{string(c.Action), c.Class, c.Name, c.Before, c.Person,
			day(c.StartDate), day(c.EndDate), day(c.BeforeStartDate), day(c.BeforeEndDate)}
	})
}

// export writes all rows group by group. next reads up to exportGroup of them after a number, and the
// number of the last one.
func export[T any](w *csv.Writer, header []string, next func(after int64) ([]T, int64, error), cells func(T) []string) error {
	if err := w.Write(header); err != nil {
		return err
	}
	for after := int64(0); ; {
		group, last, err := next(after)
		if err != nil {
			return err
		}
		for _, one := range group {
			row := cells(one)
			for i := range row {
				row[i] = roster.Defuse(row[i])
			}
			if err := w.Write(row); err != nil {
				return err
			}
		}
		if w.Flush(); w.Error() != nil || len(group) < exportGroup {
			return w.Error()
		}
		after = last
	}
}
