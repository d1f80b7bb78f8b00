package platform_test

import (
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/kit/check"
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

func TestThePlatformRemovesLostFactors(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	e.Organization(t, "south")
	for _, slug := range []string{"north", "south"} {
		e.Platform.Put(t, "organizations/"+slug+"/staff/olive@school.org", `{"first_name": "Olive", "role": "owner"}`).Want(t, 201)
	}
	_, err := e.DB.Exec(t.Context(), `INSERT INTO factors (id, user_id, kind, name, sealed, created_at) SELECT gen_random_uuid(), id, 'totp', 'Telephone', '', now() FROM accounts`)
	check.NoError(check.Now(t), err, "a factor")
	remove := func(path string) *apitest.Answer { return e.Platform.Delete(t, "organizations/"+path+"/factors") }
	for _, removed := range []float64{1, 0} {
		check.Equal(t, "removed", remove("north/staff/olive@school.org").Want(t, 200).Object(t)["removed"], any(removed), "")
	}
	var rows int
	err = e.DB.QueryRow(t.Context(), `SELECT count(*) FROM audit_log WHERE action = 'removed lost second factors' AND actor_kind = 'platform_key' AND target = 'olive@school.org'`).Scan(&rows)
	check.NoError(t, err, "")
	check.Equal(t, "rows of the audit log", rows, 1, "")
	remove("north/staff/nobody@school.org").WantFault(t, 404, "student_not_found", "")
	remove("nowhere/staff/olive@school.org").WantFault(t, 404, "not_found", "")
}

func TestThePlatformInvitesListsAndDeactivatesStaff(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	e.Organization(t, "south")
	const path = "organizations/north/staff"
	e.Platform.Get(t, path).Want(t, 200)
	e.Platform.Post(t, path+"/olive@school.org/invitation", `{"first_name": "Olive", "role": "owner"}`).Want(t, 200)
	e.Platform.Post(t, path+"/adam@school.org/invitation", `{"first_name": "Adam"}`).WantFault(t, 400, "missing", "role")
	e.Platform.Post(t, path+"/adam@school.org/invitation", `{"first_name": "Adam", "role": "admin"}`).Want(t, 200)
	e.Platform.Delete(t, path+"/olive@school.org").WantFault(t, 409, "last_owner", "")
	e.Platform.Delete(t, path+"/adam@school.org").Want(t, 200)
	e.Platform.Delete(t, path+"/nobody@school.org").WantFault(t, 404, "student_not_found", "")
	e.Platform.Delete(t, "organizations/south/staff/adam@school.org").WantFault(t, 404, "student_not_found", "")
	staff, _ := e.Platform.Get(t, path).Want(t, 200).Object(t)["staff"].([]any)
	check.Equal(check.Now(t), "on the list", len(staff), 2, "%v", staff)
	for i, status := range []string{"active", "inactive"} {
		line, _ := staff[i].(map[string]any)
		membership, _ := line["membership"].(map[string]any)
		check.Equal(t, "the status", membership["status"], any(status), "%v", line)
	}
	var mails int
	err := e.DB.QueryRow(t.Context(), `SELECT count(*) FROM emails WHERE type = 'staff_invitation' AND sealed IS NOT NULL`).Scan(&mails)
	check.NoError(t, err, "")
	check.Equal(t, "mails with a link", mails, 2, "")
}

// The platform sets an organization's policy, and lifts one that nobody can lift any more.
func TestThePlatformSetsTheSignInPolicy(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	const path = "organizations/north/sign-in-policy"
	var p struct {
		Roles        []string `json:"factor_roles"`
		GraceDays    int      `json:"grace_days"`
		ProviderOnly bool     `json:"provider_only"`
		BreakGlass   []int64  `json:"break_glass"`
	}
	e.Platform.Get(t, path).Want(t, 200).Into(t, &p)
	check.Equal(t, "roles", len(p.Roles), 0, "of nothing")
	e.Platform.Patch(t, path, `{"factor_roles": ["owner", "boss"]}`).WantFault(t, 400, "invalid", "roles")
	e.Platform.Patch(t, path, `{"grace_days": 91}`).Want(t, 400)
	e.Platform.Patch(t, path, `{"provider_only": true}`).WantFault(t, 409, "no_provider", "")
	e.Platform.Patch(t, path, `{"factor_roles": ["owner", "admin"], "grace_days": 3}`).Want(t, 200)
	e.Platform.Patch(t, path, `{"grace_days": 5}`).Want(t, 200).Into(t, &p)
	check.Slices(t, "roles", p.Roles, []string{"admin", "owner"}, "")
	check.Equal(t, "days", p.GraceDays, 5, "")

	var users []int64
	for _, name := range []string{"olive", "otto"} {
		e.Platform.Put(t, "organizations/north/staff/"+name+"@school.org", `{"first_name": "O", "role": "owner"}`).Want(t, 201)
	}
	err := e.DB.QueryRow(t.Context(), `SELECT array_agg(id) FROM accounts`).Scan(&users)
	check.NoError(check.Now(t), err, "owners")
	e.Platform.Put(t, "organizations/north/mail-domains/school.org", ``).Want(t, 200)
	for _, sql := range []string{`INSERT INTO identity_providers (organization_id, issuer, client_id, sealed, version, students, created_at, updated_at)
		SELECT id, 'https://id.school.org', 'x', '', 1, false, now(), now() FROM organizations WHERE slug = 'north'`,
		`INSERT INTO factors (id, user_id, kind, name, sealed, created_at) SELECT gen_random_uuid(), id, 'totp', 'Telephone', '', now() FROM accounts`} {
		_, err := e.DB.Exec(t.Context(), sql)
		check.NoError(check.Now(t), err, "%s", sql)
	}
	e.Platform.Patch(t, path, map[string]any{"provider_only": true, "break_glass": users[:1]}).WantFault(t, 400, "invalid", "break_glass")
	e.Platform.Patch(t, path, map[string]any{"provider_only": true, "break_glass": users}).Want(t, 200).Into(t, &p)
	check.True(t, "it is set", p.ProviderOnly, "%+v", p)
	check.Equal(t, "owners who go past it", len(p.BreakGlass), 2, "%+v", p)
	e.Platform.Delete(t, "organizations/north/staff/otto@school.org").WantFault(t, 409, "break_glass", "")
	e.Platform.Patch(t, path, `{"provider_only": false}`).Want(t, 200).Into(t, &p)
	check.False(t, "it is lifted", p.ProviderOnly, "%+v", p)
	check.Equal(t, "days", p.GraceDays, 5, "as before")
	e.Platform.Patch(t, "organizations/nowhere/sign-in-policy", `{"grace_days": 5}`).WantFault(t, 404, "not_found", "")
}

func TestThePlatformProvesDomains(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	e.Organization(t, "south")
	for range 2 {
		e.Platform.Put(t, "organizations/north/mail-domains/school.org", ``).Want(t, 200)
	}
	e.Platform.Put(t, "organizations/south/mail-domains/school.org", ``).WantFault(t, 409, "domain_taken", "")
	e.Platform.Put(t, "organizations/south/mail-domains/school", ``).WantFault(t, 400, "invalid", "domain")
	e.Platform.Put(t, "organizations/nowhere/mail-domains/school.org", ``).WantFault(t, 404, "not_found", "")
}
