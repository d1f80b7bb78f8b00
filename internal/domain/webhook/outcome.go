package webhook

import (
	"fmt"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Verdict is what an attempt means for its delivery.
type Verdict string

// The verdicts.
const (
	Delivered Verdict = "delivered" // any 2xx
	Retry     Verdict = "retry"     // 5xx, 408, 429, redirect, timeout, connection error
	Declined  Verdict = "declined"  // any other answer: not tried again by itself
)

// Judge reads a response status (reference: webhooks#delivery-and-retries).
func Judge(status int) (Verdict, string) {
	switch {
	case status >= 200 && status < 300:
		return Delivered, "ok"
	case status >= 300 && status < 400:
		return Retry, "redirect"
	case status == 408, status == 429, status >= 500:
		return Retry, "http_" + strconv.Itoa(status)
	}
	return Declined, "http_" + strconv.Itoa(status)
}

// causes explains the causes that are no HTTP status, each in one sentence with the fix.
var causes = map[string]string{
	"ok":                  "The receiver accepted the event.",
	"redirect":            "The receiver answered with a redirect, which is not followed; register the address it points to.",
	"timeout":             "The receiver did not answer within 10 seconds; answer first and work afterwards.",
	"connect_timeout":     "The receiver's address did not take a connection within 10 seconds; check the address and its firewall.",
	"response_timeout":    "The receiver began its response and did not end it within 10 seconds; send a short one with a correct Content-Length.",
	"connection_refused":  "Nothing listens at the receiver's address and port; start the receiver or correct the URL.",
	"connection_reset":    "The receiver closed the connection before it answered; look into its log or its proxy's.",
	"unreachable":         "The receiver's network cannot be reached; check its address and firewall.",
	"dns_not_found":       "The receiver's host name does not exist; correct the URL or its DNS record.",
	"dns_failed":          "The receiver's host name could not be looked up; check its DNS servers.",
	"address_not_public":  "The receiver's name leads to an address that is not public; use a publicly reachable one.",
	"tls_expired":         "The receiver's certificate has expired; renew it.",
	"tls_unknown_issuer":  "The receiver's certificate is not signed by a known authority, or its chain is incomplete; install the full chain.",
	"tls_wrong_host":      "The receiver's certificate is for another host name; issue one for the URL's host.",
	"tls_version":         "The receiver speaks only TLS 1.1 or older; enable TLS 1.2 or later.",
	"tls_failed":          "The TLS handshake with the receiver failed; look into its TLS settings and its log.",
	"response_incomplete": "The receiver broke off its response; send a short one with a correct Content-Length.",
	"bad_response":        "What the receiver answered is not HTTP; check that the URL's port is the right one.",
	"connection_failed":   "The connection to the receiver failed; the detail says how.",
	"proxy_refused":       "Registrar's egress proxy did not open the connection; the receiver's address is not public or does not answer.",
	ProxyAway:             "Registrar's egress proxy could not be reached, which is no fault of the receiver and does not count; its operator has to put it right.",
}

// ProxyAway is the cause of an attempt that did not get as far as Registrar's own egress
// proxy. It says nothing about the receiver and does not count towards SwitchOffAfter.
const ProxyAway = "proxy_away"

// Explain is one plain sentence about a cause and its fix.
func Explain(cause string) string {
	if s, ok := causes[cause]; ok {
		return s
	}
	status, _ := strconv.Atoi(strings.TrimPrefix(cause, "http_"))
	switch {
	case status == 401 || status == 403:
		return fmt.Sprintf("The receiver answered %d: it refuses the request; check its signature secret and its firewall rules.", status)
	case status == 404 || status == 410:
		return fmt.Sprintf("The receiver answered %d: there is nothing at this path; correct the URL.", status)
	case status == 429:
		return "The receiver answered 429: it is overloaded; deliveries slow down by themselves."
	case status >= 500:
		return fmt.Sprintf("The receiver answered %d: it failed; look into its log.", status)
	}
	return fmt.Sprintf("The receiver answered %d; answer with a 2xx status to accept an event.", status)
}

// Outcome is one attempt as it is recorded.
type Outcome struct {
	Delivery       id.Delivery
	Endpoint       id.Endpoint
	Organization   id.Organization
	Number         int // which attempt of the delivery: 1 and up
	Tries          int // tries of the schedule's round before this one
	Ping           bool
	EventAt        time.Time // when the event was created
	StartedAt      time.Time
	Duration       time.Duration
	Verdict        Verdict
	Cause          string
	Detail         string // the error's text; "" when there was none
	Status         int    // response status; 0 when there was no response
	Response       []byte // its first 4 KiB
	RetryAfter     time.Duration
	RequestHeaders map[string]string // without the body
	Peer           string            // address that was called
	Timing         Timing
}

// Timing splits an attempt's duration; a part that did not happen is 0.
type Timing struct{ DNS, Connect, TLS, FirstByte time.Duration }

// at is when the attempt ended.
func (o Outcome) at() time.Time { return o.StartedAt.Add(o.Duration) }

// next decides what becomes of the delivery: its status and, while waiting, when it is
// due again.
func (o Outcome) next() (status string, due time.Time) {
	switch o.Verdict {
	case Delivered:
		return "delivered", o.at()
	case Declined:
		return "declined", o.at()
	case Retry:
	}
	pause, ok := Pause(o.Tries + 1)
	if !ok || o.Ping {
		return "exhausted", o.at()
	}
	return "waiting", o.at().Add(pauseWith(pause, o.RetryAfter))
}

// ParseRetryAfter reads the header's two forms; 0 when it is absent or not understood.
func ParseRetryAfter(value string, now time.Time) time.Duration {
	value = textproto.TrimString(value)
	if s, err := strconv.Atoi(value); err == nil && s >= 0 && s < 1_000_000 {
		return time.Duration(s) * time.Second
	}
	if at, err := time.Parse(time.RFC1123, value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

func micros(d time.Duration) int32 {
	return int32(min(d.Microseconds(), 1<<31-1))
}

// cleanText is text that PostgreSQL stores: valid UTF-8 without NUL.
func cleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() || t.Year() <= 1 {
		return nil
	}
	return &t
}
