package rest_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// accessAnswer is what end, suspend and resume answer.
type accessAnswer struct {
	Changed    bool
	Student    struct{ Email string }
	Enrollment enrolled
}

func access(t *testing.T, c *apitest.Client, enrollment int64, verb string, body any) accessAnswer {
	t.Helper()
	var a accessAnswer
	c.Post(t, fmt.Sprintf("enrollments/%d/%s/", enrollment, verb), body).Want(t, 200).Into(t, &a)
	return a
}

// hooked gives north a webhook URL, so that its events are recorded.
func hooked(t *testing.T, e *apitest.Env) {
	t.Helper()
	e.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north.example/"}`).Want(t, 201)
}

func eventsSent(t *testing.T, e *apitest.Env, typ string) int {
	t.Helper()
	return count(t, e, `SELECT count(*) FROM webhook_events WHERE type = '`+typ+`'`)
}

func audited(t *testing.T, e *apitest.Env, action string) int {
	t.Helper()
	return count(t, e, `SELECT count(*) FROM audit_log WHERE actor_kind = 'partner_key' AND actor_name = 'Key full' AND action = '`+action+`'`)
}

// Reference: courses#end-suspend-resume.
func TestAPartnerEndsAndSuspendsAccess(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	hooked(t, e)
	made := granted(t, north, "ana@institute.org")
	id := made.EnrollmentID

	got := access(t, north.Full, id, "suspend", nil)
	check.Equal(t, "status", got.Enrollment.Status, "suspended", "%+v", got)
	check.Equal(t, "student", got.Student.Email, "ana@institute.org", "%+v", got)
	again := access(t, north.Full, id, "suspend", nil)
	check.False(t, "changed", again.Changed, "a suspension that was there")
	check.Equal(t, "action", granted(t, north, "ana@institute.org").Action, "skipped", "a call lifts no suspension")
	got = access(t, north.Full, id, "resume", nil)
	check.Equal(t, "status", got.Enrollment.Status, "active", "%+v", got)

	got = access(t, north.Full, id, "end", `{"end_date": "2026-12-01"}`)
	check.Equal(t, "end_date", got.Enrollment.EndDate, "2026-12-01", "%+v", got)
	post := func(body string) *apitest.Answer {
		return north.Full.Post(t, fmt.Sprintf("enrollments/%d/end/", id), body)
	}
	post(`{"end_date": "2026-12-02"}`).WantFault(t, 400, "after_the_end", "end_date")
	post(`{"end_date": "2026-11-20"}`).WantFault(t, 400, "in_the_past", "end_date")
	north.Full.Freely().Post(t, fmt.Sprintf("enrollments/%d/end/", id), `{"end_date": "soon"}`).WantFault(t, 400, "not_a_date", "end_date")
	post(`{`).WantFault(t, 400, "invalid_json", "")

	got = access(t, north.Full, id, "end", nil)
	check.Equal(t, "status", got.Enrollment.Status, "dropped", "%+v", got)
	check.Equal(t, "end_date", got.Enrollment.EndDate, "2026-11-21", "%+v", got)
	check.False(t, "changed", access(t, north.Full, id, "end", `{}`).Changed, "access that was over")
	north.Full.Post(t, fmt.Sprintf("enrollments/%d/suspend", id), nil).WantFault(t, 409, "enrollment_over", "")
	north.Full.Post(t, fmt.Sprintf("enrollments/%d/resume", id), nil).WantFault(t, 409, "enrollment_over", "")

	check.Equal(t, "enrollment.ended", eventsSent(t, e, "enrollment.ended"), 2, "suspended and dropped")
	check.Equal(t, "enrollment.updated", eventsSent(t, e, "enrollment.updated"), 2, "resumed and shortened")
	for _, action := range []string{"suspended enrollment", "resumed enrollment", "shortened access", "ended access"} {
		check.Equal(t, action, audited(t, e, action), 1, "entries of the audit log")
	}
	check.Equal(t, "action", granted(t, north, "ana@institute.org").Action, "unchanged", "a call that is repeated gives the access back")
	e.Advance(24 * time.Hour)
	renewed := granted(t, north, "ana@institute.org")
	check.Equal(t, "action", renewed.Action, "reactivated", "%+v", renewed)
	check.Equal(t, "enrollment_id", renewed.EnrollmentID, id, "%+v", renewed)
}

// Reference: courses#end-suspend-resume, conventions#authentication.
func TestWhoMayChangeAccess(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north, south := e.Organization(t, "north"), e.Organization(t, "south")
	id := granted(t, north, "ana@institute.org").EnrollmentID
	for _, verb := range []string{"end", "suspend", "resume"} {
		path := fmt.Sprintf("enrollments/%d/%s/", id, verb)
		south.Full.Post(t, path, nil).WantFault(t, 404, "not_found", "")
		north.ReadOnly.Post(t, path, nil).WantFault(t, 403, "read_only_key", "")
		e.Partner("").Post(t, path, nil).WantFault(t, 401, "missing_api_key", "")
		for _, none := range []string{"0", "x", "999", "-1"} {
			north.Full.Post(t, "enrollments/"+none+"/"+verb, nil).WantFault(t, 404, "not_found", "")
		}
	}
	e.Platform.Patch(t, fmt.Sprintf("organizations/north/enrollments/%d", id), `{"state": "suspended"}`).Want(t, 200)
	for _, verb := range []string{"end", "resume"} { // what an administrator suspended
		north.Full.Post(t, fmt.Sprintf("enrollments/%d/%s", id, verb), nil).WantFault(t, 409, "suspended_by_platform", "")
	}
}

// However many clients say the same at once, it happens once. A key gets the first answer again.
func TestParallelClientsChangeAccessOnce(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	hooked(t, e)
	id := granted(t, north, "ana@institute.org").EnrollmentID
	for _, verb := range []string{"suspend", "resume", "end"} {
		var changed atomic.Int32
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if access(t, north.Full, id, verb, nil).Changed {
					changed.Add(1)
				}
			})
		}
		all.Wait()
		check.Equal(t, "changed", changed.Load(), 1, "%s by 8 clients", verb)
	}
	check.Equal(t, "enrollment.ended", eventsSent(t, e, "enrollment.ended"), 2, "suspended and ended")
	keyed := north.Full.With(keyHeader, "refund-7")
	id = granted(t, north, "ben@institute.org").EnrollmentID
	for range 2 {
		check.True(t, "changed", access(t, keyed, id, "end", nil).Changed, "the first answer again")
	}
}

// Reference: assignments#withdraw-work.
func TestWorkThatWasNotBegunIsWithdrawn(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north, south := e.Organization(t, "north"), e.Organization(t, "south")
	ana := provision(t, north, "ana@institute.org", `"courses": ["ielts"]`)
	paper := item(t, e, "catalog/tests/i1", `{"title": "IELTS 1", "type": "ielts"}`)
	give := func() string {
		return north.Full.Post(t, "assignments/", fmt.Sprintf(`{"user_id": %d, "kind": "test", "item_id": %d}`, ana, paper)).
			Want(t, 201).Object(t)["assignment"].(map[string]any)["id"].(string)
	}
	ref := give()
	south.Full.Delete(t, "assignments/"+ref).WantFault(t, 404, "assignment_not_found", "")
	north.ReadOnly.Delete(t, "assignments/"+ref).WantFault(t, 403, "read_only_key", "")
	for _, none := range []string{"test-assignment:999", "quiz" + ref[len("test"):], ref[len("test-assignment:"):], "x", "test-assignment:x"} {
		north.Full.Delete(t, "assignments/"+none).WantFault(t, 404, "assignment_not_found", "")
	}
	var withdrawn atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			a := north.Full.Delete(t, "assignments/"+ref+"/").Want(t, 200).Object(t)
			check.Equal(t, "status", fmt.Sprint(a["assignment"].(map[string]any)["status"]), "expired", "%v", a)
			if a["withdrawn"] == true {
				withdrawn.Add(1)
			}
		})
	}
	all.Wait()
	check.Equal(t, "withdrawn", withdrawn.Load(), 1, "by 8 clients")
	check.Equal(t, "audit entries", audited(t, e, "withdrew assignment"), 1, "of 8 clients")
	next := give() // the same work may be given again
	start := func() {
		e.Platform.Put(t, "test-sessions/s1", fmt.Sprintf(`{"organization": "north", "user_id": %d, "item_id": %d, "assignment_id": %q, "state": "started"}`, ana, paper, next)).Want(t, 201)
	}
	start()
	north.Full.Delete(t, "assignments/"+next).WantFault(t, 409, "work_has_begun", "")
	sql(t, e, `UPDATE assignments SET status = 'pending', source = 'plan' WHERE status = 'in_progress'`)
	north.Full.Delete(t, "assignments/"+next).WantFault(t, 409, "test_of_a_plan", "")
	sql(t, e, `UPDATE assignments SET source = 'api'`)
	keyed := north.Full.With(keyHeader, "oops-7")
	for range 2 {
		a := keyed.Delete(t, "assignments/"+next).Want(t, 200)
		check.True(t, "withdrawn", a.Object(t)["withdrawn"] == true, "the first answer again: %s", a.Body)
	}
}

// Reference: courses#enrollment-fields, provisioning#request.
func TestTheLookupShowsSourceAndReference(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	post := func(more string) {
		t.Helper()
		a := north.Full.Post(t, provisionPath, `{"email": "ana@institute.org", "first_name": "Ana", "courses": "ielts"`+more+`}`)
		check.True(check.Now(t), "2xx", a.Status < 300, "%d %s", a.Status, a.Body)
	}
	shown := func() string {
		one := north.ReadOnly.Get(t, "students/?email=ana@institute.org").Want(t, 200).Object(t)["enrollments"].([]any)[0].(map[string]any)
		return fmt.Sprint(one["source"], " ", one["external_ref"])
	}
	for _, c := range []struct{ more, want string }{
		{``, "<nil> <nil>"},
		{`, "source": "crm"`, "<nil> <nil>"}, // it changed nothing
		{`, "source": "shop", "external_ref": 7, "extend_access": true`, "shop 7"},
		{`, "source": "other", "external_ref": "7", "extend_access": true`, "shop 7"}, // a repeat
		{`, "external_ref": "order 8", "extend_access": true`, "shop order 8"},
		{`, "source": "crm", "external_ref": "order 9", "extend_access": true`, "crm order 9"},
	} {
		post(c.more)
		check.Equal(t, "source and external_ref", shown(), c.want, "after %s", c.more)
		e.Advance(time.Second)
	}
}
