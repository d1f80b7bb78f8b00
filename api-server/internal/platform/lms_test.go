package platform_test

import (
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

const lmsPath = "organizations/north/lti-registrations"

const canvas = `{"name": "Our Canvas", "issuer": "https://canvas.instructure.com", "client_id": "10000000000042", "deployments": ["1:a"],
	"authorize_url": "https://sso.canvaslms.com/api/lti/authorize_redirect", "token_url": "https://sso.canvaslms.com/login/oauth2/token",
	"keys_url": "https://sso.canvaslms.com/api/lti/security/jwks"}`

func TestLTIRegistrations(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	e.Organization(t, "south")
	made := e.Platform.Post(t, lmsPath, canvas).Want(t, 201).Object(t)
	tool := made["tool"].(map[string]any)
	check.Equal(t, "login_url", tool["login_url"], any(apitest.PublicURL+"/lti/v1p3/login/north/"), "")
	check.Equal(t, "redirect_url", tool["redirect_url"], any(apitest.PublicURL+"/lti/v1p3/launch/north/"), "")
	e.Platform.Post(t, lmsPath, canvas).WantFault(t, 409, "registration_exists", "")
	e.Platform.Post(t, lmsPath, strings.Replace(canvas, "https://sso.canvaslms.com/api/lti/security", "https://10.0.0.1", 1)).WantFault(t, 400, "address_not_public", "keys_url")
	one := lmsPath + "/1"
	e.Platform.Get(t, one).Want(t, 200)
	e.Platform.Get(t, "organizations/south/lti-registrations/1").WantFault(t, 404, "not_found", "")
	e.Platform.Patch(t, "organizations/south/lti-registrations/1", `{"name": "Ours"}`).WantFault(t, 404, "not_found", "")
	e.Platform.Delete(t, "organizations/south/lti-registrations/1").WantFault(t, 404, "not_found", "")
	changed := e.Platform.Patch(t, one, `{"deployments": ["2:b", "1:a"]}`).Want(t, 200).Object(t)
	check.Equal(t, "the deployments", len(changed["deployments"].([]any)), 2, "%v", changed)
	check.Equal(t, "what was not sent", changed["name"], any("Our Canvas"), "")
	e.Platform.Patch(t, one, `{"deployments": []}`).WantFault(t, 400, "missing", "deployments")
	e.Platform.Delete(t, one+"/people/1").WantFault(t, 404, "not_found", "")
	check.Contains(t, "the list", string(e.Platform.Get(t, lmsPath).Want(t, 200).Body), "10000000000042", "")
	e.Platform.Delete(t, one).Want(t, 200)
	e.Platform.Get(t, one).WantFault(t, 404, "not_found", "")
}

// The rosters of an LMS's courses are turned on, asked for and turned off; another organization's are not found.
func TestRostersOfLMSCourses(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	e.Organization(t, "south")
	e.Platform.Post(t, lmsPath, canvas).Want(t, 201)
	e.Platform.Post(t, "organizations/south/lti-registrations", canvas).Want(t, 201)
	_, err := e.DB.Exec(t.Context(), `
		INSERT INTO lms_contexts (organization_id, registration_id, deployment, context, title, memberships_url, seen_at, attempts)
		SELECT organization_id, id, '1:a', 'c-101', 'Biology', 'https://canvas.instructure.com/names', $1,
			'[{"at": "2026-11-23T01:00:00Z", "status": 403, "cause": "The LMS does not let the tool read who is in the course."},
			{"at": "2026-11-23T02:00:00Z", "run": 7, "members": 30, "no_address": 2}]' FROM lms_registrations WHERE id = 1`, e.Now())
	check.NoError(check.Now(t), err, "a course")
	courses := lmsPath + "/1/courses"
	one := e.Platform.Get(t, courses).Want(t, 200).Object(t)["courses"].([]any)[0].(map[string]any)
	check.Equal(t, "state", one["state"], any("off"), "")
	check.Equal(t, "source", one["source"], any("lms-1"), "")
	check.Equal(t, "attempts", len(one["attempts"].([]any)), 2, "")
	e.Platform.Post(t, courses+"/1/pull", nil).WantFault(t, 409, "pull_off", "")
	e.Platform.Patch(t, courses+"/1", `{}`).WantFault(t, 400, "missing", "pulled")
	on := e.Platform.Patch(t, courses+"/1", `{"pulled": true}`).Want(t, 200).Object(t)
	check.Equal(t, "state", on["state"], any("waiting"), "it is due at once")
	e.Platform.Post(t, courses+"/1/pull", nil).Want(t, 202)
	_, err = e.DB.Exec(t.Context(), `UPDATE lms_contexts SET in_hand = true, due_at = $1::timestamptz + interval '1 minute'`, e.Now())
	check.NoError(check.Now(t), err, "in hand")
	e.Platform.Post(t, courses+"/1/pull", nil).WantFault(t, 409, "pull_running", "")
	off := e.Platform.Patch(t, courses+"/1", `{"pulled": false}`).Want(t, 200).Object(t)
	check.Equal(t, "state", off["state"], any("off"), "")
	e.Platform.Get(t, "organizations/south/lti-registrations/1/courses").WantFault(t, 404, "not_found", "")
	for _, path := range []string{"organizations/south/lti-registrations/2/courses/1", lmsPath + "/1/courses/2"} {
		e.Platform.Patch(t, path, `{"pulled": true}`).WantFault(t, 404, "not_found", "")
		e.Platform.Post(t, path+"/pull", nil).WantFault(t, 404, "not_found", "")
	}
}

func TestLTIKeys(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	kids := func() (all []string) {
		t.Helper()
		for _, k := range e.Platform.Get(t, "lti-keys").Want(t, 200).Object(t)["keys"].([]any) {
			all = append(all, k.(map[string]any)["kid"].(string))
		}
		return all
	}
	first := kids()
	check.Equal(check.Now(t), "keys", len(first), 1, "")
	e.Advance(time.Hour)
	e.Platform.Post(t, "lti-keys", nil).Want(t, 201)
	second := kids()
	check.Equal(check.Now(t), "keys", len(second), 2, "the next one is published beside the first")
	check.Equal(t, "the older one", second[1], first[0], "")
	check.Lacks(t, "the answer", string(e.Platform.Get(t, "lti-keys").Body), `"d"`, "a private key")
	e.Platform.Post(t, "lti-keys", `{"at_once": true}`).Want(t, 201)
	third := kids()
	check.Equal(check.Now(t), "keys", len(third), 1, "all others are gone")
	check.True(t, "it is new", third[0] != second[0] && third[0] != first[0], "")
}
