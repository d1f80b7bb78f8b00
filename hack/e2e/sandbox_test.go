package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// sandboxSchool is the sandbox of a house's organization.
type sandboxSchool struct {
	*house
	testKey string
}

func newSandbox(t *testing.T) *sandboxSchool {
	t.Helper()
	h := newHouseOn(t, pgtest.URL(t), "SANDBOX_DATABASE_URL="+pgtest.Server(t))
	for i := range 8 {
		h.platform(http.MethodPut, fmt.Sprintf("catalog/tests/mock-%d", i), `{"title": "IELTS mock", "type": "ielts"}`, nil)
		h.platform(http.MethodPut, fmt.Sprintf("catalog/tests/writing-%d", i), `{"title": "IELTS writing", "type": "ielts", "scope": "writing"}`, nil)
	}
	h.platform(http.MethodPut, "organizations/demo/sandbox", ``, nil)
	var made struct{ Key string }
	h.platform(http.MethodPost, "organizations/demo/api-keys", `{"name": "Sandbox", "access": "full", "sandbox": true}`, &made)
	h.secrets = append(h.secrets, made.Key)
	return &sandboxSchool{h, made.Key}
}

// ask calls the partner API with the sandbox's key.
func (s *sandboxSchool) ask(method, path, body string, into any) {
	s.t.Helper()
	status, text := s.call(method, s.settings.PublicURL()+"/api/v1/"+path, "X-API-Key", s.testKey, body)
	if status >= 300 {
		s.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	if into != nil {
		must(s.t, json.Unmarshal(text, into))
	}
}

// advance moves the clock and waits until it is there. meanwhile is called while it is moved.
func (s *sandboxSchool) advance(body string, meanwhile func()) {
	s.t.Helper()
	s.ask(http.MethodPost, "sandbox/advance/", body, nil)
	if meanwhile != nil {
		meanwhile()
	}
	s.arrive()
}

// arrive waits until the clock is where it is moved.
func (s *sandboxSchool) arrive() {
	s.t.Helper()
	for deadline := time.Now().Add(4 * limit); ; time.Sleep(10 * time.Millisecond) {
		var shown struct{ Moving *struct{ Progress float64 } }
		s.ask(http.MethodGet, "sandbox/", "", &shown)
		if shown.Moving == nil {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the clock does not arrive: %+v", shown.Moving)
		}
	}
}

// importRoster sends tonight's roster of the students: each night another one of them has another name.
func (s *sandboxSchool) importRoster(students, night int) {
	s.t.Helper()
	var people strings.Builder
	people.WriteString("person_external_id,email,first_name,last_name,role\n")
	for i := range students {
		fmt.Fprintf(&people, "r%d,r%d@anywhere.example,R,Of week %d,student\n", i, i, (night+i)/students)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.settings.PublicURL()+"/api/v1/roster/import/", strings.NewReader(people.String()))
	must(s.t, err)
	req.Header.Set("X-API-Key", s.testKey)
	req.Header.Set("Content-Type", "text/csv")
	resp, err := http.DefaultClient.Do(req)
	must(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	must(s.t, err)
	check.Equal(check.Now(s.t), "status", resp.StatusCode, http.StatusOK, "of the roster of night %d: %s", night, text)
}

// enroll has a student learn for a test whose exam is in November of the year.
func (s *sandboxSchool) enroll(email string, months, year int) {
	s.t.Helper()
	s.ask(http.MethodPost, "provision/student/", fmt.Sprintf(`{"email": %q, "first_name": "S", "courses": ["ielts"], "tenure_months": %d,
		"target_score_plan": {"target_score": 7, "test_plan": true, "exam_date": "%d-11-15", "timezone": "Asia/Kolkata"}}`, email, months, year), nil)
}

// work has all students do what is assigned to them.
func (s *sandboxSchool) work(seed int) (n int) {
	s.t.Helper()
	for _, a := range s.all("assignments/?status=open&limit=500", "assignments") {
		s.ask(http.MethodPost, "sandbox/act/", fmt.Sprintf(`{"assignment_id": %q, "seed": %d}`, a["id"], seed), nil)
		n++
	}
	return n
}

// all reads a list to its end.
func (s *sandboxSchool) all(path, array string) (rows []map[string]any) {
	s.t.Helper()
	cursor := ""
	for {
		var page map[string]any
		s.ask(http.MethodGet, path+"&cursor="+url.QueryEscape(cursor), "", &page)
		for _, row := range page[array].([]any) {
			rows = append(rows, row.(map[string]any))
		}
		if page["has_more"] != true {
			return rows
		}
		cursor = page["next_cursor"].(string)
	}
}

// A move that says so sends webhooks, signed as of now, and waits for the answers.
func TestAMoveReachesRealReceivers(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	var urls []int64
	paths := []string{"/sandbox", "/another"} // which one lease has deliveries for
	for _, path := range paths {
		var made struct {
			ID     int64
			Secret string `json:"signing_secret"`
		}
		s.ask(http.MethodPost, "webhook-endpoints/", fmt.Sprintf(`{"url": %q}`, s.receiver.URL(path)), &made)
		s.secrets = append(s.secrets, made.Secret)
		s.receiver.Trust(path, made.Secret)
		urls = append(urls, made.ID)
	}
	const asha = "asha@anywhere.example"
	s.ask(http.MethodPost, "provision/student/", fmt.Sprintf(`{"email": %q, "first_name": "Asha", "courses": ["ielts"], "tenure_months": 1}`, asha), nil)
	s.advance(`{"by": "P2M", "receiver": "real"}`, nil)
	types := map[string][]string{}
	for _, r := range s.awaitEvents(asha, 10) {
		var event struct{ Type string }
		must(t, json.Unmarshal([]byte(r.Body), &event))
		types[r.Path] = append(types[r.Path], event.Type)
	}
	for i, path := range paths {
		check.Slices(t, "events", types[path], []string{"student.joined", "enrollment.created", "enrollment.expiring", "enrollment.updated", "enrollment.ended"}, "in two months at %s", path)
		for _, d := range s.all(fmt.Sprintf("webhook-endpoints/%d/deliveries/?limit=50", urls[i]), "deliveries") {
			check.Equal(t, "the status", d["delivery_status"], any("delivered"), "%v", d)
		}
	}
}

var wholeYear = flag.Bool("year", false, "live the year whose time docs/sandbox.md states")

// A school lives with a roster every night, and with a receiver that fails one time in ten: everything that happens
// reaches it in the end.
func TestANightlyRosterAndAReceiverThatFails(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	students, nights := 6, 8
	if *wholeYear {
		students, nights = 100, 365
	}
	var requests atomic.Int64
	s.receiver.SetRespond(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1)%10 == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	year := time.Now().UTC().Year() + 1
	s.advance(fmt.Sprintf(`{"to": "%d-01-01T00:00:00Z"}`, year), nil)
	var made struct {
		ID     int64
		Secret string `json:"signing_secret"`
	}
	s.ask(http.MethodPost, "webhook-endpoints/", fmt.Sprintf(`{"url": %q}`, s.receiver.URL("/sandbox")), &made)
	s.secrets = append(s.secrets, made.Secret)
	s.receiver.Trust("/sandbox", made.Secret)
	began := time.Now()
	for i := range students {
		s.enroll(fmt.Sprintf("r%d@anywhere.example", i), 2+i%10, year)
	}
	enrolled := time.Since(began)
	worked, acted := 0, time.Duration(0)
	for night := range nights {
		if night%30 == 29 {
			at := time.Now()
			worked += s.work(night)
			acted += time.Since(at)
		}
		s.importRoster(students, night)
		s.ask(http.MethodPost, "sandbox/advance/", `{"by": "P1D", "receiver": "real"}`, nil)
		s.arrive()
	}
	s.advance(`{"by": "PT12H", "receiver": "real"}`, nil) // the last retries
	t.Logf("%d students, %d nights: %.1f s, of which %.1f s for provisioning and %.1f s for %d results; %d requests to the receiver", students, nights,
		time.Since(began).Seconds(), enrolled.Seconds(), acted.Seconds(), worked, requests.Load())
	states := map[any]int{}
	for _, d := range s.all(fmt.Sprintf("webhook-endpoints/%d/deliveries/?limit=100", made.ID), "deliveries") {
		states[d["delivery_status"]]++
	}
	check.True(t, "deliveries", states["delivered"] > students, "%v", states)
	check.Equal(t, "states of deliveries", len(states), 1, "%v", states)
}
