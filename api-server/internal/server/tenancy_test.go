package server_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/openapi"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// operation is what the test needs of an operation of a document.
type operation struct {
	method, path string
	query        []string // names of its query parameters
}

// operations reads a document: a new route is in it, or TestDocumentsHaveEveryRoute fails.
func operations(t *testing.T, document []byte) (all []operation) {
	t.Helper()
	type parameter struct{ Ref, Name, In string }
	var doc struct {
		Paths      map[string]map[string]yaml.Node
		Components struct{ Parameters map[string]parameter }
	}
	if err := yaml.Unmarshal(document, &doc); err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths {
		for method, node := range item {
			if method == "parameters" {
				continue
			}
			var body struct {
				Parameters []map[string]any
				Security   []any
			}
			if err := node.Decode(&body); err != nil {
				t.Fatal(err)
			}
			if body.Security != nil { // none: it is open to everyone
				continue
			}
			o := operation{method: strings.ToUpper(method), path: path}
			for _, p := range body.Parameters {
				name, in := fmt.Sprint(p["name"]), fmt.Sprint(p["in"])
				if ref, ok := p["$ref"].(string); ok {
					known := doc.Components.Parameters[ref[strings.LastIndexByte(ref, '/')+1:]]
					name, in = known.Name, known.In
				}
				if in == "query" {
					o.query = append(o.query, name)
				}
			}
			all = append(all, o)
		}
	}
	if len(all) == 0 {
		t.Fatal("the document has no operations")
	}
	return all
}

// tenant is an organization with one of everything, all of it called Zanzibar.
type tenant struct {
	apitest.Organization
	email                                      string
	user, course, enrollment, item, key, hooks int64
	run                                        int64
	assignment, delivery, event                string
	cursors                                    map[string]string // by path
}

func newTenant(t *testing.T, e *apitest.Env, slug, email string) tenant {
	t.Helper()
	o := tenant{Organization: e.Organization(t, slug), email: email, cursors: map[string]string{}}
	number := func(a *apitest.Answer, path ...string) int64 {
		t.Helper()
		var v any = a.Object(t)
		for _, name := range path {
			if list, ok := v.([]any); ok {
				v = list[0]
			}
			v = v.(map[string]any)[name]
		}
		return int64(v.(float64))
	}
	at := "organizations/" + slug
	o.course = number(e.Platform.Post(t, at+"/courses", `{"name": "Zanzibar course", "course_type": "ielts"}`).Want(t, 201), "id")
	made := o.Full.Post(t, "provision/student/", fmt.Sprintf(`{"email": %q, "first_name": "Zanzibar", "course_ids": [%d]}`, email, o.course)).Want(t, 201)
	o.user, o.enrollment = number(made, "user_id"), number(made, "enrollments", "enrollment_id")
	o.item = number(e.Platform.Put(t, at+"/catalog/tests/zanzibar", `{"title": "Zanzibar test", "type": "ielts"}`).Want(t, 201), "item_id")
	o.hooks = number(e.Platform.Post(t, at+"/webhook-endpoints", `{"url": "https://zanzibar.example/"}`).Want(t, 201), "id")
	o.key = number(e.Platform.Post(t, at+"/api-keys", `{"name": "Zanzibar key", "access": "full"}`).Want(t, 201), "id")
	o.run = number(o.Full.With("Content-Type", "text/csv").Post(t, "roster/import/", "person_external_id,email,first_name\nz1,zanzibar1@"+slug+".example,Zanzibar\n").Want(t, 200), "run_id")
	assigned := o.Full.Post(t, "assignments/", fmt.Sprintf(`{"user_id": %d, "kind": "test", "item_id": %d}`, o.user, o.item)).Want(t, 201)
	o.assignment = assigned.Object(t)["assignment"].(map[string]any)["id"].(string)
	e.Platform.Put(t, "test-sessions/zanzibar", fmt.Sprintf(`{"organization": %q, "user_id": %d, "item_id": %d, "assignment_id": %q, "state": "finished", "score": 6}`,
		slug, o.user, o.item, o.assignment)).Want(t, 201)
	notified := e.Platform.Get(t, fmt.Sprintf("%s/webhook-endpoints/%d/deliveries", at, o.hooks)).Want(t, 200).Object(t)["deliveries"].([]any)
	o.delivery = notified[0].(map[string]any)["id"].(string)
	o.event = notified[0].(map[string]any)["event_id"].(string)
	return o
}

// leak is what no answer to another organization may hold.
var leak = regexp.MustCompile(`(?i)zanzibar`)

// Another organization's ids, emails, cursors and keys are 404, 400 or 401 on every
// route of the partner API, and its things are in no list.
func TestPartnersSeeNothingOfOthers(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.ImportRosters(t)
	theirs := newTenant(t, e, "south", "zanzibar@south.example")
	mine := e.Organization(t, "north")
	sent := map[string]string{"email": theirs.email, "user_id": fmt.Sprint(theirs.user), "course_id": fmt.Sprint(theirs.course),
		"event": theirs.event, "delivery": theirs.delivery}
	// What a POST names of others, and what is right otherwise.
	student := fmt.Sprintf(`"user_id": %d`, theirs.user)
	bodies := map[string][]string{
		"/api/v1/provision/student/": {fmt.Sprintf(`{"email": "new@north.example", "first_name": "N", "course_ids": [%d]}`, theirs.course)},
		"/api/v1/assignments/": {
			fmt.Sprintf(`{%s, "kind": "test", "item_id": %d}`, student, theirs.item),
			fmt.Sprintf(`{"email": %q, "kind": "test", "item_id": %d}`, theirs.email, theirs.item),
		},
		"/api/v1/enrollments/{id}/end/":     {`{}`, `{"end_date": "2026-12-01"}`},
		"/api/v1/enrollments/{id}/suspend/": {`{}`},
		"/api/v1/enrollments/{id}/resume/":  {`{}`},
		"/api/v1/assignments/{id}/":         {``},
		"/api/v1/roster/import/":            {`{}`}, // its rows name people by the caller's own codes
		"/api/v1/webhook-endpoints/":        {`{}`}, // it names nothing
	}
	hooks := "/api/v1/webhook-endpoints/{id}/"
	for _, path := range []string{"", "rotate-secret/", "send-test/", "turn-on/", "recover/", "deliveries/{delivery}/resend/"} {
		bodies[hooks+path] = []string{`{"time_zone": "UTC", "since": "2026-11-20T00:00:00+00:00"}`}
	}
	others := map[string]string{"enrollments": fmt.Sprint(theirs.enrollment), "assignments": theirs.assignment,
		"webhook-endpoints": fmt.Sprint(theirs.hooks), "deliveries": theirs.delivery}
	for _, o := range operations(t, openapi.Partner()) {
		t.Run(o.method+" "+o.path, func(t *testing.T) {
			for _, key := range []string{"", "reg_wrong"} {
				if a := e.Partner(key).Do(t, o.method, o.path, nil); a.Status != 401 {
					t.Errorf("with the key %q: %d", key, a.Status)
				}
			}
			path := parameter.ReplaceAllStringFunc(o.path, func(part string) string {
				noun, _, _ := strings.Cut(part, "/")
				return noun + "/" + others[noun]
			})
			if o.method == "GET" && path != o.path {
				theirs.Full.Get(t, path).Want(t, 200)
				refused(t, mine.Full.Get(t, path))
				return
			}
			if strings.HasPrefix(o.path, "/api/v1/sandbox/") { // no key of a real organization comes there
				mine.Full.Freely().Do(t, o.method, o.path, nil).WantFault(t, 404, "not_a_sandbox", "")
				return
			}
			if o.method != "GET" {
				if bodies[o.path] == nil {
					t.Fatal("say in this test how others' ids are sent to the new route")
				}
				for _, body := range bodies[o.path] {
					refused(t, mine.Full.Do(t, o.method, path, body))
				}
				return
			}
			own := theirs.Full.Get(t, o.path)
			a := mine.Full.Get(t, o.path)
			check.Equal(t, "status", a.Status, own.Status, "%s", a.Body)
			check.False(t, "the other organization's data are shown", leak.Match(a.Body), "%d %s", a.Status, a.Body)
			for _, name := range o.query {
				value, ok := sent[name]
				if name == "cursor" {
					value, ok = own.Object(t)["next_cursor"].(string)
				}
				if ok {
					refused(t, mine.Full.Get(t, o.path+"?"+name+"="+url.QueryEscape(value)))
				}
			}
		})
	}
	if body := theirs.Full.Get(t, "results/").Want(t, 200).Body; !leak.Match(body) {
		t.Errorf("there was nothing to be seen: %s", body)
	}
}

func refused(t *testing.T, a *apitest.Answer) {
	t.Helper()
	check.OneOf(t, "status", a.Status, []int{400, 404}, "%s", a.Body)
	check.False(t, "the other organization's data are shown", leak.Match(a.Body), "%d %s", a.Status, a.Body)
}

// own are path parameters by which the caller names things of the organization itself.
var own = map[string]bool{"slug": true, "email": true, "code": true, "source": true, "name": true, "domain": true}

var parameter = regexp.MustCompile(`([a-z-]+)/\{([a-z_]+)\}`)

// On the platform API a path below one organization never reaches another one's things.
func TestPlatformPathsStayWithinTheirOrganization(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.ImportRosters(t)
	theirs := newTenant(t, e, "south", "zanzibar@south.example")
	e.Organization(t, "north")
	ids := map[string]any{"courses": theirs.course, "enrollments": theirs.enrollment, "members": theirs.user, "api-keys": theirs.key,
		"webhook-endpoints": theirs.hooks, "roster-runs": theirs.run, "deliveries": theirs.delivery, "people": theirs.user}
	ids["lti-registrations"] = e.Platform.Post(t, "organizations/south/lti-registrations", `{"name": "LMS", "issuer": "https://lms.south.example", "client_id": "1", "deployments": ["1"],
		"authorize_url": "https://lms.south.example/", "token_url": "https://lms.south.example/", "keys_url": "https://lms.south.example/"}`).Want(t, 201).Object(t)["id"]
	tried := 0
	for _, o := range operations(t, openapi.Platform()) {
		if a := e.Platform.With("Authorization", "Bearer wrong").Do(t, o.method, o.path, nil); a.Status != 401 {
			t.Errorf("%s %s with a wrong key: %d", o.method, o.path, a.Status)
		}
		if !strings.Contains(o.path, "{slug}") {
			continue
		}
		foreign := false
		path := parameter.ReplaceAllStringFunc(o.path, func(part string) string {
			match := parameter.FindStringSubmatch(part)
			noun, name := match[1], match[2]
			switch n, known := ids[noun]; {
			case name == "slug":
				return noun + "/north"
			case own[name]:
				return noun + "/x"
			case known:
				foreign = true
				return fmt.Sprintf("%s/%v", noun, n)
			default:
				t.Errorf("say in this test which %s another organization has", noun)
				return noun + "/1"
			}
		})
		if !foreign {
			continue
		}
		tried++
		var body any
		if o.method != "GET" && o.method != "DELETE" {
			body = `{"name": "x", "state": "running", "status": "active", "events": [], "since": "2026-11-20T00:00:00Z", "until": "2026-11-21T00:00:00Z"}`
		}
		t.Run(o.method+" "+o.path, func(t *testing.T) { refused(t, e.Platform.Do(t, o.method, path, body)) })
	}
	if tried < 10 {
		t.Errorf("only %d routes were tried", tried)
	}
}
