package activity

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/scope"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// row is one of activity_events.
type row struct {
	org  id.Organization
	user id.User
	Event
}

// customPlans makes PostgreSQL plan the transaction's statements for their actual arrays. A generic plan
// assumes short arrays and uses nested loops.
const customPlans = `SET LOCAL plan_cache_mode = force_custom_plan`

// readScope fills in which of the people are students, and reads the last closed day
// (the zero Date when none is). No day is closed before the transaction has ended.
func readScope(ctx context.Context, tx *pg.Tx, people []person) (closed clock.Date, err error) {
	slugs, users := make([]string, len(people)), make([]id.User, len(people))
	for i, p := range people {
		slugs[i], users[i] = p.slug, p.user
	}
	var b pg.Batch
	b.Queue(customPlans)
	b.Queue(`SELECT pg_advisory_xact_lock_shared($1, hashtext($2))`, int32(pg.LockActivity), registerKey)
	b.Queue(`SELECT max(date) FROM activity_closed_days`).QueryRow(func(row pgx.Row) error { return row.Scan(&closed) })
	b.Queue(`
		SELECT coalesce(o.id, 0), `+scope.IsStudent("m.role", "o.id", "p.user_id")+`
		FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS p(slug, user_id, place)
		LEFT JOIN organizations o ON o.slug = p.slug
		LEFT JOIN members m ON m.organization_id = o.id AND m.user_id = p.user_id
		ORDER BY p.place`, slugs, users).Query(func(rows pgx.Rows) error {
		for i := range people {
			if !rows.Next() {
				break
			}
			if err := rows.Scan(&people[i].org, &people[i].student); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	return closed, b.Send(ctx, tx)
}

func copyEvents(ctx context.Context, tx *pg.Tx, rows []row) error {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"activity_events"}, []string{"organization_id", "user_id", "at", "kind"},
		pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
			r := &rows[i]
			return []any{int64(r.org), int64(r.user), r.At, string(r.Kind)}, nil
		}))
	return err
}

// selectNextToClose is the day after the last closed one; while none is closed, the day
// of the first event or, without events, the latest that is over.
func selectNextToClose(ctx context.Context, q pg.Querier, lastOver clock.Date) (next clock.Date, err error) {
	err = q.QueryRow(ctx, `
		SELECT coalesce((SELECT max(date) + 1 FROM activity_closed_days),
			least((SELECT (min(at) AT TIME ZONE 'Asia/Kolkata')::date FROM activity_events), $1))`, lastOver).Scan(&next)
	return next, err
}

func insertClosed(ctx context.Context, q pg.Querier, first, last clock.Date, now time.Time) error {
	_, err := q.Exec(ctx, `
		INSERT INTO activity_closed_days (date, closed_at)
		SELECT $1::date + n, $3 FROM generate_series(0, $2::date - $1::date) AS n
		ON CONFLICT DO NOTHING`, first, last, now)
	return err
}

func selectUncompiled(ctx context.Context, q pg.Querier) ([]clock.Date, error) {
	rows, err := q.Query(ctx, `SELECT date FROM activity_closed_days WHERE compiled_at IS NULL ORDER BY date`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[clock.Date])
}

func markCompiled(ctx context.Context, q pg.Querier, day clock.Date, now time.Time) error {
	_, err := q.Exec(ctx, `UPDATE activity_closed_days SET compiled_at = $2 WHERE date = $1`, day, now)
	return err
}

// deleteDay names the organizations because the primary key begins with them.
func deleteDay(ctx context.Context, tx *pg.Tx, day clock.Date) error {
	if _, err := tx.Exec(ctx, customPlans); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `
		DELETE FROM activity_days d USING organizations o WHERE d.organization_id = o.id AND d.date = $1`, day)
	return err
}

// eachOfDay calls do with each event of [from, to), student by student, and counts them.
func eachOfDay(ctx context.Context, tx *pg.Tx, from, to time.Time, do func(context.Context, row) error) (n int, err error) {
	_, err = tx.Exec(ctx, `
		DECLARE events_of_day NO SCROLL CURSOR FOR
		SELECT organization_id, user_id, at, kind
		FROM activity_events
		WHERE at >= '`+from.UTC().Format(time.RFC3339)+`' AND at < '`+to.UTC().Format(time.RFC3339)+`'
		ORDER BY organization_id, user_id`)
	if err != nil {
		return 0, err
	}
	for {
		some, err := fetchEvents(ctx, tx)
		if err != nil || len(some) == 0 {
			return n, err
		}
		n += len(some)
		for _, r := range some {
			if err := do(ctx, r); err != nil {
				return n, err
			}
		}
	}
}

func fetchEvents(ctx context.Context, tx *pg.Tx) ([]row, error) {
	rows, err := tx.Query(ctx, `FETCH 20000 FROM events_of_day`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var some []row
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.org, &r.user, &r.At, &r.Kind); err != nil {
			return nil, err
		}
		some = append(some, r)
	}
	return some, rows.Err()
}

// insertDays leaves out people and organizations that do not exist any more.
func insertDays(ctx context.Context, q pg.Querier, days []Day) (int, error) {
	if len(days) == 0 {
		return 0, nil
	}
	var c columns
	for _, d := range days {
		c.add(d)
	}
	tag, err := q.Exec(ctx, `
		INSERT INTO activity_days (
			date,
			organization_id,
			user_id,
			first_seen_at,
			last_seen_at,
			visits,
			active_minutes,
			page_views,
			tests_started,
			tests_completed)
		SELECT @date, d.*
		FROM unnest(
			@orgs::bigint[],
			@users::bigint[],
			@first::timestamptz[],
			@last::timestamptz[],
			@visits::integer[],
			@minutes::integer[],
			@views::integer[],
			@started::integer[],
			@completed::integer[]) AS d(organization_id, user_id)
		JOIN organizations o ON o.id = d.organization_id JOIN accounts a ON a.id = d.user_id`, pg.Args{
		"date":      days[0].Date,
		"orgs":      c.orgs,
		"users":     c.users,
		"first":     c.first,
		"last":      c.last,
		"visits":    c.visits,
		"minutes":   c.minutes,
		"views":     c.views,
		"started":   c.started,
		"completed": c.completed,
	})
	return int(tag.RowsAffected()), err
}

// columns are days as the arrays of an unnest.
type columns struct {
	orgs                                       []id.Organization
	users                                      []id.User
	first, last                                []time.Time
	visits, minutes, views, started, completed []int
}

func (c *columns) add(d Day) {
	c.orgs, c.users = append(c.orgs, d.Organization), append(c.users, d.User)
	c.first, c.last = append(c.first, d.FirstSeenAt), append(c.last, d.LastSeenAt)
	c.visits, c.minutes, c.views = append(c.visits, d.Visits), append(c.minutes, d.ActiveMinutes), append(c.views, d.PageViews)
	c.started, c.completed = append(c.started, d.TestsStarted), append(c.completed, d.TestsCompleted)
}

func makePartitions(ctx context.Context, tx *pg.Tx, first clock.Date, days int) error {
	if err := pg.GiveWay(ctx, tx); err != nil { // to compilations, behind which reports of events would wait
		return err
	}
	_, err := tx.Exec(ctx, `
		SELECT make_partitions('activity_events', $1, $2, $3, move_rows => false)`, Zone.String(), first, days)
	return err
}

func dropPartitions(ctx context.Context, tx *pg.Tx, keep clock.Date) error {
	if err := pg.GiveWay(ctx, tx); err != nil { // as makePartitions does
		return err
	}
	_, err := tx.Exec(ctx, `SELECT activity_drop_partitions($1)`, keep)
	return err
}

// inScope is the condition on d (rows with user_id) of organization $1 on the day $2.
var inScope = scope.Listed("$1", "d.user_id", "$2")

// List returns up to limit rows after the position, of people who are students of the organization today.
func List(ctx context.Context, q pg.Querier, org id.Organization, f Filter, after Position, limit int) ([]Listed, error) {
	query, args := listQuery(org, f, after, limit)
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[Listed])
}

// listQuery depends on which filters are set, so that each combination has its own plan.
func listQuery(org id.Organization, f Filter, after Position, limit int) (query string, args []any) {
	args = []any{org, f.Today, f.From, f.To, limit}
	where := `d.organization_id = $1 AND d.date BETWEEN $3 AND $4`
	with := func(condition string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			condition = strings.Replace(condition, "?", "$"+strconv.Itoa(len(args)), 1)
		}
		where += " AND " + condition
	}
	if after.User != 0 {
		with(`(d.date, d.user_id) > (?::date, ?::bigint)`, after.Date, after.User)
	}
	if f.User != 0 {
		with(`d.user_id = ?`, f.User)
	}
	few := f.Few != nil && f.User == 0
	if f.Course != 0 && !few {
		with(`(SELECT true FROM enrollments c
			WHERE c.organization_id = $1 AND c.user_id = d.user_id AND c.course_id = ? LIMIT 1)`, f.Course)
	}
	source := `SELECT d.* FROM activity_days d WHERE ` + where + ` AND ` + inScope
	if few {
		args = append(args, f.Few)
		source = `SELECT d.*
			FROM (SELECT d.user_id FROM (SELECT unnest($` + strconv.Itoa(len(args)) + `::bigint[]) AS user_id) AS d
				WHERE ` + inScope + `) AS u
			CROSS JOIN LATERAL (SELECT d.* FROM activity_days d
				WHERE d.user_id = u.user_id AND ` + where + ` ORDER BY d.date LIMIT $5) AS d`
	}
	return `
		SELECT
			d.organization_id AS organization,
			d.user_id AS "user",
			d.date,
			d.first_seen_at,
			d.last_seen_at,
			d.visits,
			d.active_minutes,
			d.page_views,
			d.tests_started,
			d.tests_completed,
			a.email,
			a.first_name,
			a.last_name
		FROM (SELECT * FROM (` + source + `) AS found ORDER BY date, user_id LIMIT $5) AS d
		CROSS JOIN LATERAL ` + scope.Person("d.organization_id", "d.user_id") + ` AS a
		ORDER BY d.date, d.user_id`, args
}
