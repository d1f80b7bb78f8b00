package assignment

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/scope"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

const columns = `s.id, s.user_id, s.item_id, s.kind, s.status, s.source, s.notify, s.assigned_at, s.due_at, s.completed_at,
	coalesce(s.result_ref, ''), s.position`

func (a *Assignment) targets() []any {
	return []any{&a.ID, &a.User, &a.Item, &a.Kind, &a.Status, &a.Source, &a.Notify, &a.AssignedAt, &a.DueAt, &a.CompletedAt,
		&a.ResultRef, &a.Position}
}

func scan(row pgx.CollectableRow) (a Assignment, err error) {
	err = row.Scan(a.targets()...)
	return a, err
}

const isOpen = `s.status IN ('pending', 'in_progress', 'submitted')`

func selectOpen(ctx context.Context, q pg.Querier, org id.Organization, user id.User, item id.Item) (a Assignment, err error) {
	err = q.QueryRow(ctx, `
		SELECT `+columns+` FROM assignments s
		WHERE s.organization_id = $1 AND s.user_id = $2 AND s.item_id = $3 AND `+isOpen, org, user, item).Scan(a.targets()...)
	return a, err
}

// insert gives no row when the same work is open. The position is taken, and its row
// locked, in the same statement; a time before that of the position before is moved on.
func insert(ctx context.Context, tx *pg.Tx, org id.Organization, d Draft, now time.Time) (a Assignment, err error) {
	err = tx.QueryRow(ctx, `
		WITH place AS (
			INSERT INTO assignment_positions AS p (organization_id, last, last_at) VALUES ($1, 1, $2)
			ON CONFLICT (organization_id) DO UPDATE SET last = p.last + 1, last_at = greatest(p.last_at, excluded.last_at)
			RETURNING p.last, p.last_at
		)
		INSERT INTO assignments AS s (organization_id, user_id, item_id, kind, status, source, notify, assigned_at, due_at, position, updated_at)
		SELECT $1, $3, $4, $5, 'pending', $6, $7, place.last_at, $8, place.last, $2 FROM place
		ON CONFLICT (organization_id, user_id, item_id) WHERE status IN ('pending', 'in_progress', 'submitted') DO NOTHING
		RETURNING `+columns, org, now, d.User, d.Item, d.Kind, d.Source, d.Notify, d.DueAt).Scan(a.targets()...)
	return a, err
}

// insertAll fills made and created where there was no such work open. Rows are numbered by
// the order of the drafts; a number whose row conflicts stays unused.
func insertAll(ctx context.Context, tx *pg.Tx, drafts []Placed, now time.Time, made []Assignment, created []bool) error {
	type place struct {
		org  id.Organization
		user id.User
		item id.Item
	}
	n, at := len(drafts), make(map[place]int, len(drafts))
	orgs, users, items, kinds, sources := make([]int64, n), make([]int64, n), make([]int64, n), make([]string, n), make([]string, n)
	notify, due := make([]bool, n), make([]*time.Time, n)
	for i, d := range drafts {
		at[place{d.Organization, d.User, d.Item}] = i
		orgs[i], users[i], items[i], kinds[i], sources[i] = int64(d.Organization), int64(d.User), int64(d.Item), d.Kind, string(d.Source)
		notify[i], due[i] = d.Notify, d.DueAt
	}
	rows, err := tx.Query(ctx, `
		WITH draft AS (
			SELECT d.*, row_number() OVER (PARTITION BY org ORDER BY nth) AS behind FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[],
				$6::text[], $7::boolean[], $8::timestamptz[]) WITH ORDINALITY AS d(org, usr, item, kind, source, notify, due, nth)),
		place AS (
			INSERT INTO assignment_positions AS p (organization_id, last, last_at)
			SELECT org, count(*), $1 FROM draft GROUP BY org ORDER BY org
			ON CONFLICT (organization_id) DO UPDATE SET last = p.last + excluded.last, last_at = greatest(p.last_at, excluded.last_at)
			RETURNING p.organization_id, p.last, p.last_at),
		size AS (SELECT org, count(*) AS n FROM draft GROUP BY org)
		INSERT INTO assignments AS s (organization_id, user_id, item_id, kind, status, source, notify, assigned_at, due_at, position, updated_at)
		SELECT d.org, d.usr, d.item, d.kind, 'pending', d.source, d.notify, p.last_at, d.due, p.last - z.n + d.behind, $1
		FROM draft d JOIN place p ON p.organization_id = d.org JOIN size z ON z.org = d.org ORDER BY d.nth
		ON CONFLICT (organization_id, user_id, item_id) WHERE status IN ('pending', 'in_progress', 'submitted') DO NOTHING
		RETURNING s.organization_id, `+columns, now, orgs, users, items, kinds, sources, notify, due)
	if err != nil {
		return err
	}
	var org id.Organization
	var a Assignment
	_, err = pgx.ForEachRow(rows, append([]any{&org}, a.targets()...), func() error {
		i := at[place{org, a.User, a.Item}]
		made[i], created[i] = a, true
		return nil
	})
	return err
}

func selectOwners(ctx context.Context, q pg.Querier, ids []id.Assignment) (map[id.Assignment]id.Organization, error) {
	rows, err := q.Query(ctx, `SELECT id, organization_id FROM assignments WHERE id = ANY ($1)`, ids)
	if err != nil {
		return nil, err
	}
	owners := make(map[id.Assignment]id.Organization, len(ids))
	var a id.Assignment
	var org id.Organization
	_, err = pgx.ForEachRow(rows, []any{&a, &org}, func() error { owners[a] = org; return nil })
	return owners, err
}

func lockSome(ctx context.Context, tx *pg.Tx, org id.Organization, ids []id.Assignment) ([]Assignment, error) {
	rows, err := tx.Query(ctx, `
		SELECT `+columns+` FROM assignments s
		WHERE s.organization_id = $1 AND s.id = ANY ($2) ORDER BY s.id FOR NO KEY UPDATE`, org, ids)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

func updateProgress(ctx context.Context, tx *pg.Tx, org id.Organization, changed []Assignment, now time.Time) error {
	ids, statuses, refs := make([]int64, len(changed)), make([]string, len(changed)), make([]string, len(changed))
	done := make([]*time.Time, len(changed))
	for i, a := range changed {
		ids[i], statuses[i], refs[i], done[i] = int64(a.ID), string(a.Status), a.ResultRef, a.CompletedAt
	}
	_, err := tx.Exec(ctx, `
		UPDATE assignments s SET status = u.status, completed_at = u.completed_at, result_ref = nullif(u.result_ref, ''), updated_at = $2
		FROM unnest($3::bigint[], $4::text[], $5::timestamptz[], $6::text[]) AS u(id, status, completed_at, result_ref)
		WHERE s.organization_id = $1 AND s.id = u.id`, org, now, ids, statuses, done, refs)
	return err
}

// inScope is the condition on s on the day that a parameter, such as $4, holds.
func inScope(today string) string { return scope.Listed("s.organization_id", "s.user_id", today) }

const listedColumns = columns + `, a.email, a.first_name, a.last_name, i.title, i.type`

func (l *Listed) targets() []any {
	return append(l.Assignment.targets(), &l.Email, &l.FirstName, &l.LastName, &l.ItemTitle, &l.ItemType)
}

// pageQuery reads along the index that fits the filter and stops at the page's end.
func pageQuery(org id.Organization, f Filter, after int64, limit int) (query string, args []any) {
	args = []any{org, after, limit, f.Today}
	arg := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	where := []string{`s.organization_id = $1 AND s.position > $2`}
	switch f.Choice {
	case ChooseOpen:
		where = append(where, isOpen)
	case ChooseCompleted:
		where = append(where, `s.status = 'completed'`)
	case ChooseOverdue:
		where = append(where, isOpen, `s.status IN ('pending', 'in_progress') AND s.due_at < `+arg(f.Now))
	case ChooseAll:
	}
	if f.User != 0 {
		where = append(where, `s.user_id = `+arg(f.User))
	}
	few := f.Few != nil && f.User == 0
	if f.Course != 0 && !few {
		where = append(where, `(SELECT true FROM enrollments x WHERE x.user_id = s.user_id AND x.course_id = `+arg(f.Course)+` AND x.organization_id = $1 LIMIT 1)`)
	}
	if !f.Since.IsZero() {
		// assigned_at follows the position, so the first row of the window bounds it.
		where = append(where, `s.position >= (SELECT f.position FROM assignments f WHERE f.organization_id = $1 AND f.assigned_at >= `+arg(f.Since)+`
			ORDER BY f.assigned_at, f.position LIMIT 1)`)
	}
	source := `SELECT s.* FROM assignments s WHERE ` + strings.Join(append(where, inScope("$4")), ` AND `)
	along := func(list, condition string) string {
		return `SELECT s.* FROM unnest(` + list + `) AS k(one) CROSS JOIN LATERAL (` + source + ` AND ` + condition + ` ORDER BY s.position LIMIT $3) AS s`
	}
	switch {
	case few && len(f.Kinds) > 0:
		source = along(arg(f.Few)+`::bigint[]`, `s.user_id = k.one AND s.kind = ANY (`+arg(f.Kinds)+`)`)
	case few:
		source = along(arg(f.Few)+`::bigint[]`, `s.user_id = k.one`)
	case len(f.Kinds) > 0:
		source = along(arg(f.Kinds)+`::text[]`, `s.kind = k.one`)
	}
	return `
		SELECT ` + listedColumns + `
		FROM (SELECT * FROM (` + source + `) AS chosen ORDER BY position LIMIT $3) AS s
		CROSS JOIN LATERAL (SELECT email, first_name, last_name FROM accounts WHERE id = s.user_id LIMIT 1) AS a
		CROSS JOIN LATERAL (SELECT title, type FROM catalog_items WHERE id = s.item_id LIMIT 1) AS i
		ORDER BY s.position`, args
}

func selectPage(ctx context.Context, q pg.Querier, org id.Organization, f Filter, after int64, limit int) ([]Listed, error) {
	query, args := pageQuery(org, f, after, limit)
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (l Listed, err error) {
		err = row.Scan(l.targets()...)
		return l, err
	})
}

type overdueRow struct {
	Organization id.Organization
	InScope      bool
	Listed
}

func takeOverdue(ctx context.Context, tx *pg.Tx, now time.Time, today clock.Date, limit int) ([]overdueRow, error) {
	rows, err := tx.Query(ctx, `
		WITH taken AS (
			UPDATE assignments SET overdue_at = $1, updated_at = $1
			WHERE id IN (SELECT id FROM assignments
				WHERE status IN ('pending', 'in_progress') AND overdue_at IS NULL AND due_at < $1
				ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED)
			RETURNING *)
		SELECT s.organization_id, `+inScope("$2")+`, `+listedColumns+`
		FROM taken s JOIN accounts a ON a.id = s.user_id JOIN catalog_items i ON i.id = s.item_id
		ORDER BY s.organization_id, s.due_at, s.id`, now, today, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r overdueRow, err error) {
		err = row.Scan(append([]any{&r.Organization, &r.InScope}, r.targets()...)...)
		return r, err
	})
}

func expire(ctx context.Context, q pg.Querier, now, before time.Time, limit int) (int64, error) {
	tag, err := q.Exec(ctx, `
		UPDATE assignments SET status = 'expired', updated_at = $1
		WHERE id IN (SELECT id FROM assignments
			WHERE status IN ('pending', 'in_progress') AND overdue_at IS NOT NULL AND due_at < $2
			ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED)`, now, before, limit)
	return tag.RowsAffected(), err
}

func updateDue(ctx context.Context, tx *pg.Tx, org id.Organization, a id.Assignment, due, now time.Time) error {
	_, err := tx.Exec(ctx, `
		UPDATE assignments SET due_at = $3, updated_at = $4 WHERE organization_id = $1 AND id = $2 AND status = 'pending'`, org, a, due, now)
	return err
}

func selectLatest(ctx context.Context, q pg.Querier, org id.Organization, user id.User, limit int) ([]Listed, error) {
	rows, err := q.Query(ctx, `
		SELECT `+listedColumns+` FROM assignments s JOIN accounts a ON a.id = s.user_id JOIN catalog_items i ON i.id = s.item_id
		WHERE s.organization_id = $1 AND s.user_id = $2 ORDER BY s.position DESC LIMIT $3`, org, user, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (l Listed, err error) {
		err = row.Scan(l.targets()...)
		return l, err
	})
}
