package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

var (
	atStandby     = flag.Duration("standby", 4*time.Second, "how long the address leads to a standby")
	failoverCalls = flag.Int("failover-calls", 150, "calls that are acknowledged before the primary is killed, and after")
)

// pair is a primary with a standby that follows it.
type pair struct {
	primary, standby *stack.Postgres
	url              string // names both
}

func newPair(t *testing.T) *pair {
	t.Helper()
	one, two := ownPostgres(t), ownPostgres(t)
	one.Settings, two.Settings = stack.Replicates, stack.Replicates
	primary, owner := startPostgres(t, one)
	standby, err := stack.StartStandby(t.Context(), primary, two)
	must(t, err)
	t.Cleanup(func() { _ = standby.Stop() })
	return &pair{primary, standby, at(t, owner, primary.Address()+","+standby.Address())}
}

// at is an address with other servers.
func at(t *testing.T, address, servers string) string {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	u.Host = servers
	return u.String()
}

// answer is what a call got.
type answer struct {
	status     int
	retryAfter string
	took       time.Duration
}

// ask makes a call, and fails the test when nothing is answered: the api-server is there all the time.
func (h *house) ask(method, path, body string) answer {
	ctx, cancel := context.WithTimeout(h.t.Context(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, h.settings.PublicURL()+path, strings.NewReader(body))
	if err != nil {
		h.t.Error(err)
		return answer{}
	}
	req.Header.Set("X-API-Key", h.key)
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	res, err := web.Do(req)
	if err != nil {
		h.t.Error(err)
		return answer{}
	}
	defer func() { _ = res.Body.Close() }()
	return answer{res.StatusCode, res.Header.Get("Retry-After"), time.Since(began)}
}

const provisionPath = "/api/v1/provision/student/"

func onboarding(email string) string {
	return fmt.Sprintf(`{"email": %q, "first_name": "Asha", "courses": ["ielts"], "send_welcome_email": false}`, email)
}

// readiness is /readyz of the api-server.
func (h *house) readiness() (status int, body string) {
	status, text := h.call(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/readyz", h.settings.Ports.APIPrivate), "Accept", "application/json", "")
	return status, string(text)
}

// until calls again and again until an answer is right, which it says how long it took to.
func until(t *testing.T, what string, right func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !right() {
		if time.Since(began) > limit {
			t.Fatalf("not within %s: %s", limit, what)
		}
		pause(t.Context(), 20*time.Millisecond)
	}
	return time.Since(began)
}

// While the address leads to a standby, every call is 503 and the program is not ready; as soon as there
// is a primary, everything goes on.
func TestAnAddressThatLeadsToAStandby(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	relay, err := stack.StartRelay(t.Context(), p.primary.Address())
	must(t, err)
	t.Cleanup(func() { _ = relay.Close() })
	h := newHouseOn(t, at(t, p.url, relay.Address()))
	h.provision("before@north-institute.org", http.StatusCreated)
	h.awaitEvents("before@north-institute.org", 2)

	relay.LeadTo(p.standby.Address())
	must(t, p.primary.Stop()) // the standby has everything then
	counts := map[int]int{}
	for end := time.Now().Add(*atStandby); time.Now().Before(end); pause(t.Context(), 10*time.Millisecond) {
		for _, a := range []answer{
			h.ask(http.MethodPost, provisionPath, onboarding("after@north-institute.org")),
			h.ask(http.MethodGet, "/api/v1/students/", ""),
		} {
			counts[a.status]++
			if a.status == http.StatusServiceUnavailable {
				check.True(t, "the answer says when to come again", a.retryAfter != "", "")
			}
		}
		if status, body := h.readiness(); status != http.StatusServiceUnavailable {
			t.Fatalf("it is ready: %d %s", status, body)
		}
	}
	check.Equal(t, "answers that are not 503", len(counts), 1, "%v", counts)
	t.Logf("answers while the address led to the standby: %v", counts)

	standby, err := pgx.Connect(t.Context(), p.standby.URL("registrar"))
	must(t, err)
	t.Cleanup(func() { _ = standby.Close(context.WithoutCancel(t.Context())) })
	if *atStandby >= 4*time.Second { // longer than a lease lasts
		eventually(t, standby, "nobody leads", `SELECT count(*) = 0 FROM leaders WHERE expires > clock_timestamp()`)
	}
	must(t, p.standby.Promote(t.Context()))
	took := until(t, "a call succeeds", func() bool {
		a := h.ask(http.MethodPost, provisionPath, onboarding("after@north-institute.org"))
		if a.status != http.StatusServiceUnavailable && a.status != http.StatusCreated {
			t.Errorf("an answer is %d", a.status)
		}
		return a.status == http.StatusCreated
	})
	t.Logf("the first write succeeded %v after the promotion", took)
	if took > 10*time.Second {
		t.Errorf("the first write succeeded only %v after the promotion", took)
	}
	until(t, "it is ready", func() bool { status, _ := h.readiness(); return status == http.StatusOK })
	h.awaitEvents("after@north-institute.org", 2)
}

// With synchronous replication no call hangs while the standby is away, and nothing that was acknowledged
// is lost when it takes over.
func TestASynchronousStandbyTakesOver(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	h := newHouseOn(t, p.url)
	must(t, p.primary.Configure(t.Context(), "synchronous_standby_names", "*"))
	h.provision("before@north-institute.org", http.StatusCreated)
	check.Equal(t, "the status of a list", h.ask(http.MethodGet, "/api/v1/students/", "").status, http.StatusOK, "the first one makes the cursors' key")
	h.loseStandby(p)
	h.failOver(p)
}

// A standby takes over that lacks the last commits. Readers of lists learn of it and miss nothing that
// comes afterwards, and no sequence of an event is given twice.
func TestAnAsynchronousStandbyTakesOver(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	h := newHouseOn(t, p.url)
	h.provision("kept@north-institute.org", http.StatusCreated)
	must(t, p.primary.AwaitStandby(t.Context()))
	must(t, p.standby.Configure(t.Context(), "primary_conninfo", ""))
	db, err := pgx.Connect(t.Context(), p.primary.URL("registrar"))
	must(t, err)
	eventually(t, db, "the standby follows no longer", `SELECT count(*) = 0 FROM pg_stat_replication`)
	must(t, db.Close(t.Context()))
	for i := range 5 {
		h.provision(fmt.Sprintf("lost-%d@north-institute.org", i), http.StatusCreated)
	}
	lists := map[string]string{"/api/v1/students/": "", "/api/v1/events/": ""} // with their cursors
	for path := range lists {
		lists[path] = h.walk(path, "").cursor
	}
	before := h.walk("/api/v1/events/", "")
	must(t, p.primary.Signal(syscall.SIGKILL))
	<-p.primary.Exited()
	must(t, p.standby.Promote(t.Context()))
	until(t, "a call succeeds", func() bool {
		return h.ask(http.MethodPost, provisionPath, onboarding("new@north-institute.org")).status == http.StatusCreated
	})
	for path, cursor := range lists {
		all, rest := h.walk(path, ""), h.walk(path, cursor)
		check.True(t, "the reader learns of the loss", rest.told, "of %s", path)
		check.False(t, "who begins learns of a loss", all.told, "of %s", path)
		check.True(t, "the reader gets what is new", len(rest.rows) > 0 && slices.Equal(rest.rows, all.rows[len(all.rows)-len(rest.rows):]),
			"of %s: %v of %v", path, rest.rows, all.rows)
		check.False(t, "something is lost behind the new cursor", h.walk(path, rest.cursor).told, "of %s", path)
	}
	after := h.walk("/api/v1/events/", "")
	check.True(t, "the last sequence is the greatest", after.sequence > before.sequence, "%d after %d", after.sequence, before.sequence)
}

// followed is what a reader has of a list.
type followed struct {
	rows     []string
	cursor   string
	sequence int64 // the last one
	told     bool  // that rows are lost
}

// walk reads a list from a cursor to its end, in small pages, as the documentation says.
func (h *house) walk(path, cursor string) followed {
	h.t.Helper()
	return h.walkBy(2, path, cursor)
}

// walkBy is walk in pages of a size: of a list that grows, small pages have no end.
func (h *house) walkBy(limit int, path, cursor string) (f followed) {
	h.t.Helper()
	f.cursor = cursor
	for more := true; more; {
		req, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.settings.PublicURL()+fmt.Sprintf("%s?limit=%d&cursor=%s", path, limit, f.cursor), nil)
		must(h.t, err)
		req.Header.Set("X-API-Key", h.key)
		res, err := web.Do(req)
		must(h.t, err)
		var page struct {
			Code       string
			HasMore    bool   `json:"has_more"`
			NextCursor string `json:"next_cursor"`
			Students   []struct{ Email string }
			Events     []struct {
				ID       string
				Sequence int64
			}
		}
		err = errors.Join(json.NewDecoder(res.Body).Decode(&page), res.Body.Close())
		must(h.t, err)
		if page.Code == "epoch_changed" && !f.told {
			address, err := url.Parse(strings.Trim(strings.Split(res.Header.Get("Link"), ">")[0], "<"))
			must(h.t, err)
			f.told, f.cursor = true, address.Query().Get("cursor")
			continue
		}
		check.Equal(check.Now(h.t), "status", res.StatusCode, http.StatusOK, "%+v", page)
		for _, s := range page.Students {
			f.rows = append(f.rows, s.Email)
		}
		for _, e := range page.Events {
			f.rows, f.sequence = append(f.rows, e.ID), e.Sequence
		}
		f.cursor, more = page.NextCursor, page.HasMore
	}
	return f
}

// loseStandby stops the standby for a while.
func (h *house) loseStandby(p *pair) {
	t := h.t
	t.Helper()
	must(t, p.standby.Stop())
	var over atomic.Bool
	var mu sync.Mutex
	var slowest time.Duration
	var callers sync.WaitGroup
	for i := range 20 { // more than there are connections
		callers.Go(func() {
			for !over.Load() {
				a := h.ask(http.MethodPost, provisionPath, onboarding(fmt.Sprintf("waits-%d@north-institute.org", i)))
				if a.status >= 300 && (a.status != http.StatusServiceUnavailable || a.retryAfter == "") {
					t.Errorf("an answer is %+v", a)
				}
				mu.Lock()
				slowest = max(slowest, a.took)
				mu.Unlock()
				pause(t.Context(), 50*time.Millisecond)
			}
		})
	}
	took := until(t, "readiness shows it", func() bool {
		status, body := h.readiness()
		return status == http.StatusOK && strings.Contains(body, `"status":"degraded"`) && strings.Contains(body, "commits wait")
	})
	if text := h.metrics(h.settings.Ports.APIPrivate); !strings.Contains(text, `registrar_postgres_unusable{why="commits_wait"} 1`) {
		t.Error("the metric does not show it")
	}
	refused := h.ask(http.MethodPost, provisionPath, onboarding("refused@north-institute.org"))
	check.Equal(t, "a call's status", refused.status, http.StatusServiceUnavailable, "")
	db, err := pgx.Connect(t.Context(), p.primary.URL("registrar"))
	must(t, err)
	eventually(t, db, "what waited is over on the server, but for the trial", `
		SELECT count(*) <= 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND usename = 'registrar_api_server'`)
	must(t, db.Close(t.Context()))
	check.Equal(t, "the status of a list", h.ask(http.MethodGet, "/api/v1/students/", "").status, http.StatusOK, "it needs no commit")
	must(t, p.standby.Start(t.Context()))
	must(t, p.primary.AwaitStandby(t.Context()))
	back := until(t, "a call succeeds", func() bool {
		return h.ask(http.MethodPost, provisionPath, onboarding("refused@north-institute.org")).status == http.StatusCreated
	})
	over.Store(true)
	callers.Wait()
	t.Logf("the lost standby showed after %v; the slowest call took %v; the first write succeeded %v after its return", took, slowest, back)
	if slowest > 25*time.Second {
		t.Errorf("a call took %v", slowest)
	}
}

// failOver kills the primary under load and promotes the standby.
func (h *house) failOver(p *pair) {
	h.t.Helper()
	load := h.startLoad(0)
	load.await(*failoverCalls)
	must(h.t, p.primary.Signal(syscall.SIGKILL))
	<-p.primary.Exited()
	must(h.t, p.standby.Promote(h.t.Context()))
	load.promoted()
	load.await(*failoverCalls)
	load.end(p.standby.URL("registrar"))
}

// load are callers who onboard students, and note what was acknowledged.
type load struct {
	h       *house
	over    atomic.Bool
	callers sync.WaitGroup

	mu           sync.Mutex
	next         int
	acknowledged []string
	answers      map[int]int
	last         time.Time     // when a call was acknowledged
	gap          time.Duration // the longest time without one
	at           time.Time     // of the last promotion
	after        time.Duration // from then to the first that was acknowledged
}

// startLoad starts eight callers, who rest for a while after each call.
func (h *house) startLoad(rest time.Duration) *load {
	l := &load{h: h, answers: map[int]int{}}
	for range 8 {
		l.callers.Go(func() {
			for !l.over.Load() && h.t.Context().Err() == nil {
				l.mu.Lock()
				l.next++
				email := fmt.Sprintf("load-%d@north-institute.org", l.next)
				l.mu.Unlock()
				for !l.note(email, h.ask(http.MethodPost, provisionPath, onboarding(email))) && h.t.Context().Err() == nil {
					pause(h.t.Context(), 20*time.Millisecond)
				}
				pause(h.t.Context(), rest)
			}
		})
	}
	return l
}

// note counts an answer, and says whether the call was done.
func (l *load) note(email string, a answer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers[a.status]++
	if a.status >= 300 {
		return false
	}
	now := time.Now()
	if !l.last.IsZero() {
		l.gap = max(l.gap, now.Sub(l.last))
	}
	if l.last = now; l.after == 0 && !l.at.IsZero() {
		l.after = now.Sub(l.at)
	}
	l.acknowledged = append(l.acknowledged, email)
	return true
}

// promoted notes that there is a new primary now.
func (l *load) promoted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at, l.after = time.Now(), 0
}

// wrote is how long after the last promotion the first call was acknowledged.
func (l *load) wrote() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.after
}

// await waits until so many more calls were acknowledged.
func (l *load) await(calls int) {
	l.h.t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.acknowledged)
	}
	want := count() + calls
	until(l.h.t, "calls are acknowledged", func() bool { return count() >= want })
}

// checkReceipts holds that every event of a load that has ended has arrived, and at most one in 200 twice.
func (l *load) checkReceipts() {
	t := l.h.t
	t.Helper()
	db, err := pgxpool.New(t.Context(), l.h.database)
	must(t, err)
	defer db.Close()
	events := l.h.committed(db)
	check.Equal(t, "events", len(events), 2*len(l.acknowledged), "")
	l.h.awaitAtHealthy(events)
	l.h.checkReceipts(db, events, 0)
}

// end ends the load, and looks in the database for what was acknowledged.
func (l *load) end(database string) {
	t := l.h.t
	t.Helper()
	l.over.Store(true)
	l.callers.Wait()
	for status := range l.answers {
		check.OneOf(t, "an answer's status", status, []int{http.StatusOK, http.StatusCreated, http.StatusServiceUnavailable}, "%v", l.answers)
	}
	t.Logf("answers: %v; writes again %v after the promotion; %v without one", l.answers, l.after, l.gap)
	db, err := pgx.Connect(t.Context(), database)
	must(t, err)
	defer func() { _ = db.Close(context.WithoutCancel(t.Context())) }()
	rows, err := db.Query(t.Context(), `SELECT email FROM unnest($1::text[]) AS email WHERE email NOT IN (SELECT email FROM accounts)`, l.acknowledged)
	must(t, err)
	lost, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	check.Equal(t, "acknowledged and lost", len(lost), 0, "%v of %d", lost, len(l.acknowledged))
	l.h.awaitEvents(l.acknowledged[len(l.acknowledged)-1], 2) // all three programs have found the new primary
}
