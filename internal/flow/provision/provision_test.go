package provision_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/flow/provision"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/seal/sealtest"
)

var (
	now   = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	today = clock.DateIn(now, time.UTC)
)

// fixture is a service with one organization that has an endpoint for all events.
type fixture struct {
	*provision.Service
	*flowtest.Fixture
	t   testing.TB
	who org.Principal
}

func open(t testing.TB) *fixture {
	t.Helper()
	return openOn(t, pgtest.New(t))
}

func openOn(t testing.TB, db *pg.DB) *fixture {
	t.Helper()
	box := sealtest.New(t)
	mail, at, base := email.Service{Box: box}, clock.At(now), "https://learn.test"
	d := &fixture{t: t, Fixture: flowtest.On(t, db), Service: &provision.Service{DB: db, Mail: mail, Clock: at, Zone: time.UTC, PublicURL: base,
		Plans: &testplan.Service{DB: db, Mail: mail, Clock: at, Zone: time.UTC, PublicURL: base}}}
	d.who = d.organization("north")
	return d
}

func (d *fixture) organization(slug string) org.Principal {
	d.t.Helper()
	made := d.Fixture.Organization(slug).Set("name", "North Institute").Set("default_access_months", 6)
	o, err := org.Find(d.t.Context(), d.DB, slug)
	check.NoError(check.Now(d.t), err, "%+v, %v", o, err)
	check.Equal(check.Now(d.t), "o.ID", o.ID, made.ID, "%+v, %v", o, err)
	d.Of(o.ID).Endpoint()
	return org.Principal{Organization: o, Key: org.Key{ID: 1, Access: org.Full}}
}

func (d *fixture) student(c provision.Command) provision.Answer {
	d.t.Helper()
	a, err := d.Student(d.t.Context(), d.who, c)
	if err != nil {
		d.t.Fatal(err)
	}
	return a
}

// refused checks the faults of a call, as "field code" in their order.
func (d *fixture) refused(c provision.Command, want string) {
	d.t.Helper()
	_, err := d.Student(d.t.Context(), d.who, c)
	var f *fault.Error
	if !errors.As(err, &f) {
		d.t.Errorf("%s: %v", want, err)
		return
	}
	var got []string
	for _, e := range f.All() {
		got = append(got, e.Field+" "+e.Code)
	}
	if strings.Join(got, ", ") != want {
		d.t.Errorf("faults %q, want %q", got, want)
	}
}

// events are the recorded events since the last call, as "type user".
func (d *fixture) events() []string {
	d.t.Helper()
	rows, err := d.DB.Query(d.t.Context(), `
		WITH gone AS (DELETE FROM webhook_events RETURNING id, type) SELECT type FROM gone ORDER BY id`)
	if err != nil {
		d.t.Fatal(err)
	}
	defer rows.Close()
	var types []string
	for rows.Next() {
		var typ string
		if err := rows.Scan(&typ); err != nil {
			d.t.Fatal(err)
		}
		types = append(types, typ)
	}
	return types
}

func ana(courses ...string) provision.Command {
	return provision.Command{Email: " Ana@Institute.ORG ", FirstName: "Ana", LastName: "Lopez", Courses: courses}
}

func TestNewEmail(t *testing.T) {
	t.Parallel()
	d := open(t)
	a := d.student(ana("ielts"))
	check.Equal(check.Now(t), "a.Status", a.Status, "success", "answer = %+v", a)
	check.True(check.Now(t), "a.CreatedUser", a.CreatedUser, "answer = %+v", a)
	check.True(check.Now(t), "a.Membership.Created", a.Membership.Created, "answer = %+v", a)
	check.Equal(check.Now(t), "a.Membership.Role", a.Membership.Role, org.RoleMember, "answer = %+v", a)
	check.Equal(check.Now(t), "a.Membership.Status", a.Membership.Status, org.MemberActive, "answer = %+v", a)
	e := a.Enrollments[0]
	check.Equal(check.Now(t), "number of enrollments", len(a.Enrollments), 1, "entry = %+v", e)
	check.Equal(check.Now(t), "e.Action", e.Action, course.Created, "entry = %+v", e)
	check.False(check.Now(t), "e.AlreadyEnrolled", e.AlreadyEnrolled, "entry = %+v", e)
	check.Equal(check.Now(t), "*e.StarterTestsAssigned", *e.StarterTestsAssigned, 0, "entry = %+v", e)
	check.True(check.Now(t), "e.HasAccess", e.HasAccess, "entry = %+v", e)
	check.True(check.Now(t), "e.IsDefaultCourse", e.IsDefaultCourse, "entry = %+v", e)
	check.Equal(check.Now(t), "e.Status", e.Status, course.EnrollmentActive, "entry = %+v", e)
	check.Equal(check.Now(t), "e.StartDate", e.StartDate, today, "entry = %+v", e)
	check.Equal(check.Now(t), "e.EndDate", e.EndDate, today.AddMonths(6), "entry = %+v", e)
	check.Equal(check.Now(t), "e.GracePeriodEnd", e.GracePeriodEnd, e.EndDate.AddDays(7), "entry = %+v", e)
	check.Equal(check.Now(t), "a.Email.Status", a.Email.Status, "queued", "email = %+v, warnings %q", a.Email, a.Warnings)
	check.Equal(check.Now(t), "*a.Email.Type", *a.Email.Type, email.TypeWelcome, "email = %+v, warnings %q", a.Email, a.Warnings)
	check.True(check.Now(t), "a.WelcomeEmailSent", a.WelcomeEmailSent, "email = %+v, warnings %q", a.Email, a.Warnings)
	check.Equal(check.Now(t), "number of warnings", len(a.Warnings), 0, "email = %+v, warnings %q", a.Email, a.Warnings)
	if c := a.Credentials; check.Equal(check.Now(t), "c.Username", c.Username, "ana@institute.org", "credentials = %+v", c) &&
		check.True(check.Now(t), "there is no password", c.Password == nil, "credentials = %+v", c) &&
		check.Equal(check.Now(t), "c.Note", c.Note, "", "credentials = %+v", c) {
		check.Equal(check.Now(t), "a.LoginURL", a.LoginURL, "https://learn.test/sign-in/", "credentials = %+v", c)
	}
	if !time.Time(*a.SetPasswordExpires).Equal(now.AddDate(0, 0, 3)) {
		t.Fatalf("expires %v", a.SetPasswordExpires)
	}
	token := strings.TrimPrefix(*a.SetPasswordURL, "https://learn.test/set-password/")
	if got, _, err := student.FindLink(t.Context(), d.DB, token, now); check.NoError(check.Now(t), err, "the link leads to %+v, %v", got, err) {
		check.Equal(check.Now(t), "got.ID", got.ID, a.UserID, "the link leads to %+v, %v", got, err)
	}
	if got := d.events(); !slices.Equal(got, []string{"student.joined", "enrollment.created"}) {
		t.Fatalf("events %q", got)
	}
}

// Reference: webhooks#events.
func TestEventsCarryTheirData(t *testing.T) {
	t.Parallel()
	d := open(t)
	a := d.student(ana("ielts"))
	var joined, created string
	err := d.DB.QueryRow(t.Context(), `
		SELECT (SELECT data::text FROM webhook_events WHERE type = 'student.joined'),
		       (SELECT data::text FROM webhook_events WHERE type = 'enrollment.created')`).Scan(&joined, &created)
	if err != nil {
		t.Fatal(err)
	}
	e := a.Enrollments[0]
	place := map[string]any{"enrollment_id": float64(e.EnrollmentID), "course_id": float64(e.CourseID), "course_name": "IELTS Academic",
		"course_type": "ielts", "status": "active", "start_date": "2026-11-21", "end_date": "2027-05-21", "grace_period_end": "2027-05-28", "has_access": true}
	person := map[string]any{"user_id": float64(a.UserID), "email": "ana@institute.org", "first_name": "Ana", "last_name": "Lopez"}
	sameJSON(t, created, map[string]any{"student": person, "enrollment": place})
	entry := map[string]any{"course_type_display": "IELTS Academic", "is_default_course": true}
	for k, v := range place {
		entry[k] = v
	}
	whole := map[string]any{"has_set_password": false, "last_login": nil, "joined_at": "2026-11-21T10:00:00+00:00",
		"membership": map[string]any{"role": "member", "status": "active"}, "enrollments": []any{entry}}
	for k, v := range person {
		whole[k] = v
	}
	sameJSON(t, joined, whole)
}

func sameJSON(t *testing.T, got string, want any) {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(got), &v); err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(v)
	b, _ := json.Marshal(want)
	if string(a) != string(b) {
		t.Errorf("got  %s\nwant %s", a, b)
	}
}

func TestTheSameCallAgainChangesNothing(t *testing.T) {
	t.Parallel()
	d := open(t)
	first := d.student(ana("ielts"))
	d.events()
	again := d.student(ana("IELTS Academic"))
	check.Equal(check.Now(t), "again.Status", again.Status, "already_provisioned", "answer = %+v", again)
	check.False(check.Now(t), "again.CreatedUser", again.CreatedUser, "answer = %+v", again)
	check.False(check.Now(t), "again.Membership.Created", again.Membership.Created, "answer = %+v", again)
	check.Equal(check.Now(t), "again.UserID", again.UserID, first.UserID, "answer = %+v", again)
	e := again.Enrollments[0]
	check.Equal(check.Now(t), "e.Action", e.Action, course.Unchanged, "entry = %+v", e)
	check.True(check.Now(t), "e.AlreadyEnrolled", e.AlreadyEnrolled, "entry = %+v", e)
	check.True(check.Now(t), "there is no number of starter tests", e.StarterTestsAssigned == nil, "entry = %+v", e)
	check.Equal(check.Now(t), "e.Enrollment", e.Enrollment, first.Enrollments[0].Enrollment, "entry = %+v", e)
	check.True(check.Now(t), "there is a link for the password", again.SetPasswordURL != nil, "answer = %+v", again)
	check.True(check.Now(t), "the link is another", *again.SetPasswordURL != *first.SetPasswordURL, "answer = %+v", again)
	check.True(check.Now(t), "there is a note", again.Credentials.Note != "", "answer = %+v", again)
	check.Equal(check.Now(t), "number of warnings", len(again.Warnings), 0, "answer = %+v", again)
	if again.Email.Status != "queued" { // what became of the first mail, so far
		t.Fatalf("email = %+v", again.Email)
	}
	if got := d.events(); len(got) != 0 {
		t.Fatalf("events %q", got)
	}
	if n := d.Count(`emails`); n != 1 {
		t.Fatalf("%d mails", n)
	}
	d.Exec(`UPDATE emails SET status = 'sent', detail = ''`)
	if got := d.student(ana("ielts")).Email; check.Equal(check.Now(t), "got.Status", got.Status, provision.MailNotNeeded, "email = %+v", got) &&
		check.True(check.Now(t), "there is no type", got.Type == nil, "email = %+v", got) {
		check.True(check.Now(t), "there is no detail", got.Detail == nil, "email = %+v", got)
	}
	d.Exec(`UPDATE emails SET status = 'failed', detail = 'refused'`)
	if got := d.student(ana("ielts")); check.Equal(check.Now(t), "got.Status", got.Status, "already_provisioned", "a failed mail is not sent again: %+v", got) {
		check.Equal(check.Now(t), "got.Email.Status", got.Email.Status, "queued", "a failed mail is not sent again: %+v", got)
	}
}

func TestExistingAccountNewCourse(t *testing.T) {
	t.Parallel()
	d := open(t)
	first := d.student(ana("ielts"))
	d.events()
	batch, err := course.Create(t.Context(), d.DB, audit.Platform, d.who.Organization.ID,
		course.Draft{Name: "Evening", Type: "toefl", OpenForEnrollment: true, StartDate: today}, now)
	if err != nil {
		t.Fatal(err)
	}
	c := ana()
	c.CourseIDs, c.TenureMonths, c.FirstName = []id.Course{batch.ID}, 2, "Anna"
	a := d.student(c)
	check.Equal(check.Now(t), "a.Status", a.Status, "success", "answer = %+v", a)
	check.False(check.Now(t), "a.CreatedUser", a.CreatedUser, "answer = %+v", a)
	check.Equal(check.Now(t), "a.UserID", a.UserID, first.UserID, "answer = %+v", a)
	check.False(check.Now(t), "a.Membership.Created", a.Membership.Created, "answer = %+v", a)
	check.Equal(check.Now(t), "the first enrollment's course", a.Enrollments[0].CourseID, batch.ID, "answer = %+v", a)
	check.Equal(check.Now(t), "the first enrollment's end date", a.Enrollments[0].EndDate, today.AddMonths(2), "answer = %+v", a)
	check.Equal(check.Now(t), "number of warnings", len(a.Warnings), 1, "warnings = %q", a.Warnings)
	check.True(check.Now(t), "the warning begins with its field", strings.HasPrefix(a.Warnings[0], "first_name: "), "warnings = %q", a.Warnings)
	if got := d.events(); !slices.Equal(got, []string{"enrollment.created"}) {
		t.Fatalf("events %q", got)
	}
}

func TestAnAccountFromElsewhereKeepsItsSignIn(t *testing.T) {
	t.Parallel()
	d := open(t)
	first := d.student(ana())
	d.events()
	d.who = d.organization("south")
	a := d.student(ana("ielts"))
	check.False(check.Now(t), "a.CreatedUser", a.CreatedUser, "answer = %+v", a)
	check.True(check.Now(t), "a.Membership.Created", a.Membership.Created, "answer = %+v", a)
	check.Equal(check.Now(t), "a.UserID", a.UserID, first.UserID, "answer = %+v", a)
	check.True(check.Now(t), "there is no link for the password", a.SetPasswordURL == nil, "answer = %+v", a)
	check.True(check.Now(t), "there is no end of a link", a.SetPasswordExpires == nil, "answer = %+v", a)
	check.True(check.Now(t), "there is a note", a.Credentials.Note != "", "answer = %+v", a)
	if *a.Email.Type != email.TypeAccessUpdate {
		t.Fatalf("email = %+v", a.Email)
	}
	if got := d.events(); !slices.Equal(got, []string{"student.joined", "enrollment.created"}) {
		t.Fatalf("events %q", got)
	}
}

// Staff pages need the mailbox, so what a key gives to staff opens what the organization's students
// see.
func TestAKeyGivesStaffNoMoreThanStudents(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"north", "south"} { // the organization that made the account, and another one
		for _, role := range []org.Role{org.RoleOwner, org.RoleAdmin, org.RoleExaminer, org.RoleTeacher} {
			t.Run(at+" "+string(role), func(t *testing.T) {
				t.Parallel()
				d := open(t)
				made := d.student(ana())
				in := d.who.Organization.ID
				if at == "south" {
					in = d.organization(at).Organization.ID
				}
				d.Exec(`INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
					VALUES ($1, $2, $3, 'active', 'staff', now(), now()) ON CONFLICT (organization_id, user_id) DO UPDATE SET role = $3`, in, made.UserID, role)
				want := student.ByOrganization(d.who.Organization.ID)
				check.Equal(t, "the link from before", d.proof(token(made)), want, "")
				c := ana("ielts")
				c.Password = password
				check.Equal(t, "a link from now", d.proof(token(d.student(c))), want, "")
				check.Equal(t, "the password", d.signIn(password), want, "")
			})
		}
	}
}

func resent(c provision.Command) provision.Command {
	c.ResendEmail = true
	return c
}

func token(a provision.Answer) string {
	_, token, _ := strings.Cut(*a.SetPasswordURL, "/set-password/")
	return token
}

func TestNoCourseNamed(t *testing.T) {
	t.Parallel()
	d := open(t)
	no := false
	c := ana()
	c.SendEmail = &no
	a := d.student(c)
	check.True(check.Now(t), "a.CreatedUser", a.CreatedUser, "answer = %+v", a)
	check.True(check.Now(t), "there is a list of enrollments", a.Enrollments != nil, "answer = %+v", a)
	check.Equal(check.Now(t), "number of enrollments", len(a.Enrollments), 0, "answer = %+v", a)
	check.Equal(check.Now(t), "a.Email.Status", a.Email.Status, provision.MailNotRequested, "answer = %+v", a)
	check.True(check.Now(t), "there is no type", a.Email.Type == nil, "answer = %+v", a)
	check.False(check.Now(t), "a.WelcomeEmailSent", a.WelcomeEmailSent, "answer = %+v", a)
	if got := d.events(); !slices.Equal(got, []string{"student.joined"}) {
		t.Fatalf("events %q", got)
	}
	d.Exec(`UPDATE members SET status = 'inactive'`)
	if a := d.student(c); check.Equal(check.Now(t), "a.Status", a.Status, "already_provisioned", "an inactive member with no course named: %+v", a) &&
		check.Equal(check.Now(t), "a.Membership.Status", a.Membership.Status, org.MemberInactive, "an inactive member with no course named: %+v", a) {
		check.Equal(check.Now(t), "number of warnings", len(a.Warnings), 1, "an inactive member with no course named: %+v", a)
	}
	c.Courses = []string{"sat"}
	if a := d.student(c); check.Equal(check.Now(t), "a.Status", a.Status, "success", "an inactive member with a course: %+v", a) &&
		check.True(check.Now(t), "a.Membership.Reactivated", a.Membership.Reactivated, "an inactive member with a course: %+v", a) {
		check.Equal(check.Now(t), "a.Membership.Status", a.Membership.Status, org.MemberActive, "an inactive member with a course: %+v", a)
	}
	if got := d.events(); !slices.Equal(got, []string{"student.joined", "enrollment.created"}) {
		t.Fatalf("events %q", got)
	}
}

func TestSuppressedAddressesAreNotMailed(t *testing.T) {
	t.Parallel()
	d := open(t)
	c := ana("ielts")
	c.Email = "ana@example.com"
	for range 2 {
		if a := d.student(c); check.Equal(check.Now(t), "a.Email.Status", a.Email.Status, "suppressed", "email = %+v", a.Email) &&
			check.True(check.Now(t), "there is a detail", a.Email.Detail != nil, "email = %+v", a.Email) {
			check.False(check.Now(t), "a.WelcomeEmailSent", a.WelcomeEmailSent, "email = %+v", a.Email)
		}
	}
}

// Reference: provisioning#rules.
func TestFaultsSaveNothing(t *testing.T) {
	t.Parallel()
	d := open(t)
	bad := func(change func(*provision.Command)) provision.Command {
		c := ana("ielts")
		change(&c)
		return c
	}
	for want, c := range map[string]provision.Command{
		"email missing":               bad(func(c *provision.Command) { c.Email = "" }),
		"email invalid_email":         bad(func(c *provision.Command) { c.Email = "ana" }),
		"first_name missing":          bad(func(c *provision.Command) { c.FirstName = "" }),
		"first_name too_long":         bad(func(c *provision.Command) { c.FirstName = strings.Repeat("ä", 151) }),
		"last_name invalid":           bad(func(c *provision.Command) { c.LastName = "Lo\npez" }),
		"external_ref missing":        bad(func(c *provision.Command) { c.ExtendAccess = true }),
		"external_ref too_long":       bad(func(c *provision.Command) { c.ExternalRef = strings.Repeat("7", 256) }),
		"tenure_months out_of_range":  bad(func(c *provision.Command) { c.TenureMonths = 121 }),
		"courses unknown_course_type": bad(func(c *provision.Command) { c.Courses = []string{"latin"} }),
		"course_ids unknown_course":   bad(func(c *provision.Command) { c.CourseIDs = []id.Course{99} }),
		"last_name too_long, courses unknown_course_type, course_ids unknown_course": bad(func(c *provision.Command) {
			c.LastName, c.Courses, c.CourseIDs = strings.Repeat("x", 151), []string{"latin", "sat"}, []id.Course{98}
		}),
	} {
		d.refused(c, want)
	}
	d.who.Organization.LanguageTestsEnabled = false
	if _, err := d.Student(t.Context(), d.who, ana()); fault.KindOf(err) != fault.Forbidden {
		t.Errorf("language tests are off: %v", err)
	}
	d.who.Organization.LanguageTestsEnabled, d.who.Key.Access = true, org.ReadOnly
	if _, err := d.Student(t.Context(), d.who, ana()); fault.KindOf(err) != fault.Forbidden {
		t.Errorf("read-only key: %v", err)
	}
	if n := d.Count(`accounts`) + d.Count(`courses`) + d.Count(`emails`); n != 0 {
		t.Errorf("%d rows were saved", n)
	}
}

// Reference: provisioning#rules.
func TestConcurrentCallsForOneEmail(t *testing.T) {
	t.Parallel()
	d := open(t)
	const calls = 200
	answers := make([]provision.Answer, calls)
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			var err error
			if answers[i], err = d.Student(t.Context(), d.who, ana("ielts", "toefl")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	created := 0
	for _, a := range answers {
		if a.CreatedUser {
			created++
		}
		if check.Equal(t, "a.UserID", a.UserID, answers[0].UserID, "answer = %+v", a) &&
			check.Equal(t, "number of enrollments", len(a.Enrollments), 2, "answer = %+v", a) {
			check.Equal(t, "the first enrollment's id", a.Enrollments[0].EnrollmentID, answers[0].Enrollments[0].EnrollmentID, "answer = %+v", a)
		}
	}
	if created != 1 {
		t.Errorf("%d calls created the account", created)
	}
	for table, want := range map[string]int{"accounts": 1, "members": 1, "courses": 2, "enrollments": 2, "emails": 1, "outbox_tasks": 1,
		"webhook_events": 3, "webhook_queue": 3, "set_password_tokens": calls + 1} { // one link an answer, and that of the mail
		if got := d.Count(`` + table); got != want {
			t.Errorf("%d rows in %s, want %d", got, table, want)
		}
	}
}

// The events of a call that also gives a plan's first test are sent in the order of their sequence, the student first.
// Reference: webhooks#order.
func TestThePlansFirstTestComesAfterTheStudent(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.Paper("mock", "ielts")
	target, err := decimal.Parse("7")
	check.NoError(check.Now(t), err, "7")
	yes, zone := true, "Asia/Kolkata"
	call := ana("ielts")
	call.Plan = &plan.Request{TargetScore: &target, TestPlan: &yes, TimeZone: &zone}
	d.student(call)
	for what, by := range map[string]string{"sequence": "v.sequence", "delivery": "q.id"} {
		var got []string
		d.Scan(&got, `SELECT array_agg(v.type ORDER BY `+by+`) FROM webhook_events v JOIN webhook_queue q ON q.event_id = v.id`)
		check.Slices(t, "the events", got, []string{"student.joined", "enrollment.created", "assignment.created"}, "by %s", what)
	}
}
