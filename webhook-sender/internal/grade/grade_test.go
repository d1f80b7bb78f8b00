package grade

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/seal/sealtest"
	"github.com/registrar-dev/registrar/webhook-sender/internal/advantage"
)

var local = egress.New(egress.Config{AllowHTTP: true, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})

// house has an organization with students, and LMSes that want marks.
type house struct {
	*flowtest.Fixture
	box   *seal.Box
	org   id.Organization
	users []id.User

	mu  sync.Mutex
	now time.Time
}

func newHouse(t *testing.T, students int) *house {
	t.Helper()
	h := &house{Fixture: flowtest.New(t), box: sealtest.New(t), now: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)}
	north := h.Organization("north")
	h.org, h.users = north.ID, north.Students(students)
	_, err := lms.Keys{DB: h.Database, Box: h.box}.Published(t.Context(), h.now)
	check.NoError(check.Now(t), err, "our keys")
	return h
}

func (h *house) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *house) advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

func (h *house) sender(policy *egress.Policy) *Sender {
	s := New(h.Database, advantage.New(policy, lms.Keys{DB: h.Database, Box: h.box}, h.clock), h.clock, slog.New(slog.NewTextHandler(io.Discard, nil)))
	s.Poll = 5 * time.Millisecond
	return s
}

// mark has all students' work on the item marked.
func (h *house) mark(t *testing.T, item id.Item, points int64) {
	t.Helper()
	var scores []lms.Score
	for _, u := range h.users {
		scores = append(scores, lms.Score{Organization: h.org, User: u, Item: item, Value: decimal.Whole(points), Max: decimal.Whole(100), At: h.clock()})
	}
	err := h.Database.InTx(t.Context(), func(tx *pg.Tx) error {
		var b pg.Batch
		lms.Scored(&b, scores, h.clock())
		return b.Send(t.Context(), tx)
	})
	check.NoError(check.Now(t), err, "marking")
}

// due is what the metrics say of it.
func (h *house) due(t *testing.T) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(&Backlog{DB: h.Database, Clock: h.clock, Log: slog.New(slog.DiscardHandler)})
	found, err := registry.Gather()
	check.NoError(check.Now(t), err, "gathering")
	check.Equal(check.Now(t), "metrics", len(found), 2, "")
	return fmt.Sprint(found[0].Metric[0].Gauge.GetValue(), " for ", time.Duration(found[1].Metric[0].Gauge.GetValue()*float64(time.Second)))
}

// school is an LMS that keeps the marks it is sent, going by their times.
type school struct {
	*httptest.Server
	r lms.Registration

	mu      sync.Mutex
	status  int           // of answers to marks; 0: 200
	late    time.Duration // before an answer
	tokens  int
	refused int // answers of another status
	posts   map[string]int
	marks   map[string]string // by user
	times   map[string]time.Time
}

func (h *house) school(t *testing.T, name string, item id.Item) *school {
	t.Helper()
	l := &school{posts: map[string]int{}, marks: map[string]string{}, times: map[string]time.Time{}}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			l.giveToken(t, h, w, r)
			return
		}
		l.takeMark(t, w, r)
	}))
	t.Cleanup(l.Close)
	var err error
	l.r, err = lms.Service{DB: h.Database, Policy: local}.Add(t.Context(), audit.Platform, h.org, lms.Registration{Name: name, Issuer: "https://" + name + ".school", ClientID: "client of " + name,
		AuthorizeURL: l.URL, TokenURL: l.URL + "/token", Audience: "audience of " + name, KeysURL: l.URL, Deployments: []string{"1"}}, h.clock())
	check.NoError(check.Now(t), err, "registering")
	err = h.Database.InTx(t.Context(), func(tx *pg.Tx) error {
		for i, u := range h.users {
			if err := lms.Bind(t.Context(), tx, h.org, l.r.ID, fmt.Sprintf("u%d", i), u, h.clock()); err != nil {
				return err
			}
			line := lms.Line{Registration: l.r.ID, Address: l.URL + "/lines/7?type=x", User: u, Item: item}
			if err := lms.Link(t.Context(), tx, h.org, line, nil, h.clock()); err != nil {
				return err
			}
		}
		return nil
	})
	check.NoError(check.Now(t), err, "linking")
	return l
}

// giveToken checks that we say who we are, signed with a key that we publish.
func (l *school) giveToken(t *testing.T, h *house, w http.ResponseWriter, r *http.Request) {
	published, err := lms.Keys{DB: h.Database, Box: h.box}.Published(r.Context(), h.clock())
	check.NoError(t, err, "our keys")
	var set jose.JSONWebKeySet
	for _, k := range published {
		var public jose.JSONWebKey
		check.NoError(t, json.Unmarshal(k.Public, &public), "our keys")
		set.Keys = append(set.Keys, public)
	}
	signed, err := jwt.ParseSigned(r.PostFormValue("client_assertion"), []jose.SignatureAlgorithm{jose.RS256})
	if !check.NoError(t, err, "the assertion") {
		return
	}
	var c jwt.Claims
	check.NoError(t, signed.Claims(set, &c), "the assertion's signature")
	check.NoError(t, c.ValidateWithLeeway(jwt.Expected{Issuer: l.r.ClientID, Subject: l.r.ClientID, AnyAudience: jwt.Audience{l.r.Audience}, Time: h.clock()}, 0), "the assertion")
	check.True(t, "it has an id", len(c.ID) == 43, "%v", c)
	check.Equal(t, "grant_type", r.PostFormValue("grant_type"), "client_credentials", "")
	check.Equal(t, "scope", r.PostFormValue("scope"), lms.ScoreScope, "")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens++
	_, _ = fmt.Fprintf(w, `{"access_token": "token-%d", "token_type": "Bearer", "expires_in": 3600}`, l.tokens)
}

func (l *school) takeMark(t *testing.T, w http.ResponseWriter, r *http.Request) {
	var s struct {
		User, Activity, Grading, Timestamp string
		Given, Maximum                     float64
	}
	var raw map[string]any
	check.NoError(t, json.NewDecoder(r.Body).Decode(&raw), "a mark")
	s.User, s.Timestamp = raw["userId"].(string), raw["timestamp"].(string)
	s.Given, s.Maximum = raw["scoreGiven"].(float64), raw["scoreMaximum"].(float64)
	check.Equal(t, "path", r.URL.RequestURI(), "/lines/7/scores?type=x", "")
	check.Equal(t, "type", r.Header.Get("Content-Type"), "application/vnd.ims.lis.v1.score+json", "")
	check.True(t, "it has a token", strings.HasPrefix(r.Header.Get("Authorization"), "Bearer token-"), "")
	check.Equal(t, "gradingProgress", raw["gradingProgress"], any("FullyGraded"), "")
	at, err := time.Parse(time.RFC3339Nano, s.Timestamp)
	check.NoError(t, err, "%s", s.Timestamp)
	l.mu.Lock()
	status, late := l.status, l.late
	l.mu.Unlock()
	time.Sleep(late)
	l.mu.Lock()
	defer l.mu.Unlock()
	if status != 0 {
		l.refused++
		http.Error(w, "away for <maintenance>", status)
		return
	}
	l.posts[fmt.Sprintf("%s %v", s.User, s.Given)]++
	if !at.After(l.times[s.User]) {
		w.WriteHeader(http.StatusConflict)
		return
	}
	l.times[s.User], l.marks[s.User] = at, fmt.Sprintf("%v of %v", s.Given, s.Maximum)
	w.WriteHeader(http.StatusNoContent)
}

func (l *school) answer(status int) { l.mu.Lock(); defer l.mu.Unlock(); l.status = status }

func (l *school) taken(mark string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.marks {
		if m == mark {
			n++
		}
	}
	return n
}

// await waits until it holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		check.True(check.Now(t), what, time.Now().Before(deadline), "within a minute")
	}
}

// run runs the sender until the test stops it.
func run(t *testing.T, s *Sender) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}

func TestMarksGoBack(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 20)
	l := h.school(t, "canvas", 1)
	h.mark(t, 1, 70)
	h.advance(time.Hour)
	check.Equal(t, "what is due", h.due(t), "20 for 1h0m0s", "")
	run(t, h.sender(local))
	await(t, "all marks", func() bool { return l.taken("70 of 100") == 20 })
	h.mark(t, 2, 10) // other work
	h.mark(t, 1, 80)
	await(t, "all marks", func() bool { return l.taken("80 of 100") == 20 })
	h.mark(t, 1, 90) // within the same instant, by our clock
	await(t, "all marks, again", func() bool { return l.taken("90 of 100") == 20 })
	await(t, "nothing is due", func() bool { return h.Count("lms_marks WHERE due_at IS NOT NULL OR in_hand") == 0 })
	check.Equal(t, "marks that were sent", h.Count("lms_marks WHERE sent_version = version AND version = 3"), 20, "")
	check.True(t, "tokens are kept", l.tokens <= 8, "%d", l.tokens)
	for what, n := range l.posts {
		check.Equal(t, what, n, 1, "posts")
	}
}

// An LMS that is away is tried on the schedule of webhooks, each attempt with its cause; then it is left until somebody asks.
func TestAnLMSThatIsAway(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1)
	l := h.school(t, "moodle", 1)
	l.answer(http.StatusServiceUnavailable)
	run(t, h.sender(local))
	h.mark(t, 1, 80)
	for n, pause := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60} {
		await(t, fmt.Sprintf("attempt %d", n+1), func() bool { return h.Count("lms_marks WHERE tries = $1 AND NOT in_hand", n+1) == 1 })
		var due time.Time
		h.Scan(&due, "SELECT due_at FROM lms_marks")
		check.Equal(t, "the pause", due.Sub(h.clock()), pause*time.Minute, "after attempt %d", n+1)
		h.advance(pause * time.Minute)
	}
	await(t, "it is given up", func() bool { return h.Count("lms_marks WHERE due_at IS NULL AND tries = 12") == 1 })
	marks, err := lms.Marks(t.Context(), h.Database, h.org, l.r.ID)
	check.NoError(check.Now(t), err, "the marks")
	check.Equal(t, "state", marks[0].State(), "given up", "")
	check.Equal(t, "what is due", h.due(t), "0 for 0s", "")
	check.Equal(t, "attempts", len(marks[0].Attempts), 12, "")
	check.Equal(t, "cause", marks[0].Attempts[0].Cause, "The LMS answered 503: away for <maintenance>.", "")
	l.answer(0)
	check.NoError(t, lms.Service{DB: h.Database}.SendAgain(t.Context(), h.org, l.r.ID, h.clock()), "sending again")
	await(t, "the mark", func() bool { return l.taken("80 of 100") == 1 })
	await(t, "it is settled", func() bool { return h.Count("lms_marks WHERE sent_version = version AND NOT in_hand") == 1 })
	err = lms.Service{DB: h.Database}.SendAgain(t.Context(), h.org, l.r.ID, h.clock())
	check.True(t, "there is nothing to send again", err != nil, "")
}

// What an LMS answers, and what is said about it.
func TestCauses(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{401: "did not accept its own token", 403: "does not let the tool write marks", 404: "no such column", 302: "redirects", 500: "The LMS answered 500"} {
		h := newHouse(t, 1)
		l := h.school(t, "d2l", 1)
		l.answer(status)
		if status == 302 {
			l.Config.Handler = http.RedirectHandler("https://evil.example/", http.StatusFound)
		}
		h.mark(t, 1, 80)
		run(t, h.sender(local))
		await(t, "an attempt", func() bool { return h.Count("lms_marks WHERE tries = 1") == 1 })
		marks, err := lms.Marks(t.Context(), h.Database, h.org, l.r.ID)
		check.NoError(check.Now(t), err, "the marks")
		check.Contains(t, "the cause", marks[0].Attempts[0].Cause, want, "%d", status)
	}
}

// No address of an LMS leads inside.
func TestAddressesThatAreNotPublic(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 1)
	l := h.school(t, "evil", 1)
	h.Exec(`UPDATE lms_registrations SET token_url = 'http://169.254.169.254/token'`)
	h.mark(t, 1, 80)
	run(t, h.sender(local))
	await(t, "an attempt", func() bool { return h.Count("lms_marks WHERE tries = 1") == 1 })
	marks, err := lms.Marks(t.Context(), h.Database, h.org, l.r.ID)
	check.NoError(check.Now(t), err, "the marks")
	check.Contains(t, "the cause", marks[0].Attempts[0].Cause, "not a public address", "")
	check.Equal(t, "calls", l.tokens, 0, "")
}

// Of three LMSes one is away and one is late, while senders die: no mark is lost, few are sent twice, the last one wins everywhere, and the
// good one waits for nobody.
func TestMarksSurviveDeadSenders(t *testing.T) {
	t.Parallel()
	students := 300
	if testing.Short() {
		students = 60
	}
	h := newHouse(t, students)
	good, away, late := h.school(t, "good", 1), h.school(t, "away", 1), h.school(t, "late", 1)
	away.answer(http.StatusBadGateway)
	late.late = 20 * time.Millisecond
	h.mark(t, 1, 50)
	// A sender that dies in the middle settles nothing more: its marks are handed out again when their lease is over.
	for range 3 {
		lost, err := lms.Due(t.Context(), h.Database, nil, h.clock(), lease)
		check.NoError(check.Now(t), err, "handed out")
		check.True(t, "some are handed out", len(lost) > 0 && len(lost) <= 3*lms.MaxEach, "%d", len(lost))
	}
	first := h.sender(local)
	stop := run(t, first)
	run(t, h.sender(local))
	await(t, "half of the good one's", func() bool { return good.taken("50 of 100") > students/2 })
	h.mark(t, 1, 75)
	stop()
	h.advance(lease)
	await(t, "the good one has all of the last", func() bool { return good.taken("75 of 100") == students })
	await(t, "the late one has all of the last", func() bool { return late.taken("75 of 100") == students })
	check.Equal(t, "the one that is away has", away.taken("75 of 100"), 0, "")
	away.answer(0)
	h.advance(24 * time.Hour)
	await(t, "the one that was away has all of the last", func() bool { return away.taken("75 of 100") == students })
	await(t, "nothing is due", func() bool { return h.Count("lms_marks WHERE due_at IS NOT NULL OR sent_version < version") == 0 })
	for _, l := range []*school{good, away, late} {
		twice := 0
		for _, n := range l.posts {
			twice += n - 1
		}
		// What the other sender had in hand when the clock jumped is handed out again, too.
		check.True(t, "few are sent twice", twice <= lms.MaxEach, "%d of %s", twice, l.r.Name)
	}
}
