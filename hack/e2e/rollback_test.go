package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/nottested"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

var (
	earlierRevision = flag.String("before", "HEAD^", "the commit whose programs take over from these and hand back")
	rollbackCalls   = flag.Int("rollback-calls", 60, "students who are onboarded before each replacement, and after the last")
)

// The programs of this commit are rolled back to those of the one before and come again, one replica after the other as in a
// roll-out, under calls, imports, plans and deliveries. The schema stays this commit's.
func TestVersionsReplaceEachOtherUnderLoad(t *testing.T) {
	t.Parallel()
	earlier := programsOf(t, *earlierRevision)
	h := preparedHouse(t, pgtest.URL(t))
	r := &rollout{house: h, answers: map[int]int{}}
	for _, door := range []struct {
		relay **stack.Relay
		port  *int
	}{{&r.partners, &h.settings.Ports.API}, {&r.engine, &h.settings.Ports.Platform}} {
		relay, err := stack.StartRelay(t.Context(), "")
		must(t, err)
		t.Cleanup(func() { _ = relay.Close() })
		*door.relay = relay
		_, err = fmt.Sscanf(relay.Address(), "127.0.0.1:%d", door.port)
		must(t, err)
	}
	r.replaceAll(h.settings.Bin)
	h.seed()
	h.fillCatalog()

	r.start()
	r.await(*rollbackCalls)
	r.replaceAll(earlier)
	r.await(*rollbackCalls)
	r.replaceAll(h.settings.Bin)
	r.await(*rollbackCalls)
	r.end()
}

// programsOf builds the programs of a revision of this clone.
func programsOf(t *testing.T, revision string) (bin string) {
	t.Helper()
	root, err := stack.Root()
	must(t, err)
	git := func(args ...string) *exec.Cmd {
		return command(t, "git", append([]string{"-C", root}, args...)...)
	}
	if out, err := git("rev-parse", "--verify", revision+"^{commit}").CombinedOutput(); err != nil {
		nottested.Skip(t, "versions replacing each other: this clone has no commit %s: %s", revision, bytes.TrimSpace(out))
	}
	dir := t.TempDir()
	source, err := git("archive", revision).Output()
	must(t, err)
	unpack := command(t, "tar", "-x", "-C", dir)
	unpack.Stdin = bytes.NewReader(source)
	out, err := unpack.CombinedOutput()
	check.NoError(check.Now(t), err, "%s", out)
	bin = filepath.Join(dir, "bin")
	must(t, os.Mkdir(bin, 0o755))
	build := command(t, "go", "build", "-o", bin, "./api-server", "./worker", "./webhook-sender")
	build.Dir = dir
	out, err = build.CombinedOutput()
	check.NoError(check.Now(t), err, "building %s: %s", revision, out)
	return bin
}

// rollout is a house of two replicas of each program, behind a Service.
type rollout struct {
	*house

	partners, engine *stack.Relay // the Services of both APIs
	running          []*stack.Program

	over    atomic.Bool
	callers sync.WaitGroup

	mu      sync.Mutex
	answers map[int]int
	broken  int      // connections that ended without an answer
	done    []string // students whose onboarding was acknowledged
	files   int      // rosters that were applied
	plans   int      // plans that went on
}

// replaceAll starts replicas of the programs in bin and stops what ran before, one after the other.
func (r *rollout) replaceAll(bin string) {
	t := r.t
	t.Helper()
	before := r.running
	r.running = nil
	for range 2 {
		for _, program := range []func(stack.Settings) (*stack.Program, int, func()){r.apiServer, worker, sender} {
			s := r.settings
			s.Bin = bin
			ports, err := stack.FreeProgramPorts(t.Context())
			must(t, err)
			s.Ports = ports
			s.Extra = append(slices.Clone(s.Extra), "PUBLIC_URL="+r.settings.PublicURL())
			p, private, lead := program(s)
			r.startUntilTheEnd(p, private)
			lead()
			r.running = append(r.running, p)
			if len(before) > 0 {
				must(t, before[0].Stop())
				before = before[1:]
			}
		}
	}
}

func (r *rollout) apiServer(s stack.Settings) (*stack.Program, int, func()) {
	return s.APIServer(), s.Ports.APIPrivate, func() {
		r.partners.LeadTo(fmt.Sprintf("127.0.0.1:%d", s.Ports.API))
		r.engine.LeadTo(fmt.Sprintf("127.0.0.1:%d", s.Ports.Platform))
	}
}

func worker(s stack.Settings) (*stack.Program, int, func()) {
	return s.Worker(), s.Ports.WorkerPrivate, func() {}
}

func sender(s stack.Settings) (*stack.Program, int, func()) {
	return s.WebhookSender(), s.Ports.SenderPrivate, func() {}
}

// start begins the load.
func (r *rollout) start() {
	for i := range 4 {
		r.loop(func(n int) { r.onboard(fmt.Sprintf("load-%d-%d@north-institute.org", i, n)) })
	}
	r.loop(r.importFile)
	r.loop(r.followPlan)
	r.loop(func(int) { r.must(http.MethodGet, r.settings.PublicURL()+"/api/v1/students/?limit=50", "", "") })
}

func (r *rollout) loop(call func(n int)) {
	r.callers.Go(func() {
		for n := 0; !r.over.Load() && !r.t.Failed(); n++ {
			call(n)
			pause(r.t.Context(), 50*time.Millisecond)
		}
	})
}

// must makes a call until it is answered by something else than 503. A replica that ends may break a connection, and the same
// call with the same key is then repeated. Any other answer than success fails the test.
func (r *rollout) must(method, address, body, key string, headers ...string) string {
	for try := 0; r.t.Context().Err() == nil; try++ {
		status, text, header, err := r.once(method, address, body, key, headers)
		r.mu.Lock()
		if err != nil {
			r.broken++
		} else {
			r.answers[status]++
		}
		r.mu.Unlock()
		switch {
		case err != nil:
			check.True(r.t, "a repeated call is answered", try < 20, "%s %s: %v", method, address, err)
		case status < 300:
			return text
		case status == http.StatusServiceUnavailable:
			check.True(r.t, "it says when to come again", header.Get("Retry-After") != "", "%s %s: %s", method, address, text)
		default:
			r.t.Errorf("%s %s: %d %.300s", method, address, status, text)
			return ""
		}
		if try >= 20 {
			return ""
		}
		pause(r.t.Context(), 100*time.Millisecond)
	}
	return ""
}

func (r *rollout) once(method, address, body, key string, headers []string) (int, string, http.Header, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return 0, "", nil, err
	}
	req.Header.Set("X-API-Key", r.key)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := web.Do(req)
	if err != nil {
		return 0, "", nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), resp.Header, err
}

// onboard onboards a student, and again with the same key: the answer has to be the same, whichever version gives it.
func (r *rollout) onboard(email string) {
	address := r.settings.PublicURL() + provisionPath
	first := r.must(http.MethodPost, address, onboarding(email), email)
	pause(r.t.Context(), 500*time.Millisecond)
	again := r.must(http.MethodPost, address, onboarding(email), email)
	check.Equal(r.t, "the answer again", again, first, "%s", email)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = append(r.done, email)
}

func (r *rollout) importFile(n int) {
	const people = 20
	file := sisHeader
	for i := range people {
		file += fmt.Sprintf("f%d-%d,f%d-%d@roster-institute.org,Given,Family\n", n, i, n, i)
	}
	var run struct {
		Status string
		Counts struct{ Create int }
	}
	text := r.must(http.MethodPost, r.settings.PublicURL()+"/api/v1/roster/import/", file, fmt.Sprintf("file-%d", n), "Content-Type", "text/csv")
	check.NoError(r.t, json.Unmarshal([]byte(text), &run), "%s", text)
	check.Equal(r.t, "the import", run.Status, "applied", "%s", text)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files++
}

// followPlan starts a plan, finishes its first test, and waits for the next one.
func (r *rollout) followPlan(n int) {
	email := fmt.Sprintf("plan-%d@north-institute.org", n)
	r.must(http.MethodPost, r.settings.PublicURL()+provisionPath, fmt.Sprintf(`{"email": %q, "first_name": "Asha", "courses": "ielts",
		"tenure_months": 6, "send_welcome_email": false, "target_score_plan": {"target_score": 7.5, "test_plan": true, "timezone": "UTC"}}`, email), email)
	var list struct{ Assignments []work }
	text := r.must(http.MethodGet, r.settings.PublicURL()+"/api/v1/assignments/?email="+email, "", "")
	if check.NoError(r.t, json.Unmarshal([]byte(text), &list), "%s", text); len(list.Assignments) == 0 {
		r.t.Errorf("%s has no test: %s", email, text)
		return
	}
	given := list.Assignments[0]
	r.must(http.MethodPut, r.settings.PlatformURL()+"test-sessions/"+email, fmt.Sprintf(`{"organization": "demo", "user_id": %d, "item_id": %d,
		"attempt": "assigned", "assignment_id": %q, "state": "finished", "started_at": %q, "completed_at": %[4]q, "score": 5.5,
		"sections": {"listening": 6, "reading": 6, "writing": 4.5, "speaking": 5.5}}`,
		given.Student.UserID, given.Item.ID, given.ID, time.Now().UTC().Format(time.RFC3339)), "", "Authorization", "Bearer "+r.settings.PlatformKey)
	for end := time.Now().Add(limit); ; pause(r.t.Context(), 50*time.Millisecond) {
		text := r.must(http.MethodGet, r.settings.PublicURL()+"/api/v1/students/?email="+email, "", "")
		if strings.Contains(text, `"kind":"skills_check"`) {
			break
		}
		if time.Now().After(end) {
			r.t.Errorf("the plan of %s does not go on: %s", email, text)
			return
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.plans++
}

// await waits for so many more students, and an import and a plan that have ended.
func (r *rollout) await(calls int) {
	r.t.Helper()
	counts := func() (students, files, plans int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.done), r.files, r.plans
	}
	students, files, plans := counts()
	until(r.t, "the load goes on", func() bool {
		s, f, p := counts()
		return s >= students+calls && f > files && p > plans || r.t.Failed()
	})
}

// end ends the load, and looks for what was acknowledged and for the events of it.
func (r *rollout) end() {
	t := r.t
	t.Helper()
	r.over.Store(true)
	r.callers.Wait()
	t.Logf("answers %v, %d connections broken; %d students, %d rosters, %d plans", r.answers, r.broken, len(r.done), r.files, r.plans)
	db := connect(t, r.house)
	rows, err := db.Query(t.Context(), `SELECT email FROM unnest($1::text[]) AS email WHERE email NOT IN (SELECT email FROM accounts)`, r.done)
	must(t, err)
	lost, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	check.Equal(t, "students who are lost", len(lost), 0, "%v", lost)
	var people int
	must(t, db.QueryRow(t.Context(), `SELECT count(*) FROM roster_identities WHERE present`).Scan(&people))
	check.Equal(t, "people of rosters", people, 20*r.files, "")
	eventually(t, db, "no delivery is pending", `SELECT NOT EXISTS (SELECT FROM webhook_queue)`)

	var events int
	must(t, db.QueryRow(t.Context(), `SELECT count(*) FROM webhook_events`).Scan(&events))
	seen, twice := map[string]bool{}, 0
	for _, received := range r.receiver.All() {
		event := received.Headers["X-Service-Delivery"]
		if seen[event] {
			twice++
		}
		seen[event] = true
		if check.True(t, "a secret is known", received.Verified != nil, "%s", received.Path) {
			check.True(t, "the signature verifies", *received.Verified, "%s", received.Body)
		}
	}
	check.Equal(t, "events that arrived", len(seen), events, "")
	check.True(t, "few came twice", twice <= events/200, "%d of %d", twice, events)
	t.Logf("%d events arrived, %d of them twice", events, twice)
}
