package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/webhook-sender/verify"
)

// model is a receiver as the page on webhooks describes it: it fails at random until it is healed,
// stores results by their id, and passes over events that are older than what it has applied.
type model struct {
	apply func(verify.Event) error

	mu       sync.Mutex
	random   *rand.Rand
	healed   bool
	results  map[string]json.RawMessage // by data.id
	accepted map[string]string          // bodies, by event
	tried    map[string]bool            // events
	students map[string]*firsts         // by the student's address
}

// firsts are the first attempts of the events about one student.
type firsts struct {
	underWay  int
	last      int64 // sequence
	confusion string
}

func newModel() *model {
	m := &model{random: rand.New(rand.NewPCG(1, 2)), results: map[string]json.RawMessage{}, accepted: map[string]string{},
		tried: map[string]bool{}, students: map[string]*firsts{}}
	m.apply = verify.InOrder(verify.NewAppliedMemory(), m.store)
	return m
}

func (m *model) store(e verify.Event) error {
	if e.Type != "result.final" {
		return nil
	}
	var data struct{ ID string }
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.results[data.ID] = e.Data
	return nil
}

// begin notes an attempt, and says whether it fails.
func (m *model) begin(e verify.Event, student string) (ended func(), fails bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fails = !m.healed && m.random.IntN(10) < 3
	if m.tried[e.ID] {
		return func() {}, fails
	}
	m.tried[e.ID] = true
	f := m.students[student]
	if f == nil {
		f = &firsts{}
		m.students[student] = f
	}
	if f.underWay > 0 || e.Sequence < f.last {
		f.confusion = fmt.Sprintf("%s %d after %d with %d under way", e.Type, e.Sequence, f.last, f.underWay)
	}
	f.underWay++
	f.last = max(f.last, e.Sequence)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		f.underWay--
	}, fails
}

func (m *model) respond(body []byte, w http.ResponseWriter, r *http.Request) {
	var e verify.Event
	var about struct {
		Data struct {
			Email   string
			Student struct{ Email string }
		}
	}
	if json.Unmarshal(body, &e) != nil || json.Unmarshal(body, &about) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	e.Sequence, _ = strconv.ParseInt(r.Header.Get("X-Service-Sequence"), 10, 64)
	ended, fails := m.begin(e, about.Data.Email+about.Data.Student.Email)
	defer ended()
	if fails || m.apply(e) != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.accepted[e.ID] = string(body)
}

// A receiver that fails at random and applies what it gets in the order in which it gets it ends with the
// results that the list shows, marks that replaced others included. First attempts of a student's events
// reach it in their order. Who reads the feed, and is killed at random, has the events that were delivered.
func TestAReceiverThatFailsEndsWithWhatTheListsShow(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	h := newHouseOn(t, databaseURL)
	db, err := pgxpool.New(t.Context(), databaseURL)
	must(t, err)
	defer db.Close()
	m := newModel()
	h.receiver.SetRespond(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			m.respond(body, w, r)
		}
	})
	read := h.follow(func() { h.mark(12, 6) }, func() { h.repeatSoon(db, m) })

	m.mu.Lock()
	defer m.mu.Unlock()
	for student, f := range m.students {
		check.Equal(t, "first attempts out of order", f.confusion, "", "%s", student)
	}
	check.Equal(t, "events in the feed", len(read), len(m.tried), "the feed has %d events, of %d some attempt was made", len(read), len(m.tried))
	missing := 0
	for _, body := range read {
		var e struct{ ID, Type string }
		must(t, json.Unmarshal([]byte(body), &e))
		accepted, known := m.accepted[e.ID]
		if !known && e.Type == "result.final" {
			missing++ // superseded
			continue
		}
		whole, _, _ := strings.Cut(body, `,"sequence":`)
		check.Equal(t, "the event", whole+"}", accepted, "%s", e.ID)
	}
	var superseded int
	must(t, db.QueryRow(t.Context(), `SELECT count(*) FROM webhook_journal WHERE status = 'superseded'`).Scan(&superseded))
	check.Equal(t, "events that were not accepted", missing, superseded, "%d were superseded", superseded)
	h.compareResults(m)
}

// compareResults holds what the model has stored against the list.
func (h *house) compareResults(m *model) {
	h.t.Helper()
	_, text := h.call(http.MethodGet, h.settings.PublicURL()+"/api/v1/results/?limit=500", "X-API-Key", h.key, "")
	var page struct {
		HasMore bool `json:"has_more"`
		Results []map[string]any
	}
	must(h.t, json.Unmarshal(text, &page))
	check.False(h.t, "there are more", page.HasMore, "one page is all")
	check.Equal(h.t, "results", len(page.Results), len(m.results), "in the list and at the receiver")
	for _, listed := range page.Results {
		delete(listed, "section_practiced") // which events do not have
		var stored map[string]any
		must(h.t, json.Unmarshal(m.results[listed["id"].(string)], &stored))
		want, _ := json.Marshal(listed)
		got, _ := json.Marshal(stored)
		check.True(h.t, "the result", bytes.Equal(got, want), "stored from events %s, listed %s", got, want)
	}
}

// mark onboards students and marks a test of each so many times; the calls for one student are made one
// after the other.
func (h *house) mark(students, marks int) {
	var item struct {
		ID int64 `json:"item_id"`
	}
	h.platform(http.MethodPut, "organizations/demo/catalog/tests/mock-1", `{"title": "Mock test 1", "type": "ielts"}`, &item)
	var calls sync.WaitGroup
	for n := range students {
		calls.Go(func() {
			user := h.provision(fmt.Sprintf("student-%d@north-institute.org", n), http.StatusCreated).UserID
			for mark := range marks {
				h.platform(http.MethodPut, fmt.Sprintf("test-sessions/s-%d", n), fmt.Sprintf(`{"organization": "demo", "user_id": %d,
					"item_id": %d, "attempt": "practice", "state": "finished", "completed_at": "2026-11-02T11:45:00+00:00", "score": %d}`,
					user, item.ID, 1+mark), nil)
			}
		})
	}
	calls.Wait()
}

// repeatSoon brings the times of retries forward until nothing is pending. The receiver is healed half-way,
// so that no event is exhausted.
func (h *house) repeatSoon(db *pgxpool.Pool, m *model) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 2*limit)
	defer cancel()
	for round := 0; ; round++ {
		var pending int
		must(h.t, db.QueryRow(ctx, `
			WITH soon AS (
				UPDATE webhook_queue SET due_at = now() WHERE due_at > now()
			), on_again AS (
				UPDATE webhook_health SET next_probe_at = NULL WHERE next_probe_at > now()
			)
			SELECT count(*) FROM webhook_queue`).Scan(&pending))
		if pending == 0 {
			return
		}
		if round > 5 {
			m.mu.Lock()
			m.healed = true
			m.mu.Unlock()
		}
		pause(ctx, 200*time.Millisecond)
		must(h.t, ctx.Err())
	}
}

// follow reads the feed while changes are made, and afterwards until its end. The reader is killed at random:
// only what it has stored together with its cursor counts.
func (h *house) follow(change, settle func()) (events []string) {
	h.t.Helper()
	over := make(chan struct{})
	go func() {
		defer close(over)
		change()
	}()
	random, cursor := rand.New(rand.NewPCG(3, 4)), ""
	for last := false; ; {
		select {
		case <-over:
			last = true
		default:
		}
		code, text := h.call(http.MethodGet, fmt.Sprintf("%s/api/v1/events/?limit=%d&cursor=%s", h.settings.PublicURL(), 1+random.IntN(9), url.QueryEscape(cursor)),
			"X-API-Key", h.key, "")
		check.Equal(check.Now(h.t), "status", code, http.StatusOK, "%s", text)
		var page struct {
			NextCursor string `json:"next_cursor"`
			Events     []json.RawMessage
		}
		must(h.t, json.Unmarshal(text, &page))
		if random.IntN(3) == 0 && !last {
			continue // killed
		}
		cursor = page.NextCursor
		for _, e := range page.Events {
			events = append(events, string(e))
		}
		if last && len(page.Events) == 0 {
			break
		}
	}
	settle()
	var sequences []int64
	for _, e := range events {
		var in struct{ Sequence int64 }
		must(h.t, json.Unmarshal([]byte(e), &in))
		sequences = append(sequences, in.Sequence)
	}
	check.True(h.t, "the feed is in order, without repeats", slices.IsSorted(sequences) && len(slices.Compact(slices.Clone(sequences))) == len(sequences), "%v", sequences)
	return events
}
