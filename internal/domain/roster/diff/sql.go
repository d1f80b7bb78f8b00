// Package diff stores what a roster run does, row by row: the changes of people and classes
// that its plan consists of, and the issues that were found. The planner writes them, the
// importer carries them out batch by batch, and the console and the APIs show them.
//
// Changes of people, changes of classes and issues are each numbered within the run, from 1.
package diff

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// AddIssues stores issues; first is the number of the first one.
func AddIssues(ctx context.Context, q pg.Querier, run id.RosterRun, first int64, found []roster.Issue) error {
	if len(found) == 0 {
		return nil
	}
	_, err := q.CopyFrom(ctx, pgx.Identifier{"roster_issues"},
		[]string{"run_id", "n", "file", "line", "person_external_id", "code", "severity", "message", "user_id"},
		pgx.CopyFromSlice(len(found), func(i int) ([]any, error) {
			t := &found[i]
			var user any
			if t.User != 0 {
				user = t.User
			}
			return []any{int64(run), first + int64(i), t.File, t.Line, t.PersonExternalID, string(t.Code), string(t.Severity), t.Message, user}, nil
		}))
	return err
}

// AddChanges stores changes of people.
func AddChanges(ctx context.Context, q pg.Querier, run id.RosterRun, changes []roster.Change) error {
	if len(changes) == 0 {
		return nil
	}
	columns := []string{
		"run_id",
		"n",
		"line",
		"action",
		"effects",
		"user_id",
		"external_id",
		"email",
		"first_name",
		"last_name",
		"before_external_id",
		"before_email",
		"before_first_name",
		"before_last_name",
	}
	_, err := q.CopyFrom(ctx, pgx.Identifier{"roster_changes"}, columns,
		pgx.CopyFromSlice(len(changes), func(i int) ([]any, error) {
			c := &changes[i]
			var user, beforeID, beforeEmail, beforeFirst, beforeLast any
			if c.User != 0 {
				user = int64(c.User)
			}
			if c.Effects.Has(roster.ReplaceIdentity) {
				beforeID = c.BeforeID
			}
			if c.Effects.Has(roster.ChangeProfile) {
				beforeEmail, beforeFirst, beforeLast = c.BeforeEmail, c.BeforeFirst, c.BeforeLast
			}
			return []any{
				int64(run),
				c.N,
				c.Line,
				string(c.Action),
				int16(c.Effects),
				user,
				c.ExternalID,
				c.Email,
				c.FirstName,
				c.LastName,
				beforeID,
				beforeEmail,
				beforeFirst,
				beforeLast,
			}, nil
		}))
	return err
}

// AddClassChanges stores changes of classes.
func AddClassChanges(ctx context.Context, q pg.Querier, run id.RosterRun, changes []roster.ClassChange) error {
	if len(changes) == 0 {
		return nil
	}
	columns := []string{
		"run_id",
		"n",
		"action",
		"class_external_id",
		"name",
		"before_name",
		"start_date",
		"end_date",
		"before_start_date",
		"before_end_date",
		"person_external_id",
	}
	_, err := q.CopyFrom(ctx, pgx.Identifier{"roster_class_changes"}, columns,
		pgx.CopyFromSlice(len(changes), func(i int) ([]any, error) {
			c := &changes[i]
			return []any{
				int64(run),
				c.N,
				string(c.Action),
				c.Class,
				c.Name,
				c.Before,
				c.StartDate,
				c.EndDate,
				c.BeforeStartDate,
				c.BeforeEndDate,
				c.Person,
			}, nil
		}))
	return err
}

const selectChange = `
	SELECT
		n,
		line,
		action,
		effects,
		coalesce(user_id, 0) AS "user",
		external_id,
		email,
		first_name,
		last_name,
		coalesce(before_external_id, '') AS before_id,
		coalesce(before_email, '') AS before_email,
		coalesce(before_first_name, '') AS before_first,
		coalesce(before_last_name, '') AS before_last
	FROM roster_changes
	WHERE run_id = $1 AND n > $2 `

// Changes reads up to limit changes of people whose number is above after.
func Changes(ctx context.Context, q pg.Querier, run id.RosterRun, after int64, limit int) ([]roster.Change, error) {
	return collectChanges(q.Query(ctx, selectChange+`ORDER BY n LIMIT $3`, run, after, limit))
}

// NextChanges reads the next batch of changes: the first one whose number is above after, and
// those within length numbers from it. None after the last.
//
// Unlike with a limit, PostgreSQL reads little for a range whatever it estimates of the table.
func NextChanges(ctx context.Context, q pg.Querier, run id.RosterRun, after int64, length int) ([]roster.Change, error) {
	const first = `(SELECT min(n) FROM roster_changes WHERE run_id = $1 AND n > $2)`
	return collectChanges(q.Query(ctx, selectChange+`AND n >= `+first+` AND n < `+first+` + $3 ORDER BY n`, run, after, length))
}

// ChangesOf reads up to limit changes of one action whose number is above after.
func ChangesOf(
	ctx context.Context, q pg.Querier, run id.RosterRun, action roster.Action, after int64, limit int,
) ([]roster.Change, error) {
	rare := ""
	if action != roster.Create {
		rare = ` AND action <> 'create'` // what the index of the others is limited to
	}
	return collectChanges(q.Query(ctx, selectChange+`AND action = $4`+rare+` ORDER BY n LIMIT $3`, run, after, limit, action))
}

// MostSearched is how many changes Search goes through.
const MostSearched = 10_000

// Search finds up to limit changes of the action, or changes of classes for "", whose number is above after and whose
// ids, addresses and names have each of the words, in whatever case. next is where it goes on, 0 where there is no more:
// also without anything found it may go on, as one call goes through MostSearched.
func Search(
	ctx context.Context, q pg.Querier, run id.RosterRun, action roster.Action, words []string, after int64, limit int,
) (found []int64, next int64, err error) {
	table, which := `roster_changes`, ` AND action = @action`
	text := `external_id, email, first_name, last_name, before_external_id, before_email, before_first_name, before_last_name`
	switch action {
	case "":
		table, which = `roster_class_changes`, ` AND @action = ''`
		text = `class_external_id, name, before_name, person_external_id`
	case roster.Create:
	default:
		which += ` AND action <> 'create'`
	}
	var last int64
	var looked int
	err = q.QueryRow(ctx, `
		SELECT
			coalesce((array_agg(n ORDER BY n) FILTER (WHERE kept))[:@limit + 1], '{}'),
			coalesce(max(n), 0),
			count(*)
		FROM (
			SELECT
				n,
				lower(concat_ws(' ', `+text+`)) LIKE ALL (ARRAY(
					SELECT '%' || regexp_replace(lower(w), '([\\%_])', '\\\1', 'g') || '%'
					FROM unnest(@words::text[]) AS w
				)) AS kept
			FROM `+table+`
			WHERE run_id = @run AND n > @after`+which+`
			ORDER BY n LIMIT @most
		) AS looked`, pg.Args{
		"run":    run,
		"action": action,
		"words":  words,
		"after":  after,
		"limit":  limit,
		"most":   MostSearched,
	}).Scan(&found, &last, &looked)
	switch {
	case len(found) > limit:
		found = found[:limit]
		next = found[limit-1]
	case looked == MostSearched:
		next = last
	}
	return found, next, err
}

// ChangesAt reads the changes with the numbers.
func ChangesAt(ctx context.Context, q pg.Querier, run id.RosterRun, numbers []int64) ([]roster.Change, error) {
	return collectChanges(q.Query(ctx, selectChange+`AND n = ANY ($3) ORDER BY n`, run, 0, numbers))
}

func collectChanges(rows pgx.Rows, err error) ([]roster.Change, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[roster.Change])
}

// NextClassChanges reads the changes of classes within the length numbers above after.
func NextClassChanges(
	ctx context.Context, q pg.Querier, run id.RosterRun, after int64, length int,
) ([]roster.ClassChange, error) {
	return pg.List[roster.ClassChange](ctx, q, selectClassChange+`AND n > $2 AND n <= $2 + $3 ORDER BY n`, run, after, length)
}

// ClassChangesAt reads the changes of classes with the numbers.
func ClassChangesAt(ctx context.Context, q pg.Querier, run id.RosterRun, numbers []int64) ([]roster.ClassChange, error) {
	return pg.List[roster.ClassChange](ctx, q, selectClassChange+`AND n = ANY ($2) ORDER BY n`, run, numbers)
}

const selectClassChange = `
	SELECT
		n,
		action,
		class_external_id AS class,
		name,
		before_name AS before,
		start_date,
		end_date,
		before_start_date,
		before_end_date,
		person_external_id AS person
	FROM roster_class_changes
	WHERE run_id = $1 `

// Issues reads up to limit issues whose number is above after; last is the number of the
// last one read.
func Issues(
	ctx context.Context, q pg.Querier, run id.RosterRun, after int64, limit int,
) (found []roster.Issue, last int64, err error) {
	rows, err := q.Query(ctx, `
		SELECT
			n,
			file,
			line,
			person_external_id,
			code,
			severity,
			message
		FROM roster_issues
		WHERE run_id = $1 AND n > $2
		ORDER BY n
		LIMIT $3`, run, after, limit)
	if err != nil {
		return nil, 0, err
	}
	type numbered struct {
		N int64
		roster.Issue
	}
	found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (roster.Issue, error) {
		i, err := pgx.RowToStructByName[numbered](row)
		last = i.N
		return i.Issue, err
	})
	return found, last, err
}

// Clear removes an earlier plan of the run.
func Clear(ctx context.Context, q pg.Querier, run id.RosterRun) error {
	_, err := q.Exec(ctx, `
		WITH
			changes AS (DELETE FROM roster_changes WHERE run_id = $1),
			class_changes AS (DELETE FROM roster_class_changes WHERE run_id = $1)
		DELETE FROM roster_issues WHERE run_id = $1`, run)
	return err
}
