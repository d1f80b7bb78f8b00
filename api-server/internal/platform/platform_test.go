package platform_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"gopkg.in/yaml.v3"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/openapi"
	"github.com/registrar-dev/registrar/api-server/internal/server"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/lang"
)

func TestWhoMayCall(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	for _, key := range []string{"", "Bearer", "Bearer wrong", "Bearer " + north.FullKey, "Basic " + apitest.PlatformKey, apitest.PlatformKey} {
		c := e.Platform.With("Authorization", key)
		c.Put(t, "organizations/x", `{"name": "X"}`).WantFault(t, 401, "invalid_platform_key", "")
		c.Put(t, "organizations/x", `not JSON`).WantFault(t, 401, "invalid_platform_key", "")
		c.Post(t, "organizations/north/api-keys", `{}`).WantFault(t, 401, "invalid_platform_key", "")
		c.Get(t, "organizations/north/api-keys").WantFault(t, 401, "invalid_platform_key", "")
		c.Delete(t, "organizations/north/api-keys/1").WantFault(t, 401, "invalid_platform_key", "")
		c.Post(t, "organizations/north/courses", `{}`).WantFault(t, 401, "invalid_platform_key", "")
		c.Patch(t, "organizations/north/courses/1", `{}`).WantFault(t, 401, "invalid_platform_key", "")
		c.Put(t, "course-types/sat", `{}`).WantFault(t, 401, "invalid_platform_key", "")
	}
	// The partner's header has no meaning here.
	e.Platform.With("X-API-Key", "wrong").Get(t, "organizations/north/api-keys").Want(t, 200)
}

func TestTwoPlatformKeysDuringARotation(t *testing.T) {
	t.Parallel()
	const previous = "previous-key-of-the-tests"
	e := apitest.New(t, func(d *server.Deps) { d.PreviousPlatformKey = previous })
	e.Organization(t, "north")
	e.Platform.With("Authorization", "Bearer "+previous).Get(t, "organizations/north/api-keys").Want(t, 200)
	e.Platform.Get(t, "organizations/north/api-keys").Want(t, 200)
	e.Platform.With("Authorization", "Bearer "+previous+"x").Get(t, "organizations/north/api-keys").WantFault(t, 401, "invalid_platform_key", "")
	err := testutil.GatherAndCompare(e.Registry, strings.NewReader(`
# HELP registrar_platform_calls_total Calls of the platform API by their key: present or previous.
# TYPE registrar_platform_calls_total counter
registrar_platform_calls_total{key="present"} 4
registrar_platform_calls_total{key="previous"} 1
`), "registrar_platform_calls_total")
	check.NoError(t, err, "the calls by key")
}

func TestQueriesThatSayTwoThings(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	c := e.Platform.Freely()
	for _, path := range []string{"plans", "organizations/north/roster-runs", "organizations/north/webhook-endpoints/1/deliveries"} {
		c.Get(t, path+"?limit=1;cursor=x").WantFault(t, 400, "invalid_query", "")
		c.Get(t, path+"?status=%zz").WantFault(t, 400, "invalid_query", "")
		f := c.Get(t, path+"?status=failed&limit=1&organization=south&status=pending&limit=2").WantFault(t, 400, "sent_twice", "limit")
		if check.Equal(t, "number of errors", len(f.Errors), 2, "%s: %+v", path, f.Errors) {
			check.Equal(t, "the second error's field", f.Errors[1].Field, "status", "%s: %+v", path, f.Errors)
		}
	}
}

func TestPutOrganization(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Platform.Put(t, "organizations/north", `{"name": "North Institute", "unknown": {"x": 1}}`).Want(t, 201).Golden(t, "organization-created")
	e.Advance(time.Hour)
	e.Platform.Put(t, "organizations/north/", `{"language_tests_enabled": true, "provisioning_defaults": {"grace_period_days": 0,
		"starter_tests_per_course": 5, "visible_tests_limit": 20, "set_password_link_valid_days": 30}}`).
		Want(t, 200).Golden(t, "organization-changed")
	e.Platform.Put(t, "organizations/north", `{}`).Want(t, 200).Golden(t, "organization-changed")
}

// The document names every language that there is.
func TestPutTheLanguageOfAnOrganization(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Platform.Put(t, "organizations/north", `{"name": "North Institute"}`).Want(t, 201)
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Enum []any }
			}
		}
	}
	check.NoError(check.Now(t), yaml.Unmarshal(openapi.Platform(), &document), "the document")
	named := document.Components.Schemas["OrganizationSettings"].Properties["language"].Enum
	check.Equal(t, "languages of the document", len(named), len(lang.All()), "%v", named)
	for _, x := range lang.All() {
		answer := e.Platform.Put(t, "organizations/north", map[string]any{"language": x.Code()}).Want(t, 200).Object(t)
		check.Equal(t, "the language", answer["language"], any(x.Code()), "")
		check.True(t, "the document names it", slices.Contains(named, any(x.Code())), "%s: %v", x.Code(), named)
	}
	e.Platform.Put(t, "organizations/north", `{"language": "tlh"}`).WantFault(t, 400, "unknown_language", "language")
	last := lang.All()[len(lang.All())-1].Code()
	check.Equal(t, "the language", e.Platform.Put(t, "organizations/north", `{}`).Want(t, 200).Object(t)["language"], any(last), "")
}

func TestPutOrganizationRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	put := func(slug, body string) *apitest.Answer { return e.Platform.Put(t, "organizations/"+slug, body) }
	put("north", `{"name": `).WantFault(t, 400, "invalid_json", "")
	put("north", `[]`).WantFault(t, 400, "not_an_object", "")
	put("north", ``).WantFault(t, 400, "body_missing", "")
	put("north", `{}`).WantFault(t, 400, "invalid", "name")
	put("north", `{"name": 7}`).WantFault(t, 400, "wrong_type", "name")
	put("north", `{"name": "x", "provisioning_defaults": 3}`).WantFault(t, 400, "wrong_type", "provisioning_defaults")
	put("North", `{"name": "x"}`).WantFault(t, 400, "invalid", "slug")
	put("north", `{"name": "`+strings.Repeat("x", 1<<20)+`"}`).WantFault(t, 413, "body_too_large", "")
	f := put("north", `{"name": "x", "language_tests_enabled": "maybe", "provisioning_defaults":
		{"default_access_months": 0, "grace_period_days": 1.5, "send_welcome_email_default": []}}`).
		WantFault(t, 400, "not_a_boolean", "language_tests_enabled")
	if check.Equal(t, "number of errors", len(f.Errors), 4, "%+v", f.Errors) {
		check.Equal(t, "the second error's field", f.Errors[1].Field, "provisioning_defaults.default_access_months", "%+v", f.Errors)
	}
	e.Platform.Get(t, "organizations/north/api-keys").WantFault(t, 404, "not_found", "") // nothing was saved
}

func TestAPIKeys(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "south")
	e.Platform.Put(t, "organizations/north", `{"name": "North"}`).Want(t, 201)
	const keys = "organizations/north/api-keys"
	created := e.Platform.Post(t, keys, `{"name": " CRM ", "access": "full"}`).Want(t, 201).Golden(t, "key-created").Object(t)
	e.Platform.Post(t, keys, `{"name": "CRM", "access": "read_only"}`).Want(t, 201)
	text, key := created["key"].(string), strconv.Itoa(int(created["id"].(float64)))
	if list := string(e.Platform.Get(t, keys).Want(t, 200).Golden(t, "keys").Body); strings.Contains(list, text) {
		t.Errorf("the key's text is shown again: %s", list)
	}
	e.Platform.Delete(t, "organizations/south/api-keys/"+key).WantFault(t, 404, "not_found", "")
	e.Partner(text).Get(t, "ping/").Want(t, 200)
	e.Advance(time.Hour)
	e.Platform.Delete(t, keys+"/"+key).Want(t, 200).Golden(t, "key-revoked")
	e.Partner(text).Get(t, "ping/").WantFault(t, 401, "invalid_api_key", "")
	e.Advance(time.Hour)
	e.Platform.Delete(t, keys+"/"+key).Want(t, 200).Golden(t, "key-revoked")
	e.Platform.Get(t, keys).Want(t, 200).Golden(t, "keys-one-revoked")
}

func TestAPIKeysRefuseWhatIsWrong(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Platform.Put(t, "organizations/north", `{"name": "North"}`).Want(t, 201)
	const keys = "organizations/north/api-keys"
	if f := e.Platform.Post(t, keys, `{}`).WantFault(t, 400, "missing", "name"); check.Equal(t, "number of errors", len(f.Errors), 2, "%+v", f) {
		check.Equal(t, "the second error's field", f.Errors[1].Field, "access", "%+v", f)
	}
	e.Platform.Post(t, keys, `{"name": "x", "access": "write"}`).WantFault(t, 400, "not_a_choice", "access")
	e.Platform.Post(t, keys, `{"name": "x", "access": true}`).WantFault(t, 400, "not_a_choice", "access")
	e.Platform.Post(t, keys, `{"name": "`+strings.Repeat("x", 201)+`", "access": "full"}`).WantFault(t, 400, "too_long", "name")
	e.Platform.Post(t, keys, `{`).WantFault(t, 400, "invalid_json", "")
	e.Platform.Post(t, "organizations/nowhere/api-keys", `{"name": "x", "access": "write"}`).WantFault(t, 400, "not_a_choice", "access") // 400 before 404
	e.Platform.Post(t, "organizations/nowhere/api-keys", `{"name": "x", "access": "full"}`).WantFault(t, 404, "not_found", "")
	e.Platform.Get(t, "organizations/nowhere/api-keys").WantFault(t, 404, "not_found", "")
	e.Platform.Delete(t, "organizations/nowhere/api-keys/1").WantFault(t, 404, "not_found", "")
	for _, key := range []string{"0", "999", "x", "-1"} {
		e.Platform.Delete(t, keys+"/"+key).WantFault(t, 404, "not_found", "")
	}
}

func TestCourses(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	e.Organization(t, "south")
	const courses = "organizations/north/courses"
	e.Platform.Post(t, courses, `{"name": "Plain", "course_type": "ielts"}`).Want(t, 201).Golden(t, "course-plain")
	e.Platform.Post(t, courses, `{"name": " Full ", "course_type": "sat", "status": "completed", "open_for_enrolment": false, "is_perpetual": true,
		"start_date": "2026-01-01", "end_date": "2026-12-31", "default_access_months": 4, "default_access_weeks": 9}`).
		Want(t, 201).Golden(t, "course-full")
	e.Platform.Patch(t, courses+"/2", `{"name": "Changed", "status": "active", "open_for_enrolment": true, "is_perpetual": false,
		"end_date": null, "default_access_months": null, "default_access_weeks": null, "start_date": "2026-02-02"}`).
		Want(t, 200).Golden(t, "course-changed")
	e.Platform.Patch(t, courses+"/2/", `{}`).Want(t, 200).Golden(t, "course-changed")
	e.Platform.Patch(t, "organizations/south/courses/2", `{"name": "Stolen"}`).WantFault(t, 404, "not_found", "")
	e.Platform.Patch(t, courses+"/2", `{}`).Want(t, 200).Golden(t, "course-changed")
}

func TestCoursesRefuseWhatIsWrong(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	const courses = "organizations/north/courses"
	post := func(body string) *apitest.Answer { return e.Platform.Post(t, courses, body) }
	if f := post(`{"default_access_weeks": 521, "start_date": "soon"}`).WantFault(t, 400, "missing", "name"); len(f.Errors) != 4 {
		t.Errorf("%+v", f)
	}
	post(`{"name": "x", "course_type": "latin"}`).WantFault(t, 400, "unknown_course_type", "course_type")
	post(`{"name": "x", "course_type": "sat", "end_date": "2026-11-20"}`).WantFault(t, 400, "invalid", "end_date")
	post(`{"name": "x", "course_type": "sat", "status": "closed"}`).WantFault(t, 400, "not_a_choice", "status")
	post(`nonsense`).WantFault(t, 400, "invalid_json", "")
	e.Platform.Post(t, "organizations/nowhere/courses", `{"name": "x", "course_type": "sat"}`).WantFault(t, 404, "not_found", "")
	e.Platform.Patch(t, courses+"/1", `{"name": 5}`).WantFault(t, 400, "wrong_type", "name")
	e.Platform.Patch(t, courses+"/1", `{"name": "x"}`).WantFault(t, 404, "not_found", "")
	e.Platform.Patch(t, courses+"/x", `{"name": "x"}`).WantFault(t, 404, "not_found", "")
	e.Platform.Patch(t, courses+"/1", `]`).WantFault(t, 400, "invalid_json", "")
	north.Full.Get(t, "courses/").Want(t, 200).Golden(t, "courses-still-none")
}

func TestCourseTypes(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Platform.Put(t, "course-types/sat", `{"active": false}`).Want(t, 200).Golden(t, "course-type-inactive")
	e.Platform.Put(t, "course-types/sat", `{}`).WantFault(t, 400, "missing", "active")
	e.Platform.Put(t, "course-types/sat", `{"active": "perhaps"}`).WantFault(t, 400, "not_a_boolean", "active")
	e.Platform.Put(t, "course-types/sat", `{"active"}`).WantFault(t, 400, "invalid_json", "")
	e.Platform.Put(t, "course-types/latin", `{"active": true}`).WantFault(t, 404, "not_found", "")
	e.Platform.Put(t, "course-types/sat", `{"active": true}`).Want(t, 200)
}
