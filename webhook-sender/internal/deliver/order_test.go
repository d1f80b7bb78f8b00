package deliver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// arrivals is a receiver that notes in which order the events of each student begin to arrive, and
// refuses every third request.
type arrivals struct {
	mu       sync.Mutex
	requests int
	under    map[int64]int     // requests under way, by student
	order    map[int64][]int64 // sequences, by student
	together bool              // two of one student's have been under way
}

func (a *arrivals) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Data struct {
			UserID int64 `json:"user_id"`
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	student := body.Data.UserID
	sequence, _ := strconv.ParseInt(r.Header.Get("X-Service-Sequence"), 10, 64)
	a.mu.Lock()
	a.requests++
	refuse := a.requests%3 == 0
	a.under[student]++
	a.together = a.together || a.under[student] > 1
	a.order[student] = append(a.order[student], sequence)
	a.mu.Unlock()
	if refuse {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	a.mu.Lock()
	a.under[student]--
	a.mu.Unlock()
}

// recordRounds commits an event about each student in each round.
func (h *house) recordRounds(t *testing.T, students, rounds int) {
	t.Helper()
	for range rounds {
		err := h.db.InTx(t.Context(), func(tx *pg.Tx) error {
			for s := range students {
				e := webhook.Event{Type: webhook.EnrollmentUpdated, User: id.User(s + 1), Data: map[string]any{"user_id": s + 1}}
				if err := webhook.Record(t.Context(), tx, h.org, time.Now(), e); err != nil {
					return err
				}
			}
			return nil
		})
		check.NoError(check.Now(t), err, "%v", err)
	}
}

// Reference: webhooks#order.
func TestFirstAttemptsOfAStudentAreMadeOneAfterTheOther(t *testing.T) {
	t.Parallel()
	in := &arrivals{under: map[int64]int{}, order: map[int64][]int64{}}
	server := httptest.NewServer(in)
	t.Cleanup(server.Close)
	h := newHouse(t, loopback)
	h.addURL(t, server.URL)
	_, err := h.db.Exec(t.Context(), `UPDATE webhook_health SET allowance = 256`)
	check.NoError(check.Now(t), err, "%v", err)
	const students, rounds = 6, 10
	h.recordRounds(t, students, rounds)
	var handled sync.WaitGroup
	for _, l := range h.lease(t, time.Second) {
		handled.Go(func() {
			err := h.handler.Handle(t.Context(), payload(l))
			check.NoError(t, err, "%v", err)
		})
	}
	handled.Wait()
	check.Equal(t, "requests", in.requests, students*rounds, "%v", in.order)
	check.False(t, "two of one student's were under way", in.together, "%v", in.order)
	for student, sequences := range in.order {
		check.True(t, "the order is that of the sequence", slices.IsSorted(sequences), "student %d: %v", student, sequences)
	}
}

// A slow receiver gets no attempt for which the lease has no time left: what follows is given back.
func TestWhatALeaseHasNoTimeForIsGivenBack(t *testing.T) {
	t.Parallel()
	h := newHouse(t, loopback)
	var later atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		later.Store(int64(9 * time.Second)) // this long it takes to answer
	}))
	t.Cleanup(server.Close)
	h.handler.Clock = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	h.addURL(t, server.URL)
	h.recordRounds(t, 1, 3)
	h.handle(t, h.lease(t, time.Second))
	var statuses string
	var over bool // a relay makes due again what it still holds
	err := h.db.QueryRow(t.Context(), `
		SELECT string_agg(status, ' ' ORDER BY id), (SELECT until <= $1 FROM webhook_leases) FROM webhook_states`, h.handler.Clock()).
		Scan(&statuses, &over)
	check.NoError(check.Now(t), err, "%v", err)
	check.Equal(t, "statuses", statuses, "delivered in_flight in_flight", "%s", statuses)
	check.True(t, "the lease is over", over, "")
}

// An attempt is recorded although another one under its lease is still under way, so that it is not
// made again when the process is killed.
func TestAnAttemptIsRecordedWhileOthersAreUnderWay(t *testing.T) {
	t.Parallel()
	goOn, calls := make(chan struct{}), atomic.Int64{}
	server := httptest.NewServer(reading(func(http.ResponseWriter, *http.Request) {
		if calls.Add(1) == 1 {
			<-goOn
		}
	}))
	t.Cleanup(server.Close)
	h := newHouse(t, loopback)
	h.addURL(t, server.URL)
	h.recordRounds(t, 4, 1)
	leases := h.lease(t, time.Second)
	check.Equal(check.Now(t), "leases", len(leases), 2, "%+v", leases)
	handled := make(chan error, 1)
	go func() { handled <- h.handler.Handle(t.Context(), payload(leases...)) }()
	recorded := func(want int) (leases int) {
		t.Helper()
		deadline := time.Now().Add(time.Minute)
		for n := -1; n != want; {
			check.True(check.Now(t), "they are recorded in time", time.Now().Before(deadline), "%d of %d attempts are recorded", n, want)
			err := h.db.QueryRow(t.Context(), `SELECT count(*), (SELECT count(*) FROM webhook_leases) FROM webhook_journal`).Scan(&n, &leases)
			check.NoError(check.Now(t), err, "%v", err)
		}
		return leases
	}
	check.Equal(t, "leases while one attempt is under way", recorded(3), 1, "its own")
	close(goOn)
	check.NoError(t, <-handled, "handling")
	check.Equal(t, "leases in the end", recorded(4), 0, "none")
}

// A panic in one attempt is that task's error, and the program goes on.
func TestAPanicEndsNothingElse(t *testing.T) {
	t.Parallel()
	h := newHouse(t, loopback)
	h.addURL(t, "http://127.0.0.1:9999/")
	h.recordRounds(t, 2, 1)
	h.handler.Dispatcher = nil
	err := h.handler.Handle(t.Context(), payload(h.lease(t, time.Second)...))
	if check.True(t, "there is an error", err != nil, "%v", err) {
		check.Contains(t, "the error", err.Error(), "panic", "%v", err)
	}
	var leases int
	check.NoError(t, h.db.QueryRow(t.Context(), `SELECT count(*) FROM webhook_leases`).Scan(&leases), "counting")
	check.Equal(t, "leases that run out", leases, 2, "one each")
}
