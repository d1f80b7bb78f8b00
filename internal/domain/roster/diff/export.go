package diff

import (
	"context"
	"encoding/csv"
	"strconv"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// exportGroup is how many issues are in memory at a time.
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
