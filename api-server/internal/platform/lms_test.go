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
