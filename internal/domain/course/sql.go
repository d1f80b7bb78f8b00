package course

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/scope"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

const typeColumns = `
	name,
	display_name,
	active,
	coalesce(default_access_months, 0) AS default_access_months,
	test_plan_available,
	target_score_min::float8 AS target_score_min,
	target_score_max::float8 AS target_score_max`

// Types lists every type, active or not, in the order of the list of courses.
func Types(ctx context.Context, q pg.Querier) ([]Type, error) {
	return pg.List[Type](ctx, q, `SELECT `+typeColumns+` FROM course_types ORDER BY position`)
}

func lockType(ctx context.Context, tx *pg.Tx, name string) (Type, error) {
	return pg.One[Type](ctx, tx, `SELECT `+typeColumns+` FROM course_types WHERE name = $1 FOR UPDATE`, name)
}

func updateTypeActive(ctx context.Context, tx *pg.Tx, name string, active bool) error {
	_, err := tx.Exec(ctx, `UPDATE course_types SET active = $2 WHERE name = $1`, name, active)
	return err
}

// courseColumns are those of c (courses) and t (course_types).
const courseColumns = `
	c.id,
	c.name,
	c.course_type AS type,
	t.display_name AS type_display,
	c.is_default,
	c.status,
	c.open_for_enrollment,
	c.is_perpetual,
	c.start_date,
	c.end_date,
	coalesce(c.default_access_months, 0) AS default_access_months,
	coalesce(c.default_access_weeks, 0) AS default_access_weeks,
	coalesce(t.default_access_months, 0) AS type_access_months`

// withAccess is the condition on e (enrollments) for an active, grace-period or scheduled
// one of a person who is not on the staff, with $2 for today.
var withAccess = `e.state = 'running' AND e.grace_period_end >= $2 AND ` + scope.NotStaff("e.organization_id", "e.user_id")

// List gives the organization's courses by id, without cancelled ones.
func List(ctx context.Context, q pg.Querier, org id.Organization, today clock.Date) ([]Listed, error) {
	return pg.List[Listed](ctx, q, `
		SELECT `+courseColumns+`, coalesce(n.students, 0) AS students_with_access
		FROM courses c JOIN course_types t ON t.name = c.course_type
		LEFT JOIN (
			SELECT e.course_id, count(*) AS students FROM enrollments e
			WHERE e.organization_id = $1 AND `+withAccess+` GROUP BY e.course_id) n ON n.course_id = c.id
		WHERE c.organization_id = $1 AND c.status <> 'cancelled' ORDER BY c.id`, org, today)
}

// Name is what a course is called.
type Name struct {
	ID   id.Course
	Name string
}

// Names lists up to limit of the organization's courses by name, default courses first, without cancelled ones.
func Names(ctx context.Context, q pg.Querier, org id.Organization, limit int) ([]Name, error) {
	return pg.List[Name](ctx, q, `
		SELECT id, name FROM courses WHERE organization_id = $1 AND status <> 'cancelled'
		ORDER BY is_default DESC, name, id LIMIT $2`, org, limit)
}

// Count counts the organization's courses and students with access.
func Count(ctx context.Context, q pg.Querier, org id.Organization, today clock.Date) (Counts, error) {
	return pg.One[Counts](ctx, q, `
		SELECT (SELECT count(*) FROM courses WHERE organization_id = $1 AND status <> 'cancelled') AS courses,
		       (SELECT count(DISTINCT e.user_id) FROM enrollments e
		        WHERE e.organization_id = $1 AND `+withAccess+`) AS students_with_access`, org, today)
}

func selectCourse(ctx context.Context, q pg.Querier, org id.Organization, course id.Course) (Course, error) {
	return pg.One[Course](ctx, q, `
		SELECT `+courseColumns+` FROM courses c JOIN course_types t ON t.name = c.course_type
		WHERE c.organization_id = $1 AND c.id = $2`, org, course)
}

// selectEnrolled gives an empty slice, which is not nil, when nobody is enrolled.
func selectEnrolled(ctx context.Context, q pg.Querier, org id.Organization, course id.Course, limit int) ([]id.User, error) {
	return pg.Column[id.User](ctx, q, `
		SELECT user_id FROM enrollments WHERE organization_id = $1 AND course_id = $2 ORDER BY user_id LIMIT $3`,
		org, course, limit)
}

func lockCourse(ctx context.Context, tx *pg.Tx, org id.Organization, course id.Course) (Course, error) {
	return pg.One[Course](ctx, tx, `
		SELECT `+courseColumns+` FROM courses c JOIN course_types t ON t.name = c.course_type
		WHERE c.organization_id = $1 AND c.id = $2 FOR UPDATE OF c`, org, course)
}

func insertCourse(ctx context.Context, q pg.Querier, org id.Organization, d Draft, now time.Time) (Course, error) {
	return pg.One[Course](ctx, q, `
		WITH c AS (
			INSERT INTO courses (
				organization_id,
				name,
				course_type,
				status,
				open_for_enrollment,
				is_perpetual,
				start_date,
				end_date,
				default_access_months,
				default_access_weeks,
				created_at,
				updated_at
			) VALUES (
				@org,
				@name,
				@type,
				@status,
				@open,
				@perpetual,
				@start,
				@end,
				nullif(@months::integer, 0),
				nullif(@weeks::integer, 0),
				@now,
				@now
			) RETURNING *)
		SELECT `+courseColumns+` FROM c JOIN course_types t ON t.name = c.course_type`,
		d.args(pg.Args{"org": org, "type": d.Type, "now": now}))
}

func updateCourse(ctx context.Context, q pg.Querier, org id.Organization, course id.Course, d Draft, now time.Time) (Course, error) {
	return pg.One[Course](ctx, q, `
		WITH c AS (
			UPDATE courses SET
				name = @name,
				status = @status,
				is_default = is_default AND @status <> 'cancelled',
				open_for_enrollment = @open,
				is_perpetual = @perpetual,
				start_date = @start,
				end_date = @end,
				default_access_months = nullif(@months::integer, 0),
				default_access_weeks = nullif(@weeks::integer, 0),
				updated_at = @now
			WHERE organization_id = @org AND id = @course RETURNING *)
		SELECT `+courseColumns+` FROM c JOIN course_types t ON t.name = c.course_type`,
		d.args(pg.Args{"org": org, "course": course, "now": now}))
}

// args adds what a course can be given and a change can set.
func (d Draft) args(args pg.Args) pg.Args {
	maps.Copy(args, pg.Args{
		"name":      d.Name,
		"status":    d.Status,
		"open":      d.OpenForEnrollment,
		"perpetual": d.IsPerpetual,
		"start":     d.StartDate,
		"end":       d.EndDate,
		"months":    d.DefaultAccessMonths,
		"weeks":     d.DefaultAccessWeeks,
	})
	return args
}

// namedCourse comes with the id that an enrollment in it would get, so that the events of the
// enrollment can be written with it, in one round trip. An id that is not used is lost.
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

// maxNamed is more than there are names and display names of types: a call with more names
// has some that do not exist.
const maxNamed = 32

// queueNamedTypes reads the types together with their default courses, which may not exist
// yet, in a statement for each name, as nearly all calls have one. PostgreSQL would plan a
// statement for an array again with each call, which costs more.
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
		SELECT
			t.name,
			t.display_name,
			t.active,
			coalesce(t.default_access_months, 0) AS default_access_months,
			t.test_plan_available,
			t.target_score_min::float8 AS target_score_min,
			t.target_score_max::float8 AS target_score_max,
			coalesce(c.id, 0) AS course,
			coalesce(c.name, '') AS course_name,
			coalesce(c.status, '') AS course_status,
			coalesce(c.open_for_enrollment, false) AS open_for_enrollment,
			coalesce(c.is_perpetual, false) AS is_perpetual,
			c.start_date,
			c.end_date,
			coalesce(c.default_access_months, 0) AS course_access_months,
			coalesce(c.default_access_weeks, 0) AS course_access_weeks,
			nextval('enrollments_id_seq') AS enrollment
		FROM course_types t LEFT JOIN courses c ON c.organization_id = $1 AND c.course_type = t.name AND c.is_default
		WHERE t.name = $2 OR lower(t.display_name) = $2`, org, name).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, pgx.RowToStructByName[namedType])
		for _, n := range found {
			into.Types, into.drawn = append(into.Types, n.Type), append(into.drawn, n.Enrollment)
			if n.Course != 0 {
				into.Courses = append(into.Courses, n.course())
			}
		}
		return err
	})
}

// namedType is a type beside its default course, which has the id 0 when it does not exist.
type namedType struct {
	Type
	Course             id.Course
	CourseName         string
	CourseStatus       Status
	OpenForEnrollment  bool
	IsPerpetual        bool
	StartDate          clock.Date
	EndDate            clock.Date
	CourseAccessMonths int
	CourseAccessWeeks  int
	Enrollment         id.Enrollment
}

func (n namedType) course() Course {
	return Course{
		ID:                  n.Course,
		Name:                n.CourseName,
		Type:                n.Name,
		TypeDisplay:         n.DisplayName,
		IsDefault:           true,
		Status:              n.CourseStatus,
		OpenForEnrollment:   n.OpenForEnrollment,
		IsPerpetual:         n.IsPerpetual,
		StartDate:           n.StartDate,
		EndDate:             n.EndDate,
		DefaultAccessMonths: n.CourseAccessMonths,
		DefaultAccessWeeks:  n.CourseAccessWeeks,
		TypeAccessMonths:    n.DefaultAccessMonths,
	}
}

// enrollmentRow is an enrollment beside its course, as courseColumns and enrollmentColumns
// name their columns.
type enrollmentRow struct {
	EnrollmentID     id.Enrollment
	EnrolledUser     id.User
	State            State
	PartnerSuspended bool
	AccessSource     string
	AccessStart      clock.Date
	AccessEnd        clock.Date
	GraceEnd         clock.Date
	NotifiedStatus   EnrollmentStatus
	NotifiedEndDates []clock.Date
	Course
}

const enrollmentColumns = `
	e.id AS enrollment_id,
	e.user_id AS enrolled_user,
	e.state,
	e.partner_suspended,
	coalesce(e.source, '') AS access_source,
	e.start_date AS access_start,
	e.end_date AS access_end,
	e.grace_period_end AS grace_end,
	coalesce(e.notified_status, '') AS notified_status,
	e.notified_end_dates`

func (r enrollmentRow) enrollment() Enrollment {
	return Enrollment{ID: r.EnrollmentID, User: r.EnrolledUser, Course: r.Course, State: r.State,
		PartnerSuspended: r.PartnerSuspended, Source: r.AccessSource,
		Window:   Window{StartDate: r.AccessStart, EndDate: r.AccessEnd, GracePeriodEnd: r.GraceEnd},
		Notified: Notified{r.NotifiedStatus, r.NotifiedEndDates}}
}

func collectEnrollment(row pgx.CollectableRow) (Enrollment, error) {
	r, err := pgx.RowToStructByName[enrollmentRow](row)
	return r.enrollment(), err
}

// What $2 is: a user's id or an address.
const (
	byID      = `$2`
	byAddress = `(SELECT id FROM accounts WHERE email = $2)`
)

// heldBy reads the enrollments in the organization $1; an expression for the user follows.
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

// OfStudent lists the user's enrollments in the organization by id.
func OfStudent(ctx context.Context, q pg.Querier, org id.Organization, user id.User) ([]Enrollment, error) {
	rows, err := q.Query(ctx, heldBy+byID+` ORDER BY e.id`, org, user)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, collectEnrollment)
}

// EnrollmentsOf reads the enrollments, by id, of users in the organizations at the same places.
func EnrollmentsOf(ctx context.Context, q pg.Querier, orgs []id.Organization, users []id.User) ([][]Enrollment, error) {
	rows, err := q.Query(ctx, `
		SELECT `+enrollmentColumns+`, `+courseColumns+`, u.n
		FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS u(org, id, n)
		CROSS JOIN LATERAL (SELECT * FROM enrollments WHERE organization_id = u.org AND user_id = u.id OFFSET 0) AS e
		JOIN courses c ON c.id = e.course_id JOIN course_types t ON t.name = c.course_type ORDER BY e.id`, orgs, users)
	if err != nil {
		return nil, err
	}
	type numbered struct {
		enrollmentRow
		N int
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[numbered])
	all := make([][]Enrollment, len(users))
	for _, r := range found {
		all[r.N-1] = append(all[r.N-1], r.enrollment())
	}
	return all, err
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

// queueDefault makes the default course c, or reads the one that exists. The update changes
// nothing, but makes the statement return a row that another transaction has just committed.
func queueDefault(b *pg.Batch, org id.Organization, c *Course, now time.Time) {
	b.Queue(`
		WITH c AS (
			INSERT INTO courses (
				organization_id,
				name,
				course_type,
				is_default,
				status,
				open_for_enrollment,
				is_perpetual,
				start_date,
				created_at,
				updated_at
			) VALUES (@org, @name, @type, true, @status, true, true, @start, @now, @now)
			ON CONFLICT (organization_id, course_type) WHERE is_default DO UPDATE SET updated_at = courses.updated_at
			RETURNING *)
		SELECT `+courseColumns+` FROM c JOIN course_types t ON t.name = c.course_type`,
		pg.Args{
			"org":    org,
			"name":   c.Name,
			"type":   c.Type,
			"status": c.Status,
			"start":  c.StartDate,
			"now":    now,
		}).Query(func(rows pgx.Rows) (err error) {
		*c, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Course])
		return err
	})
}

func queueInsertEnrollment(b *pg.Batch, org id.Organization, e *Enrollment, today clock.Date, now time.Time) {
	b.Queue(`
		INSERT INTO enrollments (
			id,
			organization_id,
			user_id,
			course_id,
			state,
			source,
			start_date,
			end_date,
			grace_period_end,
			notified_status,
			next_day,
			created_at,
			updated_at
		) OVERRIDING SYSTEM VALUE VALUES (
			coalesce(nullif(@id::bigint, 0), nextval('enrollments_id_seq')),
			@org,
			@user,
			@course,
			@state,
			nullif(@source, ''),
			@start,
			@end,
			@grace,
			nullif(@notified, ''),
			@next,
			@now,
			@now
		) RETURNING id`,
		pg.Args{
			"id":       e.ID,
			"org":      org,
			"user":     e.User,
			"course":   e.Course.ID,
			"state":    e.State,
			"source":   e.Source,
			"start":    e.StartDate,
			"end":      e.EndDate,
			"grace":    e.GracePeriodEnd,
			"notified": e.Notified.Status,
			"next":     e.nextDay(today),
			"now":      now,
		}).QueryRow(func(row pgx.Row) error { return row.Scan(&e.ID) })
}

// Save queues the writing of an enrollment's state and dates, and of what is notified, as of
// the day today. The caller holds the student's lock.
func Save(b *pg.Batch, org id.Organization, e Enrollment, today clock.Date, now time.Time) {
	ends := e.Notified.EndDates
	if ends == nil {
		ends = []clock.Date{}
	}
	b.Queue(`
		UPDATE enrollments SET
			state = @state,
			partner_suspended = @partner,
			source = nullif(@source, ''),
			start_date = @start,
			end_date = @end,
			grace_period_end = @grace,
			notified_status = nullif(@notified, ''),
			notified_end_dates = @ends,
			next_day = @next,
			updated_at = @now
		WHERE organization_id = @org AND id = @id`,
		pg.Args{
			"org":      org,
			"id":       e.ID,
			"state":    e.State,
			"partner":  e.PartnerSuspended,
			"source":   e.Source,
			"start":    e.StartDate,
			"end":      e.EndDate,
			"grace":    e.GracePeriodEnd,
			"notified": e.Notified.Status,
			"ends":     ends,
			"next":     e.nextDay(today),
			"now":      now,
		})
}

func selectHolder(ctx context.Context, q pg.Querier, org id.Organization, enrollment id.Enrollment) (user id.User, err error) {
	err = q.QueryRow(ctx, `
		SELECT user_id
		FROM enrollments
		WHERE organization_id = $1 AND id = $2`, org, enrollment).Scan(&user)
	return user, err
}

// DueOn lists up to limit enrollments whose next day has come, behind the position of after: in the order in
// which they became due, those of an organization together. A student may have several.
func DueOn(ctx context.Context, q pg.Querier, today clock.Date, after DuePosition, limit int) ([]Due, error) {
	return pg.List[Due](ctx, q, `
		SELECT d.next_day AS day, d.organization_id AS organization, d.id AS enrollment, d.user_id AS "user", a.email
		FROM (SELECT e.next_day, e.organization_id, e.id, e.user_id FROM enrollments e
		      WHERE e.next_day <= $1
		        AND (e.next_day, e.organization_id, e.id) > (coalesce($2::date, '-infinity'), $3::bigint, $4::bigint)
		      ORDER BY e.next_day, e.organization_id, e.id LIMIT $5) d
		CROSS JOIN LATERAL (SELECT email FROM accounts WHERE id = d.user_id LIMIT 1) AS a
		ORDER BY d.next_day, d.organization_id, d.id`, today, after.Day, after.Organization, after.Enrollment, limit)
}

// SaveNotified stores of enrollments what receivers know and the day on which each is due next; of those in warned,
// that their end date is notified. The organizations are at the same places.
func SaveNotified(ctx context.Context, tx *pg.Tx, orgs []id.Organization, all []Enrollment, warned []bool, today clock.Date, now time.Time) error {
	ids, statuses, days := make([]id.Enrollment, len(all)), make([]string, len(all)), make([]clock.Date, len(all))
	for i, e := range all {
		ids[i], statuses[i], days[i] = e.ID, string(e.Notified.Status), e.nextDay(today)
	}
	_, err := tx.Exec(ctx, `
		UPDATE enrollments e SET
			notified_status = nullif(u.status, ''),
			notified_end_dates = CASE
				WHEN u.warned THEN e.notified_end_dates || e.end_date
				ELSE e.notified_end_dates
			END,
			next_day = u.next_day,
			updated_at = @now
		FROM unnest(@orgs::bigint[], @ids::bigint[], @statuses::text[], @warned::boolean[], @days::date[])
			AS u(org, id, status, warned, next_day)
		WHERE e.organization_id = u.org AND e.id = u.id
		  AND (u.warned OR (e.notified_status, e.next_day) IS DISTINCT FROM (nullif(u.status, ''), u.next_day))`,
		pg.Args{"orgs": orgs, "ids": ids, "statuses": statuses, "warned": warned, "days": days, "now": now})
	return err
}

func queueRememberRef(b *pg.Batch, org id.Organization, user id.User, courses []id.Course, ref string, now time.Time) {
	b.Queue(`
		INSERT INTO enrollment_refs (enrollment_id, ref, created_at)
		SELECT id, $4, $5 FROM enrollments WHERE organization_id = $1 AND user_id = $2 AND course_id = ANY ($3)
		ON CONFLICT DO NOTHING`, org, user, courses, ref, now)
}

// Grants lists the making of each of the user's enrollments in the organization, and up to limit of each one's
// references until that time; an enrollment comes before its references.
func Grants(ctx context.Context, q pg.Querier, org id.Organization, user id.User, until time.Time, limit int) ([]Grant, error) {
	rows, err := q.Query(ctx, `
		SELECT `+enrollmentColumns+`, `+courseColumns+`, g.at, g.ref
		FROM enrollments e
		JOIN courses c ON c.id = e.course_id
		JOIN course_types t ON t.name = c.course_type
		CROSS JOIN LATERAL (
			SELECT e.created_at AS at, '' AS ref
			UNION ALL
			(SELECT r.created_at, r.ref FROM enrollment_refs r
			WHERE r.enrollment_id = e.id AND r.created_at <= $3
			ORDER BY r.created_at DESC, r.ref DESC LIMIT $4)
		) AS g
		WHERE e.organization_id = $1 AND e.user_id = $2
		ORDER BY e.id, g.ref <> '', g.at DESC, g.ref DESC`, org, user, until, limit)
	if err != nil {
		return nil, err
	}
	type grantRow struct {
		enrollmentRow
		At  time.Time
		Ref string
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Grant, error) {
		r, err := pgx.RowToStructByName[grantRow](row)
		return Grant{r.enrollment(), r.At, r.Ref}, err
	})
}

// LatestRefs reads the external_ref that was remembered last for each of the user's enrollments in the
// organization; an enrollment without one is missing.
func LatestRefs(ctx context.Context, q pg.Querier, org id.Organization, user id.User) (map[id.Enrollment]string, error) {
	rows, err := q.Query(ctx, `
		SELECT DISTINCT ON (r.enrollment_id) r.enrollment_id, r.ref
		FROM enrollment_refs r JOIN enrollments e ON e.id = r.enrollment_id
		WHERE e.organization_id = $1 AND e.user_id = $2
		ORDER BY r.enrollment_id, r.created_at DESC, r.ref`, org, user)
	if err != nil {
		return nil, err
	}
	refs := map[id.Enrollment]string{}
	var e id.Enrollment
	var ref string
	_, err = pgx.ForEachRow(rows, []any{&e, &ref}, func() error { refs[e] = ref; return nil })
	return refs, err
}
