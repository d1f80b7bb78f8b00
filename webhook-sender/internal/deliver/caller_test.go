package deliver

import (
	"context"
	"errors"
	"io"
	"net/http"
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
