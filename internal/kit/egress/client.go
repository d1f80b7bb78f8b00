package egress

import (
	"context"
	"errors"
	"fmt"
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

// Explain says why a call of a Client with the timeout got no answer, after the name of who was called.
func Explain(err error, timeout time.Duration) string {
	switch FailureOf(err) {
	case NotPublic:
		return "has no public address"
	case Redirected:
		return "redirects, which is not followed"
	case TimedOut:
		return fmt.Sprintf("does not answer within %d seconds", int(timeout.Seconds()))
	case NoHost:
		return "does not exist: there is no host of this name"
	case BadCertificate:
		return "shows a certificate that is not valid"
	case Unreachable:
	}
	return "cannot be reached"
}
