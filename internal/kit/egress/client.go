package egress

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"
)

// ErrRedirect is the error of a Client whose call is led elsewhere, where CheckURL has not looked.
var ErrRedirect = errors.New("it redirects, which is not followed")

// Client calls addresses that customers choose, over a transport of a Policy. It follows no redirects.
func Client(transport http.RoundTripper, timeout time.Duration) *http.Client {
	return &http.Client{Transport: transport, Timeout: timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return ErrRedirect }}
}

// Failure is why a call of a Client got no answer, as far as the customer can do something about it.
type Failure int

// The failures. Unreachable is any other.
const (
	Unreachable Failure = iota
	NotPublic
	Redirected
	TimedOut
	NoHost
	BadCertificate
)

// FailureOf says what the error of a Client, or of a library that was given one, means.
func FailureOf(err error) Failure {
	switch text := err.Error(); {
	case errors.Is(err, ErrRefused):
		return NotPublic
	case errors.Is(err, ErrRedirect):
		return Redirected
	case errors.Is(err, context.DeadlineExceeded) || strings.Contains(text, "Client.Timeout"):
		return TimedOut
	case strings.Contains(text, "no such host"):
		return NoHost
	case strings.Contains(text, "certificate"):
		return BadCertificate
	}
	return Unreachable
}
