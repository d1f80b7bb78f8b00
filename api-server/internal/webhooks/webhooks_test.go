package webhooks_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/domain/webhook/webhooktest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// calls are those about an organization's webhook URLs, over one of the APIs.
type calls struct {
	client *apitest.Client
	base   string
}

func (c calls) get(t *testing.T, path string) *apitest.Answer {
	t.Helper()
	return c.client.Get(t, c.base+path)
}

func (c calls) post(t *testing.T, path string, body any) *apitest.Answer {
	t.Helper()
	return c.client.Post(t, c.base+path, body)
}

func (c calls) patch(t *testing.T, path string, body any) *apitest.Answer {
	t.Helper()
	return c.client.Patch(t, c.base+path, body)
}

func (c calls) delete(t *testing.T, path string) *apitest.Answer {
	t.Helper()
	return c.client.Delete(t, c.base+path)
}

// partner are the calls of an organization itself.
func partner(o apitest.Organization) calls { return calls{o.Full, "webhook-endpoints"} }

// site is a test's pair of APIs with two organizations, whose calls go over one of them.
type site struct {
	*apitest.Env
	organization apitest.Organization // north
	north, south calls
}

// both runs a test over each of the APIs, which answer alike.
func both(t *testing.T, test func(t *testing.T, s site)) {
	t.Helper()
	for _, name := range []string{"partner", "platform"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := apitest.New(t)
			north, south := e.Organization(t, "north"), e.Organization(t, "south")
			s := site{e, north, partner(north), partner(south)}
			if name == "platform" {
				s.north, s.south = calls{e.Platform, "organizations/north/webhook-endpoints"}, calls{e.Platform, "organizations/south/webhook-endpoints"}
			}
			test(t, s)
		})
	}
}

const one = `{"url": "https://hooks.north-institute.org/in"}`

// Reference: webhooks#managing-urls.
func TestURLsAreAddedChangedAndDeleted(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s site) {
		s.north.post(t, "", `{"url": "https://Hooks.north-institute.org/in"}`).Want(t, 201).Golden(t, "endpoint-created")
		s.north.post(t, "", `{"url": "https://hooks.north-institute.org/other", "events": "result.final, student.joined", "time_zone": "Asia/Kolkata"}`).Want(t, 201)
		s.north.get(t, "").Want(t, 200).Golden(t, "endpoints")
		s.north.patch(t, "/2", `{"events": [], "time_zone": "Europe/London"}`).Want(t, 200).Golden(t, "endpoint-changed")
		s.north.get(t, "/2").Want(t, 200).Golden(t, "endpoint-changed")
		s.north.patch(t, "/2", one).WantFault(t, 409, "url_exists", "")
		s.north.delete(t, "/2").Want(t, 200)
		s.north.delete(t, "/2").WantFault(t, 404, "not_found", "")
	})
}

func TestSettingsThatAreWrongAreRefused(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s site) {
		post := func(body string) *apitest.Answer { return s.north.post(t, "", body) }
		post(`{"url": `).WantFault(t, 400, "invalid_json", "")
		post(`{}`).WantFault(t, 400, "missing", "url")
		post(`{"url": 7}`).WantFault(t, 400, "wrong_type", "url")
		for url, code := range map[string]string{"http://hooks.north-institute.org/": "https_required", "https://10.0.0.1/": "address_not_public",
			"https://127.0.0.1/": "address_not_public", "https://[::1]/": "address_not_public", "https://169.254.169.254/latest/": "address_not_public",
			"https://hooks.north-institute.org:25/": "port_not_allowed"} {
			post(`{"url": "`+url+`"}`).WantFault(t, 400, code, "url")
		}
		post(`{"url": "https://hooks.north-institute.org/", "events": "student.born"}`).WantFault(t, 400, "unknown_event", "events")
		post(`{"url": "https://hooks.north-institute.org/", "time_zone": "Local"}`).WantFault(t, 400, "unknown_time_zone", "time_zone")
		f := post(`{"url": "ftp://x/", "events": ["ping"], "time_zone": "Local"}`).WantFault(t, 400, "https_required", "url")
		check.Equal(t, "faults that are listed", len(f.Errors), 3, "%+v", f)
		s.north.get(t, "").Want(t, 200).Golden(t, "endpoints-none")
		for i := range 10 {
			post(fmt.Sprintf(`{"url": "https://hooks.north-institute.org/%d"}`, i)).Want(t, 201)
		}
		post(`{"url": "https://hooks.north-institute.org/10"}`).WantFault(t, 409, "url_limit", "")
		s.north.patch(t, "/1", `{"url": "https://10.0.0.1/"}`).WantFault(t, 400, "address_not_public", "url")
		s.north.delete(t, "/3").Want(t, 200)
		post(`{"url": "https://hooks.north-institute.org/0"}`).WantFault(t, 409, "url_exists", "")
		s.south.post(t, "", `{"url": "https://hooks.north-institute.org/0"}`).Want(t, 201) // another organization may have it, too
	})
}

// Unknown fields of a body are warned of: `event` would be every event.
// Reference: conventions#unknown-fields.
func TestAMisspeltSettingIsAWarning(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s site) {
		loose := calls{s.north.client.Freely(), s.north.base}
		var answer struct{ Warnings []string }
		loose.post(t, "", `{"url": "https://hooks.north-institute.org/in", "event": "result.final"}`).Want(t, 201).Into(t, &answer)
		check.Equal(t, "warnings", fmt.Sprint(answer.Warnings), "[`event` is not a field; did you mean `events`?]", "of a new URL")
		loose.patch(t, "/1", `{"zone": "UTC"}`).Want(t, 200).Into(t, &answer)
		check.Equal(t, "warnings", len(answer.Warnings), 1, "of a change: %v", answer.Warnings)
		loose.post(t, "/1/recover", `{"since": "2026-11-20T00:00:00Z", "to": "2026-11-21T00:00:00Z"}`).Want(t, 202).Into(t, &answer)
		check.Equal(t, "warnings", len(answer.Warnings), 1, "of a recovery: %v", answer.Warnings)
	})
}

func TestURLsAreTestedRotatedAndTurnedOn(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s site) {
		first := s.north.post(t, "", one).Want(t, 201).Object(t)
		rotated := s.north.post(t, "/1/rotate-secret", "").Want(t, 200).Golden(t, "endpoint-rotated").Object(t)
		check.True(t, "the secret is another one", rotated["signing_secret"] != first["signing_secret"], "after its rotation")
		check.Equal(t, "the overlap", rotated["previous_secret_until"], nil, "without one")
		overlapping := s.north.post(t, "/1/rotate-secret?tz=Asia/Kolkata", `{"overlap_hours": 168, "hours": 1}`).Want(t, 200).Object(t)
		check.Equal(t, "the overlap", overlapping["previous_secret_until"], any(clock.Format(s.Now().Add(7*24*time.Hour), time.FixedZone("", 5*3600+1800))), "of seven days")
		check.True(t, "there is a warning", overlapping["warnings"] != nil, "about an unknown field: %v", overlapping)
		s.north.post(t, "/1/rotate-secret", `{"overlap_hours": 169}`).WantFault(t, 400, "not_a_whole_number", "overlap_hours")
		s.north.post(t, "/1/rotate-secret", `{"overlap_hours": -1}`).WantFault(t, 400, "not_a_whole_number", "overlap_hours")
		shown := s.north.get(t, "/1").Want(t, 200).Object(t)
		check.True(t, "the overlap is shown", shown["previous_secret_until"] != nil, "%v", shown)
		s.north.post(t, "/1/rotate-secret", "").Want(t, 200)
		s.north.post(t, "/1/send-test", "").Want(t, 202).Golden(t, "endpoint-test-sent")
		s.north.post(t, "/1/turn-on", "").Want(t, 200).Golden(t, "endpoint-turned-on")
	})
}

func TestURLsOfAnotherOrganizationAreNotFound(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s site) {
		s.north.post(t, "", one).Want(t, 201)
		s.south.post(t, "", `{"url": "https://hooks.south-institute.org/in"}`).Want(t, 201)
		webhooktest.Decline(t, s.DB, s.organization.ID, s.Now(), 1)
		delivery := "/deliveries/" + s.deliveries(t, "").ids()[0]
		for _, path := range []string{"/1", "/1/deliveries", "/1/recoveries", "/1" + delivery, "/2" + delivery} {
			s.south.get(t, path).WantFault(t, 404, "not_found", "")
		}
		for _, path := range []string{"/1/rotate-secret", "/1/send-test", "/1/turn-on", "/1" + delivery + "/resend", "/2" + delivery + "/resend"} {
			s.south.post(t, path, "").WantFault(t, 404, "not_found", "")
		}
		s.south.post(t, "/1/recover", span).WantFault(t, 404, "not_found", "")
		s.south.patch(t, "/1", `{"time_zone": "UTC"}`).WantFault(t, 404, "not_found", "")
		s.south.delete(t, "/1").WantFault(t, 404, "not_found", "")
		cursor := s.deliveries(t, "").NextCursor
		s.south.get(t, "/2/deliveries?cursor="+cursor).WantFault(t, 400, "invalid_cursor", "cursor")
		check.Equal(t, "north's secret", s.north.get(t, "/1").Want(t, 200).Object(t)["secret_version"], any(1.0), "is as it was")
	})
}

// log is a page of a URL's deliveries.
type log struct {
	Count      int
	HasMore    bool   `json:"has_more"`
	NextCursor string `json:"next_cursor"`
	Deliveries []struct {
		ID      string
		Created string `json:"created_at"`
		Ended   string `json:"finished_at"`
	}
}

// ids are those of the deliveries.
func (l log) ids() (ids []string) {
	for _, d := range l.Deliveries {
		ids = append(ids, d.ID)
	}
	return ids
}

// deliveries reads the log of north's first URL.
func (s site) deliveries(t *testing.T, query string) (l log) {
	t.Helper()
	s.north.get(t, "/1/deliveries?"+query).Want(t, 200).Into(t, &l)
	return l
}

func TestDeliveriesAreListedWithEveryAttempt(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s site) {
		s.north.post(t, "", one).Want(t, 201)
		check.Equal(t, "deliveries", s.deliveries(t, "").Count, 0, "of a new URL")
		webhooktest.Decline(t, s.DB, s.organization.ID, s.Now(), 3)
		first := s.deliveries(t, "status=declined&limit=2")
		second := s.deliveries(t, "status=declined&limit=2&cursor="+first.NextCursor)
		check.Equal(check.Now(t), "rows of the pages", [2]int{first.Count, second.Count}, [2]int{2, 1}, "%+v, %+v", first, second)
		check.Equal(check.Now(t), "has_more of the pages", [2]bool{first.HasMore, second.HasMore}, [2]bool{true, false}, "%+v, %+v", first, second)
		last := "/1/deliveries/" + second.Deliveries[0].ID
		s.north.get(t, last).Want(t, 200).Golden(t, "delivery")
		s.north.get(t, "/1/deliveries?cursor="+first.NextCursor).WantFault(t, 400, "invalid_cursor", "cursor")
		s.north.get(t, "/1/deliveries?status=lost").WantFault(t, 400, "unknown_status", "status")
		s.north.get(t, "/1/deliveries?limit=0").WantFault(t, 400, "out_of_range", "limit")
		s.north.get(t, "/1/deliveries/dlv_0").WantFault(t, 404, "not_found", "")
		s.north.get(t, "/2/deliveries").WantFault(t, 404, "not_found", "")
		s.north.post(t, last+"/resend", "").Want(t, 202)
		check.Equal(t, "deliveries that wait", s.deliveries(t, "status=waiting,%20in_flight").Count, 1, "after a resend")
	})
}

// What receivers answer fills no api-server: a page ends early, and a delivery shows its latest attempts.
// Reference: webhooks#managing-urls.
func TestALongLogComesInShortPages(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s site) {
		s.north.post(t, "", one).Want(t, 201)
		webhooktest.Decline(t, s.DB, s.organization.ID, s.Now(), 1)
		const others = 260
		for _, statement := range []string{
			`INSERT INTO webhook_journal (organization_id, endpoint_id, delivery_id, number, event_id, status, started_at, outcome, cause, response_body, request_headers)
				SELECT organization_id, endpoint_id, uuid7(), 1, event_id, 'declined', started_at, 'declined', 'http_404', convert_to(repeat('x', 4096), 'UTF8'), '{}'
				FROM webhook_journal, generate_series(1, ` + fmt.Sprint(others) + `)`,
			`INSERT INTO webhook_journal (organization_id, endpoint_id, delivery_id, number, event_id, started_at, outcome, cause, request_headers)
				SELECT organization_id, endpoint_id, delivery_id, n, event_id, started_at + n * interval '1 s', 'declined', 'http_404', '{}'
				FROM (SELECT * FROM webhook_journal ORDER BY delivery_id DESC LIMIT 1) AS newest, generate_series(2, 30) AS n`,
		} {
			if _, err := s.DB.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		var ids []string
		pages, cursor := 0, ""
		for more := true; more; pages++ {
			l := s.deliveries(t, "limit=500&cursor="+cursor)
			ids, cursor, more = append(ids, l.ids()...), l.NextCursor, l.HasMore
		}
		check.True(t, "there are several pages", pages > 1, "%d", pages)
		check.Equal(t, "deliveries of all pages", len(ids), 1+others, "none is missing")
		check.True(t, "they are newest first, each once", slices.IsSortedFunc(ids, func(a, b string) int { return strings.Compare(b, a) }) &&
			len(slices.Compact(slices.Clone(ids))) == len(ids), "%v", ids)
		var d struct{ Attempts []struct{ Number int } }
		s.north.get(t, "/1/deliveries/"+ids[0]).Want(t, 200).Into(t, &d)
		check.True(check.Now(t), "the latest attempts are shown", len(d.Attempts) == 20, "%+v", d)
		check.Equal(t, "the numbers", [2]int{d.Attempts[0].Number, d.Attempts[19].Number}, [2]int{11, 30}, "of the first and the last one")
	})
}

const span = `{"since": "2020-01-01T00:00:00+00:00", "until": "2099-01-01T00:00:00+00:00"}`

func TestARecoveryIsBegunAndWatched(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s site) {
		s.north.post(t, "", one).Want(t, 201)
		webhooktest.Decline(t, s.DB, s.organization.ID, s.Now(), 3)
		s.north.post(t, "/1/recover", span).Want(t, 202).Golden(t, "recovery")
		s.north.post(t, "/1/recover", span).WantFault(t, 409, "recovery_running", "")
		s.north.post(t, "/1/recover", `{}`).WantFault(t, 400, "missing", "since")
		s.north.post(t, "/1/recover", `{"since": "2026-01-02T00:00:00Z", "until": "2026-01-02T00:00:00Z"}`).WantFault(t, 400, "empty_range", "until")
		s.north.get(t, "/1/recoveries").Want(t, 200).Golden(t, "recoveries")
	})
}

// Reference: conventions#dates-and-times.
func TestTimestampsAreInTheZoneThatIsAskedFor(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s site) {
		const here = "2026-11-21T15:30:00+05:30"
		created := func(a *apitest.Answer) any { return a.Object(t)["created_at"] }
		check.Equal(t, "created_at", created(s.north.post(t, "?tz=Asia/Kolkata", one).Want(t, 201)), any(here), "of a new URL")
		webhooktest.Decline(t, s.DB, s.organization.ID, s.Now(), 1)
		for _, d := range s.deliveries(t, "tz=Asia/Kolkata").Deliveries {
			check.Equal(t, "the times", [2]string{d.Created, d.Ended}, [2]string{here, here}, "of a delivery")
			check.Equal(t, "created_at", created(s.north.get(t, "/1/deliveries/"+d.ID+"?tz=Asia/Kolkata").Want(t, 200)), any(here), "of a delivery")
		}
		check.Contains(t, "the list", string(s.north.get(t, "?tz=Asia/Kolkata").Want(t, 200).Body), here, "of URLs")
		check.Equal(t, "created_at", created(s.north.get(t, "/1?tz=Asia/Kolkata").Want(t, 200)), any(here), "of a URL")
		check.Equal(t, "created_at", created(s.north.patch(t, "/1?tz=Asia/Kolkata", `{}`).Want(t, 200)), any(here), "of a change")
		for _, action := range []string{"/1/rotate-secret", "/1/turn-on"} {
			check.Equal(t, "created_at", created(s.north.post(t, action+"?tz=Asia/Kolkata", "").Want(t, 200)), any(here), "%s", action)
		}
		check.Equal(t, "created_at", created(s.north.post(t, "/1/recover?tz=Asia/Kolkata", span).Want(t, 202)), any(here), "of a recovery")
		check.Contains(t, "the list", string(s.north.get(t, "/1/recoveries?tz=Asia/Kolkata").Want(t, 200).Body), here, "of recoveries")
		f := s.north.post(t, "?tz=Nowhere", `{}`).WantFault(t, 400, "unknown_time_zone", "tz")
		check.Equal(t, "faults that are listed", len(f.Errors), 2, "%+v", f)
		for _, path := range []string{"", "/1", "/1/deliveries", "/1/recoveries"} {
			s.north.get(t, path+"?tz=Local").WantFault(t, 400, "unknown_time_zone", "tz")
		}
	})
}
