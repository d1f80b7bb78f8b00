package platform_test

import (
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
)

func TestPutStaff(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	e.Organization(t, "south")
	const olive = "organizations/north/staff/Olive@School.org"
	const body = `{"first_name": "Olive", "last_name": "Owner", "role": "owner", "password": "correct horse battery", "unknown": 1}`
	e.Platform.Put(t, olive, body).Want(t, 201).Golden(t, "staff-created")
	e.Platform.Put(t, "organizations/north/staff/olive%40school.org/", body).Want(t, 200).Golden(t, "staff-created")
	e.Platform.Put(t, olive, `{"first_name": "Other", "role": "teacher"}`).Want(t, 200).Golden(t, "staff-changed")
	e.Platform.Put(t, "organizations/south/staff/olive@school.org", `{"role": "examiner"}`).Want(t, 201).Golden(t, "staff-elsewhere")
	if log := e.Log.String(); strings.Contains(log, "correct horse") {
		t.Error("the password is in the log")
	}
}

func TestPutStaffRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	put := func(path, body string) *apitest.Answer { return e.Platform.Put(t, "organizations/"+path, body) }
	put("north/staff/a@b.org", `{"first_name"`).WantFault(t, 400, "invalid_json", "")
	put("north/staff/a@b.org", `{"first_name": 1, "role": "boss", "password": 12345678}`).WantFault(t, 400, "wrong_type", "first_name")
	put("north/staff/a@b.org", `{"role": "member"}`).WantFault(t, 400, "not_a_choice", "role")
	put("north/staff/a@b.org", `{}`).WantFault(t, 400, "missing", "first_name")
	put("north/staff/nobody", `{"first_name": "A", "role": "admin"}`).WantFault(t, 400, "invalid_email", "email")
	f := put("north/staff/a@b.org", `{"first_name": "A", "role": "admin", "password": "12345678"}`).WantFault(t, 400, "password_only_digits", "password")
	if strings.Contains(f.Error, "12345678") {
		t.Errorf("the password is shown: %s", f.Error)
	}
	put("nowhere/staff/a@b.org", `{"first_name": "A", "role": "admin"}`).WantFault(t, 404, "not_found", "")
	e.Platform.With("Authorization", "Bearer wrong").Put(t, "organizations/north/staff/a@b.org", `{}`).WantFault(t, 401, "invalid_platform_key", "")
}
