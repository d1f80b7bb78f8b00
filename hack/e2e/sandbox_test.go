package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
	for deadline := time.Now().Add(4 * limit); ; time.Sleep(50 * time.Millisecond) {
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

// unlikeAgain is what no two runs have alike: ids that are drawn, and links with tokens.
var unlikeAgain = regexp.MustCompile(`"(evt_|dlv_)[0-9a-f]+"|https?://[^\s"<]+|"next_cursor":"[^"]*"`)

// liveAYear lives a year of a school from the first day of next year on, in steps of a month, and returns what happened.
func (s *sandboxSchool) liveAYear(months int, meanwhile func()) []string {
	s.t.Helper()
	year := time.Now().UTC().Year() + 1
	s.advance(fmt.Sprintf(`{"to": "%d-01-01T00:00:00Z"}`, year), nil)
	s.ask(http.MethodPost, "webhook-endpoints/", `{"url": "https://hooks.north-institute.org/sandbox"}`, nil)
	for i := range 4 {
		s.ask(http.MethodPost, "provision/student/", fmt.Sprintf(`{"email": "s%d@anywhere.example", "first_name": "S", "courses": ["ielts"], "tenure_months": %d,
			"target_score_plan": {"target_score": 7, "test_plan": true, "exam_date": "%d-11-15", "timezone": "Asia/Kolkata"}}`, i, 3*i+2, year), nil)
	}
	seen := map[string]string{}
	for month := range months {
		receiver := []string{"accepts", "fails"}[month%2]
		var during func()
		if month == 1 {
			during = meanwhile
		}
		s.advance(fmt.Sprintf(`{"by": "P1M", "receiver": %q}`, receiver), during)
		for _, e := range s.all("events/?limit=500", "events") {
			text, err := json.Marshal(e)
			must(s.t, err)
			seen[e["id"].(string)] = fmt.Sprintf("%012v ", e["sequence"]) + unlikeAgain.ReplaceAllString(string(text), `"…"`)
		}
		for _, a := range s.all("assignments/?status=pending&limit=500", "assignments") {
			s.ask(http.MethodPost, "sandbox/act/", fmt.Sprintf(`{"assignment_id": %q, "seed": %d}`, a["id"], month), nil)
		}
	}
	happened := slices.Sorted(maps.Values(seen))
	var mails []string
	for _, m := range s.all("sandbox/mails/?limit=500", "mails") {
		mails = append(mails, fmt.Sprintf("%v %v %v %s", m["sent_at"], m["to"], m["subject"], unlikeAgain.ReplaceAllString(m["text"].(string), "…")))
	}
	slices.SortFunc(mails, cmp.Compare[string])
	happened = append(happened, mails...)
	for _, list := range [][2]string{{"students/?limit=500", "students"}, {"assignments/?limit=500", "assignments"}, {"results/?limit=500", "results"}} {
		for _, row := range s.all(list[0], list[1]) {
			text, err := json.Marshal(row)
			must(s.t, err)
			happened = append(happened, unlikeAgain.ReplaceAllString(string(text), `"…"`))
		}
	}
	return happened
}

// Two years with the same seeds are the same, though in the second one the worker is killed in the middle of a move:
// it goes on, and nothing happens twice. Nothing leaves the sandbox.
func TestASchoolLivesAYearInASandbox(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	months := 12
	if testing.Short() {
		months = 3
	}
	first := s.liveAYear(months, nil)
	for _, expected := range []string{"enrollment.created", "assignment.created", "result.final", "enrollment.ended", "Your test plan"} {
		check.True(t, "it happened", slices.ContainsFunc(first, func(line string) bool { return strings.Contains(line, expected) }), "%s in %d lines", expected, len(first))
	}
	s.ask(http.MethodPost, "sandbox/wipe/", "", nil)
	second := s.liveAYear(months, func() {
		must(t, s.worker.Kill())
		s.start(s.worker, s.settings.Ports.WorkerPrivate)
	})
	for i, line := range first {
		if i >= len(second) || second[i] != line {
			t.Fatalf("%d and %d things happened; the first that differs:\n%s\n%s", len(first), len(second), line, second[min(i, len(second)-1)])
		}
	}
	check.Equal(t, "things that happened", len(second), len(first), "in the second year")
	requests, _ := os.ReadFile(filepath.Join(s.dir, receiverLog)) // none, no file
	check.Equal(t, "requests", string(requests), "", "to the real organization's URL")
	mails, err := filepath.Glob(filepath.Join(s.dir, mailDir, "*"))
	must(t, err)
	check.Equal(t, "mails that left", len(mails), 0, "%q", mails)
	var actual struct{ Count int }
	status, text := s.call(http.MethodGet, s.settings.PublicURL()+"/api/v1/students/", "X-API-Key", s.key, "")
	check.Equal(t, "status", status, http.StatusOK, "%s", text)
	must(t, json.Unmarshal(text, &actual))
	check.Equal(t, "students", actual.Count, 0, "of the real organization")
}

// A move that says so sends webhooks, signed as of now, and waits for the answers.
func TestAMoveReachesRealReceivers(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	var made struct {
		ID     int64
		Secret string `json:"signing_secret"`
	}
	s.ask(http.MethodPost, "webhook-endpoints/", fmt.Sprintf(`{"url": %q}`, s.receiver.URL("/sandbox")), &made)
	s.secrets = append(s.secrets, made.Secret)
	s.receiver.Trust("/sandbox", made.Secret)
	const asha = "asha@anywhere.example"
	s.ask(http.MethodPost, "provision/student/", fmt.Sprintf(`{"email": %q, "first_name": "Asha", "courses": ["ielts"], "tenure_months": 1}`, asha), nil)
	s.advance(`{"by": "P2M", "receiver": "real"}`, nil)
	var types []string
	for _, r := range s.awaitEvents(asha, 5) {
		var event struct{ Type string }
		must(t, json.Unmarshal([]byte(r.Body), &event))
		types = append(types, event.Type)
	}
	check.Slices(t, "events", types, []string{"student.joined", "enrollment.created", "enrollment.expiring", "enrollment.updated", "enrollment.ended"}, "in two months")
	for _, d := range s.all(fmt.Sprintf("webhook-endpoints/%d/deliveries/?limit=50", made.ID), "deliveries") {
		check.Equal(t, "the status", d["delivery_status"], any("delivered"), "%v", d)
	}
}
