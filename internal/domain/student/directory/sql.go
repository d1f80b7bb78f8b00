package directory

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/scope"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// columns are an index's column and what is found by the one before.
var columns = [manners]string{byName: "name", bySurname: "surname", byEmail: "email"}

// begins is the condition that the column begins with the text $2. Nothing sorts behind the
// last character of Unicode, which is what makes it a stretch of the index.
func begins(column string) string {
	return `d.` + column + ` >= directory_key($2) AND d.` + column + ` < directory_key($2) || chr(1114111)`
}

// columnsOfPerson are those of Person; organization is an expression.
func columnsOfPerson(organization string) string {
	return `
	a.id,
	a.email,
	coalesce(d.first_name, a.first_name) AS first_name,
	coalesce(d.last_name, a.last_name) AS last_name,
	coalesce(m.status, '') AS status,
	coalesce(
		CASE WHEN a.proven_password OR coalesce(a.created_by_organization, ` + organization + `) = ` + organization + `
			THEN a.last_login END, '0001-01-01Z') AS last_login`
}

// students joins d (directory) to the accounts of those who are or were students.
var students = `JOIN accounts a ON a.id = d.user_id
	LEFT JOIN members m ON m.organization_id = d.organization_id AND m.user_id = d.user_id
	WHERE d.organization_id = $1 AND ` + scope.IsStudent("m.role", "$1", "d.user_id")

// selectSome leaves out whom an earlier manner finds.
func selectSome(ctx context.Context, q pg.Querier, org id.Organization, by manner, text string, after id.User, limit int) ([]Person, error) {
	column := columns[by]
	var where strings.Builder
	for _, earlier := range columns[:by] {
		where.WriteString(` AND NOT (` + begins(earlier) + `)`)
	}
	if after != 0 {
		// Should the person be gone by now, the list begins again.
		where.WriteString(` AND (d.` + column + `, d.user_id) > (coalesce(
			(SELECT l.` + column + ` FROM directory l WHERE l.organization_id = $1 AND l.user_id = $3), ''), $3)`)
	} else {
		where.WriteString(` AND $3 = 0`) // every parameter has to be in the statement
	}
	return collect(q.Query(ctx, `
		SELECT `+columnsOfPerson("$1")+` FROM directory d `+students+` AND `+begins(column)+where.String()+`
		ORDER BY d.`+column+`, d.user_id LIMIT $4`, org, text, after, limit))
}

func selectUsers(ctx context.Context, q pg.Querier, org id.Organization, users []id.User) ([]Person, error) {
	return collect(q.Query(ctx, `
		SELECT `+columnsOfPerson("$1")+`
		FROM directory d `+students+` AND d.user_id = ANY ($2)
		ORDER BY d.user_id`, org, users))
}

// Conditions on the day @today, for the organization @org, and since @since. Each is a stretch of an index of its own.
const (
	givesAccess = `e.organization_id = @org AND e.state = 'running' AND e.grace_period_end >= @today AND e.start_date <= @today`
	endsSoon    = `e.organization_id = @org AND e.state = 'running' AND e.start_date <= @today AND e.end_date >= @today AND e.end_date <= @today::date + ` + expiringDays
	isAtRisk    = `p.organization_id = @org AND p.at_risk AND p.status = 'active'`
	isNew       = `m.organization_id = @org AND m.role = 'member' AND m.joined_at >= @since`
)

// expiringDays is ExpiringDays in SQL.
const expiringDays = "7"

func selectFigures(ctx context.Context, q pg.Querier, org id.Organization, today clock.Date, since time.Time) (Figures, error) {
	return pg.One[Figures](ctx, q, `
		SELECT
			(SELECT count(DISTINCT e.user_id) FROM enrollments e
			 WHERE `+givesAccess+` AND `+scope.NotStaff("e.organization_id", "e.user_id")+`) AS with_access,
			(SELECT count(DISTINCT e.user_id) FROM enrollments e
			 WHERE `+endsSoon+` AND `+scope.NotStaff("e.organization_id", "e.user_id")+`) AS expiring,
			(SELECT count(DISTINCT p.user_id) FROM plans p
			 WHERE `+isAtRisk+` AND `+scope.NotStaff("p.organization_id", "p.user_id")+`) AS at_risk,
			(SELECT count(*) FROM members m WHERE `+isNew+`) AS joined`, pg.Args{"org": org, "today": today, "since": since})
}

// listSQL selects the keys (at, course, user_id) of a list behind @at, @course and @last in its order, which is the index's.
// Who has several rows is listed with the first. What is asked of each row is a scalar subquery, as in scope.
type listSQL struct{ keys, order string }

var lists = map[Which]listSQL{
	WithAccess: {`
		SELECT e.grace_period_end - '1970-01-01'::date AS at, e.course_id AS course, e.user_id FROM enrollments e
		WHERE ` + givesAccess + ` AND ` + isNoStaff("e.user_id") + `
		  AND (e.grace_period_end, e.course_id, e.user_id) >
			('1970-01-01'::date + @at::int, @course::bigint, @last::bigint)
		  AND (SELECT true FROM enrollments x
			WHERE x.organization_id = @org AND x.user_id = e.user_id AND x.state = 'running' AND x.start_date <= @today
			  AND x.grace_period_end >= @today AND (x.grace_period_end, x.course_id) < (e.grace_period_end, e.course_id)
			LIMIT 1) IS NULL
		ORDER BY e.grace_period_end, e.course_id, e.user_id LIMIT @limit`, `at, course, user_id`},
	Expiring: {`
		SELECT e.end_date - '1970-01-01'::date AS at, e.course_id AS course, e.user_id FROM enrollments e
		WHERE ` + endsSoon + ` AND ` + isNoStaff("e.user_id") + `
		  AND (e.end_date, e.user_id) > ('1970-01-01'::date + @at::int, @last::bigint)
		  AND (SELECT true FROM enrollments x
			WHERE x.organization_id = @org AND x.user_id = e.user_id AND x.state = 'running' AND x.start_date <= @today
			  AND x.end_date >= @today AND (x.end_date, x.course_id) < (e.end_date, e.course_id)
			LIMIT 1) IS NULL
		ORDER BY e.end_date, e.user_id LIMIT @limit`, `at, user_id`},
	AtRisk: {`
		SELECT 0 AS at, 0::bigint AS course, p.user_id FROM plans p
		WHERE ` + isAtRisk + ` AND ` + isNoStaff("p.user_id") + ` AND p.user_id > @last::bigint
		GROUP BY p.user_id ORDER BY p.user_id LIMIT @limit`, `user_id`},
	Joined: {`
		SELECT (extract(epoch FROM m.joined_at) * 1000000)::bigint AS at, 0::bigint AS course, m.user_id FROM members m
		WHERE ` + isNew + `
		  AND (@last::bigint = 0 OR (m.joined_at, m.user_id) <
			('epoch'::timestamptz + @at::bigint * interval '1 microsecond', @last))
		ORDER BY m.joined_at DESC, m.user_id DESC LIMIT @limit`, `at DESC, user_id DESC`},
}

// isNoStaff is scope.NotStaff for one row after the other.
func isNoStaff(user string) string {
	return `coalesce(` + scope.Role("@org", user) + `, 'member') = 'member'`
}

type listed struct {
	Person
	At     int64
	Course int64
}

func selectList(
	ctx context.Context, q pg.Querier, org id.Organization, which Which, today clock.Date, since time.Time, after ListPosition, limit int,
) ([]listed, error) {
	list := lists[which]
	sql := `
		WITH keys AS MATERIALIZED (` + list.keys + `
		)
		SELECT ` + columnsOfPerson("@org") + `,
			k.at,
			k.course
		FROM keys k
		CROSS JOIN LATERAL (SELECT * FROM accounts WHERE id = k.user_id LIMIT 1) AS a
		LEFT JOIN LATERAL (
			SELECT * FROM directory WHERE user_id = k.user_id AND organization_id = @org LIMIT 1) AS d ON true
		LEFT JOIN LATERAL (
			SELECT * FROM members WHERE organization_id = @org AND user_id = k.user_id LIMIT 1) AS m ON true
		ORDER BY k.` + strings.ReplaceAll(list.order, ", ", ", k.")
	args := pg.Args{
		"org":    org,
		"today":  today,
		"since":  since,
		"at":     after.at,
		"course": after.course,
		"last":   after.last,
		"limit":  limit,
	}
	maps.DeleteFunc(args, func(name string, _ any) bool { return !strings.Contains(sql, "@"+name) }) // no list needs all
	return pg.List[listed](ctx, q, sql, args)
}

func collect(rows pgx.Rows, err error) ([]Person, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Person])
}
