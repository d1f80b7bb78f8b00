package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// Lists and look-ups of a standby have whatever was committed before, and nobody notices when it lags, is killed
// or hangs.
func TestReadsFromAStandby(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	standby := stack.RoleURL(at(t, p.url, p.standby.Address()), "api-server")
	h := newHouseOn(t, at(t, p.url, p.primary.Address()), "DATABASE_READ_URL="+standby)
	t.Cleanup(func() { _ = p.standby.Thaw() }) // or its processes would outlive a test that fails
	browser := h.ownersBrowser()
	h.awaitReads(true)
	h.onboardAndFind("quiet", browser)
	n := 0
	until(t, "all of a round's reads are of the standby", func() bool { // unless it was too late for one of them
		h.awaitReads(true)
		before := h.reads("standby")
		n++
		h.onboardAndFind(fmt.Sprint("again-", n), browser)
		return h.reads("standby") >= before+45
	})
	for why, break_ := range map[string]struct{ begin, end func() }{
		"it lags":       {func() { must(t, p.standby.Replay(t.Context(), false)) }, func() { must(t, p.standby.Replay(t.Context(), true)) }},
		"it hangs":      {func() { must(t, p.standby.Freeze()) }, func() { must(t, p.standby.Thaw()) }},
		"it was killed": {func() { must(t, p.standby.Signal(syscall.SIGKILL)); <-p.standby.Exited() }, func() { must(t, p.standby.Start(t.Context())) }},
	} {
		t.Log(why)
		h.whileReading(func() {
			break_.begin()
			h.onboardAndFind(regexp.MustCompile(`\W`).ReplaceAllString(why, "-"), browser)
			h.awaitReads(false)
			break_.end()
			h.awaitReads(true)
		})
	}
}

// onboardAndFind onboards people with several clients, who look for them at once in each way, in the browser too.
func (h *house) onboardAndFind(name string, browser *http.Client) {
	h.t.Helper()
	var clients sync.WaitGroup
	for client := range 5 {
		clients.Go(func() {
			cursor := h.walk("/api/v1/students/", "").cursor
			for i := range 3 {
				email := fmt.Sprintf("%s-%d-%d@north-institute.org", name, client, i)
				check.Equal(h.t, "status", h.ask(http.MethodPost, provisionPath, onboarding(email)).status, http.StatusCreated, "%s", email)
				check.Equal(h.t, "status of the look-up", h.ask(http.MethodGet, "/api/v1/students/?email="+email, "").status, http.StatusOK, "%s", email)
				listed := h.walk("/api/v1/students/", cursor)
				cursor = listed.cursor
				check.OneOf(h.t, "the list", email, listed.rows, "")
				page, err := browser.Get(h.settings.PublicURL() + "/console/demo/students/?q=" + email)
				if check.NoError(h.t, err, "") {
					found, err := io.ReadAll(page.Body)
					check.NoError(h.t, errors.Join(err, page.Body.Close()), "")
					check.Contains(h.t, "the console's list", string(found), ">"+email+"<", "")
				}
			}
		})
	}
	clients.Wait()
}

// whileReading reads lists until fn ends, each of which has to be whole.
func (h *house) whileReading(fn func()) {
	h.t.Helper()
	want := len(h.walk("/api/v1/students/", "").rows)
	var over atomic.Bool
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for !over.Load() {
				status, body := h.call(http.MethodGet, h.settings.PublicURL()+"/api/v1/students/?limit=500", "X-API-Key", h.key, "")
				var page struct{ Count int }
				err := json.Unmarshal(body, &page)
				if status != http.StatusOK || err != nil || page.Count < want {
					h.t.Errorf("a list is %d with %d students, %v", status, page.Count, err)
				}
				if status := h.ask(http.MethodGet, "/api/v1/progress/daily/", "").status; status != http.StatusOK {
					h.t.Errorf("a report is %d", status)
				}
			}
		})
	}
	fn()
	over.Store(true)
	readers.Wait()
}

func (h *house) awaitReads(standby bool) {
	h.t.Helper()
	want := map[bool]string{true: "registrar_read_standby_used 1", false: "registrar_read_standby_used 0"}[standby]
	until(h.t, want, func() bool {
		return regexp.MustCompile(`(?m)^` + want + `$`).MatchString(h.metrics(h.settings.Ports.APIPrivate))
	})
}

// reads counts those of a server.
func (h *house) reads(server string) (n int) {
	h.t.Helper()
	for _, m := range regexp.MustCompile(`registrar_reads_total\{server="`+server+`",why="\w*"\} (\d+)`).FindAllStringSubmatch(h.metrics(h.settings.Ports.APIPrivate), -1) {
		one, err := strconv.Atoi(m[1])
		must(h.t, err)
		n += one
	}
	return n
}
