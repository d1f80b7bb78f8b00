package e2e

import (
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/kit/check"
	ids "github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

var marksOfLMSes = flag.Int("marks", 1500, "marks for three LMSes in the run in which programs are killed")

// manyMarks are so many that the share of what comes twice says something of the service, and not of the moments in which a
// sender was killed.
const manyMarks = 20_000

// school is an LMS that keeps the marks it is sent, going by their times, as LTI has it.
type school struct {
	name string
	url  string
	away atomic.Bool   // it answers 503
	late time.Duration // before an answer

	mu      sync.Mutex
	refused int
	twice   int // marks that had come before
	scores  map[string]float64
	times   map[string]string // of the scores: their texts sort as the times do
	seen    map[string]bool
}

func (s *school) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/token" {
		_, _ = w.Write([]byte(`{"access_token": "t", "token_type": "Bearer", "expires_in": 3600}`))
		return
	}
	var mark struct {
		User string  `json:"userId"`
		At   string  `json:"timestamp"`
		Give float64 `json:"scoreGiven"`
	}
	if err := json.NewDecoder(r.Body).Decode(&mark); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	pause(r.Context(), s.late)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away.Load() {
		s.refused++
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if one := mark.User + " " + mark.At; s.seen[one] {
		s.twice++
	} else {
		s.seen[one] = true
	}
	if mark.At <= s.times[mark.User] {
		w.WriteHeader(http.StatusConflict)
		return
	}
	s.times[mark.User], s.scores[mark.User] = mark.At, mark.Give
	w.WriteHeader(http.StatusNoContent)
}

// has says how many students have the score that want gives for them.
func (s *school) has(students int, want func(n int) float64) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range students {
		if s.scores[fmt.Sprint("u", i)] == want(i) {
			n++
		}
	}
	return n
}

// school registers an LMS in which all students have opened one link to the item.
func (h *house) school(db *pg.DB, name string, late time.Duration, users []ids.User, item ids.Item) *school {
	h.t.Helper()
	s := &school{name: name, late: late, scores: map[string]float64{}, times: map[string]string{}, seen: map[string]bool{}}
	server := httptest.NewUnstartedServer(s)
	certs, err := stack.LoadCerts(h.dir)
	must(h.t, err)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certs.Leaf}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	h.t.Cleanup(server.Close)
	s.url = server.URL
	var made struct {
		ID ids.Registration `json:"id"`
	}
	h.platform(http.MethodPost, "organizations/demo/lti-registrations", fmt.Sprintf(`{"name": %q, "issuer": "https://%[1]s.school", "client_id": "tool",
		"authorize_url": %q, "token_url": %q, "keys_url": %[2]q, "deployments": ["1"]}`, name, s.url+"/keys", s.url+"/token"), &made)
	must(h.t, db.InTx(h.t.Context(), func(tx *pg.Tx) error {
		for i, u := range users {
			if err := lms.Bind(h.t.Context(), tx, 1, made.ID, fmt.Sprint("u", i), u, time.Now()); err != nil {
				return err
			}
			line := lms.Line{Registration: made.ID, Address: s.url + "/lines/1", User: u, Item: item}
			if err := lms.Link(h.t.Context(), tx, 1, line, nil, time.Now()); err != nil {
				return err
			}
		}
		return nil
	}))
	return s
}

// enlist makes students, each with the item assigned, as opening a link of an LMS does.
func (h *house) enlist(students int, item ids.Item) (users []ids.User, work []string) {
	h.t.Helper()
	users, work = make([]ids.User, students), make([]string, students)
	var clients sync.WaitGroup
	for part := range 4 {
		clients.Go(func() {
			for n := part; n < students; n += 4 {
				users[n] = ids.User(h.provision(fmt.Sprintf("student-%d@north-institute.org", n), http.StatusCreated).UserID)
				status, text := h.call(http.MethodPost, h.settings.PublicURL()+"/api/v1/assignments/", "X-API-Key", h.key, fmt.Sprintf(`{"user_id": %d, "kind": "test", "item_id": %d, "notify": false}`, users[n], item))
				var made struct {
					Assignment struct {
						ID string `json:"id"`
					} `json:"assignment"`
				}
				check.NoError(h.t, json.Unmarshal(text, &made), "%s", text)
				work[n] = made.Assignment.ID
				check.True(h.t, "it is assigned", status < 300 && work[n] != "", "%d %s", status, text)
			}
		})
	}
	clients.Wait()
	return users, work
}

// report sends the students' results, until each is answered: the API may just have been killed.
func (h *house) report(users []ids.User, item ids.Item, work []string, score func(n int) float64, which func(n int) bool) {
	h.t.Helper()
	var next atomic.Int64
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(users); n = int(next.Add(1)) - 1 {
				for which(n) && h.t.Context().Err() == nil && !h.tryReport(n, users[n], item, work[n], score(n)) {
					pause(h.t.Context(), 50*time.Millisecond)
				}
			}
		})
	}
	clients.Wait()
}

func (h *house) tryReport(n int, user ids.User, item ids.Item, work string, score float64) bool {
	return h.succeeds(http.MethodPut, fmt.Sprintf("http://127.0.0.1:%d/platform/v1/test-sessions/s-%d", h.settings.Ports.Platform, n), "Authorization", "Bearer "+h.settings.PlatformKey,
		fmt.Sprintf(`{"organization": "demo", "user_id": %d, "item_id": %d, "attempt": "assigned", "assignment_id": %q, "state": "finished",
			"completed_at": %q, "score": %g}`, user, item, work, time.Now().UTC().Format(time.RFC3339), score))
}

// Of three LMSes one is away for a while and one is late, while each program is killed again and again: no mark is lost, few are
// sent twice, and each LMS has the last one of each student.
func TestMarksReachLMSesThroughDeadPrograms(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db, err := pg.OpenCurrent(t.Context(), h.database, 0)
	must(t, err)
	t.Cleanup(db.Close)
	var item struct {
		ID ids.Item `json:"item_id"`
	}
	h.platform(http.MethodPut, "organizations/demo/catalog/tests/mock-1", `{"title": "Mock test 1", "type": "ielts"}`, &item)
	h.call(http.MethodGet, h.settings.PublicURL()+"/lti/v1p3/jwks", "Accept", "application/json", "") // makes the first key
	users, work := h.enlist(*marksOfLMSes/3, item.ID)
	schools := []*school{h.school(db, "good", 0, users, item.ID), h.school(db, "away", 0, users, item.ID), h.school(db, "late", 50*time.Millisecond, users, item.ID)}
	schools[1].away.Store(true)

	first := func(n int) float64 { return 1 + float64(n%17)/2 }
	last := func(n int) float64 { // every third student is marked again
		if n%3 == 0 {
			return 9
		}
		return first(n)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.report(users, item.ID, work, first, func(int) bool { return true })
		h.report(users, item.ID, work, last, func(n int) bool { return n%3 == 0 })
	}()
	kills := h.killInTurn(done)
	schools[1].away.Store(false)
	for _, s := range schools {
		deadline := time.Now().Add(4 * limit) // an LMS that was away is tried again after one, two and four minutes
		for n := -1; n != len(users); n = s.has(len(users), last) {
			if time.Now().After(deadline) {
				t.Fatalf("%s has the last marks of %d of %d students; %s", s.name, n, len(users), stateOfMarks(t, db))
			}
			pause(t.Context(), 50*time.Millisecond)
		}
	}
	until(t, "all marks are settled", func() bool {
		var pending int
		must(t, db.QueryRow(t.Context(), `SELECT count(*) FROM lms_marks WHERE due_at IS NOT NULL OR in_hand OR sent_version <> version`).Scan(&pending))
		return pending == 0
	})
	twice, refused := 0, 0
	for _, s := range schools {
		twice, refused = twice+s.twice, refused+s.refused
	}
	marks := 3 * (len(users) + (len(users)+2)/3)
	t.Logf("%d marks, %d kills of each program, %d answers of 503, %d came twice", marks, kills, refused, twice)
	check.True(t, "each program was killed", kills > 1, "%d times", kills)
	check.True(t, "an LMS was away", refused > 0, "")
	most := marks / 100
	if marks < manyMarks {
		most = max(most, kills*len(schools)*lms.MaxEach) // what senders that were killed can have had in hand
	}
	check.True(t, "few come twice", twice <= most, "%d of %d", twice, marks)
}

// stateOfMarks is for whom a test has failed.
func stateOfMarks(t *testing.T, db *pg.DB) (state string) {
	t.Helper()
	must(t, db.QueryRow(t.Context(), `
		SELECT format('%s rows, %s marked, %s due, %s in hand, %s given up; the last attempts: %s', count(*), count(*) FILTER (WHERE version > 0),
			count(due_at), count(*) FILTER (WHERE in_hand), count(*) FILTER (WHERE due_at IS NULL AND sent_version <> version),
			array_agg(DISTINCT attempts -> -1 ->> 'cause')) FROM lms_marks`).Scan(&state))
	return state
}

// killInTurn kills the programs one after the other, again and again until done is closed, and says how often each.
func (h *house) killInTurn(done <-chan struct{}) (kills int) {
	h.t.Helper()
	programs := []struct {
		p       *stack.Program
		private int
	}{{h.api, h.settings.Ports.APIPrivate}, {h.sender, h.settings.Ports.SenderPrivate}, {h.worker, h.settings.Ports.WorkerPrivate}}
	for ; ; kills++ {
		for _, p := range programs {
			pause(h.t.Context(), time.Second)
			h.kill(p.p, p.private)
		}
		select {
		case <-done:
			if kills > 0 {
				return kills + 1
			}
		default:
		}
	}
}
