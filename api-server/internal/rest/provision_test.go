package rest_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/server"
	"github.com/registrar-dev/registrar/internal/domain/email"
)

const provisionPath = "provision/student/"

func TestProvisionANewStudentTwice(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	body := `{"email": "Ana@Institute.org", "first_name": "Ana", "last_name": "Lopez", "courses": ["ielts"]}`
	north.Full.Post(t, provisionPath, body).Want(t, 201).Golden(t, "provisioned")
	north.Full.Post(t, provisionPath, body).Want(t, 200).Golden(t, "provisioned-again")
	counts := north.Full.Get(t, "organization/").Object(t)["counts"].(map[string]any)
	if counts["students_with_access"] != 1.0 || counts["courses"] != 1.0 {
		t.Errorf("counts = %v", counts)
	}
}

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
		if len(got.Enrollments) != 3 || got.Enrollments[2].EndDate != "2027-01-21" {
			t.Errorf("%s\ngot %+v", body, got)
		}
	}
}

func TestProvisionFaults(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	var closed struct{ ID int }
	e.Platform.Post(t, "organizations/north/courses", `{"name": "Closed", "course_type": "gre", "open_for_enrolment": false}`).Want(t, 201).Into(t, &closed)
	ana := `{"email": "ana@institute.org", "first_name": "Ana", `
	for _, c := range []struct{ body, code, field string }{
		{`{"email"`, "invalid_json", ""},
		{`[]`, "not_an_object", ""},
		{`{"first_name": "Ana"}`, "missing", "email"},
		{`{"email": "ana", "first_name": "Ana"}`, "invalid_email", "email"},
		{`{"email": ["ana@institute.org"], "first_name": "Ana"}`, "wrong_type", "email"},
		{`{"email": "ana@institute.org", "first_name": " "}`, "missing", "first_name"},
		{ana + `"last_name": "` + strings.Repeat("x", 151) + `"}`, "too_long", "last_name"},
		{ana + `"tenure_months": 1.5}`, "not_a_whole_number", "tenure_months"},
		{ana + `"tenure_months": 121}`, "not_a_whole_number", "tenure_months"},
		{ana + `"extend_access": true}`, "missing", "external_ref"},
		{ana + `"extend_access": "perhaps"}`, "not_a_boolean", "extend_access"},
		{ana + `"courses": {"ielts": true}}`, "wrong_type", "courses"},
		{ana + `"courses": "latin"}`, "unknown_course_type", "courses"},
		{ana + `"course_ids": "one"}`, "not_an_id", "course_ids"},
		{ana + `"course_ids": [987654]}`, "unknown_course", "course_ids"},
		{ana + fmt.Sprintf(`"course_ids": %d}`, closed.ID), "course_closed", "course_ids"},
		{ana + `"password_mode": "telepathy"}`, "not_a_choice", "password_mode"},
	} {
		north.Full.Post(t, provisionPath, c.body).WantFault(t, 400, c.code, c.field)
	}
	several := north.Full.Post(t, provisionPath, `{"email": 7, "tenure_months": "x", "courses": ["latin"]}`).WantFault(t, 400, "wrong_type", "email")
	if len(several.Errors) != 3 {
		t.Errorf("faults = %+v, want those of email, tenure_months and first_name", several.Errors)
	}
	north.ReadOnly.Post(t, provisionPath, `{`).WantFault(t, 403, "read_only_key", "")
	e.Partner("").Post(t, provisionPath, `{`).WantFault(t, 401, "missing_api_key", "")
	e.Platform.Put(t, "organizations/north", `{"language_tests_enabled": false}`).Want(t, 200)
	north.Full.Post(t, provisionPath, `{`).WantFault(t, 403, "language_tests_disabled", "")
	var accounts int
	if err := e.DB.QueryRow(t.Context(), `SELECT count(*) FROM accounts`).Scan(&accounts); err != nil || accounts != 0 {
		t.Errorf("%d accounts were saved (%v)", accounts, err)
	}
}

func TestProvisionConcurrently(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	var wg sync.WaitGroup
	statuses := make(chan int, 50)
	for range 50 {
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
	if counts[201] != 1 || counts[200] != 49 {
		t.Fatalf("statuses %v, want one 201 and 49 of 200", counts)
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
