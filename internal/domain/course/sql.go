package course

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

const typeColumns = `name, display_name, active, coalesce(default_access_months, 0) AS default_access_months,
	test_plan_available, target_score_min::float8 AS target_score_min, target_score_max::float8 AS target_score_max`

func selectTypes(ctx context.Context, q pg.Querier) ([]Type, error) {
	rows, err := q.Query(ctx, `SELECT `+typeColumns+` FROM course_types ORDER BY position`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[Type])
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
