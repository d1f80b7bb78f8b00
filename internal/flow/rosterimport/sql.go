package rosterimport

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// A file is staged in temporary tables of the planning transaction: nothing of them is logged or
// vacuumed, and they are gone when it ends.
const createStage = `
	SET LOCAL work_mem = '48MB';
	SET LOCAL cursor_tuple_fraction = 1;
	CREATE TEMP TABLE roster_stage_people (
		n bigint,
		line integer,
		external_id text,
		email text,
		first_name text,
		last_name text,
		refused text
	) ON COMMIT DROP;
	CREATE TEMP TABLE roster_stage_seats (
		n bigint,
		line integer,
		person text,
		class text,
		name text,
		start_date date,
		end_date date
	) ON COMMIT DROP;
	CREATE TEMP TABLE roster_stage_refused (external_id text, code text) ON COMMIT DROP;
	CREATE TEMP TABLE roster_stage_replaced (before_id text, external_id text) ON COMMIT DROP`

// createGone makes the tables of what a delta takes away.
const createGone = `
	CREATE TEMP TABLE roster_stage_gone (external_id text) ON COMMIT DROP;
	CREATE TEMP TABLE roster_stage_ended (person text, class text) ON COMMIT DROP;
	CREATE INDEX ON roster_stage_gone (external_id);
	CREATE INDEX ON roster_stage_ended (person, class)`

func createStageTables(ctx context.Context, tx *pg.Tx) error {
	// Several statements in one text have no plan to be kept, which would name dropped tables.
	return tx.Script(ctx, createStage)
}

// copyPeople stores the rows that next returns, until it returns nil. An error of next does not
// make it fail: that would end the transaction, which has to store the refusal.
func copyPeople(ctx context.Context, tx *pg.Tx, next func() *roster.Person) error {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"roster_stage_people"},
		[]string{"n", "line", "external_id", "email", "first_name", "last_name", "refused"},
		pgx.CopyFromFunc(func() ([]any, error) {
			p := next()
			if p == nil {
				return nil, nil
			}
			return []any{p.N, p.Line, p.ExternalID, p.Email, p.FirstName, p.LastName, string(p.Refused)}, nil
		}))
	return err
}

func copySeats(ctx context.Context, tx *pg.Tx, next func() *roster.Seat) error {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"roster_stage_seats"}, []string{"n", "line", "person", "class", "name", "start_date", "end_date"},
		pgx.CopyFromFunc(func() ([]any, error) {
			s := next()
			if s == nil {
				return nil, nil
			}
			return []any{s.N, s.Line, s.Person, s.Class, s.ClassName, s.StartDate, s.EndDate}, nil
		}))
	return err
}

func copyRefused(ctx context.Context, tx *pg.Tx, rows []refusal) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"roster_stage_refused"}, []string{"external_id", "code"},
		pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) { return []any{rows[i].person, string(rows[i].code)}, nil }))
	return err
}

// copyReplaced stores the ids that changes replace.
func copyReplaced(ctx context.Context, tx *pg.Tx, changes []roster.Change) error {
	if len(changes) == 0 {
		return nil
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"roster_stage_replaced"}, []string{"before_id", "external_id"},
		pgx.CopyFromSlice(len(changes), func(i int) ([]any, error) { return []any{changes[i].BeforeID, changes[i].ExternalID}, nil }))
	return err
}

func copyGone(ctx context.Context, tx *pg.Tx, people []string, places []roster.Seat) error {
	if len(people) > 0 {
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"roster_stage_gone"}, []string{"external_id"},
			pgx.CopyFromSlice(len(people), func(i int) ([]any, error) { return []any{people[i]}, nil }))
		if err != nil {
			return err
		}
	}
	if len(places) == 0 {
		return nil
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"roster_stage_ended"}, []string{"person", "class"},
		pgx.CopyFromSlice(len(places), func(i int) ([]any, error) { return []any{places[i].Person, places[i].Class}, nil }))
	return err
}

// indexStage makes the indexes for the joins, and finds rows that repeat others, step by step.
var indexStage = []string{
	`CREATE INDEX ON roster_stage_people (external_id)`,
	`CREATE INDEX ON roster_stage_people (email); ANALYZE roster_stage_people`,
	`CREATE TEMP TABLE roster_stage_repeats ON COMMIT DROP AS
		SELECT p.external_id, min(p.n) AS first,
			count(DISTINCT (p.email, p.first_name, p.last_name, p.refused)) > 1 AS conflicting
		FROM roster_stage_people p
		WHERE p.external_id IN (
			SELECT external_id FROM roster_stage_people WHERE external_id <> ''
			GROUP BY external_id HAVING count(*) > 1)
		GROUP BY p.external_id;
	ANALYZE roster_stage_repeats`,
	`CREATE TEMP TABLE roster_stage_shared ON COMMIT DROP AS
		SELECT email FROM roster_stage_people WHERE email <> '' AND refused IN ('', 'unsaid_role')
		GROUP BY email HAVING min(external_id) <> max(external_id);
	ANALYZE roster_stage_shared`,
}

// indexSeats lets a place be looked for however few the planner expects.
const indexSeats = `
	CREATE INDEX ON roster_stage_seats (person, class);
	CREATE INDEX ON roster_stage_replaced (before_id);
	CREATE INDEX ON roster_stage_replaced (external_id);
	ANALYZE roster_stage_seats;
	ANALYZE roster_stage_refused;
	ANALYZE roster_stage_replaced`

// fetchSize is how many rows of a cursor are in memory at a time.
const fetchSize = 4000

// each runs a query with a cursor and calls use for each group of rows; use may run other
// statements in the transaction.
func each[T any](ctx context.Context, tx *pg.Tx, sql string, args []any, use func([]T) error) error {
	// A plan kept under the cursor's name would be for tables that are gone.
	args = append([]any{pgx.QueryExecModeDescribeExec}, args...)
	if _, err := tx.Exec(ctx, `DECLARE roster_rows NO SCROLL CURSOR FOR `+sql, args...); err != nil {
		return err
	}
	for {
		rows, err := tx.Query(ctx, `FETCH 4000 FROM roster_rows`, pgx.QueryExecModeDescribeExec)
		if err != nil {
			return err
		}
		group, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[T])
		if err == nil && len(group) > 0 {
			err = use(group)
		}
		if err != nil {
			return err
		}
		if len(group) < fetchSize {
			_, err := tx.Exec(ctx, `CLOSE roster_rows`)
			return err
		}
	}
}

type personRow struct {
	roster.Person
	roster.Duplicates
	roster.Match
}

func eachPerson(ctx context.Context, tx *pg.Tx, r roster.Run, use func([]personRow) error) error {
	return each(ctx, tx, `
		SELECT
			p.n,
			p.line,
			p.external_id,
			p.email,
			p.first_name,
			p.last_name,
			p.refused,
			CASE WHEN rep.first < p.n THEN rep.first ELSE 0 END AS same_as,
			coalesce(rep.conflicting, false) AS conflicting,
			shared.email IS NOT NULL AS email_shared,
			coalesce(t.id, 0) AS "user",
			i.user_id IS NOT NULL AS by_id,
			coalesce(i.present, false) AS present,
			coalesce(t.email, '') AS account_email,
			CASE WHEN c.user_id IS NULL THEN '' ELSE coalesce(c.first_name, t.first_name) END AS account_first_name,
			CASE WHEN c.user_id IS NULL THEN '' ELSE coalesce(c.last_name, t.last_name) END AS account_last_name,
			c.user_id IS NOT NULL AS named,
			CASE WHEN t.email <> p.email OR t.first_name <> p.first_name OR t.last_name <> p.last_name THEN
				t.created_via = 'roster' AND t.created_by_organization = $1 AND t.last_login IS NULL
				AND NOT t.own_password AND t.password_hash IS NULL
				AND NOT EXISTS (SELECT FROM members o WHERE o.user_id = t.id AND o.organization_id <> $1)
				AND NOT EXISTS (SELECT FROM enrollments o WHERE o.user_id = t.id AND o.organization_id <> $1)
			ELSE false END AS managed,
			coalesce(m.role, '') AS role,
			coalesce(m.status = 'active', false) AS active,
			CASE WHEN m.status = 'inactive' THEN EXISTS (
				SELECT FROM roster_identities x
				WHERE x.user_id = t.id AND x.organization_id = $1 AND x.left_at = m.updated_at)
			ELSE false END AS ended,
			i.user_id IS NOT NULL AND e.id IS NOT NULL AND e.id <> i.user_id AS email_taken,
			CASE WHEN i.user_id IS NOT NULL AND t.email <> p.email THEN EXISTS (
				SELECT FROM roster_stage_people o WHERE o.email = t.email AND o.n <> p.n)
			ELSE false END AS email_elsewhere,
			coalesce(w.external_id, '') AS other_id,
			CASE WHEN w.external_id IS NOT NULL THEN EXISTS (
				SELECT FROM roster_stage_people o WHERE o.external_id = w.external_id)
			ELSE false END AS other_id_in_file
		FROM roster_stage_people p
		LEFT JOIN roster_stage_repeats rep ON rep.external_id = p.external_id
		LEFT JOIN roster_stage_shared shared ON shared.email = p.email
		LEFT JOIN roster_identities i ON i.source_id = $2 AND i.external_id = p.external_id
		LEFT JOIN accounts e ON e.email = p.email
		LEFT JOIN accounts t ON t.id = coalesce(i.user_id, e.id)
		LEFT JOIN members m ON m.organization_id = $1 AND m.user_id = t.id
		LEFT JOIN directory c ON c.organization_id = $1 AND c.user_id = t.id
		LEFT JOIN roster_identities w ON w.source_id = $2 AND w.user_id = e.id AND i.user_id IS NULL
		ORDER BY p.n`, []any{r.Organization, r.Source.ID}, use)
}

// The planner expects one row of an organization or a source that is new since the last ANALYZE, and
// would go through all of them for each row that it joins with one. LIMIT 1 makes it use the key.

// memberOf is the membership of i.user_id.
func memberOf(organization string) string {
	return `SELECT role, status, created_via, updated_at FROM members
		WHERE organization_id = ` + organization + ` AND user_id = i.user_id LIMIT 1`
}

func personOf(externalID, source string) string {
	return `SELECT user_id FROM roster_identities
		WHERE source_id = ` + source + ` AND external_id = ` + externalID + ` LIMIT 1`
}

type leaverRow struct {
	roster.Leaver
	User      id.User
	Email     string
	FirstName string
	LastName  string
}

// eachLeaver reads the people of the source who are missing from the file; of a delta, those whom it calls withdrawn.
func eachLeaver(ctx context.Context, tx *pg.Tx, r roster.Run, delta bool, use func([]leaverRow) error) error {
	gone := ``
	if delta {
		gone = `AND EXISTS (SELECT FROM roster_stage_gone g WHERE g.external_id = i.external_id)`
	}
	return each(ctx, tx, `
		SELECT
			i.external_id,
			coalesce(m.role, '') AS role,
			coalesce(m.status = 'active', false) AS active,
			coalesce(m.created_via = 'roster', false) AS imported,
			EXISTS (
				SELECT FROM roster_identities o
				WHERE o.user_id = i.user_id AND o.organization_id = $1 AND o.source_id <> $2 AND o.present
			) AS elsewhere,
			i.user_id AS "user",
			a.email,
			coalesce(c.first_name, a.first_name) AS first_name,
			coalesce(c.last_name, a.last_name) AS last_name
		FROM roster_identities i
		JOIN accounts a ON a.id = i.user_id
		LEFT JOIN LATERAL (
			SELECT first_name, last_name FROM directory
			WHERE organization_id = $1 AND user_id = i.user_id LIMIT 1
		) AS c ON true
		LEFT JOIN LATERAL (`+memberOf("$1")+`) AS m ON true
		WHERE i.source_id = $2 AND i.present
		  AND NOT EXISTS (SELECT FROM roster_stage_people p WHERE p.external_id = i.external_id)
		  AND NOT EXISTS (SELECT FROM roster_stage_people p WHERE p.email = a.email)
		  `+gone+`
		ORDER BY i.external_id`, []any{r.Organization, r.Source.ID}, use)
}

func selectTotals(ctx context.Context, tx *pg.Tx, r roster.Run) (active, seats int, err error) {
	err = tx.QueryRow(ctx, `
		SELECT
			(SELECT count(*) FROM roster_identities i
			JOIN LATERAL (`+memberOf("$1")+`) AS m ON m.status = 'active' AND m.role = 'member'
			WHERE i.source_id = $2 AND i.present),
			(SELECT count(*) FROM roster_class_members s
			JOIN roster_classes k ON k.id = s.class_id
			WHERE k.source_id = $2 AND s.active)`, r.Organization, r.Source.ID).Scan(&active, &seats)
	return active, seats, err
}

// eachClass reads the classes of the file that are new, renamed or rescheduled, or have several names.
func eachClass(ctx context.Context, tx *pg.Tx, r roster.Run, use func([]roster.ClassRow) error) error {
	return each(ctx, tx, `
		SELECT
			first.line,
			g.class AS external_id,
			first.name,
			first.person = '' AS listed,
			coalesce(k.name, '') AS current_name,
			g.start_date,
			g.end_date,
			k.start_date AS current_start_date,
			k.end_date AS current_end_date,
			coalesce(g.low <> g.high, false) AS conflicting
		FROM (
			SELECT
				class,
				min(n) AS n,
				min(nullif(name, '')) AS low,
				max(nullif(name, '')) AS high,
				min(start_date) AS start_date,
				max(end_date) AS end_date
			FROM roster_stage_seats
			GROUP BY class
		) AS g
		JOIN roster_stage_seats first ON first.n = g.n
		LEFT JOIN roster_classes k ON k.source_id = $1 AND k.external_id = g.class
		WHERE k.id IS NULL OR g.low <> g.high OR first.name <> '' AND first.name <> k.name
		   OR g.start_date IS NOT NULL AND (g.start_date, g.end_date) IS DISTINCT FROM (k.start_date, k.end_date)
		ORDER BY g.n`, []any{r.Source.ID}, use)
}

type seatRow struct {
	roster.Seat
	roster.SeatHolder
}

// eachSeat reads the seats of the file with their holders, who have the ids that the file gives them.
func eachSeat(ctx context.Context, tx *pg.Tx, r roster.Run, use func([]seatRow) error) error {
	return each(ctx, tx, `
		SELECT
			s.n,
			s.line,
			s.person,
			s.class,
			EXISTS (SELECT FROM roster_stage_people p WHERE p.external_id = s.person) AS in_file,
			coalesce(f.code, '') AS refused,
			coalesce(f.code = $3, false) AS leaves,
			coalesce(i.present, false) AS in_source,
			coalesce(o.role, '') AS role,
			coalesce(o.status = 'active', false) AS active,
			coalesce(m.active, false) AS seated
		FROM (
			SELECT min(n) AS n, min(line) AS line, person, class FROM roster_stage_seats
			WHERE person <> ''
			GROUP BY person, class
		) AS s
		LEFT JOIN (
			SELECT external_id, min(code) AS code FROM roster_stage_refused GROUP BY external_id
		) AS f ON f.external_id = s.person
		LEFT JOIN roster_stage_replaced w ON w.external_id = s.person
		LEFT JOIN roster_identities i ON i.source_id = $1 AND i.external_id = coalesce(w.before_id, s.person)
			AND NOT EXISTS (SELECT FROM roster_stage_replaced b WHERE b.before_id = s.person)
		LEFT JOIN LATERAL (`+memberOf("$2")+`) AS o ON true
		LEFT JOIN roster_classes k ON k.source_id = $1 AND k.external_id = s.class
		LEFT JOIN roster_class_members m ON m.class_id = k.id AND m.user_id = i.user_id
		ORDER BY s.n`, []any{r.Source.ID, r.Organization, leaves}, use)
}

// eachMissingSeat reads the removals of the seats that the source has and its snapshot does not; of a delta, of those that
// have ended. Their holders have the ids that the file gives them. The planner expects few classes and people of a source
// that is new since the last ANALYZE, and would look for a seat of every person in every class.
func eachMissingSeat(ctx context.Context, tx *pg.Tx, r roster.Run, delta bool, use func([]roster.ClassChange) error) error {
	ended := ``
	if delta {
		ended = `AND EXISTS (SELECT FROM roster_stage_ended e WHERE e.class = h.class AND e.person IN (i.external_id, w.external_id))`
	}
	return each(ctx, tx, `
		WITH held AS MATERIALIZED (
			SELECT k.external_id AS class, m.user_id
			FROM roster_classes k
			JOIN roster_class_members m ON m.class_id = k.id
			WHERE k.source_id = $1 AND m.active
		)
		SELECT $2::text AS action, h.class, coalesce(w.external_id, i.external_id) AS person
		FROM held h
		JOIN roster_identities i ON i.source_id = $1 AND i.user_id = h.user_id
		LEFT JOIN roster_stage_replaced w ON w.before_id = i.external_id
		WHERE NOT EXISTS (
			SELECT FROM roster_stage_seats s
			WHERE s.class = h.class AND s.person = coalesce(w.external_id, i.external_id))
		  `+ended,
		[]any{r.Source.ID, roster.RemoveSeat}, use)
}

type doneRow struct {
	roster.Change
	roster.Since
}

// eachDone reads the changes of the run that r takes back, and what has changed since.
func eachDone(ctx context.Context, tx *pg.Tx, r, done roster.Run, use func([]doneRow) error) error {
	return each(ctx, tx, `
		SELECT
			c.n,
			c.line,
			c.action,
			c.effects,
			i.user_id AS "user",
			c.external_id,
			c.email,
			c.first_name,
			c.last_name,
			coalesce(c.before_external_id, '') AS before_id,
			coalesce(c.before_email, '') AS before_email,
			coalesce(c.before_first_name, '') AS before_first,
			coalesce(c.before_last_name, '') AS before_last,
			a.updated_at = $4 AS account_same,
			coalesce(m.updated_at = $4, false) AS member_same,
			coalesce(a.last_login >= $4, false) OR a.own_password AND a.updated_at > $4 AS used,
			coalesce(m.status = 'active', false) AS active,
			CASE WHEN c.effects & $5 <> 0 THEN coalesce(m.role <> 'member', false)
				OR EXISTS (SELECT FROM members o WHERE o.user_id = a.id AND o.organization_id <> $1)
				OR EXISTS (SELECT FROM enrollments o WHERE o.user_id = a.id AND o.organization_id <> $1)
			ELSE false END AS shared
		FROM roster_changes c
		JOIN LATERAL (`+personOf("c.external_id", "$2")+`) AS i ON true
		JOIN accounts a ON a.id = i.user_id
		LEFT JOIN LATERAL (`+memberOf("$1")+`) AS m ON true
		WHERE c.run_id = $3
		ORDER BY c.n`, []any{r.Organization, r.Source.ID, done.ID, done.Stamp, roster.ChangeProfile}, use)
}

// eachDoneClass reads the changes of classes that r takes back and that nobody has changed
// since. People who have become staff or inactive do not get their seat back.
func eachDoneClass(ctx context.Context, tx *pg.Tx, r, done roster.Run, use func([]roster.ClassChange) error) error {
	return each(ctx, tx, `
		SELECT
			c.action,
			c.class_external_id AS class,
			c.name,
			c.before_name AS before,
			c.start_date,
			c.end_date,
			c.before_start_date,
			c.before_end_date,
			c.person_external_id AS person
		FROM roster_class_changes c
		JOIN LATERAL (
			SELECT id, updated_at FROM roster_classes
			WHERE source_id = $1 AND external_id = c.class_external_id LIMIT 1
		) AS k ON true
		LEFT JOIN LATERAL (`+personOf("c.person_external_id", "$1")+`) AS i ON true
		LEFT JOIN roster_class_members m ON m.class_id = k.id AND m.user_id = i.user_id
		LEFT JOIN LATERAL (`+memberOf("$4")+`) AS o ON true
		WHERE c.run_id = $2
		  AND (c.action IN ('rename', 'reschedule') AND k.updated_at = $3
			OR c.action IN ('add', 'remove') AND m.updated_at = $3)
		  AND NOT (
			c.action = 'remove'
			AND coalesce(o.updated_at > $3 AND (o.role <> 'member' OR o.status <> 'active'), false)
		  )
		ORDER BY c.n`, []any{r.Source.ID, done.ID, done.Stamp, r.Organization}, use)
}
