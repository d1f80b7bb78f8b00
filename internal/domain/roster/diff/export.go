package diff

import (
	"context"
	"encoding/csv"
	"strconv"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// exportGroup is how many rows are in memory at a time.
const exportGroup = 2000

// WriteIssues writes the run's issues as CSV. Values that a spreadsheet would take for
// formulas get an apostrophe in front (roster.Defuse).
func WriteIssues(ctx context.Context, q pg.Querier, run id.RosterRun, w *csv.Writer) error {
	if err := w.Write([]string{"file", "line", "person_external_id", "code", "severity", "message"}); err != nil {
		return err
	}
	for after := int64(0); ; {
		group, last, err := Issues(ctx, q, run, after, exportGroup)
		if err != nil {
			return err
		}
		for _, i := range group {
			row := []string{i.File, strconv.Itoa(i.Line), roster.Defuse(i.PersonExternalID), string(i.Code), string(i.Severity), roster.Defuse(i.Message)}
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

// WriteChanges writes the run's changes of people with the action as CSV, with formulas as WriteIssues has them.
func WriteChanges(ctx context.Context, q pg.Querier, run id.RosterRun, action roster.Action, w *csv.Writer) error {
	header := []string{"action", "line", "person_external_id", "email", "first_name", "last_name",
		"before_external_id", "before_email", "before_first_name", "before_last_name"}
	if err := w.Write(header); err != nil {
		return err
	}
	for after := int64(0); ; {
		group, err := ChangesOf(ctx, q, run, action, after, exportGroup)
		if err != nil {
			return err
		}
		for _, c := range group {
			row := []string{string(c.Action), strconv.Itoa(c.Line), c.ExternalID, c.Email, c.FirstName, c.LastName,
				c.BeforeID, c.BeforeEmail, c.BeforeFirst, c.BeforeLast}
			if err := w.Write(defused(row)); err != nil {
				return err
			}
			after = c.N
		}
		if w.Flush(); w.Error() != nil || len(group) < exportGroup {
			return w.Error()
		}
	}
}

// WriteClassChanges writes the run's changes of classes as CSV.
func WriteClassChanges(ctx context.Context, q pg.Querier, run id.RosterRun, w *csv.Writer) error {
	if err := w.Write([]string{"action", "class_external_id", "class_name", "before_class_name", "person_external_id"}); err != nil {
		return err
	}
	for after := int64(0); ; {
		group, err := NextClassChanges(ctx, q, run, after, exportGroup)
		if err != nil {
			return err
		}
		for _, c := range group {
			if err := w.Write(defused([]string{string(c.Action), c.Class, c.Name, c.Before, c.Person})); err != nil {
				return err
			}
			after = c.N
		}
		if w.Flush(); w.Error() != nil || len(group) < exportGroup {
			return w.Error()
		}
	}
}

func defused(row []string) []string {
	for i := range row {
		row[i] = roster.Defuse(row[i])
	}
	return row
}
