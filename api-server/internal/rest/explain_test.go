package rest_test

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

type explainedDelivery struct {
	ID            string
	Host          string
	Status        string
	Reason        string
	NextAttemptAt *string `json:"next_attempt_at"`
	SupersededBy  string  `json:"superseded_by"`
	AttemptCount  int     `json:"attempt_count"`
	Attempts      []struct {
		Number int
		Status *int `json:"response_status"`
		Reason string
	}
}

type explainedEntry struct {
	At, Kind, Summary, Reason, By string
	IDs                           map[string]any
	Deliveries                    []explainedDelivery
}

type explanation struct {
	HasMore    bool                    `json:"has_more"`
	NextCursor string                  `json:"next_cursor"`
	Student    *struct{ Email string } `json:"student"`
	Entries    []explainedEntry
}

func explain(t *testing.T, c *apitest.Client, name, value string) (x explanation) {
	t.Helper()
	c.Get(t, "explain/?limit=500&"+name+"="+url.QueryEscape(value)).Want(t, 200).Into(t, &x)
	return x
}

// entry is the latest one whose kind and summary are so.
func (x explanation) entry(t *testing.T, kind, summary string) explainedEntry {
	t.Helper()
	for _, e := range x.Entries {
		if e.Kind == kind && strings.Contains(e.Summary, summary) {
			return e
		}
	}
	t.Fatalf("no %s with %q in %s", kind, summary, x)
	return explainedEntry{}
}

func (x explanation) String() string {
	var lines []string
	for _, e := range x.Entries {
		lines = append(lines, fmt.Sprintf("%s %s: %s | %s | %s", e.At, e.Kind, e.Summary, e.Reason, e.By))
	}
	return "\n" + strings.Join(lines, "\n")
}

// settle makes an attempt of each delivery that is due, which the receiver answers with the status.
func settle(t *testing.T, e *apitest.Env, status int) {
	t.Helper()
	verdict, cause := webhook.Judge(status, false)
	for more := true; more; {
		leases, _, err := dispatch.LeaseDue(t.Context(), e.DB, e.Now(), 20*time.Second, nil)
		check.NoError(check.Now(t), err, "leasing")
		var outcomes []webhook.Outcome
		for _, lease := range leases {
			held, err := dispatch.Load(t.Context(), e.DB, lease.Deliver)
			check.NoError(check.Now(t), err, "loading")
			for _, d := range held[0].Dues {
				outcomes = append(outcomes, webhook.Outcome{Delivery: d.Delivery, Endpoint: lease.Endpoint, Organization: lease.Organization, Lease: d.Lease,
					Run: d.Run, Number: d.Number, Tries: d.Tries, StartedAt: e.Now(), Duration: 3 * time.Millisecond, Verdict: verdict, Cause: cause,
					Status: status, Peer: "203.0.113.7:443"})
			}
		}
		err = e.DB.InTx(t.Context(), func(tx *pg.Tx) error { return webhook.Settle(t.Context(), tx, outcomes) })
		check.NoError(check.Now(t), err, "settling")
		more = len(outcomes) > 0
	}
}

// Everything that a student's day leaves is shown, the latest first.
// Reference: students#explain.
func TestAStudentIsExplained(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	s := &school{Env: e, Organization: e.Organization(t, "north")}
	listen(t, e, "north")
	s.ielts = item(t, e, "catalog/tests/i1", `{"title": "IELTS 1", "type": "ielts"}`)
	var made struct {
		UserID int64 `json:"user_id"`
	}
	s.Full.Post(t, "provision/student/", `{"email": "ana@school.example", "first_name": "Ana", "last_name": "Lopez", "courses": ["ielts"],
		"tenure_months": 3, "external_ref": "order-1", "target_score_plan": {"target_score": 7}}`).Want(t, 201).Into(t, &made)
	s.ana = made.UserID
	s.Advance(time.Hour)
	s.Full.Post(t, "provision/student/", `{"email": "ana@school.example", "first_name": "Ana", "courses": ["ielts"], "tenure_months": 1,
		"extend_access": true, "external_ref": "order-2", "send_welcome_email": false}`).Want(t, 200)
	s.Advance(time.Hour)
	work := s.assign(t, s.ana, "test", s.ielts)
	s.Advance(time.Hour)
	s.session(t, "s1", `"user_id": %d, "item_id": %d, "assignment_id": %q, "state": "finished", "started_at": "2026-11-21T12:00:00Z",
		"completed_at": "2026-11-21T12:45:00Z", "score": 6.5`, s.ana, s.ielts, work).Want(t, 201)
	s.Advance(time.Hour)
	withdrawn := s.assign(t, s.ana, "test", item(t, e, "catalog/tests/i2", `{"title": "IELTS 2", "type": "ielts"}`))
	s.Advance(time.Hour)
	s.Full.Delete(t, "assignments/"+withdrawn+"/").Want(t, 200)
	settle(t, e, 200)
	s.Advance(time.Hour)
	s.Full.Post(t, "enrollments/1/suspend/", nil).Want(t, 200)
	s.ReadOnly.Get(t, "explain/?email=ana@school.example&tz=Asia/Kolkata").Want(t, 200).Golden(t, "explain")
	x := explain(t, s.Full, "email", "ana@school.example")
	check.Equal(t, "the student", x.Student.Email, "ana@school.example", "%s", x)
	check.Contains(t, "the mail's reason", x.entry(t, "mail", "suppressed").Reason, "it is a test or demo domain", "%s", x)
	check.Equal(t, "who withdrew", x.entry(t, "command", "Withdrew assignment").By, "the API key “Key full”", "%s", x)
	check.Equal(t, "who suspended", x.entry(t, "command", "Suspended enrollment").By, "the API key “Key full”", "%s", x)
	check.True(t, "the latest entry comes first", slices.IsSortedFunc(x.Entries, func(a, b explainedEntry) int { return strings.Compare(b.At, a.At) }), "%s", x)
}

// A delivery that fails shows how often and why, and who asked for more. The answer about a delivery has no other one.
// Reference: students#explain.
func TestAFailedDeliveryIsExplained(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	s := &school{Env: e, Organization: e.Organization(t, "north")}
	listen(t, e, "north")
	e.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://other.example/secret-path", "events": ["student.left"]}`).Want(t, 201)
	s.ana = provision(t, s.Organization, "ana@school.example")
	joined := explain(t, s.Full, "email", "ana@school.example").entry(t, "event", "student.joined")
	check.Equal(t, "deliveries", len(joined.Deliveries), 1, "%+v", joined)
	check.Equal(t, "the reason", joined.Deliveries[0].Reason, "It waits for its first attempt.", "%+v", joined)
	for try := range 12 {
		settle(t, e, 503)
		d := explain(t, s.Full, "email", "ana@school.example").entry(t, "event", "student.joined").Deliveries[0]
		check.Equal(t, "attempts", d.AttemptCount, try+1, "%+v", d)
		if try < 11 {
			check.Equal(t, "status", d.Status, "waiting", "%+v", d)
			check.True(t, "the next attempt has a time", d.NextAttemptAt != nil, "%+v", d)
		}
		s.Advance(2 * time.Hour)
	}
	x := explain(t, s.Full, "email", "ana@school.example")
	d := x.entry(t, "event", "student.joined").Deliveries[0]
	check.Equal(t, "status", d.Status, "exhausted", "%+v", d)
	check.Contains(t, "the reason", d.Reason, "The last of 12 attempts failed", "%+v", d)
	check.Contains(t, "the reason", d.Reason, "The receiver answered 503", "%+v", d)
	check.Equal(t, "the last answer", *d.Attempts[11].Status, 503, "%+v", d)
	check.Equal(t, "host", d.Host, "receiver.example", "%+v", d)

	e.Platform.Post(t, fmt.Sprintf("organizations/north/webhook-endpoints/1/deliveries/%s/resend", d.ID), "").Want(t, 202)
	s.member(t, "inactive")
	settle(t, e, 404)
	left := explain(t, s.Full, "email", "ana@school.example").entry(t, "event", "student.left")
	check.Equal(t, "URLs", len(left.Deliveries), 2, "%+v", left)
	check.Contains(t, "the reason", left.Deliveries[1].Reason, "there is nothing at this path", "%+v", left)
	check.Contains(t, "the reason", left.Deliveries[1].Reason, "It is not tried again by itself", "%+v", left)
	for _, one := range left.Deliveries {
		x := explain(t, s.Full, "delivery", one.ID)
		check.Equal(t, "entries", len(x.Entries), 1, "%s", x)
		check.Equal(t, "deliveries", len(x.Entries[0].Deliveries), 1, "%s", x)
		check.Equal(t, "the delivery", x.Entries[0].Deliveries[0].ID, one.ID, "%s", x)
		check.Equal(t, "the student", x.Student.Email, "ana@school.example", "%s", x)
	}
	resent := explain(t, s.Full, "event", joined.IDs["event_id"].(string))
	check.Equal(t, "who resent it", resent.entry(t, "command", "Resent event").By, "the platform", "%s", resent)
	check.Equal(t, "attempts", resent.entry(t, "event", "student.joined").Deliveries[0].AttemptCount, 13, "%s", resent)
	body := string(s.Full.Get(t, "explain/?email=ana@school.example").Want(t, 200).Body)
	check.Lacks(t, "the answer", body, "secret-path", "the whole address of a URL")
}

// What a URL that is off does not get says so, and what it has had in a newer state.
// Reference: students#explain.
func TestASkippedAndASupersededDeliveryAreExplained(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	finish := `"user_id": %d, "item_id": %d, "state": "finished", "completed_at": "2026-11-20T10:45:00Z", "score": %d`
	settle(t, s.Env, 200)
	s.session(t, "s1", finish, s.ana, s.ielts, 6).Want(t, 201)
	settle(t, s.Env, 500)
	s.session(t, "s1", finish, s.ana, s.ielts, 7).Want(t, 200)
	settle(t, s.Env, 200)
	s.Advance(2 * time.Hour)
	leases, _, err := dispatch.LeaseDue(t.Context(), s.DB, s.Now(), 20*time.Second, nil)
	check.NoError(check.Now(t), err, "leasing")
	for _, lease := range leases {
		held, err := dispatch.Load(t.Context(), s.DB, lease.Deliver)
		check.NoError(check.Now(t), err, "loading")
		_, err = dispatch.WithoutSuperseded(t.Context(), s.DB, lease.Deliver, held[0].Dues, s.Now())
		check.NoError(check.Now(t), err, "superseding")
	}
	x := explain(t, s.Full, "email", "ana@school.example")
	var marks []explainedEntry
	for _, e := range x.Entries {
		if e.Kind == "event" && strings.Contains(e.Summary, "result.final") {
			marks = append(marks, e)
		}
	}
	check.Equal(check.Now(t), "results", len(marks), 2, "%s", x)
	check.Equal(t, "the first mark", marks[1].Deliveries[0].Status, "superseded", "%+v", marks)
	check.Equal(t, "what superseded it", marks[1].Deliveries[0].SupersededBy, marks[0].Deliveries[0].ID, "%+v", marks)
	check.Contains(t, "the reason", marks[1].Deliveries[0].Reason, "a newer event about the same result", "%+v", marks)

	sql(t, s.Env, `UPDATE webhook_endpoints SET switched_on = false, switched_off_at = now(), switched_off_reason = 'we are moving'`)
	s.enrollment(t, `{"state": "suspended"}`)
	d := explain(t, s.Full, "email", "ana@school.example").entry(t, "event", "enrollment.ended")
	check.Equal(t, "status", d.Deliveries[0].Status, "skipped", "%+v", d)
	check.Contains(t, "the reason", d.Deliveries[0].Reason, "The URL is switched off", "%+v", d)
	check.Contains(t, "the reason", d.Deliveries[0].Reason, "We are moving", "%+v", d)
}

// A person whom a roster brought, remarked upon, and removed.
// Reference: students#explain.
func TestARosterIsExplained(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.ImportRosters(t)
	s := &school{Env: e, Organization: e.Organization(t, "north")}
	e.Platform.Put(t, "organizations/north/roster-sources/sis", `{"authoritative_enabled": true}`).Want(t, 200)
	s.importFile(t, "additive_only", rosterHead+rosterAna+rosterBo+"3,c@school.example,C,C,student\n")
	s.Advance(time.Hour)
	s.importFile(t, "additive_only", rosterHead+"1,ana@school.example,Ana,Lopez,teacher\n")
	s.Advance(time.Hour)
	s.importFile(t, "authoritative_snapshot", rosterHead+rosterBo+"3,c@school.example,C,C,student\n")
	x := explain(t, s.ReadOnly, "email", "ana@school.example")
	check.Equal(t, "why she came", x.entry(t, "membership", "Became a student").Reason, "Roster import 1 of the source “sis” added the person.", "%s", x)
	left := x.entry(t, "membership", "became inactive")
	check.Equal(t, "why she left", left.Reason, "A roster import of the source “sis” ended it: the person was missing from the file.", "%s", x)
	run := x.entry(t, "roster", "end the membership")
	check.Equal(t, "the run's moment", run.At, left.At, "%s", x)
	check.Equal(t, "the run", run.IDs["run_id"], any(float64(3)), "%s", x)
	check.Equal(t, "the reason", run.Reason, "The person is missing from a file that lists everybody.", "%s", x)
	check.Equal(t, "who sent it", run.By, "Key full", "%s", x)
	remark := x.entry(t, "roster", "teacher reported")
	check.Contains(t, "the place", remark.Summary, "people.csv (1, line 2)", "%s", x)
	x.entry(t, "event", "student.left")

	s.Advance(time.Hour)
	s.importFile(t, "additive_only", rosterHead+rosterAna)
	x = explain(t, s.ReadOnly, "email", "ana@school.example")
	x.entry(t, "roster", "make the membership active again")
	check.Equal(t, "the membership", x.Entries[len(x.Entries)-1].Summary, "Became a student", "%s", x)
}

// Days that change an enrollment by themselves are shown when they are over.
// Reference: students#explain.
func TestTheCalendarIsExplained(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.enrollment(t, `{"end_date": "2026-12-01"}`)
	summaries := func() (all []string) {
		for _, e := range explain(t, s.Full, "email", "ana@school.example").Entries {
			if e.Kind == "enrollment" {
				all = append(all, e.At[:10]+" "+e.Summary)
			}
		}
		return all
	}
	made := "2026-11-21 Enrolled in “IELTS Academic”"
	check.Slices(t, "on the first day", summaries(), []string{made}, "")
	s.Advance(11 * 24 * time.Hour)
	check.Slices(t, "in the grace period", summaries(), []string{"2026-12-02 The grace period of “IELTS Academic” began", made}, "")
	s.Advance(20 * 24 * time.Hour)
	check.Slices(t, "after it", summaries(), []string{"2026-12-09 Access to “IELTS Academic” expired",
		"2026-12-02 The grace period of “IELTS Academic” began", made}, "")
}

// Pages of every length have each entry once, also where many are of one moment.
// Reference: students#explain.
func TestExplanationsHavePages(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	for range 3 {
		s.leave(t)
		s.enrollment(t, `{"state": "running"}`)
		s.member(t, "active")
	}
	s.Advance(time.Minute)
	s.assign(t, s.ana, "test", s.ielts)
	whole := explain(t, s.Full, "email", "ana@school.example")
	check.True(check.Now(t), "there is much to show", len(whole.Entries) > 15, "%s", whole)
	key := func(e explainedEntry) string { return fmt.Sprint(e.At, e.Kind, e.Summary, e.IDs) }
	for _, limit := range []int{1, 2, 7} {
		var got []explainedEntry
		for cursor, more := "", true; more; {
			var x explanation
			s.Full.Get(t, fmt.Sprintf("explain/?email=ana@school.example&limit=%d&cursor=%s", limit, cursor)).Want(t, 200).Into(t, &x)
			check.Equal(check.Now(t), "has_more", x.HasMore, len(got)+len(x.Entries) < len(whole.Entries), "after %d", len(got))
			got, cursor, more = append(got, x.Entries...), x.NextCursor, x.HasMore
		}
		check.Slices(t, "the entries", mapped(got, key), mapped(whole.Entries, key), "by %d", limit)
	}
	s.Full.Get(t, "explain/?email=bo@school.example&cursor="+whole.NextCursor).WantFault(t, 400, "invalid_cursor", "cursor")
	// Nothing is older than the last entry.
	var end explanation
	s.Full.Get(t, "explain/?email=ana@school.example&cursor="+whole.NextCursor).Want(t, 200).Into(t, &end)
	check.Equal(t, "entries after the last", len(end.Entries), 0, "%s", end)
	check.Equal(t, "next_cursor", end.NextCursor, whole.NextCursor, "%s", end)
}

func mapped[T, S any](all []T, f func(T) S) (out []S) {
	for _, one := range all {
		out = append(out, f(one))
	}
	return out
}

// A person whom two organizations have is explained to each with its own alone.
// Reference: students#explain.
func TestNothingOfAnotherOrganizationIsExplained(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.ImportRosters(t)
	north, south, west := e.Organization(t, "north"), e.Organization(t, "south"), e.Organization(t, "west")
	listen(t, e, "north")
	e.Platform.Post(t, "organizations/south/webhook-endpoints", `{"url": "https://zanzibar.example/in"}`).Want(t, 201)
	e.Platform.Put(t, "organizations/south/roster-sources/zanzibar", `{"authoritative_enabled": true}`).Want(t, 200)
	south.Full.With("Content-Type", "text/csv").With("X-Roster-Source", "zanzibar").Post(t, "roster/import/", rosterHead+"z1,eve@institute.org,Zanzibar,Z,student\n").Want(t, 200)
	south.Full.Post(t, "provision/student/", `{"email": "eve@institute.org", "first_name": "Zanzibar", "courses": ["sat"], "external_ref": "zanzibar-1",
		"source": "zanzibar", "target_score_plan": {"target_score": 1400, "test_plan": true, "timezone": "UTC", "staff_recipients": []}}`).Want(t, 200)
	var made struct {
		UserID int64 `json:"user_id"`
	}
	north.Full.Post(t, "provision/student/", `{"email": "eve@institute.org", "first_name": "Eve", "last_name": "Adams", "courses": ["ielts"]}`).Into(t, &made)
	quiz := item(t, e, "organizations/south/catalog/quizzes/z", `{"title": "Zanzibar"}`)
	south.Full.Post(t, "assignments/", fmt.Sprintf(`{"user_id": %d, "kind": "quiz", "item_id": %d}`, made.UserID, quiz)).Want(t, 201)
	e.Platform.Patch(t, fmt.Sprintf("organizations/south/members/%d", made.UserID), `{"status": "inactive"}`).Want(t, 200)
	settle(t, e, 503)

	leak := regexp.MustCompile(`(?i)zanzibar|"sat|SAT|1400`)
	random := regexp.MustCompile(`(evt|dlv)_[0-9a-f]{32}|"next_cursor": ?"[^"]*"`) // may have any letters and digits
	theirs := explain(t, south.Full, "email", "eve@institute.org")
	for _, kind := range []string{"command", "roster", "membership", "enrollment", "plan", "assignment", "mail", "event"} {
		check.True(t, "the other organization is shown a "+kind, slices.ContainsFunc(theirs.Entries, func(e explainedEntry) bool {
			return e.Kind == kind || kind == "roster" && strings.Contains(e.Reason, "Roster import")
		}), "%s", theirs)
	}
	a := north.Full.Get(t, "explain/?email=eve@institute.org&limit=500").Want(t, 200)
	check.False(t, "something of the other organization is shown", leak.Match(random.ReplaceAll(a.Body, nil)), "%s", a.Body)
	mine := explain(t, north.Full, "email", "eve@institute.org")
	check.Slices(t, "what is shown", mapped(mine.Entries, func(e explainedEntry) string { return e.Kind }), []string{"event", "event", "mail", "enrollment", "membership"}, "%s", mine)
	for _, event := range theirs.Entries {
		if event.Kind != "event" {
			continue
		}
		north.Full.Get(t, "explain/?event="+event.IDs["event_id"].(string)).WantFault(t, 404, "not_found", "")
		for _, d := range event.Deliveries {
			north.Full.Get(t, "explain/?delivery="+d.ID).WantFault(t, 404, "not_found", "")
		}
	}
	west.Full.Get(t, "explain/?email=eve@institute.org").WantFault(t, 404, "student_not_found", "")
}

// Reference: students#explain, conventions#scopes.
func TestWhatIsExplainedIsOneThing(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	provision(t, north, "ana@school.example")
	for query, f := range map[string]struct{ code, field string }{
		"":                                   {"one_subject", "email"},
		"event=":                             {"one_subject", "email"},
		"email=ana@school.example&event=x":   {"one_subject", "email"},
		"event=x&delivery=y":                 {"one_subject", "email"},
		"email=ana@school.example&limit=501": {"out_of_range", "limit"},
		"email=ana@school.example&tz=Local":  {"unknown_time_zone", "tz"},
	} {
		north.Full.Get(t, "explain/?"+query).WantFault(t, 400, f.code, f.field)
	}
	north.Full.Get(t, "explain/?email=").Want(t, 400)
	north.Full.Get(t, "explain/?email=nobody@school.example").WantFault(t, 404, "student_not_found", "")
	for _, query := range []string{"event=evt_x", "event=dlv_01a1fe95bc757c30b7fbfd4e5bd65e1f", "event=evt_01a1fe95bc757c30b7fbfd4e5bd65e1f",
		"delivery=7", "delivery=dlv_01a1fe95bc757c30b7fbfd4e5bd65e1f"} {
		north.Full.Get(t, "explain/?"+query).WantFault(t, 404, "not_found", "")
	}
}
