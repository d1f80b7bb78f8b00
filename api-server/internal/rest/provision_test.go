package rest_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/server"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

const provisionPath = "provision/student/"

// Reference: conventions#answers, provisioning#response.
func TestProvisionANewStudentTwice(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	body := `{"email": "Ana@Institute.org", "first_name": "Ana", "last_name": "Lopez", "courses": ["ielts"]}`
	north.Full.Post(t, provisionPath, body).Want(t, 201).Golden(t, "provisioned")
	north.Full.Post(t, provisionPath, body).Want(t, 200).Golden(t, "provisioned-again")
	counts := north.Full.Get(t, "organization/").Object(t)["counts"].(map[string]any)
	if check.Equal(t, "students_with_access", counts["students_with_access"], 1.0, "counts = %v", counts) {
		check.Equal(t, "courses", counts["courses"], 1.0, "counts = %v", counts)
	}
}

// Reference: conventions#requests, provisioning#request.
func TestProvisionTakesTheLooseForms(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	var made struct{ ID int }
	e.Platform.Post(t, "organizations/north/courses", `{"name": "Evening", "course_type": "gre"}`).Want(t, 201).Into(t, &made)
	for i, body := range []string{
		`"courses": "IELTS Academic, toefl", "course_ids": %d, "tenure_months": "2"`,
		`"courses": ["ielts", "TOEFL", "ielts"], "course_ids": "%d", "tenure_months": 2.0`,
		`"courses": "toefl,ielts", "course_ids": [%d], "tenure_months": 2, "unknown": {}, "source": "crm", "password_mode": "invite"`,
		`"courses": ["ielts", "toefl"], "course_ids": ["%d"], "tenure_months": "2.0", "external_ref": 7, "extend_access": "no", "send_welcome_email": "Yes", "resend_welcome_email": 0`,
	} {
		body = fmt.Sprintf(`{"email": "s%d@institute.org", "first_name": "Ana", "last_name": null, `+body+`}`, i, made.ID)
		var got struct {
			Enrollments []struct {
				EndDate string `json:"end_date"`
			}
		}
		north.Full.Post(t, provisionPath, body).Want(t, 201).Into(t, &got)
		if check.Equal(t, "number of enrollments", len(got.Enrollments), 3, "%s\ngot %+v", body, got) {
			check.Equal(t, "the third enrollment's end date", got.Enrollments[2].EndDate, "2027-01-21", "%s\ngot %+v", body, got)
		}
	}
}

// An order's number is one order however it is written; another text is another order.
// Reference: provisioning#request.
func TestAnExternalRefIsOneHoweverItsNumberIsWritten(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	extend := func(ref string) string {
		var got struct {
			Enrollments []struct{ Action string }
		}
		a := north.Full.Post(t, provisionPath, `{"email": "ana@institute.org", "first_name": "Ana", "courses": "ielts", "extend_access": true, "tenure_months": 1, "external_ref": `+ref+`}`)
		a.Into(t, &got)
		return got.Enrollments[0].Action
	}
	if got := extend(`1042`); got != "created" {
		t.Fatal(got)
	}
	for ref, want := range map[string]string{`"1042"`: "unchanged", `1042.0`: "unchanged", `1.042e3`: "unchanged", `10420e-1`: "unchanged",
		`1042.5`: "extended", `9007199254740993`: "extended", `"1042.0"`: "extended"} {
		if got := extend(ref); got != want {
			t.Errorf("%s: %s, want %s", ref, got, want)
		}
	}
	if got := extend(`9007199254740992.0`); got != "extended" { // which a float takes for the other one
		t.Error(got)
	}
}

// Reference: provisioning#refusals. Each row has its name here; the conditions of
// target_score_plan have theirs in package testplan.
// Reference: limits#fields.
func TestProvisioningErrors(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north, south := e.Organization(t, "north"), e.Organization(t, "south")
	course := func(slug, body string) (made struct{ ID int }) {
		e.Platform.Post(t, "organizations/"+slug+"/courses", body).Want(t, 201).Into(t, &made)
		return made
	}
	closed := course("north", `{"name": "Closed", "course_type": "gre", "open_for_enrolment": false}`)
	foreign := course("south", `{"name": "Evening", "course_type": "gre"}`)
	south.Full.Post(t, provisionPath, `{"email": "eve@institute.org", "first_name": "Eve", "username": "taken"}`).Want(t, 201)
	ana := `{"email": "ana@institute.org", "first_name": "Ana", `
	for _, c := range []struct{ row, body, code, field string }{
		{"invalid JSON", `{"email"`, "invalid_json", ""},
		{"invalid JSON", `[]`, "not_an_object", ""},
		{"any field fails validation", `{"first_name": "Ana"}`, "missing", "email"},
		{"any field fails validation", `{"email": "ana", "first_name": "Ana"}`, "invalid_email", "email"},
		{"any field fails validation", `{"email": ["ana@institute.org"], "first_name": "Ana"}`, "wrong_type", "email"},
		{"any field fails validation", `{"email": "ana@institute.org", "first_name": " "}`, "missing", "first_name"},
		{"any field fails validation", `{"email": "ana@institute.org", "first_name": "` + strings.Repeat("x", 151) + `"}`, "too_long", "first_name"},
		{"any field fails validation", ana + `"last_name": "` + strings.Repeat("x", 151) + `"}`, "too_long", "last_name"},
		{"any field fails validation", ana + `"external_ref": "` + strings.Repeat("x", 256) + `"}`, "too_long", "external_ref"},
		{"any field fails validation", ana + `"extend_access": "perhaps"}`, "not_a_boolean", "extend_access"},
		{"any field fails validation", ana + `"courses": {"ielts": true}}`, "wrong_type", "courses"},
		{"any field fails validation", ana + `"course_ids": "one"}`, "not_an_id", "course_ids"},
		{"any field fails validation", ana + `"password_mode": "telepathy"}`, "not_a_choice", "password_mode"},
		{"unknown course type", ana + `"courses": "latin"}`, "unknown_course_type", "courses"},
		{"tenure_months not a whole number from 1 to 120", ana + `"tenure_months": 1.5}`, "not_a_whole_number", "tenure_months"},
		{"tenure_months not a whole number from 1 to 120", ana + `"tenure_months": 121}`, "not_a_whole_number", "tenure_months"},
		{"tenure_months not a whole number from 1 to 120", ana + `"tenure_months": "0"}`, "not_a_whole_number", "tenure_months"},
		{"extend_access without external_ref", ana + `"extend_access": true}`, "missing", "external_ref"},
		{"a course_ids course is not the organization's", ana + fmt.Sprintf(`"course_ids": [%d]}`, foreign.ID), "unknown_course", "course_ids"},
		{"a course_ids course is not open", ana + fmt.Sprintf(`"course_ids": %d}`, closed.ID), "course_closed", "course_ids"},
		{"username taken", ana + `"username": "TAKEN"}`, "username_taken", "username"},
		{"username has invalid characters", ana + `"username": "ana lopez"}`, "invalid_username", "username"},
		{"username is too long", ana + `"username": "` + strings.Repeat("x", 151) + `"}`, "too_long", "username"},
		{"password fails the platform's rules", ana + `"password": "short"}`, "password_too_short", "password"},
		{"password fails the platform's rules", ana + `"password": "8472938475"}`, "password_only_digits", "password"},
		{"password fails the platform's rules", ana + `"password": "password1"}`, "password_too_common", "password"},
		{"password fails the platform's rules", ana + `"password": "ana@institute.org"}`, "password_too_similar", "password"},
		{"password_mode set with no password", ana + `"password_mode": "direct"}`, "missing", "password"},
		{"a password sent with another mode", ana + `"password_mode": "auto", "password": "Tr0ub4dor&3x"}`, "password_with_other_mode", "password"},
		{"a password sent with another mode", ana + `"password_mode": "link", "password": "Tr0ub4dor&3x"}`, "password_with_other_mode", "password"},
		{"target_score_plan problems", ana + `"courses": "toefl", "target_score_plan": {"test_plan": true}}`, "test_plan_unavailable", "target_score_plan.test_plan"},
	} {
		t.Run(c.row, func(t *testing.T) {
			north.Full.Post(t, provisionPath, c.body).WantFault(t, 400, c.code, c.field)
		})
	}
	t.Run("every fault is listed", func(t *testing.T) {
		f := north.Full.Post(t, provisionPath, `{"email": 7, "tenure_months": "x", "courses": ["latin"]}`).WantFault(t, 400, "wrong_type", "email")
		var fields []string
		for _, e := range f.Errors {
			fields = append(fields, e.Field)
		}
		if got := strings.Join(fields, " "); got != "email tenure_months first_name courses" {
			t.Errorf("faults of %s", got)
		}
	})
	t.Run("missing, wrong or revoked key", func(t *testing.T) {
		e.Partner("").Post(t, provisionPath, `{`).WantFault(t, 401, "missing_api_key", "")
		e.Partner(north.FullKey[:20]+strings.Repeat("x", 27)).Post(t, provisionPath, `{`).WantFault(t, 401, "invalid_api_key", "")
		var made struct {
			ID  int
			Key string
		}
		e.Platform.Post(t, "organizations/north/api-keys", `{"name": "Old", "access": "full"}`).Want(t, 201).Into(t, &made)
		e.Platform.Delete(t, fmt.Sprintf("organizations/north/api-keys/%d", made.ID)).Want(t, 200)
		e.Partner(made.Key).Post(t, provisionPath, `{`).WantFault(t, 401, "invalid_api_key", "")
	})
	t.Run("a read-only key", func(t *testing.T) {
		north.ReadOnly.Post(t, provisionPath, `{`).WantFault(t, 403, "read_only_key", "")
	})
	t.Run("a read-only key attempting plan changes", func(t *testing.T) {
		north.ReadOnly.Post(t, provisionPath, ana+`"courses": "ielts", "target_score_plan": {"target_score": 7}}`).WantFault(t, 403, "read_only_key", "")
	})
	t.Run("unexpected error; safe to retry as is", func(t *testing.T) {
		body := `{"email": "retry@institute.org", "first_name": "Ria", "courses": "ielts"}`
		for _, table := range []string{"enrollments", "emails", "set_password_tokens"} { // what is written late fails
			rename(t, e, table, table+"_away")
			north.Full.Post(t, provisionPath, body).WantFault(t, 500, "internal", "")
			rename(t, e, table+"_away", table)
		}
		if n := count(t, e, `SELECT (SELECT count(*) FROM accounts WHERE username <> 'taken') + (SELECT count(*) FROM outbox_tasks t JOIN emails m ON m.id = t.subject WHERE recipient LIKE 'retry%')`); n != 0 {
			t.Errorf("%d rows were saved", n)
		}
		north.Full.Post(t, provisionPath, body).Want(t, 201)
		if _, err := e.DB.Exec(t.Context(), `DELETE FROM accounts WHERE email LIKE 'retry%'`); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("language tests not enabled", func(t *testing.T) {
		e.Platform.Put(t, "organizations/north", `{"language_tests_enabled": false}`).Want(t, 200)
		north.Full.Post(t, provisionPath, `{`).WantFault(t, 403, "language_tests_disabled", "")
	})
	var accounts int
	if err := e.DB.QueryRow(t.Context(), `SELECT count(*) FROM accounts WHERE username <> 'taken'`).Scan(&accounts); check.NoError(t, err, "%d accounts were saved (%v)", accounts, err) {
		check.Equal(t, "accounts", accounts, 0, "%d accounts were saved (%v)", accounts, err)
	}
}

func rename(t *testing.T, e *apitest.Env, table, to string) {
	t.Helper()
	if _, err := e.DB.Exec(t.Context(), `ALTER TABLE `+table+` RENAME TO `+to); err != nil {
		t.Fatal(err)
	}
}

func TestPasswordModesOverHTTP(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	for i, c := range []struct{ words, mail string }{
		{`"password_mode": "link"`, "welcome"}, {`"password_mode": " Invite "`, "welcome"}, {`"password_mode": ""`, "welcome"},
		{`"password_mode": "set", "password": "Tr0ub4dor&3x"`, "credentials"}, {`"password_mode": "direct", "password": "Tr0ub4dor&3x"`, "credentials"},
		{`"password": "Tr0ub4dor&3x"`, "credentials"}, {`"password_mode": "generate"`, "credentials"},
		{`"password_mode": "auto"`, "credentials"}, {`"password_mode": "SYSTEM_GENERATED"`, "credentials"},
	} {
		body := fmt.Sprintf(`{"email": "s%d@institute.org", "first_name": "Ana", "username": "ana.%d", %s}`, i, i, c.words)
		var got struct {
			Credentials struct {
				Username   string
				Password   *string
				MustChange bool `json:"must_change_password"`
			}
			Email struct{ Type string }
		}
		north.Full.Post(t, provisionPath, body).Want(t, 201).Into(t, &got)
		generated := i >= 6
		if check.Equal(t, "got.Email.Type", got.Email.Type, c.mail, "%s: %+v", c.words, got) &&
			check.Equal(t, "there is a password", got.Credentials.Password != nil, generated, "%s: %+v", c.words, got) &&
			check.Equal(t, "got.Credentials.MustChange", got.Credentials.MustChange, generated, "%s: %+v", c.words, got) {
			check.Equal(t, "got.Credentials.Username", got.Credentials.Username, fmt.Sprintf("ana.%d", i), "%s: %+v", c.words, got)
		}
	}
}

func TestTwoHundredCallsForOneNewEmail(t *testing.T) {
	t.Parallel()
	const calls = 200
	e := apitest.New(t, func(d *server.Deps) { d.InFlight = calls })
	north := e.Organization(t, "north")
	endpoint(t, e, north.ID)
	var wg sync.WaitGroup
	statuses := make(chan int, calls)
	for range calls {
		wg.Go(func() {
			statuses <- north.Full.Post(t, provisionPath, `{"email": "ana@institute.org", "first_name": "Ana", "courses": "sat"}`).Status
		})
	}
	wg.Wait()
	close(statuses)
	counts := map[int]int{}
	for s := range statuses {
		counts[s]++
	}
	if check.Equal(t, "number of 201", counts[201], 1, "statuses %v, want one 201 and the others 200", counts) {
		check.Equal(t, "number of 200", counts[200], calls-1, "statuses %v, want one 201 and the others 200", counts)
	}
	for what, sql := range map[string]string{
		"account": `accounts`, "membership": `members`, "enrollment": `enrollments`, "welcome mail": `emails WHERE type = 'welcome'`, "mail": `emails`,
		"student.joined": `webhook_events WHERE type = 'student.joined'`, "enrollment.created": `webhook_events WHERE type = 'enrollment.created'`,
	} {
		if n := count(t, e, `SELECT count(*) FROM `+sql); n != 1 {
			t.Errorf("%d of %s, want one", n, what)
		}
	}
}

func TestSuppressedDomainsAreTheSites(t *testing.T) {
	t.Parallel()
	e := apitest.New(t, func(d *server.Deps) { d.Suppressed = email.Domains{"demo.school"} })
	north := e.Organization(t, "north")
	var got struct{ Email struct{ Status string } }
	north.Full.Post(t, provisionPath, `{"email": "ana@demo.school", "first_name": "Ana"}`).Want(t, 201).Into(t, &got)
	if got.Email.Status != "suppressed" {
		t.Errorf("email = %+v", got.Email)
	}
}
