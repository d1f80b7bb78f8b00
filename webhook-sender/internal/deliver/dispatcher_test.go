package deliver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/egress"
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
		if sentence := webhook.Explain(want); check.True(t, "the explanation ends with a full stop", strings.HasSuffix(sentence, "."), "%s is explained as %q", want, sentence) {
			check.Lacks(t, "the explanation", sentence, "answered 0", "%s is explained as %q", want, sentence)
		}
	}
}

func TestDetailsTellOfNoAddress(t *testing.T) {
	resolver := &net.DNSError{Err: "read udp 10.244.0.5:4242->10.96.0.10:53: i/o timeout", Name: "hooks.example.com", Server: "10.96.0.10:53", IsTimeout: true}
	unknown := &net.DNSError{Err: "no such host", Name: "hooks.example.com", Server: "10.96.0.10:53", IsNotFound: true}
	here, there := &net.TCPAddr{IP: net.IPv4(10, 244, 0, 5), Port: 4242}, &net.TCPAddr{IP: net.IPv4(93, 184, 216, 34), Port: 443}
	for want, err := range map[string]error{
		"the lookup timed out":              &net.OpError{Op: "dial", Net: "tcp", Err: resolver},
		"no such host":                      &net.OpError{Op: "dial", Net: "tcp", Err: unknown},
		"the address is not public":         &net.OpError{Op: "dial", Net: "tcp", Addr: here, Err: fmt.Errorf("%w: 10.0.0.8", egress.ErrRefused)},
		"the proxy cannot be reached":       fmt.Errorf("%w: %w", egress.ErrProxyAway, &net.OpError{Op: "dial", Net: "tcp", Addr: here, Err: syscall.ECONNREFUSED}),
		"read: connection reset by peer":    fmt.Errorf("readLoop: %w", &net.OpError{Op: "read", Net: "tcp", Source: here, Addr: there, Err: os.NewSyscallError("read", syscall.ECONNRESET)}),
		"remote error: tls: internal error": &net.OpError{Op: "remote error", Err: tls.AlertError(80)},
		"unexpected EOF":                    io.ErrUnexpectedEOF,
	} {
		if got := detail(&url.Error{Op: "Post", URL: "https://hooks.example.com/?key=hush", Err: err}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestABodyThatEndsAfterTheDeadlineIsATimeout(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	c := &Dispatcher{clock: clock.System, client: &http.Client{Transport: lateEnd{ctx}}}
	var o webhook.Outcome
	err := c.post(ctx, message{url: "https://hooks.example.com/"}, &o)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v, want the deadline", err)
	}
}
