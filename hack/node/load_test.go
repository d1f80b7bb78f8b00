package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/webhook-sender/verify"
)

// load provisions students through the Service, one after the other on each of two clients: one
// keeps its connections, one opens another for each call.
type load struct {
	s        *site
	patience time.Duration // how long a call is repeated; 0: one retry, and only of a broken connection
	stop     context.CancelFunc
	wg       sync.WaitGroup

	mu       sync.Mutex
	done     []string
	healed   int
	failures []string
}

func (s *site) load(name string, patience time.Duration) *load {
	ctx, cancel := context.WithCancel(s.t.Context())
	l := &load{s: s, patience: patience, stop: cancel}
	for i, client := range []*http.Client{
		{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 2}},
		{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
	} {
		l.wg.Go(func() {
			tick := time.NewTicker(250 * time.Millisecond)
			defer tick.Stop()
			for n := 0; ctx.Err() == nil; n++ {
				l.provision(client, fmt.Sprintf("%s-%d-%d@north-institute.org", name, i, n))
				select {
				case <-ctx.Done():
				case <-tick.C:
				}
			}
		})
	}
	return l
}

// provision calls until the student is there, or the call counts as failed.
func (l *load) provision(client *http.Client, email string) {
	began := time.Now()
	for try := 0; ; try++ {
		status, err := l.s.provision(client, email)
		fine := err == nil && (status == http.StatusCreated || status == http.StatusOK)
		again := l.patience > 0 && time.Since(began) < l.patience || l.patience == 0 && err != nil && !errors.Is(err, errRefused) && try == 0
		l.mu.Lock()
		switch {
		case fine:
			l.done = append(l.done, email)
			if try > 0 {
				l.healed++
			}
		case !again:
			l.failures = append(l.failures, fmt.Sprintf("%s %s (try %d): %d %v", time.Now().Format("15:04:05.000"), email, try+1, status, err))
		}
		l.mu.Unlock()
		if fine || !again {
			return
		}
		if l.patience > 0 {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

func (s *site) provision(client *http.Client, email string) (int, error) {
	body := fmt.Sprintf(`{"email": %q, "first_name": "Asha", "last_name": "Rao", "courses": ["ielts"]}`, email)
	status, text, err := call(context.WithoutCancel(s.t.Context()), client, http.MethodPost, "http://registrar/api/v1/provision/student/", "X-API-Key", s.key, body)
	if err == nil && status >= 300 {
		return status, errors.Join(fmt.Errorf("%s", text), errRefused)
	}
	return status, err
}

// errRefused is an answer, which no retry of a broken connection heals.
var errRefused = errors.New("refused")

// end stops the load once there was some, and waits until each student's two events have arrived.
func (l *load) end() {
	l.s.t.Helper()
	l.s.await("students are provisioned", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.done) < 10 {
			return fmt.Errorf("%d are, which is no load", len(l.done))
		}
		return nil
	})
	l.stop()
	l.wg.Wait()
	l.s.t.Logf("%d students provisioned, %d of them by a retry; %d calls failed", len(l.done), l.healed, len(l.failures))
	if len(l.failures) > 0 {
		l.s.t.Errorf("calls failed:\n%s", strings.Join(l.failures, "\n"))
	}
	l.s.students = append(l.s.students, l.done...)
	l.s.said(l.s.students)
}

// said waits until the school's receiver has both events of every student, signed with the secret.
func (s *site) said(students []string) {
	s.t.Helper()
	s.await("events arrive", func() error {
		all, err := s.received()
		if err != nil {
			return err
		}
		missing := s.untold(students, all)
		if len(missing) > 0 {
			return fmt.Errorf("%d of %d events are missing: %s", len(missing), 2*len(students), strings.Join(missing[:min(10, len(missing))], ", "))
		}
		return nil
	})
}

func (s *site) untold(students []string, all []stack.Received) (missing []string) {
	got := map[string]bool{}
	for _, r := range all {
		// It was in time when it came, however long ago that is.
		if err := verify.Signature(r.Headers[verify.HeaderSignature], []byte(r.Body), r.ReceivedAt, s.secret); err != nil {
			s.t.Fatalf("%v: %s", err, r.Body)
		}
		if i := strings.Index(r.Body, "@north-institute.org"); i >= 0 {
			start := strings.LastIndexByte(r.Body[:i], '"') + 1
			got[r.Headers[verify.HeaderEvent]+" "+r.Body[start:i]+"@north-institute.org"] = true
		}
	}
	for _, student := range students {
		for _, event := range []string{"student.joined", "enrollment.created"} {
			if !got[event+" "+student] {
				missing = append(missing, event+" "+student)
			}
		}
	}
	return missing
}
