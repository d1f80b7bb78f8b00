package console_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// A test stays on the URL's page until the receiver has answered, with scripts and without.
func TestSendTestShowsWhatCameBack(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/in"}`).Want(t, http.StatusCreated)
	b := browsertest.Open(t)
	s.enter(b, "olive")
	for _, scripts := range []bool{true, false} {
		b.Scripts(scripts)
		b.Visit(s.URL() + "/console/north/webhooks/1/")
		b.Press("Send test")
		b.AwaitText("A ping is on its way")
		if scripts {
			b.Accessible("a test under way")
			b.Screenshot("test-under-way")
		}
		s.fail(t)
		b.AwaitText("there is nothing at this path")
		check.Contains(t, "the page", b.TextOf("#test"), "404", "scripts: %v", scripts)
		check.Contains(t, "the page", b.TextOf("#test"), "12.3 ms", "scripts: %v", scripts)
		check.Contains(t, "the page", b.TextOf("#test"), "<b>gone</b>", "scripts: %v", scripts)
		if scripts {
			b.Accessible("a test that was declined")
			b.Screenshot("test-declined")
		}
	}
}

// When nobody sends the test, its page says so, and does not wait for ever.
func TestSendTestHasADeadline(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/in"}`).Want(t, http.StatusCreated)
	s.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/other"}`).Want(t, http.StatusCreated)
	b := s.signedIn(t, "olive")
	_, _, header := b.post(t, "/console/north/webhooks/1/send-test", nil)
	page := header.Get("Location")
	status, text, _ := b.get(t, page)
	want(t, "at once", status, text, http.StatusOK, "A ping is on its way", "data-live", `http-equiv="refresh"`)
	s.Advance(31 * time.Second)
	status, text, _ = b.get(t, page)
	want(t, "after its time", status, text, http.StatusOK, "The test has not been sent yet")
	check.Lacks(t, "the page", text, "data-live", "nothing is waited for")
	check.Lacks(t, "the page", text, `http-equiv="refresh"`, "nothing is waited for")
	// A test of another URL, and what is none, are not shown.
	for _, other := range []string{"/console/north/webhooks/2/" + page[len("/console/north/webhooks/1/"):], "/console/north/webhooks/1/?test=dlv_0", "/console/north/webhooks/1/?test=%00"} {
		status, text, _ = b.get(t, other)
		want(t, other, status, text, http.StatusOK, "Send test")
		check.Lacks(t, "the page", text, `id="test"`, "%s", other)
	}
}
