package deliver_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/seal/sealtest"
	"github.com/registrar-dev/registrar/internal/kit/task"
	"github.com/registrar-dev/registrar/webhook-sender/internal/deliver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a sender over a database of its own, with one organization.
type house struct {
	db       *pg.DB
	webhooks webhook.Service
	handler  *deliver.Handler
	org      id.Organization
}

func newHouse(t *testing.T, policy *egress.Policy) *house {
	t.Helper()
	box := sealtest.New(t)
	h := &house{db: pgtest.New(t)}
	h.webhooks = webhook.Service{DB: h.db, Box: box, Policy: loopback}
	dispatcher := deliver.NewDispatcher(policy, clock.System)
	t.Cleanup(dispatcher.Close)
	log := slog.New(slog.DiscardHandler)
	db := pgtest.OpenAs(t, h.db, "webhook-sender")
	recorder := deliver.StartRecorder(context.WithoutCancel(t.Context()), db, log)
	t.Cleanup(recorder.Close)
	h.handler = &deliver.Handler{DB: db, Loads: deliver.NewLoads(db), Box: box, Dispatcher: dispatcher, Recorder: recorder, Clock: clock.System,
		Metrics: deliver.NewMetrics(prometheus.NewRegistry())}
	h.org = flowtest.On(t, h.db).Organization("demo").ID
	return h
}

var (
	loopback = egress.New(local)
	local    = egress.Config{AllowHTTP: true, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
)

// trusting is loopback with the authorities of a file.
func trusting(t *testing.T, file string) *egress.Policy {
	t.Helper()
	c := local
	check.NoError(check.Now(t), c.CAFile.UnmarshalText([]byte(file)), "%s", file)
	return egress.New(c)
}

func (h *house) addURL(t *testing.T, url string) (webhook.Endpoint, string) {
	t.Helper()
	e, secret, err := h.webhooks.Add(t.Context(), audit.Platform, h.org, webhook.Settings{URL: &url}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return e, secret
}

func (h *house) record(t *testing.T, n int) {
	t.Helper()
	err := h.db.InTx(t.Context(), func(tx *pg.Tx) error {
		for i := range n {
			e := webhook.Event{Type: webhook.StudentJoined, User: id.User(i + 1), Data: map[string]any{"user_id": i + 1}}
			if err := webhook.Record(t.Context(), tx, h.org, time.Now(), e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// lease leases what is due in the given time from now.
func (h *house) lease(t *testing.T, in time.Duration) []dispatch.Lease {
	t.Helper()
	leases, _, err := dispatch.LeaseDue(t.Context(), h.db, time.Now().Add(in), 20*time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	return leases
}

// payload is that of a task for leases.
func payload(leases ...dispatch.Lease) []byte {
	of := make([]task.Deliver, len(leases))
	for i, l := range leases {
		of[i] = l.Deliver
	}
	return task.Encode(of)
}

// giveBack does what a relay does with leases that are over.
func (h *house) giveBack(t *testing.T, leases []dispatch.Lease) {
	t.Helper()
	for _, l := range leases {
		_, err := h.db.Exec(t.Context(), `DELETE FROM webhook_leases WHERE id = $1 AND until <= $2`, l.Lease, h.handler.Clock())
		check.NoError(check.Now(t), err, "%v", err)
		check.NoError(check.Now(t), webhook.EndGivenBack(t.Context(), h.db, l.Endpoint, h.handler.Clock()), "ending")
	}
}

func (h *house) handle(t *testing.T, leases []dispatch.Lease) {
	t.Helper()
	for _, l := range leases {
		if err := h.handler.Handle(t.Context(), payload(l)); err != nil {
			t.Error(err)
		}
	}
}

// attempt is what is recorded of the first attempt.
type attempt struct {
	outcome, cause string
	status         *int
	response       []byte
	peer, detail   string
	deliveryStatus string
}

func (h *house) firstAttempt(t *testing.T) attempt {
	t.Helper()
	var a attempt
	err := h.db.QueryRow(t.Context(), `
		SELECT a.outcome, a.cause, a.response_status, a.response_body, a.peer, a.detail, coalesce(a.status, 'waiting')
		FROM webhook_journal a ORDER BY a.started_at LIMIT 1`).
		Scan(&a.outcome, &a.cause, &a.status, &a.response, &a.peer, &a.detail, &a.deliveryStatus)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// reading reads the request's body before it hands on: net/http notices that the client
// has gone only then.
func reading(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		next(w, r)
	})
}

// inbox is a receiver that remembers requests.
type inbox struct {
	mu       sync.Mutex
	requests []*http.Request
	bodies   [][]byte
}

func (i *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.requests, i.bodies = append(i.requests, r), append(i.bodies, body)
	w.WriteHeader(http.StatusNoContent)
}

func caFile(t *testing.T, server *httptest.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(path, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Reference: webhooks#event-request.
func TestASignedEventArrivesOverHTTPS(t *testing.T) {
	t.Parallel()
	var in inbox
	server := httptest.NewTLSServer(&in)
	defer server.Close()
	h := newHouse(t, trusting(t, caFile(t, server)))
	_, secret := h.addURL(t, server.URL+"/hook")
	h.record(t, 1)
	leases := h.lease(t, time.Second)
	h.handle(t, leases)
	h.handle(t, leases) // brought twice by the queue: a no-op
	if len(in.requests) != 1 {
		t.Fatalf("%d requests arrived, want 1", len(in.requests))
	}
	r, body := in.requests[0], in.bodies[0]
	check.Equal(check.Now(t), "r.Method", r.Method, http.MethodPost, "%s %s %v %s", r.Method, r.URL, r.Header, body)
	check.Equal(check.Now(t), "r.URL.Path", r.URL.Path, "/hook", "%s %s %v %s", r.Method, r.URL, r.Header, body)
	check.Equal(check.Now(t), "Content-Type", r.Header.Get("Content-Type"), "application/json", "%s %s %v %s", r.Method, r.URL, r.Header, body)
	check.Equal(check.Now(t), "X-Service-Event", r.Header.Get("X-Service-Event"), "student.joined", "%s %s %v %s", r.Method, r.URL, r.Header, body)
	check.Contains(check.Now(t), "the answer", string(body), `"id":"`+r.Header.Get("X-Service-Delivery")+`"`, "%s %s %v %s", r.Method, r.URL, r.Header, body)
	var sequence int64
	if err := h.db.QueryRow(t.Context(), `SELECT sequence FROM webhook_events`).Scan(&sequence); check.NoError(t, err, "%v", err) {
		check.True(t, "the event has a sequence", sequence > 0, "%d", sequence)
		check.Equal(t, "X-Service-Sequence", r.Header.Get("X-Service-Sequence"), fmt.Sprint(sequence), "%v", r.Header)
	}
	var stamp int64
	var digest string
	if _, err := fmt.Sscanf(r.Header.Get("X-Service-Signature"), "t=%d,v1=%s", &stamp, &digest); err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", stamp, body)
	if digest != hex.EncodeToString(mac.Sum(nil)) {
		t.Fatal("the signature does not verify")
	}
	if a := h.firstAttempt(t); check.Equal(check.Now(t), "a.outcome", a.outcome, "delivered", "recorded: %+v", a) &&
		check.Equal(check.Now(t), "*a.status", *a.status, 204, "recorded: %+v", a) &&
		check.Equal(check.Now(t), "a.deliveryStatus", a.deliveryStatus, "delivered", "recorded: %+v", a) {
		check.Equal(check.Now(t), "a.peer", a.peer, server.Listener.Addr().String(), "recorded: %+v", a)
	}
}

func TestWhatReceiversDoWrong(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	answer := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	for name, c := range map[string]struct {
		receive                http.HandlerFunc
		outcome, cause, status string
	}{
		"answers 500":       {answer(500), "retry", "http_500", "waiting"},
		"answers 429":       {answer(429), "retry", "http_429", "waiting"},
		"declines with 410": {answer(410), "declined", "http_410", "declined"},
		"redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}, "retry", "redirect", "waiting"},
		"hangs": {func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		}, "retry", "timeout", "waiting"},
		"closes mid-body": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("short"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "retry", "response_incomplete", "waiting"},
		"declines and breaks off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(http.StatusGone)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "declined", "http_410", "declined"},
		"closes at once": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "retry", "connection_reset", "waiting"},
		"drips": {func(w http.ResponseWriter, r *http.Request) {
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("."))
				_ = http.NewResponseController(w).Flush()
				<-tick.C
			}
		}, "retry", "response_timeout", "waiting"},
		"sends 100 MB": {func(w http.ResponseWriter, _ *http.Request) {
			chunk := make([]byte, 1<<20)
			for range 100 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, "delivered", "ok", "delivered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(reading(c.receive))
			t.Cleanup(server.Close)
			h := newHouse(t, loopback)
			h.addURL(t, server.URL)
			h.record(t, 1)
			h.handle(t, h.lease(t, time.Second))
			a := h.firstAttempt(t)
			if check.Equal(t, "a.outcome", a.outcome, c.outcome, "recorded %+v, want %s for %s and %s", a, c.outcome, c.cause, c.status) &&
				check.Equal(t, "a.cause", a.cause, c.cause, "recorded %+v, want %s for %s and %s", a, c.outcome, c.cause, c.status) {
				check.Equal(t, "a.deliveryStatus", a.deliveryStatus, c.status, "recorded %+v, want %s for %s and %s", a, c.outcome, c.cause, c.status)
			}
			if len(a.response) > 4<<10 {
				t.Errorf("%d bytes of the response are kept", len(a.response))
			}
		})
	}
}

func TestAnIdleConnectionThatTheReceiverEndsCostsNothing(t *testing.T) {
	t.Parallel()
	type connection struct{}
	var in inbox
	server := httptest.NewUnstartedServer(reading(func(w http.ResponseWriter, r *http.Request) {
		used := r.Context().Value(connection{}).(*int)
		if *used++; *used > 1 {
			panic(http.ErrAbortHandler) // as a receiver whose patience ends when the next request comes
		}
		if r.Header.Get("Idempotency-Key") != "" {
			t.Error("a header is sent that no delivery has")
		}
		in.ServeHTTP(w, r)
	}))
	server.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, connection{}, new(int))
	}
	server.Start()
	defer server.Close()
	h := newHouse(t, loopback)
	h.addURL(t, server.URL)
	for range 2 {
		h.record(t, 1)
		h.handle(t, h.lease(t, time.Second))
	}
	var attempts, delivered int
	err := h.db.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE outcome = 'delivered') FROM webhook_journal`).Scan(&attempts, &delivered)
	if check.NoError(t, err, "%d attempts, %d of them delivered, %d requests taken; %v", attempts, delivered, len(in.requests), err) &&
		check.Equal(t, "attempts", attempts, 2, "%d attempts, %d of them delivered, %d requests taken; %v", attempts, delivered, len(in.requests), err) &&
		check.Equal(t, "delivered", delivered, 2, "%d attempts, %d of them delivered, %d requests taken; %v", attempts, delivered, len(in.requests), err) {
		check.Equal(t, "number of requests", len(in.requests), 2, "%d attempts, %d of them delivered, %d requests taken; %v", attempts, delivered, len(in.requests), err)
	}
}

func TestConnectionsThatFail(t *testing.T) {
	t.Parallel()
	listener := httptest.NewServer(http.NotFoundHandler())
	closed := listener.URL
	listener.Close()
	selfSigned := httptest.NewUnstartedServer(http.NotFoundHandler())
	selfSigned.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	selfSigned.StartTLS()
	defer selfSigned.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for name, c := range map[string]struct {
		url, cause string
		policy     *egress.Policy
	}{
		"nothing listens":   {closed, "connection_refused", loopback},
		"unknown authority": {selfSigned.URL, "tls_unknown_issuer", loopback},
		"not TLS":           {strings.Replace(plain.URL, "http:", "https:", 1), "bad_response", loopback},
		"unknown name":      {"https://no-such-host.invalid/", "dns_not_found dns_failed", loopback},
		// The policy has become stricter, or the name's address has changed, since the
		// URL was added: what counts is the address dialled.
		"private at dial time": {plain.URL, "address_not_public", egress.New(egress.Config{AllowHTTP: true})},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, c.policy)
			h.addURL(t, c.url)
			h.record(t, 1)
			h.handle(t, h.lease(t, time.Second))
			if a := h.firstAttempt(t); check.Equal(t, "a.outcome", a.outcome, "retry", "recorded %+v, want %s", a, c.cause) {
				check.True(t, "the cause is one of those wanted", slices.Contains(strings.Fields(c.cause), a.cause), "recorded %+v, want %s", a, c.cause)
			}
			if a := h.firstAttempt(t); check.True(t, "there is a detail", a.detail != "", "the attempt tells of an address: %+v", a) &&
				check.False(t, "the detail shows an address", address.MatchString(a.detail), "the attempt tells of an address: %+v", a) {
				check.True(t, "a refused address has no peer", a.cause != "address_not_public" || a.peer == "", "the attempt tells of an address: %+v", a)
			}
		})
	}
}

// address is an IP address, or a port of one.
var address = regexp.MustCompile(`\d+\.\d+\.\d+|:\d`)

func TestALeaseThatIsAlmostOverIsRenewedBeforeTheAttempt(t *testing.T) {
	t.Parallel()
	var left time.Duration
	var h *house
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var until time.Time
		if err := h.db.QueryRow(r.Context(), `SELECT until FROM webhook_leases`).Scan(&until); err != nil {
			t.Error(err)
		}
		left = time.Until(until)
	}))
	defer server.Close()
	h = newHouse(t, loopback)
	h.addURL(t, server.URL)
	h.record(t, 1)
	leases := h.lease(t, time.Second)
	if _, err := h.db.Exec(t.Context(), `UPDATE webhook_leases SET until = now() + interval '1 second'`); err != nil {
		t.Fatal(err)
	}
	h.handle(t, leases)
	if left < 10*time.Second {
		t.Fatalf("the lease had %v left during the attempt", left)
	}
}

func TestOutcomesOfASenderThatIsStoppedAreNotTheReceiversFault(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	server := httptest.NewServer(reading(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}))
	defer server.Close()
	h := newHouse(t, loopback)
	h.addURL(t, server.URL)
	h.record(t, 1)
	leases := h.lease(t, time.Second)
	ctx, stop := context.WithCancel(t.Context())
	go func() { <-arrived; stop() }()
	if err := h.handler.Handle(ctx, payload(leases...)); err != nil {
		t.Fatal(err)
	}
	var attempts int
	if err := h.db.QueryRow(t.Context(), `SELECT count(*) FROM webhook_journal`).Scan(&attempts); check.NoError(check.Now(t), err, "%d attempts are recorded, %v", attempts, err) {
		check.Equal(check.Now(t), "attempts", attempts, 0, "%d attempts are recorded, %v", attempts, err)
	}
}
