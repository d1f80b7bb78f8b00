package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

var (
	chaosEvents = flag.Int("events", 5000, "events of the run through all faults")
	chaosOutage = flag.Duration("outage", 3*time.Second, "how long Redis stays stopped in it")
)

// misbehaving are the receivers that do everything wrong, by path.
var misbehaving = map[string]stack.Respond{
	"/fails": stack.Status(http.StatusInternalServerError),
	"/hangs": stack.Hang,
	"/drips": stack.Drip(time.Second),
	"/redirects": func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/healthy/0", http.StatusTemporaryRedirect)
	},
	"/breaks": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte("half"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	},
	"/floods": func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 1<<20)
		for range 100 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	},
}

// healthy are the URLs that must receive every event.
var healthy = []string{"/healthy/0", "/healthy/1", "/healthy/2"}

func TestEveryEventArrivesThroughAllFaults(t *testing.T) {
	t.Parallel()
	options := ownPostgres(t)
	options.Durable = true
	postgres, databaseURL := startPostgres(t, options)
	h := newHouseOn(t, databaseURL)
	once := burst{underWay: map[chan bool]bool{}}
	h.receiver.SetRespond(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == burstPath {
			once.respond(w)
		} else if respond, ok := misbehaving[r.URL.Path]; ok {
			respond(w, r)
		}
	})
	workers := []*stack.Program{h.anotherWorker(), h.anotherWorker()}
	for _, path := range healthy {
		h.addURL(path)
	}
	for path := range misbehaving {
		h.addURL(path)
	}
	db, err := pgxpool.New(t.Context(), databaseURL)
	must(t, err)
	defer db.Close()

	var over atomic.Bool
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() { h.offer(i, &over) })
	}
	kills := h.breakEverything(postgres, workers)
	over.Store(true)
	wg.Wait()

	events := h.committed(db)
	t.Logf("%d events were committed, %d programs were killed", len(events), kills)
	if len(events) < *chaosEvents {
		t.Errorf("%d events were committed, want %d", len(events), *chaosEvents)
	}
	h.awaitAtHealthy(events)
	h.checkReceipts(db, events, kills)
	h.awaitSwitchOff(db, "/fails")
	once.check(h, db)
	if text := h.metrics(h.settings.Ports.WorkerPrivate); !strings.Contains(text, "\nregistrar_webhook_unaccounted_deliveries 0\n") {
		t.Errorf("the gauge is not 0: %s", regexp.MustCompile(`registrar_webhook_unaccounted\S* \S+`).FindString(text))
	}
}

// burst fails, once, all requests to its URL that are under way together.
type burst struct {
	mu       sync.Mutex
	underWay map[chan bool]bool
	failed   int
}

const (
	burstPath  = "/hook"                // the house's own: an organization has ten URLs at most
	burstAt    = 12                     // that are under way
	burstTakes = 200 * time.Millisecond // to answer
)

func (b *burst) respond(w http.ResponseWriter) {
	fails := make(chan bool, 1)
	b.mu.Lock()
	if b.failed == 0 {
		b.underWay[fails] = true
		if len(b.underWay) >= burstAt {
			b.failed = len(b.underWay)
			for each := range b.underWay {
				each <- true
			}
		}
	}
	b.mu.Unlock()
	select {
	case <-fails:
		w.WriteHeader(http.StatusServiceUnavailable)
	case <-time.After(burstTakes):
		b.mu.Lock()
		delete(b.underWay, fails)
		b.mu.Unlock()
	}
}

// check holds that there was a burst, and that the URL is on after it.
func (b *burst) check(h *house, db *pgxpool.Pool) {
	h.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	h.t.Logf("%d attempts failed together", b.failed)
	check.True(h.t, "attempts failed together", b.failed >= burstAt, "%d, want %d", b.failed, burstAt)
	var on bool
	must(h.t, db.QueryRow(h.t.Context(), `SELECT switched_on FROM webhook_endpoints WHERE url = $1`, h.receiver.URL(burstPath)).Scan(&on))
	check.True(h.t, "it is on", on, "the URL that failed once")
}

// anotherWorker runs beside the house's own until the test ends.
func (h *house) anotherWorker() *stack.Program {
	h.t.Helper()
	return h.workerAt(port(h.t))
}

// workerAt is anotherWorker, with that private port.
func (h *house) workerAt(private int) *stack.Program {
	h.t.Helper()
	settings := h.settings
	settings.Ports.WorkerPrivate = private
	w := settings.Worker()
	h.startUntilTheEnd(w, private)
	return w
}

func (h *house) addURL(path string) {
	h.t.Helper()
	var made struct {
		Secret string `json:"signing_secret"`
	}
	h.platform(http.MethodPost, "organizations/demo/webhook-endpoints", fmt.Sprintf(`{"url": %q}`, h.receiver.URL(path)), &made)
	h.receiver.Trust(path, made.Secret)
}

// offer onboards students, two events each, until it is over and its part is done. A call
// that fails is made again: the API may just have been killed.
func (h *house) offer(part int, over *atomic.Bool) {
	for i := 0; !over.Load() || i < *chaosEvents/8; i++ {
		body := fmt.Sprintf(`{"email": "student-%d-%d@north-institute.org", "first_name": "Asha", "courses": ["ielts"], "send_welcome_email": false}`, part, i)
		for h.t.Context().Err() == nil && !h.succeeds(http.MethodPost, h.settings.PublicURL()+"/api/v1/provision/student/", "X-API-Key", h.key, body) {
			pause(h.t.Context(), 50*time.Millisecond)
		}
		pause(h.t.Context(), 20*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// succeeds makes a call that may meet a dead program, and says whether it was answered well.
func (h *house) succeeds(method, url, header, value, body string) bool {
	ctx, cancel := context.WithTimeout(h.t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return false
	}
	req.Header.Set(header, value)
	req.Header.Set("Content-Type", "application/json")
	resp, err := web.Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode < 300
}

// kill is kill -9 of a program, which is started again.
func (h *house) kill(p *stack.Program, private int) {
	h.t.Helper()
	must(h.t, p.Kill())
	h.start(p, private)
}

// breakEverything does each thing that may go wrong, in a random order, and counts the senders
// that were killed.
func (h *house) breakEverything(postgres *stack.Postgres, workers []*stack.Program) (kills int) {
	options, err := redis.ParseURL(h.settings.RedisURL)
	must(h.t, err)
	rdb := redis.NewClient(options)
	defer func() { _ = rdb.Close() }()
	kill := func(p *stack.Program, private int) func() { return func() { h.kill(p, private) } }
	faults := map[string]func(){
		"kill -9 of the api-server": kill(h.api, h.settings.Ports.APIPrivate),
		"kill -9 of the worker":     kill(h.worker, h.settings.Ports.WorkerPrivate),
		"kill -9 of one of three workers": func() {
			must(h.t, workers[0].Kill())
			pause(h.t.Context(), time.Second)
			must(h.t, workers[0].Start())
		},
		"one of three workers frozen": func() {
			must(h.t, workers[1].Signal(syscall.SIGSTOP))
			pause(h.t.Context(), 6*time.Second)
			must(h.t, workers[1].Signal(syscall.SIGCONT))
		},
		"kill -9 of the sender": func() { kills++; h.kill(h.sender, h.settings.Ports.SenderPrivate) },
		"FLUSHALL":              func() { must(h.t, rdb.FlushAll(h.t.Context()).Err()) },
		"Redis stopped": func() {
			must(h.t, h.redis.Stop())
			pause(h.t.Context(), *chaosOutage)
			must(h.t, h.redis.Start(h.t.Context()))
		},
		"PostgreSQL restarted": func() {
			must(h.t, postgres.Stop())
			must(h.t, postgres.Start(h.t.Context()))
		},
	}
	rounds := max(1, *chaosEvents/5000)
	for range rounds {
		for name, fault := range faults { // a map has no order
			pause(h.t.Context(), time.Duration(300+rand.IntN(900))*time.Millisecond)
			h.t.Log(name)
			fault()
		}
	}
	return kills
}

// committed are the ids of the events that the URLs were pending.
func (h *house) committed(db *pgxpool.Pool) map[string]bool {
	h.t.Helper()
	events := map[string]bool{}
	rows, err := db.Query(h.t.Context(), `SELECT 'evt_' || replace(id::text, '-', '') FROM webhook_events`)
	must(h.t, err)
	defer rows.Close()
	for rows.Next() {
		var event string
		must(h.t, rows.Scan(&event))
		events[event] = true
	}
	must(h.t, rows.Err())
	return events
}

// awaitAtHealthy waits until every event has arrived at every healthy URL.
func (h *house) awaitAtHealthy(events map[string]bool) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 3*limit)
	defer cancel()
	want := len(events) * len(healthy)
	for have := -1; have != want; {
		seen := map[string]bool{}
		for _, r := range h.receiver.All() {
			if event := r.Headers["X-Service-Delivery"]; strings.HasPrefix(r.Path, "/healthy/") && events[event] {
				seen[r.Path+event] = true
			}
		}
		have = len(seen)
		if ctx.Err() != nil {
			h.t.Fatalf("%d of %d deliveries have arrived: %v", have, want, ctx.Err())
		}
		pause(ctx, 100*time.Millisecond)
	}
}

// manyEvents are so many that the share of what comes twice says something of the service, and not of
// the moment in which a sender was killed.
const manyEvents = 50_000

// checkReceipts holds that signatures verify, that what is recorded as delivered was not sent again, and that
// little came twice: 1 in 200, or of fewer events, what senders that were killed can have had in hand.
func (h *house) checkReceipts(db *pgxpool.Pool, events map[string]bool, kills int) {
	h.t.Helper()
	recorded := h.awaitRecorded(db, len(events)*len(healthy))
	last := map[string]time.Time{}
	twice, gaps := 0, map[time.Duration]int{} // between the receipts of what came twice, and how often
	for _, r := range h.receiver.All() {
		if strings.HasPrefix(r.Path, "/healthy/") {
			key := r.Path + r.Headers["X-Service-Delivery"]
			if before, seen := last[key]; seen {
				twice++
				gaps[r.ReceivedAt.Sub(before).Round(100*time.Millisecond)]++
				check.False(h.t, "it was recorded as delivered", before.After(recorded[key].Add(-time.Second)), "%s came twice, at %s and %s", key, before, r.ReceivedAt)
			}
			last[key] = r.ReceivedAt
		}
		if check.True(h.t, "the signature verifies", r.Verified != nil, "the signature of a request to %s does not verify", r.Path) {
			check.True(h.t, "*r.Verified", *r.Verified, "the signature of a request to %s does not verify", r.Path)
		}
	}
	h.t.Logf("%d of %d deliveries came twice; so many of them after so long: %v", twice, len(last), gaps) // in order: fmt sorts a map
	most := len(last) / 200
	if len(events) < manyEvents {
		most = max(most, kills*len(healthy)*webhook.MaxAllowance)
	}
	if twice > most {
		h.t.Errorf("%d deliveries came twice, want %d at most", twice, most)
	}
}

// awaitRecorded waits until so many deliveries to the healthy URLs are recorded as delivered, each once, and gives
// when their attempts began, by path and event.
func (h *house) awaitRecorded(db *pgxpool.Pool, want int) map[string]time.Time {
	h.t.Helper()
	began := map[string]time.Time{}
	until(h.t, "all deliveries are recorded", func() bool {
		clear(began)
		rows, err := db.Query(h.t.Context(), `
			SELECT e.url, 'evt_' || replace(j.event_id::text, '-', ''), j.started_at
			FROM webhook_journal j JOIN webhook_endpoints e ON e.id = j.endpoint_id
			WHERE j.outcome = 'delivered' AND e.url LIKE '%/healthy/%'`)
		must(h.t, err)
		var url, event string
		var at time.Time
		tag, err := pgx.ForEachRow(rows, []any{&url, &event, &at}, func() error {
			began[strings.TrimPrefix(url, h.receiver.URL(""))+event] = at
			return nil
		})
		must(h.t, err)
		if n := int(tag.RowsAffected()); n > len(began) || n > want {
			h.t.Fatalf("%d deliveries are recorded %d times, want %d", len(began), n, want)
		}
		return len(began) == want
	})
	return began
}

// awaitSwitchOff waits until the URL is off, which its fiftieth failure in a row does and no
// other.
func (h *house) awaitSwitchOff(db *pgxpool.Pool, path string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 3*limit)
	defer cancel()
	for {
		var on bool
		var failures, attempts int
		err := db.QueryRow(ctx, `
			SELECT e.switched_on, h.consecutive_failures, (SELECT count(*) FROM webhook_journal a WHERE a.endpoint_id = e.id AND a.outcome IS NOT NULL)
			FROM webhook_endpoints e JOIN webhook_health h ON h.endpoint_id = e.id WHERE e.url = $1`, h.receiver.URL(path)).Scan(&on, &failures, &attempts)
		must(h.t, err)
		if !on {
			if check.Equal(h.t, "failures", failures, webhook.SwitchOffAfter, "it is off after %d failures and %d attempts, want %d", failures, attempts, webhook.SwitchOffAfter) {
				check.Equal(h.t, "attempts", attempts, webhook.SwitchOffAfter, "it is off after %d failures and %d attempts, want %d", failures, attempts, webhook.SwitchOffAfter)
			}
			return
		}
		if failures >= webhook.SwitchOffAfter {
			h.t.Fatalf("it is on after %s failures", strconv.Itoa(failures))
		}
		pause(ctx, 100*time.Millisecond)
	}
}

func (h *house) metrics(private int) string {
	h.t.Helper()
	_, text := h.call(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", private), "Accept", "text/plain", "")
	return string(text)
}
