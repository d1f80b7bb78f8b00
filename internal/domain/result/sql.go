package result

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/scope"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// columns have the names and the order of Result's fields: eachOf scans them by their order.
const columns = `
	r.ref,
	r.kind,
	r.type,
	r.user_id AS "user",
	r.item_id AS item,
	coalesce(r.assignment_id, 0) AS assignment,
	r.attempt,
	coalesce(r.section, '') AS section,
	r.state,
	r.started_at,
	r.completed_at,
	r.released_at,
	r.score_e4 AS score,
	r.max_score_e4 AS max_score,
	r.sections::text,
	r.final_at,
	coalesce(r.position, 0) AS position`

const listedColumns = columns + `,
	a.email,
	a.first_name,
	a.last_name,
	i.title AS item_title`

// Lock queues a read of the results of the keys, into found. It locks their rows in the order of the keys.
func Lock(b *pg.Batch, keys []Key, found map[Key]Result) {
	if len(keys) == 0 {
		return
	}
	orgs, refs := make([]id.Organization, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		orgs[i], refs[i] = k.Organization, k.Ref
	}
	type row struct {
		Organization id.Organization
		Result
	}
	// With LIMIT, the planner does not plan again for each number of keys.
	pg.Structs(b, func(r row) { found[Key{r.Organization, r.Ref}] = r.Result }, `
		SELECT k.organization, `+columns+`
		FROM (SELECT organization, ref FROM unnest($1::bigint[], $2::text[]) AS k(organization, ref)
			ORDER BY organization, ref LIMIT $3) AS k
		CROSS JOIN LATERAL (
			SELECT * FROM results WHERE organization_id = k.organization AND ref = k.ref LIMIT 1 FOR NO KEY UPDATE) AS r`,
		orgs, refs, len(keys))
}

// keepSpans widens the spans of placed, rows of (organization, position, final_at).
const keepSpans = `
	INSERT INTO result_spans AS s (organization_id, span, first_final, last_final)
	SELECT organization, position / 1024, min(final_at), max(final_at) FROM placed GROUP BY 1, 2 ORDER BY 1, 2
	ON CONFLICT (organization_id, span) DO UPDATE SET
		first_final = least(s.first_final, excluded.first_final),
		last_final = greatest(s.last_final, excluded.last_final)`

// written are the columns that a change writes: all but those that name the result and its place.
var written = pg.Columns{
	{Name: "type", Type: "text"},
	{Name: "user_id", Type: "bigint"},
	{Name: "item_id", Type: "bigint"},
	{Name: "assignment_id", Type: "bigint"},
	{Name: "attempt", Type: "text"},
	{Name: "section", Type: "text"},
	{Name: "state", Type: "text"},
	{Name: "started_at", Type: "timestamptz"},
	{Name: "completed_at", Type: "timestamptz"},
	{Name: "released_at", Type: "timestamptz"},
	{Name: "score_e4", Type: "bigint"},
	{Name: "max_score_e4", Type: "bigint"},
	{Name: "sections", Type: "text[]::json"}, // sent as text
	{Name: "final_at", Type: "timestamptz"},
}

// save writes all changes in one statement, which locks the counters, in the order of their organizations,
// before it writes.
func save(b *pg.Batch, changes []Change, now time.Time) {
	args := arguments(changes)
	args["now"] = now
	b.Queue(`
		WITH draws AS (
			SELECT organization, places FROM unnest(@drawing::bigint[], @places::bigint[]) AS d(organization, places)
		), counter AS (
			INSERT INTO result_positions AS p (organization_id, last)
			SELECT organization, places FROM draws ORDER BY organization
			ON CONFLICT (organization_id) DO UPDATE SET last = p.last + excluded.last
			RETURNING p.organization_id, p.last
		), bases AS (
			SELECT d.organization, counter.last - d.places AS base
			FROM counter JOIN draws d ON d.organization = counter.organization_id
		), source AS (
			SELECT u.*, CASE WHEN u.place > 0 THEN b.base + u.place END AS position
			FROM unnest(
				@organization::bigint[],
				@ref::text[],
				@kind::text[],
				@place::bigint[],
				@fresh::boolean[],
				`+written.Arrays()+`) AS u(organization, ref, kind, place, fresh, `+written.Names()+`)
			LEFT JOIN bases b ON b.organization = u.organization
		), fresh AS (
			INSERT INTO results (organization_id, ref, kind, position, updated_at, `+written.Names()+`)
			SELECT organization, ref, kind, position, @now, `+written.Names()+`
			FROM source WHERE fresh ORDER BY organization, ref
		), changed AS (
			UPDATE results r SET
				(`+written.Names()+`) = ROW (`+written.Of("s")+`),
				position = CASE WHEN s.final_at IS NULL THEN NULL ELSE coalesce(s.position, r.position) END,
				updated_at = @now
			FROM source s WHERE NOT s.fresh AND r.organization_id = s.organization AND r.ref = s.ref
		), placed AS (
			SELECT organization, position, final_at FROM source WHERE position IS NOT NULL
		)`+keepSpans, args)
}

// arguments are the changes by column, and the organizations that draw positions.
func arguments(changes []Change) pg.Args {
	n := len(changes)
	drawn, drawing, places := map[id.Organization]int64{}, []int64{}, []int64{}
	orgs := make([]int64, n)
	refs, kinds, types := make([]string, n), make([]string, n), make([]string, n)
	users, items, assignments := make([]int64, n), make([]int64, n), make([]*int64, n)
	attempts, sections, states := make([]string, n), make([]*string, n), make([]string, n)
	started, completed, released := make([]*time.Time, n), make([]*time.Time, n), make([]*time.Time, n)
	scores, highest, objects := make([]*int64, n), make([]*int64, n), make([]*string, n)
	finals, place, fresh := make([]*time.Time, n), make([]int64, n), make([]bool, n)
	for i, c := range changes {
		orgs[i], refs[i], kinds[i], types[i] = int64(c.Organization), c.Ref, c.Kind, c.Type
		users[i], items[i], assignments[i] = int64(c.User), int64(c.Item), orNull(int64(c.Assignment))
		attempts[i], sections[i], states[i] = string(c.Attempt), orNull(c.Section), string(c.State)
		started[i], completed[i], released[i] = c.StartedAt, c.CompletedAt, c.ReleasedAt
		scores[i], highest[i], objects[i] = (*int64)(c.Score), (*int64)(c.MaxScore), orNull(string(c.Sections))
		finals[i], fresh[i] = c.FinalAt, c.New
		if c.Places {
			drawn[c.Organization]++
			place[i] = drawn[c.Organization]
		}
	}
	for org, n := range drawn {
		drawing, places = append(drawing, int64(org)), append(places, n)
	}
	return pg.Args{
		"drawing":       drawing,
		"places":        places,
		"organization":  orgs,
		"ref":           refs,
		"kind":          kinds,
		"type":          types,
		"user_id":       users,
		"item_id":       items,
		"assignment_id": assignments,
		"attempt":       attempts,
		"section":       sections,
		"state":         states,
		"started_at":    started,
		"completed_at":  completed,
		"released_at":   released,
		"score_e4":      scores,
		"max_score_e4":  highest,
		"sections":      objects,
		"final_at":      finals,
		"place":         place,
		"fresh":         fresh,
	}
}

func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// Relist queues new positions, in their old order, for all final results of the users. It is the last
// statement of its transaction but for the commit, as it locks the organization's counter. It locks the
// rows before the counter, as Save does, and reads them after it: what another transaction makes final
// meanwhile was committed before and is among them, or gets a higher position.
func Relist(b *pg.Batch, org id.Organization, users []id.User) {
	b.Queue(`
		SELECT FROM results WHERE organization_id = $1 AND user_id = ANY ($2) AND position IS NOT NULL
		ORDER BY ref FOR NO KEY UPDATE`, org, users)
	b.Queue(`
		INSERT INTO result_positions AS p (organization_id, last) VALUES ($1, 0)
		ON CONFLICT (organization_id) DO UPDATE SET last = p.last`, org)
	b.Queue(`
		WITH source AS (
			SELECT r.ref, r.final_at, p.last + row_number() OVER (ORDER BY r.position) AS position
			FROM result_positions p, results r
			WHERE p.organization_id = @organization AND r.organization_id = @organization
				AND r.user_id = ANY (@users) AND r.position IS NOT NULL
		), counter AS (
			UPDATE result_positions SET last = last + (SELECT count(*) FROM source)
			WHERE organization_id = @organization
		), placed AS (
			SELECT @organization::bigint AS organization, position, final_at FROM source
		), spans AS (`+keepSpans+`)
		UPDATE results r SET position = s.position FROM source s
		WHERE r.organization_id = @organization AND r.user_id = ANY (@users) AND r.position IS NOT NULL
			AND r.ref = s.ref`, pg.Args{"organization": org, "users": users})
}

// TakeReturns deletes up to limit of the returns that programs of an earlier version queue, and gives their
// students by organization: their results get new positions. Programs of this version call Relist in the
// transaction that brings the student back. Once no older program can be running, a migration may drop
// the table.
func TakeReturns(ctx context.Context, tx *pg.Tx, limit int) (map[id.Organization][]id.User, error) {
	rows, err := tx.Query(ctx, `
		DELETE FROM result_returns
		WHERE id IN (SELECT id FROM result_returns ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)
		RETURNING organization_id, user_id`, limit)
	if err != nil {
		return nil, err
	}
	users := map[id.Organization][]id.User{}
	var org id.Organization
	var user id.User
	_, err = pgx.ForEachRow(rows, []any{&org, &user}, func() error { users[org] = append(users[org], user); return nil })
	return users, err
}

// inScope is the condition on r (rows with organization_id and user_id) on the day that a
// parameter, such as $4, holds.
func inScope(today string) string { return scope.Listed("r.organization_id", "r.user_id", today) }

// People queues a read, into found, of those of the members who are or were members of the organization
// or enrolled in it.
func People(b *pg.Batch, members []Member, today clock.Date, found map[Member]Person) {
	if len(members) == 0 {
		return
	}
	orgs, users := make([]id.Organization, len(members)), make([]id.User, len(members))
	for i, m := range members {
		orgs[i], users[i] = m.Organization, m.User
	}
	// With LIMIT, the planner does not plan again for each number of people.
	pg.Structs(b, func(p Person) { found[Member{p.Organization, p.User}] = p }, `
		SELECT
			r.organization_id AS organization,
			r.user_id AS "user",
			a.email,
			a.first_name,
			a.last_name,
			`+inScope("$3")+` AS in_scope
		FROM (SELECT * FROM unnest($1::bigint[], $2::bigint[]) AS u(organization_id, user_id) LIMIT $4) AS r
		CROSS JOIN LATERAL `+scope.Person("r.organization_id", "r.user_id")+` AS a
		WHERE `+scope.Role("r.organization_id", "r.user_id")+` IS NOT NULL OR coalesce((
			SELECT true FROM enrollments e
			WHERE e.organization_id = r.organization_id AND e.user_id = r.user_id LIMIT 1), false)`,
		orgs, users, today, len(members))
}

func selectLast(ctx context.Context, q pg.Querier, org id.Organization) (last int64, err error) {
	err = q.QueryRow(ctx, `
		SELECT coalesce((SELECT last FROM result_positions WHERE organization_id = $1), 0)`, org).Scan(&last)
	return last, err
}

// page builds the statement of one page.
type page struct {
	Filter
	byPerson  bool      // search person by person; always so when the course has few people
	stretches []stretch // search only here; nil: everywhere
	args      []any
	where     []string
}

func newPage(org id.Organization, f Filter, after int64, limit int) *page {
	return &page{Filter: f, byPerson: f.Few != nil && f.User == 0, args: []any{org, after, limit, f.Today}}
}

// stretch is positions from low to below high.
type stretch struct{ low, high int64 }

func bounds(of []stretch) (low, high []int64) {
	for _, s := range of {
		low, high = append(low, s.low), append(high, s.high)
	}
	return low, high
}

// windowed says whether time chooses the results.
func (f Filter) windowed() bool { return !f.Since.IsZero() || !f.Until.IsZero() }

// selectStretches finds the positions among which the results of the filter's time are:
// neighbouring spans make one stretch.
func selectStretches(ctx context.Context, q pg.Querier, org id.Organization, f Filter, after int64) ([]stretch, error) {
	rows, err := q.Query(ctx, `
		SELECT min(span) * 1024, (max(span) + 1) * 1024
		FROM (SELECT span, span - row_number() OVER (ORDER BY span) AS island FROM result_spans
			WHERE organization_id = $1 AND span >= $2::bigint / 1024
				AND last_final >= coalesce($3::timestamptz, '-infinity')
				AND first_final < coalesce($4::timestamptz, 'infinity')) AS s
		GROUP BY island ORDER BY 1`, org, after, orNull(f.Since), orNull(f.Until))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s stretch, err error) {
		err = row.Scan(&s.low, &s.high)
		return s, err
	})
}

func (p *page) arg(v any) string {
	p.args = append(p.args, v)
	return fmt.Sprintf("$%d", len(p.args))
}

func (p *page) and(condition string) { p.where = append(p.where, condition) }

// source reads along the one index that fits the filter best, in the order of positions,
// so that a page costs its own length wherever in the list it is.
func (p *page) source() string {
	p.and(`r.organization_id = $1 AND r.position > $2`)
	if !p.byPerson {
		p.and(inScope("$4"))
	}
	since, until := `'-infinity'::timestamptz`, `'infinity'::timestamptz`
	if !p.Since.IsZero() {
		since = p.arg(p.Since) + `::timestamptz`
	}
	if !p.Until.IsZero() {
		until = p.arg(p.Until) + `::timestamptz`
	}
	if p.windowed() {
		p.and(`r.final_at >= ` + since + ` AND r.final_at < ` + until)
	}
	switch {
	case p.User != 0:
		p.and(`r.user_id = ` + p.arg(p.User))
		p.ofTypes()
		p.ofCourse()
	case p.byPerson:
		p.ofTypes()
		return p.ofPeople()
	case p.stretches != nil:
		p.ofTypes()
		p.ofCourse()
		if len(p.stretches) == 1 { // bounds that the planner knows let it read in order
			s := p.stretches[0]
			return `SELECT r.* FROM results r
				WHERE r.position >= ` + p.arg(s.low) + ` AND r.position < ` + p.arg(s.high) + ` AND ` + p.conditions()
		}
		low, high := bounds(p.stretches)
		return `SELECT r.* FROM unnest(` + p.arg(low) + `::bigint[], ` + p.arg(high) + `::bigint[]) AS w(low, high)
			CROSS JOIN LATERAL (
				SELECT r.* FROM results r
				WHERE r.position >= w.low AND r.position < w.high AND ` + p.conditions() + `
				ORDER BY r.position LIMIT $3) AS r`
	case p.Types != nil:
		p.ofCourse()
		return p.alongTypes()
	default:
		p.ofCourse()
	}
	return `SELECT r.* FROM results r WHERE ` + p.conditions()
}

func (p *page) conditions() string { return strings.Join(p.where, ` AND `) }

func (p *page) ofTypes() {
	if p.Types != nil {
		p.and(`r.type = ANY (` + p.arg(p.Types) + `)`)
	}
}

func (p *page) ofCourse() {
	if p.Course != 0 {
		p.and(`(SELECT true FROM enrollments x
			WHERE x.user_id = r.user_id AND x.course_id = ` + p.arg(p.Course) + ` AND x.organization_id = $1 LIMIT 1)`)
	}
}

// ofPeople takes a page of each person's positions, from the index alone, and then the rows
// of the first of them.
func (p *page) ofPeople() string {
	var people string
	if p.Few != nil {
		people = `SELECT unnest(` + p.arg(p.Few) + `::bigint[])`
	} else {
		people = `SELECT user_id FROM enrollments
			WHERE organization_id = $1 AND course_id = ` + p.arg(p.Course) + ` ORDER BY user_id`
	}
	return `SELECT r.* FROM (SELECT o.position
			FROM (SELECT r.user_id
				FROM (SELECT $1::bigint AS organization_id, p.id AS user_id FROM (` + people + `) AS p(id)) AS r
				WHERE ` + inScope("$4") + `) AS u
			CROSS JOIN LATERAL (
				SELECT r.position FROM results r
				WHERE r.user_id = u.user_id AND ` + p.conditions() + ` ORDER BY r.position LIMIT $3) AS o
			ORDER BY o.position LIMIT $3) AS w
		CROSS JOIN LATERAL (SELECT * FROM results WHERE organization_id = $1 AND position = w.position LIMIT 1) AS r`
}

// alongTypes takes a page of each type that is asked for, along its index.
func (p *page) alongTypes() string {
	return `SELECT r.* FROM unnest(` + p.arg(p.Types) + `::text[]) AS t(name) CROSS JOIN LATERAL (
		SELECT r.* FROM results r WHERE r.type = t.name AND ` + p.conditions() + ` ORDER BY r.position LIMIT $3) AS r`
}

// statement is built once: it adds to the arguments.
func (p *page) statement() string {
	return `
		SELECT ` + listedColumns + `
		FROM (SELECT * FROM (` + p.source() + `) AS chosen ORDER BY position LIMIT $3) AS r
		CROSS JOIN LATERAL ` + scope.Person("r.organization_id", "r.user_id") + ` AS a
		CROSS JOIN LATERAL (SELECT title FROM catalog_items WHERE id = r.item_id LIMIT 1) AS i
		ORDER BY r.position`
}

// eachOf calls each with every row of the page, which changes when each returns, and counts the rows.
func eachOf(ctx context.Context, q pg.Querier, p *page, each func(*Listed) error) (n int, err error) {
	statement := p.statement()
	rows, err := q.Query(ctx, statement, p.args...)
	if err != nil {
		return 0, err
	}
	var l Listed
	var score, highest decimal.Number // a final result has both
	l.Score, l.MaxScore = &score, &highest
	// PostgreSQL's own types: one with a name of ours costs a conversion a value.
	targets := []any{&l.Ref, &l.Kind, &l.Type, (*int64)(&l.User), (*int64)(&l.Item), (*int64)(&l.Assignment), (*string)(&l.Attempt), &l.Section,
		(*string)(&l.State), &l.StartedAt, &l.CompletedAt, &l.ReleasedAt, (*int64)(&score), (*int64)(&highest), (*[]byte)(&l.Sections),
		&l.FinalAt, &l.Position, &l.Email, &l.FirstName, &l.LastName, &l.ItemTitle}
	_, err = pgx.ForEachRow(rows, targets, func() error { n++; return each(&l) })
	return n, err
}

// Latest returns the last final results of a person in the organization, the latest first, whether the
// person is a student today or not.
func Latest(ctx context.Context, q pg.Querier, org id.Organization, user id.User, limit int) ([]Listed, error) {
	return pg.List[Listed](ctx, q, `
		SELECT `+listedColumns+`
		FROM results r
		CROSS JOIN LATERAL `+scope.Person("r.organization_id", "r.user_id")+` AS a
		JOIN catalog_items i ON i.id = r.item_id
		WHERE r.organization_id = $1 AND r.user_id = $2 AND r.position IS NOT NULL
		ORDER BY r.position DESC LIMIT $3`, org, user, limit)
}

// Visible returns the work of the ref that the viewer may see: the viewer's own first, in whatever
// organization it is, and that of students of the organizations whose staff the viewer is. Several
// organizations may have work with the same ref.
func Visible(ctx context.Context, q pg.Querier, ref string, viewer id.User, staffOf []id.Organization) ([]Found, error) {
	return pg.List[Found](ctx, q, `
		SELECT `+listedColumns+`, o.id AS organization_id, o.name AS organization
		FROM (SELECT unnest($3::bigint[]) AS id UNION SELECT organization_id FROM members WHERE user_id = $2
			UNION SELECT organization_id FROM enrollments WHERE user_id = $2) AS theirs
		JOIN organizations o ON o.id = theirs.id
		JOIN results r ON r.organization_id = o.id AND r.ref = $1
		CROSS JOIN LATERAL `+scope.Person("r.organization_id", "r.user_id")+` AS a
		JOIN catalog_items i ON i.id = r.item_id
		WHERE r.user_id = $2 OR o.id = ANY ($3) ORDER BY r.user_id <> $2, o.name, o.id`, ref, viewer, staffOf)
}

// Steps lists up to limit steps of a person's work in the organization until that time, the last one first,
// whether the person is a student today or not.
func Steps(ctx context.Context, q pg.Querier, org id.Organization, user id.User, until time.Time, limit int) ([]Step, error) {
	// Final results and others have an index each.
	return pg.List[Step](ctx, q, `
		SELECT `+columns+`, i.title AS item_title, r.stage, r.at
		FROM (
			SELECT r.*, m.stage, m.at
			FROM (
				SELECT * FROM results WHERE organization_id = $1 AND user_id = $2 AND position IS NOT NULL
				UNION ALL
				SELECT * FROM results WHERE organization_id = $1 AND user_id = $2 AND position IS NULL
			) AS r
			CROSS JOIN LATERAL (VALUES
				(r.started_at, 'begun'),
				(CASE WHEN r.position IS NULL OR r.completed_at <> r.final_at THEN r.completed_at END, 'handed_in'),
				(CASE WHEN r.position IS NOT NULL THEN r.final_at END, 'final')
			) AS m(at, stage)
			WHERE m.at <= $3
			ORDER BY m.at DESC, r.ref DESC, m.stage DESC LIMIT $4
		) AS r
		CROSS JOIN LATERAL (SELECT title FROM catalog_items WHERE id = r.item_id LIMIT 1) AS i
		ORDER BY r.at DESC, r.ref DESC, r.stage DESC`, org, user, until, limit)
}

// LastFinal is the result of the student's assigned work on the item that became final last; the zero Result for none.
func LastFinal(ctx context.Context, q pg.Querier, org id.Organization, user id.User, item id.Item) (Result, error) {
	r, err := pg.One[Result](ctx, q, `
		SELECT `+columns+` FROM results r
		WHERE r.organization_id = $1 AND r.user_id = $2 AND r.item_id = $3 AND r.position IS NOT NULL
			AND r.assignment_id IS NOT NULL
		ORDER BY r.position DESC LIMIT 1`, org, user, item)
	if pg.None(err) {
		return Result{}, nil
	}
	return r, err
}
