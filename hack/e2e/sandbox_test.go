package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/hack/internal/plansim"
	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// sandboxSchool is the sandbox of a house's organization.
type sandboxSchool struct {
	*house
	testKey string
	server  string // of the sandbox's database
}

// newSandbox takes more of the programs' environment.
func newSandbox(t *testing.T, extra ...string) *sandboxSchool {
	t.Helper()
	server := pgtest.Server(t)
	h := newHouseOn(t, pgtest.URL(t), append(extra, "SANDBOX_DATABASE_URL="+server)...)
	for i := range 8 {
		h.platform(http.MethodPut, fmt.Sprintf("catalog/tests/mock-%d", i), `{"title": "IELTS mock", "type": "ielts"}`, nil)
		h.platform(http.MethodPut, fmt.Sprintf("catalog/tests/writing-%d", i), `{"title": "IELTS writing", "type": "ielts", "scope": "writing"}`, nil)
	}
	h.platform(http.MethodPut, "organizations/demo/sandbox", ``, nil)
	var made struct{ Key string }
	h.platform(http.MethodPost, "organizations/demo/api-keys", `{"name": "Sandbox", "access": "full", "sandbox": true}`, &made)
	h.secrets = append(h.secrets, made.Key)
	return &sandboxSchool{h, made.Key, server}
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
	if meanwhile == nil {
		s.advanceAndWait(body)
		return
	}
	s.ask(http.MethodPost, "sandbox/advance/", body, nil)
	meanwhile()
	s.arrive()
}

func (s *sandboxSchool) advanceAndWait(body string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.settings.PublicURL()+"/api/v1/sandbox/advance/", strings.NewReader(body))
	must(s.t, err)
	req.Header.Set("X-API-Key", s.testKey)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Prefer", "wait=30")
	resp, err := web.Do(req)
	must(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	must(s.t, err)
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusAccepted: // it takes longer
		s.arrive()
	default:
		s.t.Fatalf("advance %s: %d %s", body, resp.StatusCode, text)
	}
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
	resp, err := web.Do(req)
	must(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	must(s.t, err)
	check.Equal(check.Now(s.t), "status", resp.StatusCode, http.StatusOK, "of the roster of night %d: %s", night, text)
}

// enroll has a student learn for a test whose exam is in November of the year.
func (s *sandboxSchool) enroll(email string, months, year int, pace string) {
	s.t.Helper()
	name, _, _ := strings.Cut(email, "@")
	s.ask(http.MethodPost, "provision/student/", fmt.Sprintf(`{"email": %q, "first_name": %q, "courses": ["ielts"], "tenure_months": %d,
		"target_score_plan": {"target_score": 7, "test_plan": true, "exam_date": "%d-11-15", "timezone": "Asia/Kolkata",
			"pace": %q, "extra_recipients": ["parent@anywhere.example"]}}`, email, strings.ToUpper(name[:1])+name[1:], months, year, pace), nil)
}

// checkPlans holds the plans of the sandbox against the rules of the simulation of plans.
func (s *sandboxSchool) checkPlans() {
	s.t.Helper()
	databases, err := pg.NewDatabases(s.server)
	must(s.t, err)
	names, err := databases.Names(s.t.Context())
	must(s.t, err)
	check.Equal(check.Now(s.t), "databases", len(names), 1, "%q", names)
	db, err := databases.Open(s.t.Context(), names[0], slog.New(slog.DiscardHandler))
	must(s.t, err)
	defer db.Close()
	var shown struct{ Clock time.Time }
	s.ask(http.MethodGet, "sandbox/", "", &shown)
	broken, err := plansim.Broken(s.t.Context(), db, shown.Clock)
	must(s.t, err)
	check.Equal(s.t, "rules that are broken", len(broken), 0, "%q", broken)
}

// work has all students do what is assigned to them.
func (s *sandboxSchool) work(seed int, settle bool) (n int) {
	s.t.Helper()
	for _, a := range s.all("assignments/?status=open&limit=500", "assignments") {
		s.ask(http.MethodPost, "sandbox/act/", fmt.Sprintf(`{"assignment_id": %q, "seed": %d}`, a["id"], seed), nil)
		if settle {
			s.settle()
		}
		n++
	}
	return n
}

// settle waits until what follows from a call has happened, so that no later call comes between.
func (s *sandboxSchool) settle() {
	s.t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		var shown struct {
			Clock time.Time
			Next  *struct {
				Kind string
				At   time.Time
			}
		}
		s.ask(http.MethodGet, "sandbox/", "", &shown)
		if shown.Next == nil || shown.Next.Kind == "webhooks" || shown.Next.At.After(shown.Clock) {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("it does not happen: %+v", shown)
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

// unlikeAgain is what no two runs have alike: ids that are drawn, numbers with gaps where a process was killed, and links
// with tokens.
var unlikeAgain = regexp.MustCompile(`"(evt_|dlv_)[0-9a-f]+"|"sequence":[0-9]+|test-assignment:[0-9]+|https?://[^\s"<]+|"next_cursor":"[^"]*"`)

// liveAYear lives a year of a school from the first day of next year on, in steps of a month, and returns what happened.
func (s *sandboxSchool) liveAYear(months int, meanwhile func()) (happened []string) {
	s.t.Helper()
	year := time.Now().UTC().Year() + 1
	s.advance(fmt.Sprintf(`{"to": "%d-01-01T00:00:00Z"}`, year), nil)
	s.ask(http.MethodPost, "webhook-endpoints/", `{"url": "https://hooks.north-institute.org/sandbox"}`, nil)
	for i, name := range []string{"binod", "chitra", "dawa", "asha"} {
		s.enroll(name+"@anywhere.example", 3*i+2, year, []string{"auto", "light"}[i%2])
		s.settle()
	}
	for month := range months {
		receiver := []string{"accepts", "fails"}[month%2]
		var during func()
		if month == 1 {
			during = meanwhile
		}
		s.advance(fmt.Sprintf(`{"by": "P1M", "receiver": %q}`, receiver), during)
		s.checkPlans()
		s.work(month, true)
		s.importRoster(12, month)
	}
	for _, list := range []string{"events", "students", "assignments", "results"} {
		for _, row := range s.all(list+"/?limit=500", list) {
			text, err := json.Marshal(row)
			must(s.t, err)
			happened = append(happened, unlikeAgain.ReplaceAllString(string(text), `"…"`))
		}
	}
	var mails []string
	for _, m := range s.all("sandbox/mails/?limit=500", "mails") {
		mails = append(mails, fmt.Sprintf("%v %v %v %s", m["sent_at"], m["to"], m["subject"], unlikeAgain.ReplaceAllString(m["text"].(string), "…")))
	}
	return append(happened, slices.Sorted(slices.Values(mails))...)
}

// show keeps the console's picture of a student's year.
func (s *sandboxSchool) show(student string) {
	s.t.Helper()
	s.platform(http.MethodPut, "organizations/demo/staff/olive@institute.org",
		`{"first_name": "Olive", "last_name": "Owner", "role": "owner", "password": "`+consolePassword+`"}`, nil)
	b := browsertest.Open(s.t)
	b.Size(1280, 900)
	b.Visit(s.settings.PublicURL() + "/console/")
	b.Type("#name", "olive@institute.org")
	b.Type("#password", consolePassword)
	b.Press("Sign in")
	b.AwaitHeading("Demo Institute")
	b.Press("Sandbox")
	b.AwaitText("What happens next")
	b.Press(student)
	b.Await("svg.life")
	b.Accessible("a student's year")
	b.Picture("../../docs/pictures/console-sandbox.webp")
	b.Screenshot("sandbox")
	b.Dark(true)
	b.Screenshot("sandbox-dark")
	b.Size(390, 844)
	b.Accessible("a student's year on a telephone")
	b.Screenshot("sandbox-telephone-dark")
	b.Dark(false)
	b.Screenshot("sandbox-telephone")
}

// Two years with the same seeds are the same, though in the second one the worker is killed in the middle of a move:
// it goes on, and nothing happens twice. Nothing leaves the sandbox.
func TestASchoolLivesAYearInASandbox(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, "WEBHOOK_RETENTION_DAYS=400")
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
	if !testing.Short() {
		s.show("Asha")
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
	students, nights := 6, 20
	if testing.Short() {
		nights = 8
	}
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
		s.enroll(fmt.Sprintf("r%d@anywhere.example", i), 2+i%10, year, "auto")
	}
	enrolled := time.Since(began)
	worked, acted := 0, time.Duration(0)
	for night := range nights {
		if night%30 == 29 {
			at := time.Now()
			worked += s.work(night, false)
			acted += time.Since(at)
		}
		s.importRoster(students, night)
		s.advance(`{"by": "P1D", "receiver": "real"}`, nil)
	}
	s.advance(`{"by": "PT12H", "receiver": "real"}`, nil) // the last retries
	t.Logf("%d students, %d nights: %.1f s, of which %.1f s for provisioning and %.1f s for %d results; %d requests to the receiver", students, nights,
		time.Since(began).Seconds(), enrolled.Seconds(), acted.Seconds(), worked, requests.Load())
	s.checkPlans()
	states := map[any]int{}
	for _, d := range s.all(fmt.Sprintf("webhook-endpoints/%d/deliveries/?limit=100", made.ID), "deliveries") {
		states[d["delivery_status"]]++
	}
	check.True(t, "deliveries", states["delivered"] > 0, "%v", states) // of the last 30 days
	check.True(t, "requests", requests.Load() > int64(5*students), "%d", requests.Load())
	check.Equal(t, "states of deliveries", len(states), 1, "%v", states)
}
