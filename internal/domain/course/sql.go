package course

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

const typeColumns = `name, display_name, active, coalesce(default_access_months, 0) AS default_access_months,
	test_plan_available, target_score_min::float8 AS target_score_min, target_score_max::float8 AS target_score_max`

const typesInOrder = `SELECT ` + typeColumns + ` FROM course_types ORDER BY position`

func selectTypes(ctx context.Context, q pg.Querier) ([]Type, error) {
	rows, err := q.Query(ctx, typesInOrder)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[Type])
}

func queueTypes(b *pg.Batch, into *[]Type) {
	b.Queue(typesInOrder).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, pgx.RowToStructByName[Type])
		return err
	})
}

func updateTypeActive(ctx context.Context, q pg.Querier, name string, active bool) (Type, error) {
	rows, err := q.Query(ctx, `UPDATE course_types SET active = $2 WHERE name = $1 RETURNING `+typeColumns, name, active)
	if err != nil {
		return Type{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Type])
}

// courseColumns are those of c (courses) and t (course_types).
const courseColumns = `c.id, c.name, c.course_type AS type, t.display_name AS type_display, c.is_default, c.status,
	c.open_for_enrolment, c.is_perpetual, c.start_date, c.end_date,
	coalesce(c.default_access_months, 0) AS default_access_months,
	coalesce(c.default_access_weeks, 0) AS default_access_weeks,
	coalesce(t.default_access_months, 0) AS type_access_months`

// withAccess is the condition on e (enrolments) for an active, grace-period or scheduled
// one of a person who is not on the staff, with $2 for today.
const withAccess = `e.state = 'running' AND e.grace_period_end >= $2 AND NOT EXISTS (
	SELECT FROM members m WHERE m.organization_id = e.organization_id AND m.user_id = e.user_id AND m.role <> 'member')`

func selectListed(ctx context.Context, q pg.Querier, org id.Organization, today clock.Date) ([]Listed, error) {
	rows, err := q.Query(ctx, `
		SELECT `+courseColumns+`, coalesce(n.students, 0) AS students_with_access
		FROM courses c JOIN course_types t ON t.name = c.course_type
		LEFT JOIN (
			SELECT e.course_id, count(*) AS students FROM enrolments e
			WHERE e.organization_id = $1 AND `+withAccess+` GROUP BY e.course_id) n ON n.course_id = c.id
		WHERE c.organization_id = $1 AND c.status <> 'cancelled' ORDER BY c.id`, org, today)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[Listed])
}

func selectCounts(ctx context.Context, q pg.Querier, org id.Organization, today clock.Date) (Counts, error) {
	rows, err := q.Query(ctx, `
		SELECT (SELECT count(*) FROM courses WHERE organization_id = $1 AND status <> 'cancelled') AS courses,
		       (SELECT count(DISTINCT e.user_id) FROM enrolments e
		        WHERE e.organization_id = $1 AND `+withAccess+`) AS students_with_access`, org, today)
	if err != nil {
		return Counts{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Counts])
}

func selectCourse(ctx context.Context, q pg.Querier, org id.Organization, course id.Course) (Course, error) {
	return oneCourse(q.Query(ctx, `
		SELECT `+courseColumns+` FROM courses c JOIN course_types t ON t.name = c.course_type
		WHERE c.organization_id = $1 AND c.id = $2`, org, course))
}

func lockCourse(ctx context.Context, tx *pg.Tx, org id.Organization, course id.Course) (Course, error) {
	return oneCourse(tx.Query(ctx, `
		SELECT `+courseColumns+` FROM courses c JOIN course_types t ON t.name = c.course_type
		WHERE c.organization_id = $1 AND c.id = $2 FOR UPDATE OF c`, org, course))
}

func insertCourse(ctx context.Context, q pg.Querier, org id.Organization, d Draft, now time.Time) (Course, error) {
	return oneCourse(q.Query(ctx, `
		WITH c AS (
			INSERT INTO courses (organization_id, name, course_type, status, open_for_enrolment, is_perpetual, start_date,
				end_date, default_access_months, default_access_weeks, created_at, updated_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, nullif($9::integer, 0), nullif($10::integer, 0), $11, $11)
			RETURNING *)
		SELECT `+courseColumns+` FROM c JOIN course_types t ON t.name = c.course_type`,
		org, d.Name, d.Type, d.Status, d.OpenForEnrolment, d.IsPerpetual, d.StartDate, d.EndDate,
		d.DefaultAccessMonths, d.DefaultAccessWeeks, now))
}

func updateCourse(ctx context.Context, q pg.Querier, org id.Organization, course id.Course, d Draft, now time.Time) (Course, error) {
	return oneCourse(q.Query(ctx, `
		WITH c AS (
			UPDATE courses SET name = $3, status = $4, open_for_enrolment = $5, is_perpetual = $6, start_date = $7,
				end_date = $8, default_access_months = nullif($9::integer, 0),
				default_access_weeks = nullif($10::integer, 0), updated_at = $11
			WHERE organization_id = $1 AND id = $2 RETURNING *)
		SELECT `+courseColumns+` FROM c JOIN course_types t ON t.name = c.course_type`,
		org, course, d.Name, d.Status, d.OpenForEnrolment, d.IsPerpetual, d.StartDate, d.EndDate,
		d.DefaultAccessMonths, d.DefaultAccessWeeks, now))
}

func oneCourse(rows pgx.Rows, err error) (Course, error) {
	if err != nil {
		return Course{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Course])
}

func queueNamed(b *pg.Batch, org id.Organization, r Request, into *[]Course) {
	types := make([]string, len(r.Types))
	for i, t := range r.Types {
		types[i] = strings.ToLower(strings.TrimSpace(t))
	}
	b.Queue(`
		SELECT `+courseColumns+` FROM courses c JOIN course_types t ON t.name = c.course_type
		WHERE c.organization_id = $1
		  AND (c.id = ANY ($2) OR c.is_default AND (t.name = ANY ($3) OR lower(t.display_name) = ANY ($3)))`,
		org, r.Courses, types).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, pgx.RowToStructByName[Course])
		return err
	})
}

// enrolmentRow is an enrolment beside its course, as courseColumns and enrolmentColumns
// name their columns.
type enrolmentRow struct {
	EnrolmentID  id.Enrolment
	EnrolledUser id.User
	State        State
	AccessStart  clock.Date
	AccessEnd    clock.Date
	GraceEnd     clock.Date
	ToldStanding Standing
	ToldEnds     []clock.Date
	Course
}

const enrolmentColumns = `e.id AS enrolment_id, e.user_id AS enrolled_user, e.state, e.start_date AS access_start,
	e.end_date AS access_end, e.grace_period_end AS grace_end, coalesce(e.told_standing, '') AS told_standing, e.told_ends`

func (r enrolmentRow) enrolment() Enrolment {
	return Enrolment{ID: r.EnrolmentID, User: r.EnrolledUser, Course: r.Course, State: r.State,
		Window: Window{StartDate: r.AccessStart, EndDate: r.AccessEnd, GracePeriodEnd: r.GraceEnd},
		Told:   Told{r.ToldStanding, r.ToldEnds}}
}

func collectEnrolment(row pgx.CollectableRow) (Enrolment, error) {
	r, err := pgx.RowToStructByName[enrolmentRow](row)
	return r.enrolment(), err
}

func queueHeld(b *pg.Batch, org id.Organization, user id.User, into *[]Enrolment) {
	b.Queue(`
		SELECT `+enrolmentColumns+`, `+courseColumns+`
		FROM enrolments e JOIN courses c ON c.id = e.course_id JOIN course_types t ON t.name = c.course_type
		WHERE e.organization_id = $1 AND e.user_id = $2 ORDER BY e.id`,
		org, user).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, collectEnrolment)
		return err
	})
}

func selectOfStudent(ctx context.Context, q pg.Querier, org id.Organization, user id.User) ([]Enrolment, error) {
	rows, err := q.Query(ctx, `
		SELECT `+enrolmentColumns+`, `+courseColumns+`
		FROM enrolments e JOIN courses c ON c.id = e.course_id JOIN course_types t ON t.name = c.course_type
		WHERE e.organization_id = $1 AND e.user_id = $2 ORDER BY e.id`, org, user)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, collectEnrolment)
}

func selectOfStudents(ctx context.Context, q pg.Querier, org id.Organization, users []id.User) ([]Enrolment, error) {
	rows, err := q.Query(ctx, `
		SELECT `+enrolmentColumns+`, `+courseColumns+`
		FROM enrolments e JOIN courses c ON c.id = e.course_id JOIN course_types t ON t.name = c.course_type
		WHERE e.organization_id = $1 AND e.user_id = ANY ($2) ORDER BY e.id`, org, users)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, collectEnrolment)
}

func queueRefUse(b *pg.Batch, org id.Organization, user id.User, ref string, into *map[id.Enrolment]bool) {
	b.Queue(`
		SELECT r.enrolment_id FROM enrolment_refs r JOIN enrolments e ON e.id = r.enrolment_id
		WHERE e.organization_id = $1 AND e.user_id = $2 AND r.ref = $3`, org, user, ref).Query(func(rows pgx.Rows) error {
		used, err := pgx.CollectRows(rows, pgx.RowTo[id.Enrolment])
		*into = make(map[id.Enrolment]bool, len(used))
		for _, e := range used {
			(*into)[e] = true
		}
		return err
	})
}

// queueDefault makes the default course c, or reads the one that is there; the update
// that changes nothing makes the row, which another transaction may have just committed,
// come back from the statement.
func queueDefault(b *pg.Batch, org id.Organization, c *Course, now time.Time) {
	b.Queue(`
		WITH c AS (
			INSERT INTO courses (organization_id, name, course_type, is_default, status, open_for_enrolment, is_perpetual,
				start_date, created_at, updated_at)
			VALUES ($1, $2, $3, true, $4, true, true, $5, $6, $6)
			ON CONFLICT (organization_id, course_type) WHERE is_default DO UPDATE SET updated_at = courses.updated_at
			RETURNING *)
		SELECT `+courseColumns+` FROM c JOIN course_types t ON t.name = c.course_type`,
		org, c.Name, c.Type, c.Status, c.StartDate, now).Query(func(rows pgx.Rows) (err error) {
		*c, err = oneCourse(rows, nil)
		return err
	})
}

func queueInsertEnrolment(b *pg.Batch, org id.Organization, e *Enrolment, today clock.Date, now time.Time) {
	b.Queue(`
		INSERT INTO enrolments (organization_id, user_id, course_id, state, start_date, end_date, grace_period_end,
			told_standing, next_day, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, nullif($8, ''), $9, $10, $10) RETURNING id`,
		org, e.User, e.Course.ID, e.State, e.StartDate, e.EndDate, e.GracePeriodEnd, e.Told.Standing, e.nextDay(today), now).QueryRow(func(row pgx.Row) error {
		return row.Scan(&e.ID)
	})
}

func queueUpdateEnrolment(b *pg.Batch, org id.Organization, e Enrolment, today clock.Date, now time.Time) {
	ends := e.Told.Ends
	if ends == nil {
		ends = []clock.Date{}
	}
	b.Queue(`
		UPDATE enrolments SET state = $3, start_date = $4, end_date = $5, grace_period_end = $6,
			told_standing = nullif($7, ''), told_ends = $8, next_day = $9, updated_at = $10
		WHERE organization_id = $1 AND id = $2`,
		org, e.ID, e.State, e.StartDate, e.EndDate, e.GracePeriodEnd, e.Told.Standing, ends, e.nextDay(today), now)
}

func selectHolder(ctx context.Context, q pg.Querier, org id.Organization, enrolment id.Enrolment) (user id.User, err error) {
	err = q.QueryRow(ctx, `SELECT user_id FROM enrolments WHERE organization_id = $1 AND id = $2`, org, enrolment).Scan(&user)
	return user, err
}

// selectDue looks at limit enrolments, of which one student may have several.
func selectDue(ctx context.Context, q pg.Querier, today clock.Date, skip []id.User, limit int) ([]Due, error) {
	rows, err := q.Query(ctx, `
		SELECT d.organization_id, d.user_id, a.email
		FROM (SELECT e.organization_id, e.user_id, e.next_day, e.id FROM enrolments e
		      WHERE e.next_day <= $1 AND e.user_id <> ALL (coalesce($2::bigint[], '{}')) ORDER BY e.next_day LIMIT $3) d
		JOIN accounts a ON a.id = d.user_id
		GROUP BY d.organization_id, d.user_id, a.email ORDER BY min(d.next_day), min(d.id)`, today, skip, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Due])
}

func queueRememberRef(b *pg.Batch, org id.Organization, user id.User, courses []id.Course, ref string, now time.Time) {
	b.Queue(`
		INSERT INTO enrolment_refs (enrolment_id, ref, created_at)
		SELECT id, $4, $5 FROM enrolments WHERE organization_id = $1 AND user_id = $2 AND course_id = ANY ($3)
		ON CONFLICT DO NOTHING`, org, user, courses, ref, now)
}
