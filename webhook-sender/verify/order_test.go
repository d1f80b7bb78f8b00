package verify_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/webhook-sender/verify"
)

func TestSubject(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, data, want string }{
		{"result.final", `{"id":"test:7","student":{"user_id":3}}`, `result "test:7"`},
		{"assignment.overdue", `{"id":"test-assignment:9","student":{"user_id":3}}`, `assignment "test-assignment:9"`},
		{"enrollment.ended", `{"student":{"user_id":3},"enrollment":{"enrollment_id":12}}`, "enrollment 12"},
		{"student.left", `{"user_id":3}`, "student 3"},
		{"ping", `{"message":"x","endpoint":{"id":1}}`, ""},
		{"result.final", `[]`, ""},
	} {
		if got := (verify.Event{Type: c.kind, Data: json.RawMessage(c.data)}).Subject(); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.kind, c.data, got, c.want)
		}
	}
}

// A receiver that fails at random gets each event until it has taken it, in any order and several at
// a time, and ends with the newest state of everything.
// Reference: webhooks#order.
func TestAReceiverThatPassesOverLateEventsEndsWithTheNewestState(t *testing.T) {
	t.Parallel()
	const results, marks = 20, 8
	var mu sync.Mutex
	scores := map[string]int{}
	random := rand.New(rand.NewPCG(1, 2))
	receiver := verify.Handler(verify.NewMemory(10_000), verify.InOrder(verify.NewAppliedMemory(), func(e verify.Event) error {
		var result struct {
			ID    string
			Score int
		}
		mu.Lock()
		defer mu.Unlock()
		if err := json.Unmarshal(e.Data, &result); err != nil || random.IntN(3) == 0 {
			return errors.Join(err, errors.New("no luck"))
		}
		scores[result.ID] = result.Score
		return nil
	}), secret)
	var wg sync.WaitGroup
	order := rand.New(rand.NewPCG(3, 4)).Perm(results * marks)
	for worker := range 4 {
		wg.Go(func() {
			for i := worker; i < len(order); i += 4 {
				n := order[i]
				body := fmt.Sprintf(`{"id":"evt_%d","type":"result.final","created":"2026-11-21T10:00:00+00:00","data":{"id":"test:%d","score":%d}}`,
					n, n%results, n/results)
				for {
					r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
					r.Header.Set(verify.HeaderSignature, sign(secret, time.Now(), body))
					r.Header.Set(verify.HeaderSequence, fmt.Sprint(100+n))
					w := httptest.NewRecorder()
					if receiver.ServeHTTP(w, r); w.Code == http.StatusOK {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	for n := range results {
		if name := fmt.Sprintf("test:%d", n); scores[name] != marks-1 {
			t.Errorf("%s is left at mark %d, want %d", name, scores[name], marks-1)
		}
	}
}

func TestWithoutASequenceEverythingIsHandled(t *testing.T) {
	t.Parallel()
	n := 0
	handle := verify.InOrder(verify.NewAppliedMemory(), func(verify.Event) error { n++; return nil })
	for _, sequence := range []int64{5, 4, 5, 6, 0, 0} {
		if err := handle(verify.Event{Type: "student.left", Data: json.RawMessage(`{"user_id":3}`), Sequence: sequence}); err != nil {
			t.Error(err)
		}
	}
	if n != 4 { // 5, 6 and twice 0
		t.Errorf("%d events were handled, want 4", n)
	}
}

func ExampleInOrder() {
	handle := verify.InOrder(verify.NewAppliedMemory(), func(e verify.Event) error {
		fmt.Println(string(e.Data))
		return nil
	})
	for _, e := range []verify.Event{
		{Type: "result.final", Data: json.RawMessage(`{"id":"test:7","score":6.5}`), Sequence: 41},
		{Type: "result.final", Data: json.RawMessage(`{"id":"test:7","score":6}`), Sequence: 12}, // late
	} {
		_ = handle(e)
	}
	// Output: {"id":"test:7","score":6.5}
}
