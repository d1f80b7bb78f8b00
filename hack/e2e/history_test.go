package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// access is what the history is about: a student's, in their one course.
type access string

const (
	nobody    access = "nobody" // nobody knows the student
	hasAccess access = "running"
	suspended access = "suspended"
)

// operation is one of a client's calls.
type operation struct{ verb, student string }

// outcome is what a call was answered; seen is what a look-up found.
type outcome struct {
	status int // 0: not known, and it may have been done, or may be done later
	seen   access
}

// accessModel says what one student's calls do if they are done one after the other.
var accessModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		students := map[string][]porcupine.Operation{}
		for _, o := range history {
			student := o.Input.(operation).student
			students[student] = append(students[student], o)
		}
		for _, part := range students {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return nobody },
	Step: func(state, input, output any) (bool, any) {
		before, got := state.(access), output.(outcome)
		switch input.(operation).verb {
		case "provision":
			fits := got.status == 0 || (got.status == http.StatusCreated) == (before == nobody)
			if before == nobody {
				return fits, hasAccess
			}
			return fits, before
		case "suspend":
			return before != nobody, suspended
		case "resume":
			return before != nobody, hasAccess
		}
		return got.seen == before, before
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprint(input, " ", output) },
}

// history are the calls of several clients about the same students.
type history struct {
	h     *house
	began time.Time

	mu          sync.Mutex
	operations  []porcupine.Operation
	enrollments map[string]int64 // of students that were seen
}

// call makes one, and notes when it began and ended.
func (y *history) call(client int, o operation) {
	y.mu.Lock()
	enrollment := y.enrollments[o.student]
	y.mu.Unlock()
	if enrollment == 0 && (o.verb == "suspend" || o.verb == "resume") {
		o.verb = "look up"
	}
	began := time.Since(y.began)
	var status int
	var body []byte
	switch o.verb {
	case "provision":
		status, body = y.h.call(http.MethodPost, y.h.settings.PublicURL()+provisionPath, "X-API-Key", y.h.key, onboarding(o.student))
	case "look up":
		status, body = y.h.call(http.MethodGet, y.h.settings.PublicURL()+"/api/v1/students/?email="+o.student, "X-API-Key", y.h.key, "")
	default:
		status, body = y.h.call(http.MethodPost, fmt.Sprintf("%s/api/v1/enrollments/%d/%s/", y.h.settings.PublicURL(), enrollment, o.verb), "X-API-Key", y.h.key, "")
	}
	ended := time.Since(y.began).Nanoseconds()
	got := outcome{status: status}
	switch {
	case status == http.StatusServiceUnavailable && o.verb == "look up":
		return // it has found nothing out
	case status == http.StatusServiceUnavailable:
		got, ended = outcome{}, math.MaxInt64
	case status == http.StatusNotFound && o.verb == "look up":
		got.seen = nobody
	case status > http.StatusCreated:
		y.h.t.Errorf("%v is %d: %s", o, status, body)
		return
	case o.verb == "look up":
		var found struct {
			Enrollments []struct {
				EnrollmentID int64 `json:"enrollment_id"`
				Status       string
			}
		}
		if err := json.Unmarshal(body, &found); err != nil || len(found.Enrollments) != 1 {
			y.h.t.Errorf("%v: %v, %s", o, err, body)
			return
		}
		if got.seen = hasAccess; found.Enrollments[0].Status == "suspended" {
			got.seen = suspended
		}
		y.mu.Lock()
		y.enrollments[o.student] = found.Enrollments[0].EnrollmentID
		y.mu.Unlock()
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.operations = append(y.operations, porcupine.Operation{ClientId: client, Input: o, Call: began.Nanoseconds(), Output: got, Return: ended})
}

// Calls and look-ups, some of them on the standby, are as if they were made one after the other, also when the
// primary is killed and the standby takes over.
func TestTheHistoryOfCallsIsLinear(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	h := newHouseOn(t, p.url, "DATABASE_READ_URL="+stack.RoleURL(at(t, p.url, p.standby.Address()), "api-server"))
	must(t, p.primary.Configure(t.Context(), "synchronous_standby_names", "*"))
	h.awaitReads(true)
	y := &history{h: h, began: time.Now(), enrollments: map[string]int64{}}
	var over atomic.Bool
	var made atomic.Int64
	var clients sync.WaitGroup
	verbs := []string{"provision", "suspend", "resume", "look up", "look up", "look up"}
	for client := range 8 {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(client)))
			for !over.Load() && !t.Failed() {
				// New students come all the time, and calls about the same one meet.
				student := fmt.Sprintf("student-%d@north-institute.org", made.Add(1)/40*4+random.Int64N(4))
				y.call(client, operation{verbs[random.IntN(len(verbs))], student})
			}
		})
	}
	await := func(more int64) {
		want := made.Load() + more
		until(t, "calls are made", func() bool { return t.Failed() || made.Load() >= want })
	}
	await(1500)
	onStandby := h.reads("standby")
	must(t, p.primary.Signal(syscall.SIGKILL))
	<-p.primary.Exited()
	must(t, p.standby.Promote(t.Context()))
	must(t, p.standby.Configure(t.Context(), "synchronous_standby_names", ""))
	until(t, "a call succeeds", func() bool {
		return h.ask(http.MethodPost, provisionPath, onboarding("after@north-institute.org")).status == http.StatusCreated
	})
	await(1500)
	over.Store(true)
	clients.Wait()
	check.True(t, "look-ups were of the standby", onStandby > 0, "%d", onStandby)
	found, info := porcupine.CheckOperationsVerbose(accessModel, y.operations, limit)
	if found != porcupine.Ok {
		file := t.ArtifactDir() + "/history.html"
		must(t, porcupine.VisualizePath(accessModel, info, file))
		t.Fatalf("the history of %d calls is %s: %s", len(y.operations), found, file)
	}
	t.Logf("%d calls, %d of them not known; %d reads of the standby before it took over", len(y.operations), unknown(y.operations), onStandby)
}

func unknown(history []porcupine.Operation) (n int) {
	for _, o := range history {
		if o.Return == math.MaxInt64 {
			n++
		}
	}
	return n
}
