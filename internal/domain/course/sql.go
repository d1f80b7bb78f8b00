package course

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/scope"
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

func updateTypeActive(ctx context.Context, q pg.Querier, name string, active bool) (Type, error) {
	rows, err := q.Query(ctx, `UPDATE course_types SET active = $2 WHERE name = $1 RETURNING `+typeColumns, name, active)
	if err != nil {
		return Type{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Type])
}

// courseColumns are those of c (courses) and t (course_types).
const courseColumns = `c.id, c.name, c.course_type AS type, t.display_name AS type_display, c.is_default, c.status,
	c.open_for_enrollment, c.is_perpetual, c.start_date, c.end_date,
	coalesce(c.default_access_months, 0) AS default_access_months,
	coalesce(c.default_access_weeks, 0) AS default_access_weeks,
	coalesce(t.default_access_months, 0) AS type_access_months`

// withAccess is the condition on e (enrollments) for an active, grace-period or scheduled
// one of a person who is not on the staff, with $2 for today.
var withAccess = `e.state = 'running' AND e.grace_period_end >= $2 AND ` + scope.NotStaff("e.organization_id", "e.user_id")

func selectListed(ctx context.Context, q pg.Querier, org id.Organization, today clock.Date) ([]Listed, error) {
	rows, err := q.Query(ctx, `
		SELECT `+courseColumns+`, coalesce(n.students, 0) AS students_with_access
		FROM courses c JOIN course_types t ON t.name = c.course_type
		LEFT JOIN (
			SELECT e.course_id, count(*) AS students FROM enrollments e
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
		       (SELECT count(DISTINCT e.user_id) FROM enrollments e
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

// selectEnrolled gives an empty slice, which is not nil, where there is nobody.
func selectEnrolled(ctx context.Context, q pg.Querier, org id.Organization, course id.Course, limit int) ([]id.User, error) {
	rows, err := q.Query(ctx, `
		SELECT user_id FROM enrollments WHERE organization_id = $1 AND course_id = $2 ORDER BY user_id LIMIT $3`, org, course, limit)
	if err != nil {
		return nil, err
	}
	return pgx.AppendRows([]id.User{}, rows, pgx.RowTo[id.User])
}

func lockCourse(ctx context.Context, tx *pg.Tx, org id.Organization, course id.Course) (Course, error) {
	return oneCourse(tx.Query(ctx, `
		SELECT `+courseColumns+` FROM courses c JOIN course_types t ON t.name = c.course_type
		WHERE c.organization_id = $1 AND c.id = $2 FOR UPDATE OF c`, org, course))
}

func insertCourse(ctx context.Context, q pg.Querier, org id.Organization, d Draft, now time.Time) (Course, error) {
	return oneCourse(q.Query(ctx, `
		WITH c AS (
			INSERT INTO courses (organization_id, name, course_type, status, open_for_enrollment, is_perpetual, start_date,
				end_date, default_access_months, default_access_weeks, created_at, updated_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, nullif($9::integer, 0), nullif($10::integer, 0), $11, $11)
			RETURNING *)
		SELECT `+courseColumns+` FROM c JOIN course_types t ON t.name = c.course_type`,
		org, d.Name, d.Type, d.Status, d.OpenForEnrollment, d.IsPerpetual, d.StartDate, d.EndDate,
		d.DefaultAccessMonths, d.DefaultAccessWeeks, now))
}

func updateCourse(ctx context.Context, q pg.Querier, org id.Organization, course id.Course, d Draft, now time.Time) (Course, error) {
	return oneCourse(q.Query(ctx, `
		WITH c AS (
			UPDATE courses SET name = $3, status = $4, open_for_enrollment = $5, is_perpetual = $6, start_date = $7,
				end_date = $8, default_access_months = nullif($9::integer, 0),
				default_access_weeks = nullif($10::integer, 0), updated_at = $11
			WHERE organization_id = $1 AND id = $2 RETURNING *)
		SELECT `+courseColumns+` FROM c JOIN course_types t ON t.name = c.course_type`,
		org, course, d.Name, d.Status, d.OpenForEnrollment, d.IsPerpetual, d.StartDate, d.EndDate,
		d.DefaultAccessMonths, d.DefaultAccessWeeks, now))
}

func oneCourse(rows pgx.Rows, err error) (Course, error) {
	if err != nil {
		return Course{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Course])
}

// namedCourse comes with the id that an enrollment in it would get, so that what tells of
// the enrollment can be written with it, in one round trip. What is drawn in vain is lost.
type namedCourse struct {
	Course
	Enrollment id.Enrollment
}

func queueNamedCourses(b *pg.Batch, org id.Organization, courses []id.Course, into *Offer) {
	b.Queue(`
		SELECT `+courseColumns+`, nextval('enrollments_id_seq') AS enrollment
		FROM courses c JOIN course_types t ON t.name = c.course_type
		WHERE c.organization_id = $1 AND c.id = ANY ($2)`, org, courses).Query(func(rows pgx.Rows) error {
		named, err := pgx.CollectRows(rows, pgx.RowToStructByName[namedCourse])
		for _, n := range named {
			into.Courses, into.drawn = append(into.Courses, n.Course), append(into.drawn, n.Enrollment)
		}
		return err
	})
}

// maxNamed is more than there are names and display names of types: who names more names
// some that do not exist.
const maxNamed = 32

// queueNamedTypes reads the types together with their default courses, which may not exist
// yet: a statement a name, as nearly all calls have one. For an array, whose length matters,
// PostgreSQL would plan anew with each call, which costs more than the statement.
func queueNamedTypes(b *pg.Batch, org id.Organization, types []string, into *Offer) {
	var names []string
	for _, t := range types {
		if name := strings.ToLower(strings.TrimSpace(t)); len(names) < maxNamed && !slices.Contains(names, name) {
			names = append(names, name)
			queueNamedType(b, org, name, into)
		}
	}
}

func queueNamedType(b *pg.Batch, org id.Organization, name string, into *Offer) {
	b.Queue(`
		SELECT t.name, t.display_name, t.active, coalesce(t.default_access_months, 0), t.test_plan_available,
			t.target_score_min::float8, t.target_score_max::float8,
			coalesce(c.id, 0), coalesce(c.name, ''), coalesce(c.status, ''), coalesce(c.open_for_enrollment, false),
			coalesce(c.is_perpetual, false), c.start_date, c.end_date, coalesce(c.default_access_months, 0), coalesce(c.default_access_weeks, 0),
			nextval('enrollments_id_seq')
		FROM course_types t LEFT JOIN courses c ON c.organization_id = $1 AND c.course_type = t.name AND c.is_default
		WHERE t.name = $2 OR lower(t.display_name) = $2`, org, name).Query(func(rows pgx.Rows) error {
		var t Type
		var c namedCourse
		_, err := pgx.ForEachRow(rows, []any{&t.Name, &t.DisplayName, &t.Active, &t.DefaultAccessMonths, &t.TestPlanAvailable,
			&t.TargetScoreMin, &t.TargetScoreMax, &c.ID, &c.Name, &c.Status, &c.OpenForEnrollment, &c.IsPerpetual, &c.StartDate, &c.EndDate,
			&c.DefaultAccessMonths, &c.DefaultAccessWeeks, &c.Enrollment}, func() error {
			into.Types, into.drawn = append(into.Types, t), append(into.drawn, c.Enrollment)
			if c.ID != 0 {
				c.Type, c.TypeDisplay, c.TypeAccessMonths, c.IsDefault = t.Name, t.DisplayName, t.DefaultAccessMonths, true
				into.Courses = append(into.Courses, c.Course)
			}
			return nil
		})
		return err
	})
}

// enrollmentRow is an enrollment beside its course, as courseColumns and enrollmentColumns
// name their columns.
type enrollmentRow struct {
	EnrollmentID     id.Enrollment
	EnrolledUser     id.User
	State            State
	AccessStart      clock.Date
	AccessEnd        clock.Date
	GraceEnd         clock.Date
	NotifiedStatus   EnrollmentStatus
	NotifiedEndDates []clock.Date
	Course
}

const enrollmentColumns = `e.id AS enrollment_id, e.user_id AS enrolled_user, e.state, e.start_date AS access_start,
	e.end_date AS access_end, e.grace_period_end AS grace_end, coalesce(e.notified_status, '') AS notified_status, e.notified_end_dates`

func (r enrollmentRow) enrollment() Enrollment {
	return Enrollment{ID: r.EnrollmentID, User: r.EnrolledUser, Course: r.Course, State: r.State,
		Window:   Window{StartDate: r.AccessStart, EndDate: r.AccessEnd, GracePeriodEnd: r.GraceEnd},
		Notified: Notified{r.NotifiedStatus, r.NotifiedEndDates}}
}

func collectEnrollment(row pgx.CollectableRow) (Enrollment, error) {
	r, err := pgx.RowToStructByName[enrollmentRow](row)
	return r.enrollment(), err
}

// Whom $2 names.
const (
	byID      = `$2`
	byAddress = `(SELECT id FROM accounts WHERE email = $2)`
)

// heldBy reads the enrollments in the organization $1 of whom what follows names.
const heldBy = `
	SELECT ` + enrollmentColumns + `, ` + courseColumns + `
	FROM enrollments e JOIN courses c ON c.id = e.course_id JOIN course_types t ON t.name = c.course_type
	WHERE e.organization_id = $1 AND e.user_id = `

func queueHeld(b *pg.Batch, org id.Organization, by string, who any, into *[]Enrollment) {
	b.Queue(heldBy+by+` ORDER BY e.id`, org, who).Query(func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, collectEnrollment)
		return err
	})
}

func selectOfStudent(ctx context.Context, q pg.Querier, org id.Organization, user id.User) ([]Enrollment, error) {
	rows, err := q.Query(ctx, heldBy+byID+` ORDER BY e.id`, org, user)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, collectEnrollment)
}

func selectOfStudents(ctx context.Context, q pg.Querier, org id.Organization, users []id.User) ([]Enrollment, error) {
	rows, err := q.Query(ctx, `
		SELECT `+enrollmentColumns+`, `+courseColumns+`
		FROM unnest($2::bigint[]) AS u(id)
		CROSS JOIN LATERAL (SELECT * FROM enrollments WHERE organization_id = $1 AND user_id = u.id OFFSET 0) AS e
		JOIN courses c ON c.id = e.course_id JOIN course_types t ON t.name = c.course_type ORDER BY e.id`, org, users)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, collectEnrollment)
}

func queueRefUse(b *pg.Batch, org id.Organization, by string, who any, ref string, into *map[id.Enrollment]bool) {
	b.Queue(`
		SELECT r.enrollment_id FROM enrollment_refs r JOIN enrollments e ON e.id = r.enrollment_id
		WHERE e.organization_id = $1 AND e.user_id = `+by+` AND r.ref = $3`, org, who, ref).Query(func(rows pgx.Rows) error {
		used, err := pgx.CollectRows(rows, pgx.RowTo[id.Enrollment])
		*into = make(map[id.Enrollment]bool, len(used))
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
			INSERT INTO courses (organization_id, name, course_type, is_default, status, open_for_enrollment, is_perpetual,
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

func queueInsertEnrollment(b *pg.Batch, org id.Organization, e *Enrollment, today clock.Date, now time.Time) {
	b.Queue(`
		INSERT INTO enrollments (id, organization_id, user_id, course_id, state, start_date, end_date, grace_period_end,
			notified_status, next_day, created_at, updated_at)
		OVERRIDING SYSTEM VALUE
		VALUES (coalesce(nullif($11::bigint, 0), nextval('enrollments_id_seq')), $1, $2, $3, $4, $5, $6, $7, nullif($8, ''), $9, $10, $10)
		RETURNING id`,
		org, e.User, e.Course.ID, e.State, e.StartDate, e.EndDate, e.GracePeriodEnd, e.Notified.Status, e.nextDay(today), now, e.ID).QueryRow(func(row pgx.Row) error {
		return row.Scan(&e.ID)
	})
}

func queueUpdateEnrollment(b *pg.Batch, org id.Organization, e Enrollment, today clock.Date, now time.Time) {
	ends := e.Notified.EndDates
	if ends == nil {
		ends = []clock.Date{}
	}
	b.Queue(`
		UPDATE enrollments SET state = $3, start_date = $4, end_date = $5, grace_period_end = $6,
			notified_status = nullif($7, ''), notified_end_dates = $8, next_day = $9, updated_at = $10
		WHERE organization_id = $1 AND id = $2`,
		org, e.ID, e.State, e.StartDate, e.EndDate, e.GracePeriodEnd, e.Notified.Status, ends, e.nextDay(today), now)
}

func selectHolder(ctx context.Context, q pg.Querier, org id.Organization, enrollment id.Enrollment) (user id.User, err error) {
	err = q.QueryRow(ctx, `SELECT user_id FROM enrollments WHERE organization_id = $1 AND id = $2`, org, enrollment).Scan(&user)
	return user, err
}

// selectDue looks at limit enrollments, of which one student may have several.
func selectDue(ctx context.Context, q pg.Querier, today clock.Date, skip []id.User, limit int) ([]Due, error) {
	rows, err := q.Query(ctx, `
		SELECT d.organization_id, d.user_id, a.email
		FROM (SELECT e.organization_id, e.user_id, e.next_day, e.id FROM enrollments e
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
		INSERT INTO enrollment_refs (enrollment_id, ref, created_at)
		SELECT id, $4, $5 FROM enrollments WHERE organization_id = $1 AND user_id = $2 AND course_id = ANY ($3)
		ON CONFLICT DO NOTHING`, org, user, courses, ref, now)
}
