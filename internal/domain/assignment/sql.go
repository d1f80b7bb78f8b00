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

const columns = `
	s.id,
	s.user_id AS "user",
	s.item_id AS item,
	s.kind,
	s.status,
	s.source,
	s.notify,
	s.assigned_at,
	s.due_at,
	s.completed_at,
	coalesce(s.result_ref, '') AS result_ref,
	s.position`

const isOpen = `s.status IN ('pending', 'in_progress', 'submitted')`

func selectOpen(ctx context.Context, q pg.Querier, org id.Organization, user id.User, item id.Item) (Assignment, error) {
	return pg.One[Assignment](ctx, q, `
		SELECT `+columns+` FROM assignments s
		WHERE s.organization_id = $1 AND s.user_id = $2 AND s.item_id = $3 AND `+isOpen, org, user, item)
}

// FinishedResult is the id of the result of the user's last completed assignment of the item; "" while
// there is none, or the same work is open.
func FinishedResult(ctx context.Context, q pg.Querier, org id.Organization, user id.User, item id.Item) (string, error) {
	last, err := pg.One[Assignment](ctx, q, `
		SELECT `+columns+` FROM assignments s
		WHERE s.organization_id = $1 AND s.user_id = $2 AND s.item_id = $3 AND (`+isOpen+` OR s.status = 'completed')
		ORDER BY `+isOpen+` DESC, s.id DESC LIMIT 1`, org, user, item)
	if pg.None(err) || last.Status.Open() {
		return "", nil
	}
	return last.ResultRef, err
}

// insertWork begins a statement that gives work, and unlessOpen ends its values: a row that conflicts
// with open work is left out.
const (
	insertWork = `INSERT INTO assignments AS s (
			organization_id,
			user_id,
			item_id,
			kind,
			status,
			source,
			notify,
			assigned_at,
			due_at,
			position,
			updated_at)`
	unlessOpen = `ON CONFLICT (organization_id, user_id, item_id)
		WHERE status IN ('pending', 'in_progress', 'submitted') DO NOTHING`
)

// insert returns no row when the same work is open. The statement takes the position and locks its
// row. assigned_at is never before that of the previous position.
func insert(ctx context.Context, tx *pg.Tx, org id.Organization, d Draft, now time.Time) (Assignment, error) {
	return pg.One[Assignment](ctx, tx, `
		WITH next AS (
			INSERT INTO assignment_positions AS p (organization_id, last, last_at) VALUES (@organization, 1, @now)
			ON CONFLICT (organization_id) DO UPDATE SET
				last = p.last + 1, last_at = greatest(p.last_at, excluded.last_at)
			RETURNING p.last, p.last_at
		)
		`+insertWork+`
		SELECT
			@organization,
			@user,
			@item,
			@kind,
			'pending',
			@source,
			@notify,
			next.last_at,
			@due,
			next.last,
			@now
		FROM next
		`+unlessOpen+`
		RETURNING `+columns, pg.Args{
		"organization": org,
		"now":          now,
		"user":         d.User,
		"item":         d.Item,
		"kind":         d.Kind,
		"source":       d.Source,
		"notify":       d.Notify,
		"due":          d.DueAt,
	})
}

// insertAll fills made and created where no such work was open. Rows get positions in the order of the
// drafts; the position of a row that conflicts stays unused.
func insertAll(ctx context.Context, tx *pg.Tx, drafts []Placed, now time.Time, made []Assignment, created []bool) error {
	type key struct {
		org  id.Organization
		user id.User
		item id.Item
	}
	n, at := len(drafts), make(map[key]int, len(drafts))
	orgs, users, items := make([]id.Organization, n), make([]id.User, n), make([]id.Item, n)
	kinds, sources := make([]string, n), make([]string, n)
	notify, due := make([]bool, n), make([]*time.Time, n)
	for i, d := range drafts {
		at[key{d.Organization, d.User, d.Item}] = i
		orgs[i], users[i], items[i] = d.Organization, d.User, d.Item
		kinds[i], sources[i] = d.Kind, string(d.Source)
		notify[i], due[i] = d.Notify, d.DueAt
	}
	rows, err := tx.Query(ctx, `
		WITH draft AS (
			SELECT d.*, row_number() OVER (PARTITION BY org ORDER BY nth) AS nth_of_org
			FROM unnest(
				@orgs::bigint[],
				@users::bigint[],
				@items::bigint[],
				@kinds::text[],
				@sources::text[],
				@notify::boolean[],
				@due::timestamptz[]) WITH ORDINALITY AS d(org, usr, item, kind, source, notify, due, nth)),
		next AS (
			INSERT INTO assignment_positions AS p (organization_id, last, last_at)
			SELECT org, count(*), @now FROM draft GROUP BY org ORDER BY org
			ON CONFLICT (organization_id) DO UPDATE SET
				last = p.last + excluded.last, last_at = greatest(p.last_at, excluded.last_at)
			RETURNING p.organization_id, p.last, p.last_at),
		size AS (SELECT org, count(*) AS n FROM draft GROUP BY org)
		`+insertWork+`
		SELECT
			d.org,
			d.usr,
			d.item,
			d.kind,
			'pending',
			d.source,
			d.notify,
			next.last_at,
			d.due,
			next.last - size.n + d.nth_of_org,
			@now
		FROM draft d JOIN next ON next.organization_id = d.org JOIN size ON size.org = d.org ORDER BY d.nth
		`+unlessOpen+`
		RETURNING s.organization_id AS organization, `+columns, pg.Args{
		"now":     now,
		"orgs":    orgs,
		"users":   users,
		"items":   items,
		"kinds":   kinds,
		"sources": sources,
		"notify":  notify,
		"due":     due,
	})
	if err != nil {
		return err
	}
	type madeRow struct {
		Organization id.Organization
		Assignment
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[madeRow])
	for _, r := range all {
		i := at[key{r.Organization, r.User, r.Item}]
		made[i], created[i] = r.Assignment, true
	}
	return err
}

// Find returns the organizations of assignments, whichever they are: for the platform only.
func Find(ctx context.Context, q pg.Querier, ids []id.Assignment) (map[id.Assignment]id.Organization, error) {
	var b pg.Batch
	owners := make(map[id.Assignment]id.Organization, len(ids))
	QueueFind(&b, ids, owners)
	return owners, b.Send(ctx, q)
}

// QueueFind queues what Find does, into owners.
func QueueFind(b *pg.Batch, ids []id.Assignment, owners map[id.Assignment]id.Organization) {
	if len(ids) == 0 {
		return
	}
	var a id.Assignment
	var org id.Organization
	b.Rows(func() error { owners[a] = org; return nil }, []any{&a, &org},
		`SELECT id, organization_id FROM assignments WHERE id = ANY ($1)`, ids)
}

// Lock returns assignments of the organization by id, and locks their rows in the order of their ids.
func Lock(ctx context.Context, tx *pg.Tx, org id.Organization, ids []id.Assignment) (map[id.Assignment]Assignment, error) {
	keys := make([]Key, len(ids))
	for i, a := range ids {
		keys[i] = Key{org, a}
	}
	var b pg.Batch
	locked := make(map[Key]Assignment, len(ids))
	QueueLock(&b, keys, locked)
	err := b.Send(ctx, tx)
	byID := make(map[id.Assignment]Assignment, len(locked))
	for k, a := range locked {
		byID[k.ID] = a
	}
	return byID, err
}

// QueueLock queues Lock for several organizations, into locked.
func QueueLock(b *pg.Batch, keys []Key, locked map[Key]Assignment) {
	if len(keys) == 0 {
		return
	}
	orgs, ids := make([]id.Organization, len(keys)), make([]id.Assignment, len(keys))
	for i, k := range keys {
		orgs[i], ids[i] = k.Organization, k.ID
	}
	type row struct {
		Organization id.Organization
		Assignment
	}
	// With LIMIT, the planner does not plan again for each number of keys.
	pg.Structs(b, func(r row) { locked[Key{r.Organization, r.ID}] = r.Assignment }, `
		SELECT k.organization, `+columns+`
		FROM (SELECT organization, id FROM unnest($1::bigint[], $2::bigint[]) AS k(organization, id)
			ORDER BY id LIMIT $3) AS k
		CROSS JOIN LATERAL (
			SELECT * FROM assignments WHERE organization_id = k.organization AND id = k.id LIMIT 1 FOR NO KEY UPDATE) AS s`,
		orgs, ids, len(keys))
}

// Save writes the status, completion and result of assignments that the transaction has locked.
func Save(ctx context.Context, tx *pg.Tx, org id.Organization, changed []Assignment, now time.Time) error {
	var b pg.Batch
	byKey := make(map[Key]Assignment, len(changed))
	for _, a := range changed {
		byKey[Key{org, a.ID}] = a
	}
	QueueSave(&b, byKey, now)
	return b.Send(ctx, tx)
}

// QueueSave queues Save for several organizations.
func QueueSave(b *pg.Batch, changed map[Key]Assignment, now time.Time) {
	n := len(changed)
	if n == 0 {
		return
	}
	orgs, ids, statuses, refs := make([]int64, 0, n), make([]int64, 0, n), make([]string, 0, n), make([]string, 0, n)
	done := make([]*time.Time, 0, n)
	for k, a := range changed {
		orgs, ids, statuses = append(orgs, int64(k.Organization)), append(ids, int64(a.ID)), append(statuses, string(a.Status))
		refs, done = append(refs, a.ResultRef), append(done, a.CompletedAt)
	}
	b.Queue(`
		UPDATE assignments s SET
			status = u.status,
			completed_at = u.completed_at,
			result_ref = nullif(u.result_ref, ''),
			updated_at = @now
		FROM unnest(@organizations::bigint[], @ids::bigint[], @statuses::text[], @done::timestamptz[], @refs::text[])
			AS u(organization, id, status, completed_at, result_ref)
		WHERE s.organization_id = u.organization AND s.id = u.id`, pg.Args{
		"now":           now,
		"organizations": orgs,
		"ids":           ids,
		"statuses":      statuses,
		"done":          done,
		"refs":          refs,
	})
}

// Relist queues new positions, in their old order, for all work of the users. Queue it as late as possible,
// as it locks the organization's positions. It locks the rows before the positions, as other changes do, and
// reads them after: what another transaction assigns meanwhile is among them, or gets a higher position.
func Relist(b *pg.Batch, org id.Organization, users []id.User) {
	b.Queue(`
		SELECT FROM assignments WHERE organization_id = $1 AND user_id = ANY ($2) ORDER BY id FOR NO KEY UPDATE`,
		org, users)
	b.Queue(`
		INSERT INTO assignment_positions AS p (organization_id, last, last_at) VALUES ($1, 0, '-infinity')
		ON CONFLICT (organization_id) DO UPDATE SET last = p.last`, org)
	b.Queue(`
		WITH source AS (
			SELECT s.id, p.last + row_number() OVER (ORDER BY s.position) AS position
			FROM assignment_positions p, assignments s
			WHERE p.organization_id = @organization AND s.organization_id = @organization
				AND s.user_id = ANY (@users)
		), counter AS (
			UPDATE assignment_positions SET last = last + (SELECT count(*) FROM source)
			WHERE organization_id = @organization
		)
		UPDATE assignments s SET made = coalesce(s.made, s.position), position = n.position FROM source n
		WHERE s.id = n.id`, pg.Args{"organization": org, "users": users})
}

// inScope is the condition on s on the day that a parameter, such as $4, holds.
func inScope(today string) string { return scope.Listed("s.organization_id", "s.user_id", today) }

const listedColumns = columns + `,
	a.email,
	a.first_name,
	a.last_name,
	i.title AS item_title,
	i.type AS item_type`

// pageQuery reads along the index that fits the filter and stops at the end of the page.
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
		where = append(where, `(SELECT true FROM enrollments x
			WHERE x.user_id = s.user_id AND x.course_id = `+arg(f.Course)+` AND x.organization_id = $1 LIMIT 1)`)
	}
	if !f.Since.IsZero() {
		// assigned_at follows the position with which the work was made, and Relist gives higher ones. So
		// the first row of the window bounds it.
		since := arg(f.Since)
		where = append(where, `s.assigned_at >= `+since+` AND s.position >= (
			SELECT coalesce(f.made, f.position) FROM assignments f
			WHERE f.organization_id = $1 AND f.assigned_at >= `+since+`
			ORDER BY f.assigned_at, f.position LIMIT 1)`)
	}
	source := `SELECT s.* FROM assignments s WHERE ` + strings.Join(append(where, inScope("$4")), ` AND `)
	along := func(list, condition string) string {
		return `SELECT s.* FROM unnest(` + list + `) AS k(one)
			CROSS JOIN LATERAL (` + source + ` AND ` + condition + ` ORDER BY s.position LIMIT $3) AS s`
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
		CROSS JOIN LATERAL ` + scope.Person("s.organization_id", "s.user_id") + ` AS a
		CROSS JOIN LATERAL (SELECT title, type FROM catalog_items WHERE id = s.item_id LIMIT 1) AS i
		ORDER BY s.position`, args
}

// List returns up to limit assignments of people who are students of the organization today, with
// positions above after, by position.
func List(ctx context.Context, q pg.Querier, org id.Organization, f Filter, after int64, limit int) ([]Listed, error) {
	query, args := pageQuery(org, f, after, limit)
	return pg.List[Listed](ctx, q, query, args...)
}

// TakeOverdue marks up to limit unfinished assignments whose due date has passed, of any organization,
// as overdue. It returns how many, and those of students as of today by organization. Each is returned
// once. Assignments of staff and of people who have left are marked only.
func TakeOverdue(ctx context.Context, tx *pg.Tx, now time.Time, today clock.Date, limit int) (due []Due, taken int, err error) {
	rows, err := tx.Query(ctx, `
		WITH taken AS (
			UPDATE assignments SET overdue_at = $1, updated_at = $1
			WHERE id IN (SELECT id FROM assignments
				WHERE status IN ('pending', 'in_progress') AND overdue_at IS NULL AND due_at < $1
				ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED)
			RETURNING *)
		SELECT s.organization_id AS organization, `+inScope("$2")+` AS in_scope, `+listedColumns+`
		FROM taken s
		CROSS JOIN LATERAL `+scope.Person("s.organization_id", "s.user_id")+` AS a
		JOIN catalog_items i ON i.id = s.item_id
		ORDER BY s.organization_id, s.due_at, s.id`, now, today, limit)
	if err != nil {
		return nil, 0, err
	}
	type overdueRow struct {
		Organization id.Organization
		InScope      bool
		Listed
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[overdueRow])
	for _, r := range all {
		if !r.InScope {
			continue
		}
		if len(due) == 0 || due[len(due)-1].Organization != r.Organization {
			due = append(due, Due{Organization: r.Organization})
		}
		last := &due[len(due)-1]
		last.Listed = append(last.Listed, r.Listed)
	}
	return due, len(all), err
}

// Expire ends up to limit unfinished assignments whose due date passed ExpireAfter ago and that
// TakeOverdue has marked. It returns how many.
func Expire(ctx context.Context, q pg.Querier, now time.Time, limit int) (int64, error) {
	tag, err := q.Exec(ctx, `
		UPDATE assignments SET status = 'expired', updated_at = $1
		WHERE id IN (SELECT id FROM assignments
			WHERE status IN ('pending', 'in_progress') AND overdue_at IS NOT NULL AND due_at < $2
			ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED)`, now, now.Add(-ExpireAfter), limit)
	return tag.RowsAffected(), err
}

// Redate moves the due date of an assignment if it is pending.
func Redate(ctx context.Context, tx *pg.Tx, org id.Organization, a id.Assignment, due, now time.Time) error {
	_, err := tx.Exec(ctx, `
		UPDATE assignments SET due_at = $3, updated_at = $4
		WHERE organization_id = $1 AND id = $2 AND status = 'pending'`, org, a, due, now)
	return err
}

// Latest returns the last assignments of a person in the organization, the latest first, whether the
// person is a student today or not.
func Latest(ctx context.Context, q pg.Querier, org id.Organization, user id.User, limit int) ([]Listed, error) {
	return pg.List[Listed](ctx, q, `
		SELECT `+listedColumns+`
		FROM assignments s
		CROSS JOIN LATERAL `+scope.Person("s.organization_id", "s.user_id")+` AS a
		JOIN catalog_items i ON i.id = s.item_id
		WHERE s.organization_id = $1 AND s.user_id = $2 ORDER BY s.position DESC LIMIT $3`, org, user, limit)
}

// Steps lists up to limit steps of a person's assignments in the organization until that time, the last one
// first, whether the person is a student today or not.
func Steps(ctx context.Context, q pg.Querier, org id.Organization, user id.User, until time.Time, limit int) ([]Step, error) {
	return pg.List[Step](ctx, q, `
		SELECT `+columns+`, i.title AS item_title, s.stage, s.at
		FROM (
			SELECT s.*, m.stage, m.at
			FROM assignments s
			CROSS JOIN LATERAL (VALUES
				(s.assigned_at, 'assigned'),
				(s.overdue_at, 'overdue'),
				(s.completed_at, 'completed'),
				(CASE WHEN s.status = 'expired' THEN s.updated_at END, 'expired')
			) AS m(at, stage)
			WHERE s.organization_id = $1 AND s.user_id = $2 AND m.at <= $3
			ORDER BY m.at DESC, s.id DESC, m.stage DESC LIMIT $4
		) AS s
		CROSS JOIN LATERAL (SELECT title FROM catalog_items WHERE id = s.item_id LIMIT 1) AS i
		ORDER BY s.at DESC, s.id DESC, s.stage DESC`, org, user, until, limit)
}

// Show reads an assignment of the organization with its student and item, whether the person is a student
// today or not. NotFound when there is none.
func Show(ctx context.Context, q pg.Querier, org id.Organization, a id.Assignment) (Listed, error) {
	l, err := pg.One[Listed](ctx, q, `
		SELECT `+listedColumns+`
		FROM assignments s
		CROSS JOIN LATERAL `+scope.Person("s.organization_id", "s.user_id")+` AS a
		JOIN catalog_items i ON i.id = s.item_id
		WHERE s.organization_id = $1 AND s.id = $2`, org, a)
	if pg.None(err) {
		return Listed{}, ErrNone(a)
	}
	return l, err
}
