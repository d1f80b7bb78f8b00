package rest_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Reference: organization#ping.
func TestPing(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	for _, path := range []string{"ping/", "ping"} {
		north.Full.Get(t, path).Want(t, 200).Golden(t, "ping")
		north.ReadOnly.Get(t, path).Want(t, 200).Golden(t, "ping")
	}
	if head := north.Full.Do(t, http.MethodHead, "ping/", nil).Want(t, 200); len(head.Body) != 0 {
		t.Errorf("HEAD has a body: %s", head.Body)
	}
}

// Reference: organization#organization-fields.
func TestOrganization(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	e.Advance(20 * time.Hour)
	north.Full.Get(t, "organization/").Want(t, 200).Golden(t, "organization")

	e.Platform.Put(t, "organizations/north", `{"language_tests_enabled": false,
		"provisioning_defaults": {"default_access_months": 12, "send_welcome_email_default": false}}`).Want(t, 200)
	e.Platform.Put(t, "course-types/sat", `{"active": false}`).Want(t, 200)
	north.ReadOnly.Get(t, "organization/").Want(t, 200).Golden(t, "organization-changed")
}

// Reference: courses#course-types, courses#course-fields.
func TestCourses(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north, south := e.Organization(t, "north"), e.Organization(t, "south")
	north.Full.Get(t, "courses/").Want(t, 200).Golden(t, "courses-none")

	course := func(slug, body string) { e.Platform.Post(t, "organizations/"+slug+"/courses", body).Want(t, 201) }
	course("north", `{"name": "Evening batch", "course_type": "toefl", "end_date": "2027-02-28", "default_access_weeks": 8, "default_access_months": 2}`)
	course("north", `{"name": "Over", "course_type": "ielts", "start_date": "2026-01-01", "end_date": "2026-11-20", "default_access_months": 2}`)
	course("north", `{"name": "Perpetual", "course_type": "ielts", "is_perpetual": true}`)
	course("north", `{"name": "Cancelled", "course_type": "ielts", "status": "cancelled"}`)
	course("south", `{"name": "Elsewhere", "course_type": "ielts"}`)
	e.Platform.Put(t, "course-types/dmat", `{"active": false}`).Want(t, 200)
	north.ReadOnly.Get(t, "courses/").Want(t, 200).Golden(t, "courses")
	if body := string(south.Full.Get(t, "courses/").Want(t, 200).Body); check.Contains(t, "the answer", body, "Elsewhere", "another organization's courses: %s", body) {
		check.Lacks(t, "the answer", body, "Evening", "another organization's courses: %s", body)
	}
}

// Reference: conventions#authentication.
func TestWhoMayCall(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	for _, path := range []string{"ping/", "organization/", "courses/"} {
		e.Partner("").Get(t, path).WantFault(t, 401, "missing_api_key", "")
		e.Partner("wrong").Get(t, path).WantFault(t, 401, "invalid_api_key", "")
		e.Partner("reg_"+seal.Token()).Get(t, path).WantFault(t, 401, "invalid_api_key", "")
		e.Partner(apitest.PlatformKey).Get(t, path).WantFault(t, 401, "invalid_api_key", "")
		bearer := e.Partner("").With("Authorization", "bearer "+north.FullKey)
		bearer.Get(t, path).Want(t, 200)
		bearer.With("X-API-Key", "wrong").Get(t, path).WantFault(t, 401, "invalid_api_key", "")
		north.Full.With("Authorization", "Bearer wrong").Get(t, path).Want(t, 200)
		north.Full.With("Authorization", "Basic "+north.FullKey).With("X-API-Key", "").Get(t, path).WantFault(t, 401, "missing_api_key", "")
	}
	if got := e.Partner("").Get(t, "ping/").Header.Get("WWW-Authenticate"); got != "Bearer" {
		t.Errorf("WWW-Authenticate = %q", got)
	}
}

func TestARevokedKeyIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	var made struct {
		ID  int    `json:"id"`
		Key string `json:"key"`
	}
	e.Platform.Post(t, "organizations/north/api-keys", map[string]any{"name": "x", "access": org.Full}).Want(t, 201).Into(t, &made)
	e.Partner(made.Key).Get(t, "ping/").Want(t, 200)
	e.Platform.Delete(t, "organizations/north/api-keys/"+strconv.Itoa(made.ID)).Want(t, 200)
	e.Partner(made.Key).Get(t, "ping/").WantFault(t, 401, "invalid_api_key", "")
}

func TestAccessLogNamesTheCallerAndNoSecret(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	north.Full.With("X-Request-Id", "my-request").Get(t, "ping/?email=a@b.c").Want(t, 200)
	log := e.Log.String()
	for _, want := range []string{`"route":"/api/v1/ping"`, `"organization":"north"`, `"status":200`, `"api":"partner"`} {
		if !strings.Contains(log, want) {
			t.Errorf("%s is missing in:\n%s", want, log)
		}
	}
	for _, secret := range []string{north.FullKey, apitest.PlatformKey, "a@b.c"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %s", secret)
		}
	}
}

func TestUnknownRoutesAndMethods(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	for _, path := range []string{"/nothing/", "/api/v1/", "/api/v1/nothing/", "/api/v2/ping/", "/platform/v1/course-types/sat"} {
		north.Full.Get(t, path).WantFault(t, 404, "no_such_route", "")
	}
	a := north.Full.Post(t, "ping/", `{}`)
	a.WantFault(t, 405, "method_not_allowed", "")
	if got := a.Header.Get("Allow"); got != "GET, HEAD" {
		t.Errorf("Allow = %q", got)
	}
}

// A parameter that cannot be read, or that is sent twice, must not quietly choose nothing.
// Reference: conventions#requests.
func TestQueriesThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	all := north.Full.Freely()
	for _, query := range []string{"email=ana%zz@institute.org", "email=ana%", "limit=1;status=active", "email=ana@institute.org;x"} {
		for _, path := range []string{"students/", "results/", "assignments/", "catalog/", "activity/daily/", "progress/daily/"} {
			all.Get(t, path+"?"+query).WantFault(t, 400, "invalid_query", "")
		}
	}
	e.Partner("").Freely().Get(t, "students/?email=%zz").WantFault(t, 401, "missing_api_key", "")
	for path, field := range map[string]string{
		"students/?limit=1&limit=2": "limit", "students/?email=a@institute.org&email=b@institute.org": "email", "students/?status=active&status=": "status",
		"students/?course_id=1&course_id=2": "course_id", "results/?kind=test&kind=quiz": "kind", "results/?cursor=&cursor=": "cursor",
		"results/?since=2026-11-01&since=2026-11-02": "since", "progress/daily/?tz=UTC&tz=Asia/Kolkata": "tz", "activity/daily/?from=2026-11-01&from=2026-11-02": "from",
	} {
		if f := all.Get(t, path).WantFault(t, 400, "sent_twice", field); len(f.Errors) != 1 {
			t.Errorf("%s: %+v", path, f.Errors)
		}
	}
	all.Get(t, "students/?unknown=1&unknown=2").Want(t, 200)
	all.Get(t, "courses/?unknown=%zz").Want(t, 200) // it has no parameters
	for _, path := range []string{"ping/", "courses/", "organization/"} {
		all.Get(t, path+"?x=%00").WantFault(t, 400, "invalid_character", "x")
	}
}

// What is wrong a hundred thousand times is reported a hundred times.
func TestAnswersToHostileListsStaySmall(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	for _, lists := range []string{`"courses": [` + strings.Repeat(`{},`, 100_000) + `{}]`, `"course_ids": "` + strings.Repeat("a,", 100_000) + `"`,
		`"courses": "ielts", "target_score_plan": {"extra_recipients": "` + strings.Repeat("a,", 100_000) + `"}`} {
		a := north.Full.Post(t, provisionPath, `{"email": "ana@institute.org", "first_name": "Ana", `+lists+`}`).Want(t, 400)
		if len(a.Body) > 100_000 {
			t.Errorf("%.60s: an answer of %d bytes", lists, len(a.Body))
		}
	}
}
