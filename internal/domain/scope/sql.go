// Package scope says once which people an organization's lists show (reference:
// students#scope-of-lists), and under which names, for all the areas whose statements ask for it.
//
// Its functions return conditions, and Person a subquery, to put into a statement. Their arguments are SQL
// expressions that name, in that statement, an organization, a user and a day, for instance
// "$1", "r.user_id" and "$3". The day is today in the platform's zone.
//
// The conditions are scalar subqueries: for EXISTS the planner may read a whole table into a
// hash first, which costs more than a page of a list.
package scope

// Listed is true for those whose work the lists show on the day: active members of the
// student role, and everyone who has access by an enrollment and is not of the staff.
// Includes is the same rule in Go.
//
// An enrollment that begins counts from the moment at which that is stored with it
// (notified_status), and not from midnight: the same transaction gives the student's work new
// positions. Readers whose clock still has the day before have to see it, too.
func Listed(organization, user, day string) string {
	return `coalesce(
		(SELECT CASE WHEN m.role <> 'member' THEN false WHEN m.status = 'active' THEN true END
		 FROM members m WHERE m.organization_id = ` + organization + ` AND m.user_id = ` + user + `),
		` + enrolled(organization, user, ` AND e.state = 'running' AND e.grace_period_end >= `+day+`
			AND CASE WHEN e.notified_status IS NULL THEN e.start_date <= `+day+`
				ELSE e.notified_status <> 'pending' AND e.start_date <= `+day+`::date + 1 END`) + `, false)`
}

// Includes says whether lists show somebody's work: staff never, and of the others active
// members and those with an enrollment that counts, which for lists is one with access.
func Includes(staff, activeMember, enrolled bool) bool {
	return !staff && (activeMember || enrolled)
}

// HasAccess is true for those who can use one of their courses on the day.
func HasAccess(organization, user, day string) string {
	return `coalesce(` + enrolled(organization, user, ` AND `+onDay(day)) + `, false)`
}

// IsStudent is true for those who are or were students: in the student role, active or not,
// or no members and enrolled at any time. role is the expression of the person's role, NULL
// for who is no member: Role, or a column of members where the statement has joined it. The
// OR, unlike a coalesce, lets the planner expect that most people are students.
func IsStudent(role, organization, user string) string {
	return `(` + role + ` IS NOT NULL AND ` + role + ` = 'member'
		OR ` + role + ` IS NULL AND coalesce(` + enrolled(organization, user, "") + `, false))`
}

// Role is the person's role in the organization, NULL for who is no member.
func Role(organization, user string) string {
	return `(SELECT m.role FROM members m WHERE m.organization_id = ` + organization + ` AND m.user_id = ` + user + `)`
}

// NotStaff is true for all but staff. It is an EXISTS, for statements that count everybody.
func NotStaff(organization, user string) string {
	return `NOT EXISTS (SELECT FROM members m
		WHERE m.organization_id = ` + organization + ` AND m.user_id = ` + user + ` AND m.role <> 'member')`
}

// Person is the subquery of one person's email, first_name and last_name, the names as the organization
// calls the person (reference: students#names). With LATERAL it costs a row of two primary keys.
func Person(organization, user string) string {
	return `(SELECT account.email, coalesce(called.first_name, account.first_name) AS first_name,
			coalesce(called.last_name, account.last_name) AS last_name
		FROM accounts account
		LEFT JOIN directory called ON called.organization_id = ` + organization + ` AND called.user_id = account.id
		WHERE account.id = ` + user + ` LIMIT 1)`
}

// enrolled is true, or NULL, for who has an enrollment e for which the rest holds as well.
func enrolled(organization, user, rest string) string {
	return `(SELECT true FROM enrollments e
		WHERE e.organization_id = ` + organization + ` AND e.user_id = ` + user + rest + ` LIMIT 1)`
}

// onDay is true for enrollments e that give access on the day.
func onDay(day string) string {
	return `e.state = 'running' AND e.start_date <= ` + day + ` AND e.grace_period_end >= ` + day
}
