package rest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/flow/enrollment"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// place is what is known of an enrollment, from an event or an answer.
type place struct {
	Status    string `json:"status"`
	StartDate string `json:"start_date"`
	EndDate   string `json:"end_date"`
	GraceEnd  string `json:"grace_period_end"`
	HasAccess bool   `json:"has_access"`
}

// mirror is what a receiver of all events believes.
type mirror struct {
	student bool
	places  map[int]place
	warned  map[string]bool // "enrollment end date", of enrollment.expiring
	faults  []string
}

func (m *mirror) fault(format string, args ...any) {
	m.faults = append(m.faults, fmt.Sprintf(format, args...))
}

// apply takes an event, which must fit to what is believed.
func (m *mirror) apply(typ string, raw []byte) {
	var data struct {
		Enrollment struct {
			ID int `json:"enrollment_id"`
			place
		}
		Previous       map[string]any
		PreviousStatus string `json:"previous_status"`
		DaysLeft       int    `json:"days_left"`
	}
	if err := json.Unmarshal(raw, &data); err != nil {
		m.fault("%v", err)
	}
	e := data.Enrollment
	old, known := m.places[e.ID]
	switch typ {
	case "student.joined", "student.left":
		if m.student == (typ == "student.joined") {
			m.fault("%s comes twice", typ)
		}
		m.student = !m.student
		return
	case "enrollment.created":
		if known {
			m.fault("enrollment %d is created twice", e.ID)
		}
	case "enrollment.updated":
		if want := changes(old, e.place); !known || len(want) == 0 || !maps.Equal(want, data.Previous) {
			m.fault("%s of %+v: previous %v, want %v", typ, e, data.Previous, want)
		}
	case "enrollment.ended":
		if over := []string{"expired", "completed", "dropped", "suspended"}; data.PreviousStatus != old.Status || old.Status == e.Status || !slices.Contains(over, e.Status) {
			m.fault("%s of %+v after %q: previous_status %q", typ, e, old.Status, data.PreviousStatus)
		}
	case "enrollment.expiring":
		key := fmt.Sprint(e.ID, " ", e.EndDate)
		if m.warned[key] || data.DaysLeft < 1 || data.DaysLeft > 7 || e.place != old {
			m.fault("%s %s with %d days left", typ, key, data.DaysLeft)
		}
		m.warned[key] = true
	}
	m.places[e.ID] = e.place
}

// changes are the old values of what is not the same.
func changes(old, now place) map[string]any {
	p := map[string]any{}
	differ(p, "status", old.Status, now.Status)
	differ(p, "start_date", old.StartDate, now.StartDate)
	differ(p, "end_date", old.EndDate, now.EndDate)
	differ(p, "grace_period_end", old.GraceEnd, now.GraceEnd)
	differ(p, "has_access", old.HasAccess, now.HasAccess)
	return p
}

func differ[T comparable](into map[string]any, name string, old, now T) {
	if old != now {
		into[name] = old
	}
}

// world is one student's story.
type world struct {
	*apitest.Env
	t     *testing.T
	north apitest.Organization
	email string
	user  int
	mirror
}

// listen takes the events since the last time.
func (w *world) listen() int {
	rows, err := w.DB.Query(w.t.Context(), `WITH gone AS (DELETE FROM webhook_events RETURNING id, type, data) SELECT type, data FROM gone ORDER BY id`)
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var typ string
		var raw []byte
		if err := rows.Scan(&typ, &raw); err != nil {
			w.t.Fatal(err)
		}
		w.apply(typ, raw)
	}
	return n
}

// truth is what the list says of the student: whether there is one, and the enrollments.
func (w *world) truth() (bool, map[int]place) {
	var list struct {
		Membership  *struct{ Role, Status string }
		Enrollments []struct {
			ID int `json:"enrollment_id"`
			place
		}
	}
	w.north.Full.Get(w.t, "students/?email="+w.email).Want(w.t, 200).Into(w.t, &list)
	places, student := map[int]place{}, list.Membership != nil && list.Membership.Status == "active"
	for _, e := range list.Enrollments {
		places[e.ID] = e.place
		student = student || slices.Contains([]string{"active", "grace_period", "pending"}, e.Status)
	}
	return student, places
}

func (w *world) provision(body map[string]any) (status string, entries map[int]string) {
	var a struct {
		Status      string
		UserID      int `json:"user_id"`
		Enrollments []struct {
			ID     int `json:"enrollment_id"`
			Action string
		}
	}
	r := w.north.Full.Post(w.t, provisionPath, body)
	check.OneOf(check.Now(w.t), "status", r.Status, []int{200, 201}, "%v: %s", body, r.Body)
	r.Into(w.t, &a)
	w.user, entries = a.UserID, map[int]string{}
	for _, e := range a.Enrollments {
		entries[e.ID] = e.Action
	}
	return a.Status, entries
}

// provisioned makes a random call and holds what must be true of every call.
func (w *world) provisioned(t *rapid.T) {
	body := map[string]any{"email": w.email, "first_name": "Ana",
		"courses": rapid.SliceOfN(rapid.SampledFrom([]string{"ielts", "toefl"}), 0, 2).Draw(t, "courses")}
	if rapid.Bool().Draw(t, "tenure") {
		body["tenure_months"] = rapid.IntRange(1, 3).Draw(t, "months")
	}
	if rapid.Bool().Draw(t, "extend") {
		body["extend_access"], body["external_ref"] = true, rapid.IntRange(1, 3).Draw(t, "ref")
	}
	_, before := w.known()
	w.provision(body)
	w.listen()
	_, after := w.truth()
	for e, p := range before {
		if after[e].EndDate < p.EndDate {
			w.fault("the end date of %d moved back from %s to %s", e, p.EndDate, after[e].EndDate)
		}
	}
	status, entries := w.provision(body)
	for e, action := range entries {
		if action != "unchanged" && action != "skipped" {
			w.fault("a repeat makes of %d %s", e, action)
		}
	}
	_, again := w.truth()
	if n := w.listen(); status != "already_provisioned" || n != 0 || !maps.Equal(after, again) {
		w.fault("a repeat is %s, sends %d events and leaves %v of %v", status, n, again, after)
	}
}

func (w *world) known() (bool, map[int]place) {
	if w.user == 0 {
		return false, nil
	}
	return w.truth()
}

func (w *world) administered(t *rapid.T) {
	_, places := w.known()
	ids := slices.Sorted(maps.Keys(places))
	if w.user == 0 || len(ids) == 0 {
		return
	}
	which := rapid.SampledFrom(ids).Draw(t, "enrollment")
	body := map[string]any{}
	switch rapid.IntRange(0, 3).Draw(t, "what") {
	case 0, 1:
		body["state"] = rapid.SampledFrom([]string{"running", "suspended", "dropped", "completed"}).Draw(t, "state")
	case 2:
		start, _ := time.Parse(time.DateOnly, places[which].StartDate)
		body["end_date"] = start.AddDate(0, 0, rapid.IntRange(0, 120).Draw(t, "length")).Format(time.DateOnly)
	case 3:
		status := rapid.SampledFrom([]string{"active", "inactive"}).Draw(t, "status")
		w.Platform.Patch(w.t, fmt.Sprintf("organizations/north/members/%d", w.user), map[string]any{"status": status}).Want(w.t, 200)
		return
	}
	w.Platform.Patch(w.t, fmt.Sprintf("organizations/north/enrollments/%d", which), body).Want(w.t, 200)
}

func (w *world) sweep() {
	if _, err := (&enrollment.Service{DB: w.DB, Clock: w.Now, Zone: time.UTC}).Sweep(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// Random stories of one student keep the invariants: the end date never moves back by
// provisioning, a repeat changes nothing, and a receiver of all events knows the truth.
func TestAnyStoryIsToldTruly(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	endpoint(t, e, north.ID)
	stories := 0
	rapid.Check(t, func(rt *rapid.T) {
		stories++
		w := &world{Env: e, t: t, north: north, email: fmt.Sprintf("s%d@institute.org", stories),
			mirror: mirror{places: map[int]place{}, warned: map[string]bool{}}}
		defer w.erase()
		for range rapid.IntRange(2, 9).Draw(rt, "steps") {
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0, 1:
				w.provisioned(rt)
			case 2, 3:
				e.Advance(time.Duration(rapid.IntRange(1, 50).Draw(rt, "days")) * 24 * time.Hour)
				w.sweep()
			case 4:
				e.Advance(time.Duration(rapid.IntRange(1, 50).Draw(rt, "days unswept")) * 24 * time.Hour)
				w.provisioned(rt)
			case 5:
				w.administered(rt)
			}
			w.listen()
			if student, places := w.known(); student != w.student || !maps.Equal(places, w.places) && len(places)+len(w.places) > 0 {
				w.fault("true is: student %v, %v; the receiver believes: student %v, %v", student, places, w.student, w.places)
			}
			if len(w.faults) > 0 {
				rt.Fatal(strings.Join(w.faults, "\n"))
			}
		}
	})
}

// erase removes the story's student, so that the next one's events are its own.
func (w *world) erase() {
	exec(w.t, w.Env, `DELETE FROM accounts`)
	w.listen()
}

func endpoint(t *testing.T, e *apitest.Env, in id.Organization) {
	t.Helper()
	exec(t, e, fmt.Sprintf(`INSERT INTO webhook_endpoints (organization_id, slot, url, created_at, updated_at) VALUES (%d, 1, 'https://hooks.test/', now(), now())`, in))
}
