package diff

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

func copyIssues(ctx context.Context, q pg.Querier, run id.RosterRun, first int64, found []roster.Issue) error {
	if len(found) == 0 {
		return nil
	}
	_, err := q.CopyFrom(ctx, pgx.Identifier{"roster_issues"},
		[]string{"run_id", "n", "file", "line", "person_external_id", "code", "severity", "message"},
		pgx.CopyFromSlice(len(found), func(i int) ([]any, error) {
			t := &found[i]
			return []any{int64(run), first + int64(i), t.File, t.Line, t.PersonExternalID, string(t.Code), string(t.Severity), t.Message}, nil
		}))
	return err
}

var changeColumns = []string{"run_id", "n", "line", "action", "effects", "user_id", "external_id", "email", "first_name", "last_name",
	"before_external_id", "before_email", "before_first_name", "before_last_name"}

func copyChanges(ctx context.Context, q pg.Querier, run id.RosterRun, changes []roster.Change) error {
	if len(changes) == 0 {
		return nil
	}
	_, err := q.CopyFrom(ctx, pgx.Identifier{"roster_changes"}, changeColumns,
		pgx.CopyFromSlice(len(changes), func(i int) ([]any, error) {
			c := &changes[i]
			row := []any{int64(run), c.N, c.Line, string(c.Action), int16(c.Effects), nil, c.ExternalID, c.Email, c.FirstName, c.LastName, nil, nil, nil, nil}
			if c.User != 0 {
				row[5] = int64(c.User)
			}
			if c.Effects.Has(roster.ReplaceIdentity) {
				row[10] = c.BeforeID
			}
			if c.Effects.Has(roster.ChangeProfile) {
				row[11], row[12], row[13] = c.BeforeEmail, c.BeforeFirst, c.BeforeLast
			}
			return row, nil
		}))
	return err
}

func copyClassChanges(ctx context.Context, q pg.Querier, run id.RosterRun, changes []roster.ClassChange) error {
	if len(changes) == 0 {
		return nil
	}
	_, err := q.CopyFrom(ctx, pgx.Identifier{"roster_class_changes"},
		[]string{"run_id", "n", "action", "class_external_id", "name", "before_name", "person_external_id"},
		pgx.CopyFromSlice(len(changes), func(i int) ([]any, error) {
			c := &changes[i]
			return []any{int64(run), c.N, string(c.Action), c.Class, c.Name, c.Before, c.Person}, nil
		}))
	return err
}

const selectChange = `
	SELECT n, line, action, effects, coalesce(user_id, 0), external_id, email, first_name, last_name, coalesce(before_external_id, ''),
		coalesce(before_email, ''), coalesce(before_first_name, ''), coalesce(before_last_name, '')
	FROM roster_changes WHERE run_id = $1 AND n > $2 `

func selectChanges(ctx context.Context, q pg.Querier, run id.RosterRun, after int64, limit int) ([]roster.Change, error) {
	rows, err := q.Query(ctx, selectChange+`ORDER BY n LIMIT $3`, run, after, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanChange)
}

// A run's changes are read stretch by stretch of their places, from the first one left on:
// unlike a limit, a stretch is short whatever the planner believes of the table.
const firstChange = `(SELECT min(n) FROM roster_changes WHERE run_id = $1 AND n > $2)`

func selectNextChanges(ctx context.Context, q pg.Querier, run id.RosterRun, after int64, length int) ([]roster.Change, error) {
	rows, err := q.Query(ctx, selectChange+`AND n >= `+firstChange+` AND n < `+firstChange+` + $3 ORDER BY n`, run, after, length)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanChange)
}

func scanChange(row pgx.CollectableRow) (c roster.Change, err error) {
	return c, row.Scan(&c.N, &c.Line, &c.Action, &c.Effects, &c.User, &c.ExternalID, &c.Email, &c.FirstName, &c.LastName,
		&c.BeforeID, &c.BeforeEmail, &c.BeforeFirst, &c.BeforeLast)
}

func selectChangesOf(ctx context.Context, q pg.Querier, run id.RosterRun, action roster.Action, after int64, limit int) ([]roster.Change, error) {
	rare := ""
	if action != roster.Create {
		rare = ` AND action <> 'create'` // what the index of the others is limited to
	}
	rows, err := q.Query(ctx, selectChange+`AND action = $4`+rare+` ORDER BY n LIMIT $3`, run, after, limit, action)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanChange)
}

func selectNextClassChanges(ctx context.Context, q pg.Querier, run id.RosterRun, after int64, length int) ([]roster.ClassChange, error) {
	rows, err := q.Query(ctx, `
		SELECT n, action, class_external_id, name, before_name, person_external_id
		FROM roster_class_changes WHERE run_id = $1 AND n > $2 AND n <= $2 + $3 ORDER BY n`, run, after, length)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c roster.ClassChange, err error) {
		return c, row.Scan(&c.N, &c.Action, &c.Class, &c.Name, &c.Before, &c.Person)
	})
}

func selectIssues(ctx context.Context, q pg.Querier, run id.RosterRun, after int64, limit int) (found []roster.Issue, last int64, err error) {
	rows, err := q.Query(ctx, `
		SELECT n, file, line, person_external_id, code, severity, message
		FROM roster_issues WHERE run_id = $1 AND n > $2 ORDER BY n LIMIT $3`, run, after, limit)
	if err != nil {
		return nil, 0, err
	}
	found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (i roster.Issue, err error) {
		return i, row.Scan(&last, &i.File, &i.Line, &i.PersonExternalID, &i.Code, &i.Severity, &i.Message)
	})
	return found, last, err
}

func deleteAll(ctx context.Context, q pg.Querier, run id.RosterRun) error {
	_, err := q.Exec(ctx, `
		WITH a AS (DELETE FROM roster_changes WHERE run_id = $1), b AS (DELETE FROM roster_class_changes WHERE run_id = $1)
		DELETE FROM roster_issues WHERE run_id = $1`, run)
	return err
}
