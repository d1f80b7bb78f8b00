package provision_test

import (
	"slices"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/flow/provision"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// row is one row of a table of docs/reference/provisioning.md, under the row's own name: what was before,
// the call, and what comes of it.
type row struct {
	name   string
	before func(d *fixture) // nil: nothing was before
	call   func(d *fixture) provision.Command
	status string
	action course.Action // of the only entry; "": there is none
	made   bool          // 201
	mail   provision.MailStatus
	typ    email.Type
	events []string
	check  func(t *testing.T, d *fixture, a provision.Answer)
}

const (
	success = "success"
	already = "already_provisioned"
	joined  = "student.joined"
	created = "enrollment.created"
	updated = "enrollment.updated"
)

func plain(courses ...string) func(*fixture) provision.Command {
	return func(*fixture) provision.Command { return ana(courses...) }
}

func enrolled(d *fixture) { d.student(ana("ielts")) }

// mailed is enrolled, with the welcome mail sent.
func mailed(d *fixture) {
	enrolled(d)
	d.Exec(`UPDATE emails SET status = 'sent', detail = ''`)
}

func extension(d *fixture) provision.Command {
	c := ana("ielts")
	c.ExtendAccess, c.ExternalRef, c.TenureMonths = true, "order 7", 2
	return c
}

func state(s string) func(*fixture) {
	return func(d *fixture) {
		mailed(d)
		d.Exec(`UPDATE enrollments SET state = $1, notified_status = $1`, s)
	}
}

// ended makes the enrollment one whose end date passed so many days ago.
func ended(days int, state, status string) func(*fixture) {
	return func(d *fixture) {
		mailed(d)
		d.Exec(`UPDATE enrollments SET state = $2, notified_status = $3, start_date = $1::date - 60, end_date = $1::date, grace_period_end = $1::date + 7`,
			today.AddDays(-days), state, status)
	}
}

func (d *fixture) batch(typ string) id.Course {
	d.t.Helper()
	c, err := course.Create(d.t.Context(), d.DB, audit.Platform, d.who.Organization.ID, course.Draft{Name: "Evening", Type: typ, OpenForEnrollment: true, StartDate: today}, now)
	if err != nil {
		d.t.Fatal(err)
	}
	return c.ID
}

func runRows(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			if r.before != nil {
				r.before(d)
			}
			d.events()
			a := d.student(r.call(d))
			r.compare(t, d, a)
		})
	}
}

func (r row) compare(t *testing.T, d *fixture, a provision.Answer) {
	t.Helper()
	var action course.Action
	if len(a.Enrollments) == 1 {
		action = a.Enrollments[0].Action
		e := a.Enrollments[0]
		check.Equal(t, "already_enrolled", e.AlreadyEnrolled, action == course.Unchanged || action == course.Skipped, "entry = %+v", e)
		check.Equal(t, "starter_tests_assigned is sent", e.StarterTestsAssigned != nil, !e.AlreadyEnrolled, "entry = %+v", e)
	}
	var typ email.Type
	if a.Email.Type != nil {
		typ = *a.Email.Type
	}
	if check.Equal(t, "a.Status", a.Status, r.status, "status %s, created %v, action %q, mail %s %q\nwant %s, %v, %q, %s %q", a.Status, a.CreatedUser, action, a.Email.Status, typ, r.status, r.made, r.action, r.mail, r.typ) &&
		check.Equal(t, "a.CreatedUser", a.CreatedUser, r.made, "status %s, created %v, action %q, mail %s %q\nwant %s, %v, %q, %s %q", a.Status, a.CreatedUser, action, a.Email.Status, typ, r.status, r.made, r.action, r.mail, r.typ) &&
		check.Equal(t, "action", action, r.action, "status %s, created %v, action %q, mail %s %q\nwant %s, %v, %q, %s %q", a.Status, a.CreatedUser, action, a.Email.Status, typ, r.status, r.made, r.action, r.mail, r.typ) &&
		check.Equal(t, "a.Email.Status", a.Email.Status, r.mail, "status %s, created %v, action %q, mail %s %q\nwant %s, %v, %q, %s %q", a.Status, a.CreatedUser, action, a.Email.Status, typ, r.status, r.made, r.action, r.mail, r.typ) {
		check.Equal(t, "typ", typ, r.typ, "status %s, created %v, action %q, mail %s %q\nwant %s, %v, %q, %s %q", a.Status, a.CreatedUser, action, a.Email.Status, typ, r.status, r.made, r.action, r.mail, r.typ)
	}
	if got := d.events(); !slices.Equal(got, r.events) {
		t.Errorf("events %q, want %q", got, r.events)
	}
	if r.check != nil {
		r.check(t, d, a)
	}
}

// Reference: provisioning#scenarios. Its last row is TestFaultsSaveNothing here and
// TestProvisioningErrors of package rest.
func TestScenarioTable(t *testing.T) {
	t.Parallel()
	runRows(t, []row{
		{name: "New email", call: plain("ielts"), status: success, action: course.Created, made: true, mail: "queued", typ: email.TypeWelcome,
			events: []string{joined, created}, check: func(t *testing.T, _ *fixture, a provision.Answer) {
				if check.True(t, "a.Membership.Created", a.Membership.Created, "%+v", a) {
					check.Equal(t, "the first enrollment's end date", a.Enrollments[0].EndDate, today.AddMonths(6), "%+v", a)
				}
			}},
		{name: "New email with username and password", call: func(*fixture) provision.Command {
			c := ana("ielts")
			c.Username, c.Password = "ana", password
			return c
		}, status: success, action: course.Created, made: true, mail: "queued", typ: email.TypeCredentials, events: []string{joined, created}},
		{name: "New email with generate", call: func(*fixture) provision.Command {
			c := ana("ielts")
			c.Mode = provision.ModeGenerate
			return c
		}, status: success, action: course.Created, made: true, mail: "queued", typ: email.TypeCredentials, events: []string{joined, created}},
		{name: "Existing account, new course", before: mailed, call: plain("toefl"), status: success, action: course.Created, mail: "queued",
			typ: email.TypeWelcome, events: []string{created}},
		{name: "Course type with no default course yet", before: func(d *fixture) { d.student(ana()) }, call: plain("sat"), status: success,
			action: course.Created, mail: "queued", typ: email.TypeWelcome, events: []string{created}, check: func(t *testing.T, d *fixture, a provision.Answer) {
				if n := d.Count(`courses WHERE is_default AND course_type = 'sat' AND id = $1`, a.Enrollments[0].CourseID); check.Equal(t, "n", n, 1, "%+v", a.Enrollments[0]) {
					check.True(t, "the course is a default", a.Enrollments[0].IsDefaultCourse, "%+v", a.Enrollments[0])
				}
			}},
		{name: "Student already in a course of that type", before: func(d *fixture) {
			c := ana()
			c.CourseIDs = []id.Course{d.batch("gre")}
			d.student(c)
			d.Exec(`UPDATE emails SET status = 'sent', detail = ''`)
		}, call: plain("gre"), status: already, action: course.Unchanged, mail: "not_needed", check: func(t *testing.T, _ *fixture, a provision.Answer) {
			if a.Enrollments[0].CourseName != "Evening" {
				t.Errorf("%+v", a.Enrollments[0])
			}
		}},
		{name: "Running course, same call repeated", before: mailed, call: plain("ielts"), status: already, action: course.Unchanged, mail: "not_needed"},
		{name: "Running course, extend_access, new external_ref", before: mailed, call: extension, status: success, action: course.Extended,
			mail: "queued", typ: email.TypeWelcome, events: []string{updated}, check: func(t *testing.T, _ *fixture, a provision.Answer) {
				if a.Enrollments[0].EndDate != today.AddMonths(6).AddMonths(2) {
					t.Errorf("%+v", a.Enrollments[0])
				}
			}},
		{name: "Same extension repeated", before: func(d *fixture) {
			enrolled(d)
			d.student(extension(d))
			d.Exec(`UPDATE emails SET status = 'sent', detail = ''`)
		}, call: extension, status: already, action: course.Unchanged, mail: "not_needed", check: func(t *testing.T, _ *fixture, a provision.Answer) {
			if check.Equal(t, "the first enrollment's note", a.Enrollments[0].Note, course.NoteAlreadyExtended, "%+v", a.Enrollments[0]) {
				check.Equal(t, "the first enrollment's end date", a.Enrollments[0].EndDate, today.AddMonths(8), "%+v", a.Enrollments[0])
			}
		}},
		{name: "End date passed", before: ended(30, "running", "expired"), call: plain("ielts"), status: success, action: course.Reactivated, mail: "queued",
			typ: email.TypeWelcome, events: []string{updated}, check: func(t *testing.T, d *fixture, a provision.Answer) {
				if e := a.Enrollments[0]; check.Equal(t, "e.StartDate", e.StartDate, today, "%+v", e) &&
					check.Equal(t, "e.EndDate", e.EndDate, today.AddMonths(6), "%+v", e) {
					check.Equal(t, "number of enrollments", d.Count(`enrollments`), 1, "%+v", e)
				}
			}},
		{name: "Suspended in that course", before: state("suspended"), call: plain("ielts"), status: already, action: course.Skipped, mail: "not_needed",
			check: func(t *testing.T, _ *fixture, a provision.Answer) {
				if e := a.Enrollments[0]; check.Equal(t, "e.SkippedReason", e.SkippedReason, "suspended", "%+v, warnings %q", e, a.Warnings) &&
					check.Equal(t, "e.Status", e.Status, course.EnrollmentSuspended, "%+v, warnings %q", e, a.Warnings) {
					check.Equal(t, "number of warnings", len(a.Warnings), 1, "%+v, warnings %q", e, a.Warnings)
				}
			}},
		{name: "Welcome email failed last time", before: func(d *fixture) {
			enrolled(d)
			d.Exec(`UPDATE emails SET status = 'failed', detail = 'refused'`)
		}, call: plain(), status: already, mail: "queued", typ: email.TypeWelcome},
		{name: "Inactive member re-granted a course", before: func(d *fixture) {
			ended(30, "running", "expired")(d)
			d.Exec(`UPDATE members SET status = 'inactive'`)
		}, call: plain("ielts"), status: success, action: course.Reactivated, mail: "queued", typ: email.TypeWelcome, events: []string{joined, updated},
			check: func(t *testing.T, _ *fixture, a provision.Answer) {
				if check.True(t, "a.Membership.Reactivated", a.Membership.Reactivated, "%+v", a.Membership) {
					check.Equal(t, "a.Membership.Status", a.Membership.Status, org.MemberActive, "%+v", a.Membership)
				}
			}},
		{name: "No course named", call: plain(), status: success, made: true, mail: "queued", typ: email.TypeWelcome, events: []string{joined}},
		{name: "No course named, existing account", before: mailed, call: plain(), status: already, mail: "not_needed"},
	})
}

// Reference: provisioning#enrollment-moves. The rule itself is
// course.Plan, whose table has the same rows.
func TestEnrollmentMovesTable(t *testing.T) {
	t.Parallel()
	again := func(name, from, status string, days int) row {
		return row{name: name, before: ended(days, from, status), call: plain("ielts"), status: success, action: course.Reactivated, mail: "queued",
			typ: email.TypeWelcome, events: []string{updated}, check: func(t *testing.T, d *fixture, a provision.Answer) {
				if check.Equal(t, "the first enrollment's start date", a.Enrollments[0].StartDate, today, "%+v", a.Enrollments[0]) &&
					check.Equal(t, "the first enrollment's status", a.Enrollments[0].Status, course.EnrollmentActive, "%+v", a.Enrollments[0]) {
					check.Equal(t, "number of enrollments", d.Count(`enrollments`), 1, "%+v", a.Enrollments[0])
				}
			}}
	}
	runRows(t, []row{
		{name: "no enrollment: the call names the type", call: plain("ielts"), status: success, action: course.Created, made: true, mail: "queued",
			typ: email.TypeWelcome, events: []string{joined, created}},
		{name: "no enrollment: the call names a course id", call: func(d *fixture) provision.Command {
			c := ana()
			c.CourseIDs = []id.Course{d.batch("gre")}
			return c
		}, status: success, action: course.Created, made: true, mail: "queued", typ: email.TypeWelcome, events: []string{joined, created}},
		{name: "running: same call repeated", before: mailed, call: plain("ielts"), status: already, action: course.Unchanged, mail: "not_needed"},
		{name: "running: extend_access with a new external_ref", before: mailed, call: extension, status: success, action: course.Extended, mail: "queued",
			typ: email.TypeWelcome, events: []string{updated}},
		{name: "running: extend_access with a used external_ref", before: func(d *fixture) {
			enrolled(d)
			d.student(extension(d))
			d.Exec(`UPDATE emails SET status = 'sent', detail = ''`)
		}, call: extension, status: already, action: course.Unchanged, mail: "not_needed"},
		again("grace_period: the call names the course", "running", "grace_period", 1),
		again("expired: the call names the course", "running", "expired", 8),
		again("dropped, end date passed: the call names the course", "dropped", "dropped", 1),
		again("completed, end date passed: the call names the course", "completed", "completed", 1),
		{name: "dropped, end date not passed: left alone", before: state("dropped"), call: plain("ielts"), status: already, action: course.Unchanged, mail: "not_needed",
			check: func(t *testing.T, _ *fixture, a provision.Answer) {
				if check.Equal(t, "number of warnings", len(a.Warnings), 1, "warnings %q", a.Warnings) {
					check.Contains(t, "the first warning", a.Warnings[0], "dropped", "warnings %q", a.Warnings)
				}
			}},
		{name: "suspended: the call names the course", before: state("suspended"), call: plain("ielts"), status: already, action: course.Skipped, mail: "not_needed"},
	})
}

// Reference: students#membership. The rows of roster imports are in package rosterimport:
// TestLeaversBecomeInactiveAndComeBackOnTheSameAccount.
func TestMembershipTable(t *testing.T) {
	t.Parallel()
	inactive := func(d *fixture) {
		mailed(d)
		d.Exec(`UPDATE members SET status = 'inactive'`)
	}
	want := func(status org.MemberStatus, created, reactivated bool) func(*testing.T, *fixture, provision.Answer) {
		return func(t *testing.T, _ *fixture, a provision.Answer) {
			if m := a.Membership; check.Equal(t, "m.Status", m.Status, status, "%+v", m) &&
				check.Equal(t, "m.Created", m.Created, created, "%+v", m) &&
				check.Equal(t, "m.Reactivated", m.Reactivated, reactivated, "%+v", m) {
				check.Equal(t, "m.Role", m.Role, org.RoleMember, "%+v", m)
			}
		}
	}
	runRows(t, []row{
		{name: "no membership: provisioning", call: plain(), status: success, made: true, mail: "queued", typ: email.TypeWelcome, events: []string{joined},
			check: want(org.MemberActive, true, false)},
		{name: "active: provisioning", before: mailed, call: plain("ielts"), status: already, action: course.Unchanged, mail: "not_needed",
			check: want(org.MemberActive, false, false)},
		{name: "inactive: provisioning grants a course", before: inactive, call: plain("toefl"), status: success, action: course.Created, mail: "queued",
			typ: email.TypeWelcome, events: []string{created}, check: want(org.MemberActive, false, true)}, // a current enrollment kept them a student
		{name: "inactive: no course named", before: inactive, call: plain(), status: already, mail: "not_needed", check: want(org.MemberInactive, false, false)},
		{name: "inactive: only a suspended course named", before: func(d *fixture) {
			state("suspended")(d)
			d.Exec(`UPDATE members SET status = 'inactive'`)
		}, call: plain("ielts"), status: already, action: course.Skipped, mail: "not_needed", check: want(org.MemberInactive, false, false)},
	})
}
