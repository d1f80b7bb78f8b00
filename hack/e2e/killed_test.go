package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// story is what one student's calls are, in their order.
func story(student int) []string {
	call := func(more string) string {
		return fmt.Sprintf(`{"email": "student-%d@north-institute.org", "first_name": "Asha", "last_name": "Rao", %s}`, student, more)
	}
	return []string{
		call(`"courses": ["ielts"], "tenure_months": 2`),
		call(`"courses": ["toefl", "ielts"]`),
		call(`"courses": ["ielts"], "extend_access": true, "external_ref": 7, "tenure_months": 1`),
		call(`"courses": ["ielts", "toefl", "sat"], "username": "asha-` + fmt.Sprint(student) + `"`),
	}
}

// try makes a call; false when no answer came, because the server was killed.
func (h *house) try(body string) bool {
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.settings.PublicURL()+"/api/v1/provision/student/", strings.NewReader(body))
	if err != nil {
		h.t.Error(err)
		return false
	}
	req.Header.Set("X-API-Key", h.key)
	resp, err := web.Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return false
	}
	check.OneOf(h.t, "status", resp.StatusCode, []int{http.StatusOK, http.StatusCreated}, "%s\n%s", body, text)
	check.True(h.t, "the answer is whole", json.Valid(text), "%s\n%d %s", body, resp.StatusCode, text)
	return true
}

// log makes every student's calls with some clients. A student's later calls are left
// out when one had no answer. Each attempt is told to progress; after one without an answer
// the client waits at up.
func (h *house) log(students int, progress, up func()) {
	h.t.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for s := next.Add(1); s <= int64(students); s = next.Add(1) {
				for _, body := range story(int(s)) {
					answered := h.try(body)
					progress()
					if !answered {
						up()
						break
					}
				}
			}
		})
	}
	wg.Wait()
}

// killer kills the api-server and starts it again, each time after some more calls.
type killer struct {
	calls atomic.Int64
	at    atomic.Int64
	due   chan struct{}
	away  sync.RWMutex // held while the server is killed and started
}

// up waits until the server has been started again.
func (k *killer) up() {
	k.away.RLock()
	defer k.away.RUnlock()
}

func (k *killer) progress() {
	if k.calls.Add(1) == k.at.Load() {
		k.due <- struct{}{}
	}
}

func (k *killer) run(ctx context.Context, h *house) (kills int) {
	for {
		k.at.Store(k.calls.Load() + 20 + rand.Int64N(80))
		select {
		case <-ctx.Done():
			return kills
		case <-k.due:
		}
		if err := k.kill(ctx, h); err != nil {
			h.t.Error(err)
			return kills
		}
		kills++
	}
}

func (k *killer) kill(ctx context.Context, h *house) error {
	k.away.Lock()
	defer k.away.Unlock()
	if err := h.api.Kill(); err != nil {
		return err
	}
	return stack.StartReady(context.WithoutCancel(ctx), h.api, h.settings.Ports.APIPrivate)
}

// state is everything that calls leave behind, but for ids, times and one-time links.
func (h *house) state() []string {
	h.t.Helper()
	conn, err := pgx.Connect(h.t.Context(), h.database)
	must(h.t, err)
	defer func() { _ = conn.Close(h.t.Context()) }()
	rows, err := conn.Query(h.t.Context(), `
		SELECT format('account %s %s %s %s', email, username, first_name, last_name) FROM accounts
		UNION ALL SELECT format('member %s %s %s', a.email, m.role, m.status) FROM members m JOIN accounts a ON a.id = m.user_id
		UNION ALL SELECT format('course %s %s', course_type, is_default) FROM courses
		UNION ALL SELECT format('enrollment %s %s %s %s %s %s', a.email, c.course_type, e.state, e.start_date, e.end_date, e.grace_period_end)
			FROM enrollments e JOIN accounts a ON a.id = e.user_id JOIN courses c ON c.id = e.course_id
		UNION ALL SELECT format('ref %s %s', a.email, r.ref) FROM enrollment_refs r JOIN enrollments e ON e.id = r.enrollment_id JOIN accounts a ON a.id = e.user_id
		UNION ALL SELECT format('mail %s %s', recipient, type) FROM emails
		UNION ALL SELECT format('event %s %s', type, coalesce(data -> 'student' ->> 'email', data ->> 'email')) FROM webhook_events
		ORDER BY 1`)
	must(h.t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(h.t, err)
	return lines
}

func TestAnAPIServerKilledAtRandomPointsLeavesWhatACleanRunLeaves(t *testing.T) {
	t.Parallel()
	const students = 250 // 1,000 calls
	noon := "PLATFORM_TIME_ZONE=" + noonZone(time.Now())
	clean := newHouseOn(t, pgtest.URL(t), noon)
	clean.log(students, func() {}, func() {})
	want := clean.state()

	h := newHouseOn(t, pgtest.URL(t), noon)
	k := &killer{due: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	kills := make(chan int, 1)
	go func() { kills <- k.run(ctx, h) }()
	h.log(students, k.progress, k.up)
	cancel()
	n := <-kills
	h.log(students, func() {}, func() {})
	if got := h.state(); !slices.Equal(got, want) {
		t.Errorf("after %d kills and the same calls again there are %d things, after a clean run %d; %s", n, len(got), len(want), firstDifference(got, want))
	}
	if n < 3 {
		t.Errorf("the api-server was killed %d times only", n)
	}
	t.Logf("killed %d times", n)
}

// noonZone is one in which it is about noon: what is compared has dates, and both runs have to be
// of one day.
func noonZone(now time.Time) string {
	return fmt.Sprintf("Etc/GMT%+d", now.UTC().Hour()-12) // the sign is that of POSIX: west of Greenwich is +
}

func firstDifference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("the first that differs is %q, want %q", got[i], want[i])
		}
	}
	return "one is a part of the other"
}
