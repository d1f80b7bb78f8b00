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

// upTo is behind every text that begins with the expression: nothing sorts behind the last character of Unicode.
func upTo(text string) string { return text + ` || chr(1114111)` }

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

// probed is a word of a text, and how many names have it, up to probe.
type probed struct {
	Word  string
	Names int
}

// selectWords probes nothing for a text of one word, which has no choice.
func selectWords(ctx context.Context, q pg.Querier, org id.Organization, text string) ([]probed, error) {
	return pg.List[probed](ctx, q, `
		SELECT t.word, CASE WHEN t.words = 1 THEN 0 ELSE (
			SELECT count(*) FROM (
				SELECT FROM directory_words w
				WHERE w.organization_id = $1
				  AND w.words >= t.word COLLATE "C" AND w.words < `+upTo(`t.word`)+` COLLATE "C"
				LIMIT $3) AS n) END AS names
		FROM (
			SELECT word, count(*) OVER () AS words FROM unnest(string_to_array(directory_plain($2), ' ')) AS word
			WHERE word <> '' GROUP BY word) AS t`, org, text, probe)
}

func selectEverybody(ctx context.Context, q pg.Querier, org id.Organization, after id.User, limit int) ([]Person, error) {
	where := ` AND $2::bigint = 0` // every parameter has to be in the statement
	if after != 0 {
		// Should the person be gone by now, the list begins again.
		where = ` AND (d.name, d.user_id) > (coalesce(
			(SELECT l.name FROM directory l WHERE l.organization_id = $1 AND l.user_id = $2), ''), $2)`
	}
	return collect(q.Query(ctx, `
		SELECT `+columnsOfPerson("$1")+` FROM directory d `+students+where+`
		ORDER BY d.name, d.user_id LIMIT $3`, org, after, limit))
}

func countEverybody(ctx context.Context, q pg.Querier, org id.Organization, limit int) (n int, err error) {
	err = q.QueryRow(ctx, `
		SELECT count(*) FROM (
			SELECT FROM directory d `+students+` ORDER BY d.name, d.user_id LIMIT $2) AS n`, org, limit).Scan(&n)
	return n, err
}

// wordsPosition is a place among the rotations of names. With an empty words it is that of the last person's first
// rotation.
type wordsPosition struct {
	words string
	last  id.User
}

type named struct {
	Person
	Words string
}

// hasWords is true for names, of which plain is the expression, that have a word which begins with each of @others.
func hasWords(plain string) string {
	return `(SELECT coalesce(bool_and(strpos(' ' || ` + plain + `, ' ' || o) > 0), true) FROM unnest(@others::text[]) AS o)`
}

// namedSQL are w (directory_words) that begin with @driver, of those who are or were students.
var namedSQL = `
	FROM directory_words w
	LEFT JOIN members m ON m.organization_id = w.organization_id AND m.user_id = w.user_id
	WHERE w.organization_id = @org AND w.words >= @driver::text AND w.words < ` + upTo(`@driver::text`) + `
	  AND ` + hasWords("w.words") + ` AND ` + scope.IsStudent("m.role", "@org", "w.user_id")

func (s search) args() pg.Args {
	return pg.Args{"org": s.org, "driver": s.driver, "others": s.words}
}

func (s search) selectNamed(ctx context.Context, q pg.Querier, after wordsPosition, limit int) ([]named, error) {
	args := s.args()
	args["limit"] = limit
	if after.words == "" && after.last != 0 {
		err := q.QueryRow(ctx, `
			SELECT coalesce(min(r), '') FROM directory d CROSS JOIN LATERAL directory_rotations(d.name) AS r
			WHERE d.user_id = $1 AND d.organization_id = $2 AND r COLLATE "C" >= $3 AND r COLLATE "C" < `+upTo("$3"),
			after.last, s.org, s.driver).Scan(&after.words)
		if err != nil {
			return nil, err
		}
	}
	// Where two conditions bound an index, PostgreSQL goes to where the one on the key does.
	if after.words < s.driver {
		after = wordsPosition{words: s.driver}
	}
	args["words"], args["last"] = after.words, after.last
	return pg.List[named](ctx, q, `
		WITH n AS MATERIALIZED (
			SELECT w.words, w.user_id, m.status`+namedSQL+`
			  AND (w.words, w.user_id) > (@words::text, @last::bigint)
			ORDER BY w.words, w.user_id LIMIT @limit)
		SELECT `+strings.ReplaceAll(columnsOfPerson("@org"), "m.status", "n.status")+`, n.words
		FROM n
		JOIN accounts a ON a.id = n.user_id
		JOIN directory d ON d.user_id = n.user_id AND d.organization_id = @org
		ORDER BY n.words, n.user_id`, args)
}

// addressedSQL are d (directory) whose address begins with @text, without those that namedSQL has.
var addressedSQL = `
	FROM directory d ` + strings.ReplaceAll(students, "$1", "@org") + `
	  AND d.email >= directory_key(@text) AND d.email < ` + upTo(`directory_key(@text)`) + `
	  AND (cardinality(@others::text[]) = 0 OR NOT ` + hasWords("directory_plain(d.name)") + `)`

func (s search) selectAddressed(ctx context.Context, q pg.Querier, after id.User, limit int) ([]Person, error) {
	return pg.List[Person](ctx, q, `
		SELECT `+columnsOfPerson("@org")+addressedSQL+`
		  AND (@last::bigint = 0 OR (d.email, d.user_id) > (coalesce(
			(SELECT l.email FROM directory l WHERE l.organization_id = @org AND l.user_id = @last), ''), @last))
		ORDER BY d.email, d.user_id LIMIT @limit`,
		pg.Args{"org": s.org, "text": s.text, "others": s.words, "last": after, "limit": limit})
}

// count counts up to limit students. Addresses are read only where names are not enough: of a letter that most of them begin
// with, that would be many.
func (s search) count(ctx context.Context, q pg.Querier, limit int) (n int, err error) {
	if s.driver != "" {
		args := s.args()
		args["limit"] = limit
		err = q.QueryRow(ctx, `
			SELECT count(DISTINCT user_id) FROM (SELECT w.user_id`+namedSQL+` LIMIT @limit) AS named`, args).Scan(&n)
		if err != nil || n >= limit {
			return n, err
		}
	}
	var more int
	err = q.QueryRow(ctx, `
		SELECT count(*) FROM (SELECT d.user_id`+addressedSQL+` LIMIT @limit) AS addressed`,
		pg.Args{"org": s.org, "text": s.text, "others": s.words, "limit": limit}).Scan(&more)
	return min(n+more, limit), err
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

// expiringDays is daysOfExpiring in SQL.
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

// listSQL says how the keys (at, course, user_id) of a list are selected behind @at, @course and @last, in an order that
// is an index's. Who has several rows is listed with the first. What is asked of each row is a scalar subquery, as in
// scope.
type listSQL struct {
	// from selects keys with a WHERE, to which a condition that keeps to @in, one course, may be added.
	from string
	// earlier selects an enrollment x of the same student that comes before; "": each has one row.
	earlier string
	behind  string
	order   string // of the keys' columns in from
	keys    string // the same of the keys
}

const (
	daysOf  = ` - '1970-01-01'::date AS at, e.course_id AS course, e.user_id FROM enrollments e WHERE `
	noDay   = `SELECT 0 AS at, e.course_id AS course, e.user_id FROM enrollments e WHERE `
	dayOfAt = `'1970-01-01'::date + @at::int`
	// A list from today on begins there: where a condition on the day and one on the key both bound an index, PostgreSQL
	// goes to where the key does.
	fromToday = `greatest(@today::date, ` + dayOfAt + `)`
	ofOthers  = `x.organization_id = @org AND x.user_id = e.user_id AND `
)

// ofState is the list of those with an enrollment of a stored state.
func ofState(state string) listSQL {
	return listSQL{
		from:    noDay + `e.organization_id = @org AND e.state = '` + state + `' AND ` + isNoStaff("e.user_id"),
		earlier: ofOthers + `x.state = '` + state + `' AND x.course_id < e.course_id`,
		behind:  `(e.course_id, e.user_id) > (@course::bigint, @last::bigint)`,
		order:   `e.course_id, e.user_id`, keys: `course, user_id`,
	}
}

var lists = map[Which]listSQL{
	"": { // of one course
		from:   noDay + `e.organization_id = @org AND ` + isNoStaff("e.user_id"),
		behind: `e.user_id > @last::bigint`,
		order:  `e.user_id`, keys: `user_id`,
	},
	WithAccess: {
		from: `SELECT e.grace_period_end` + daysOf + givesAccess + ` AND ` + isNoStaff("e.user_id"),
		earlier: ofOthers + `x.state = 'running' AND x.start_date <= @today AND x.grace_period_end >= @today
			AND (x.grace_period_end, x.course_id) < (e.grace_period_end, e.course_id)`,
		behind: `(e.grace_period_end, e.course_id, e.user_id) > (` + fromToday + `, @course::bigint, @last::bigint)`,
		order:  `e.grace_period_end, e.course_id, e.user_id`, keys: `at, course, user_id`,
	},
	Expiring: {
		from: `SELECT e.end_date` + daysOf + endsSoon + ` AND ` + isNoStaff("e.user_id"),
		earlier: ofOthers + `x.state = 'running' AND x.start_date <= @today AND x.end_date >= @today
			AND (x.end_date, x.course_id) < (e.end_date, e.course_id)`,
		behind: `(e.end_date, e.user_id) > (` + fromToday + `, @last::bigint)`,
		order:  `e.end_date, e.user_id`, keys: `at, user_id`,
	},
	Expired: {
		from: `SELECT e.grace_period_end` + daysOf + `e.organization_id = @org AND e.state = 'running'
			AND e.grace_period_end < @today AND ` + isNoStaff("e.user_id"),
		earlier: ofOthers + `x.state = 'running' AND x.grace_period_end < @today
			AND (x.grace_period_end, x.course_id) > (e.grace_period_end, e.course_id)`,
		behind: `(@last::bigint = 0
			OR (e.grace_period_end, e.course_id, e.user_id) < (` + dayOfAt + `, @course::bigint, @last))`,
		order: `e.grace_period_end DESC, e.course_id DESC, e.user_id DESC`, keys: `at DESC, course DESC, user_id DESC`,
	},
	Pending: {
		from: `SELECT e.start_date` + daysOf + `e.organization_id = @org AND e.notified_status = 'pending'
			AND e.state = 'running' AND e.start_date > @today AND ` + isNoStaff("e.user_id"),
		earlier: ofOthers + `x.notified_status = 'pending' AND x.state = 'running' AND x.start_date > @today
			AND (x.start_date, x.course_id) < (e.start_date, e.course_id)`,
		behind: `(e.start_date, e.course_id, e.user_id) > (` + fromToday + `, @course::bigint, @last::bigint)`,
		order:  `e.start_date, e.course_id, e.user_id`, keys: `at, course, user_id`,
	},
	Suspended: ofState("suspended"),
	Dropped:   ofState("dropped"),
	Completed: ofState("completed"),
	AtRisk: {
		from: `SELECT 0 AS at, 0::bigint AS course, p.user_id FROM plans p
			WHERE ` + isAtRisk + ` AND ` + isNoStaff("p.user_id"),
		behind: `p.user_id > @last::bigint GROUP BY p.user_id`,
		order:  `p.user_id`, keys: `user_id`,
	},
	Joined: {
		from: `SELECT (extract(epoch FROM m.joined_at) * 1000000)::bigint AS at, 0::bigint AS course, m.user_id
			FROM members m WHERE ` + isNew,
		behind: `(@last::bigint = 0 OR (m.joined_at, m.user_id)
			< ('epoch'::timestamptz + @at::bigint * interval '1 microsecond', @last))`,
		order: `m.joined_at DESC, m.user_id DESC`, keys: `at DESC, user_id DESC`,
	},
	NeverSignedIn: {
		from: `SELECT 0 AS at, 0::bigint AS course, a.id AS user_id FROM accounts a
			WHERE a.created_by_organization = @org AND a.last_login IS NULL
			  AND (SELECT m.role = 'member' AND m.status = 'active' FROM members m
				WHERE m.organization_id = @org AND m.user_id = a.id)`,
		behind: `a.id > @last::bigint`,
		order:  `a.id`, keys: `user_id`,
	},
}

// sql selects up to @limit keys.
func (l listSQL) sql(f Filter) string {
	text := l.from + ` AND ` + l.behind
	earlier := l.earlier
	if f.Course != 0 {
		text += ` AND e.course_id = @in::bigint`
		earlier = "" // a student has one enrollment in a course
	}
	if earlier != "" {
		text += ` AND (SELECT true FROM enrollments x WHERE ` + earlier + ` LIMIT 1) IS NULL`
	}
	return text + ` ORDER BY ` + l.order + ` LIMIT @limit`
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

// argsOf are those that the statement has; no list needs all.
func argsOf(sql string, org id.Organization, f Filter, after ListPosition, limit int) pg.Args {
	args := pg.Args{
		"org":    org,
		"today":  f.Today,
		"since":  f.Now.AddDate(0, 0, -daysOfJoined),
		"in":     f.Course,
		"at":     after.at,
		"course": after.course,
		"last":   after.last,
		"limit":  limit,
	}
	maps.DeleteFunc(args, func(name string, _ any) bool { return !strings.Contains(sql, "@"+name) })
	return args
}

func selectList(ctx context.Context, q pg.Querier, org id.Organization, f Filter, after ListPosition, limit int) ([]listed, error) {
	list := lists[f.Which]
	sql := `
		WITH keys AS MATERIALIZED (` + list.sql(f) + `
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
		ORDER BY k.` + strings.ReplaceAll(list.keys, ", ", ", k.")
	return pg.List[listed](ctx, q, sql, argsOf(sql, org, f, after, limit))
}

func countList(ctx context.Context, q pg.Querier, org id.Organization, f Filter, limit int) (n int, err error) {
	sql := `SELECT count(*) FROM (` + lists[f.Which].sql(f) + `) AS n`
	err = q.QueryRow(ctx, sql, argsOf(sql, org, f, ListPosition{}, limit)).Scan(&n)
	return n, err
}

func collect(rows pgx.Rows, err error) ([]Person, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Person])
}
