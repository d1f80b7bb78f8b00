package deliver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// lateEnd is a receiver whose body comes to its proper end when the time is over, and no earlier.
type lateEnd struct{ ctx context.Context }

func (l lateEnd) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(l), Request: r}, nil
}

func (l lateEnd) Read([]byte) (int, error) {
	<-l.ctx.Done()
	return 0, io.EOF
}

func TestATimeoutSaysWhatItWaitedFor(t *testing.T) {
	for want, steps := range map[string]func(*httptrace.ClientTrace) (status int){
		"dns_failed":      func(h *httptrace.ClientTrace) int { h.DNSStart(httptrace.DNSStartInfo{}); return 0 },
		"connect_timeout": func(h *httptrace.ClientTrace) int { h.ConnectStart("tcp", "192.0.2.1:443"); return 0 },
		"timeout": func(h *httptrace.ClientTrace) int {
			h.ConnectStart("tcp", "192.0.2.1:443")
			h.TLSHandshakeStart()
			return 0
		},
		"response_timeout": func(h *httptrace.ClientTrace) int { h.GotFirstResponseByte(); return http.StatusOK },
	} {
		var tr trace
		status := steps(tr.hooks(time.Now()))
		if got := causeOf(t.Context(), context.DeadlineExceeded, &tr, status); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if sentence := webhook.Explain(want); !strings.HasSuffix(sentence, ".") || strings.Contains(sentence, "answered 0") {
			t.Errorf("%s is explained as %q", want, sentence)
		}
	}
}

func TestABodyThatEndsAfterTheDeadlineIsATimeout(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	c := &Caller{clock: clock.System, client: &http.Client{Transport: lateEnd{ctx}}}
	var o webhook.Outcome
	err := c.post(ctx, message{url: "https://hooks.example.com/"}, &o)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v, want the deadline", err)
	}
}
