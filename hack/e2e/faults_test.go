package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/registrar-dev/registrar/hack/stack"
)

func TestRedisStoppedDuringACallDelaysAndLosesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	must(t, h.redis.Stop())
	h.provision("asha@north-institute.org", http.StatusCreated)
	if n := len(h.receiver.All()); n != 0 {
		t.Fatalf("%d requests without a queue", n)
	}
	must(t, h.redis.Start(t.Context()))
	h.awaitEvents("asha@north-institute.org", 2)
	h.awaitMail("asha@north-institute.org", 1)
}

func TestAnEmptiedRedisLosesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	// With the sender stopped, the tasks are in Redis and nowhere else when it is emptied.
	must(t, h.sender.Stop())
	h.provision("asha@north-institute.org", http.StatusCreated)
	h.awaitMail("asha@north-institute.org", 1)
	options, err := redis.ParseURL(h.settings.RedisURL)
	must(t, err)
	rdb := redis.NewClient(options)
	defer func() { _ = rdb.Close() }()
	awaitQueued(t, rdb)
	must(t, rdb.FlushAll(t.Context()).Err())
	h.start(h.sender, h.settings.Ports.SenderPrivate)
	wantJoined(t, h.awaitEvents("asha@north-institute.org", 2))
}

// awaitQueued waits until a delivery task is in Redis.
func awaitQueued(t *testing.T, rdb *redis.Client) {
	t.Helper()
	until(t, "a delivery task is queued", func() bool {
		n, err := rdb.LLen(t.Context(), "asynq:{webhook}:pending").Result()
		must(t, err)
		return n > 0
	})
}

// held makes the receiver keep its answer back: arrived is closed at the first request,
// and requests are answered once release is closed.
func held() (respond stack.Respond, arrived <-chan struct{}, release func()) {
	in, out := make(chan struct{}), make(chan struct{})
	var first sync.Once
	return func(w http.ResponseWriter, r *http.Request) {
		first.Do(func() { close(in) })
		select {
		case <-out:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusOK)
	}, in, sync.OnceFunc(func() { close(out) })
}

func TestASenderKilledBetweenPostAndRecordDeliversAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	respond, arrived, release := held()
	defer release()
	h.receiver.SetRespond(respond)
	h.provision("asha@north-institute.org", http.StatusCreated)
	select {
	case <-arrived:
	case <-time.After(limit):
		t.Fatalf("no request within %s", limit)
	}
	must(t, h.sender.Kill()) // posted, and not recorded
	release()
	before := h.receiver.All()
	h.start(h.sender, h.settings.Ports.SenderPrivate)
	after := h.awaitEvents("asha@north-institute.org", 2+len(before))
	ids := map[string]int{}
	for _, r := range after {
		ids[r.Headers["X-Service-Delivery"]]++
	}
	if len(ids) != 2 {
		t.Fatalf("%d different events arrived, want 2: %v", len(ids), ids)
	}
	for _, r := range before {
		if id := r.Headers["X-Service-Delivery"]; ids[id] != 2 {
			t.Errorf("event %s arrived %d times, want once more", id, ids[id])
		}
	}
}

func TestAWorkerKilledInTheMiddleLosesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const students = 40
	email := func(i int) string { return fmt.Sprintf("student-%d@north-institute.org", i) }
	for i := range students {
		if i == students/2 {
			must(t, h.worker.Kill())
		}
		h.provision(email(i), http.StatusCreated)
	}
	h.start(h.worker, h.settings.Ports.WorkerPrivate)
	for i := range students {
		h.awaitEvents(email(i), 2)
	}
}

// Three workers share the work. One is killed and one is frozen: what these led is led by the third
// within five seconds, and nothing is delivered twice, also when the frozen one goes on.
func TestWorkersThatEndHandOver(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for i := range 6 {
		h.addURL(fmt.Sprintf("/shared/%d", i))
	}
	others := []*stack.Program{h.anotherWorker(), h.anotherWorker()}
	db := connect(t, h)
	eventually(t, db, "all three lead", `SELECT count(DISTINCT holder) = 3 FROM leaders WHERE name LIKE 'relay-webhooks-%' AND expires > now()`)
	const students = 60
	email := func(i int) string { return fmt.Sprintf("student-%d@north-institute.org", i) }
	for i := range students {
		switch i {
		case students / 3:
			must(t, others[0].Kill())
		case students / 2:
			must(t, others[1].Signal(syscall.SIGSTOP))
		}
		h.provision(email(i), http.StatusCreated)
	}
	began := time.Now()
	eventually(t, db, "one leads everything", `SELECT count(DISTINCT holder) = 1 AND count(*) = 16 FROM leaders WHERE name LIKE 'relay-webhooks-%' AND expires > now()`)
	// What a receiver waits for is the hand-over and one look at what is due.
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the shards were led again after %v", took)
	}
	const urls = 7
	for i := range students {
		h.awaitEvents(email(i), 2*urls)
	}
	must(t, others[1].Signal(syscall.SIGCONT))
	eventually(t, db, "two lead", `SELECT count(DISTINCT holder) = 2 FROM leaders WHERE name LIKE 'relay-webhooks-%' AND expires > now()`)
	h.provision("last@north-institute.org", http.StatusCreated)
	h.awaitEvents("last@north-institute.org", 2*urls)
	twice := map[string]int{}
	for _, r := range h.receiver.All() {
		if key := r.Path + " " + r.Headers["X-Service-Delivery"]; twice[key] > 0 {
			t.Errorf("%s arrived twice", key)
		} else {
			twice[key]++
		}
	}
}
