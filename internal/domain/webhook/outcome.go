package webhook

import (
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Verdict is the result of one attempt.
type Verdict string

// The verdicts.
const (
	Delivered Verdict = "delivered" // any 2xx
	Retry     Verdict = "retry"     // 5xx, 408, 429, redirect, timeout, connection error
	Declined  Verdict = "declined"  // any other response: not tried again by itself
)

// Status is the state of a delivery.
type Status string

// The statuses. Declined, exhausted and skipped deliveries can be recovered; any that is
// not in flight can be resent.
const (
	StatusWaiting   Status = "waiting"   // for its first or its next attempt
	StatusInFlight  Status = "in_flight" // leased to a sender
	StatusDelivered Status = "delivered"
	StatusDeclined  Status = "declined"  // the receiver answered with a 4xx
	StatusExhausted Status = "exhausted" // twelve tries failed
	StatusSkipped   Status = "skipped"   // the URL was switched off
	// A newer event about the same result was delivered first.
	StatusSuperseded Status = "superseded"
	StatusCancelled  Status = "cancelled" // the URL was deleted, or the person erased
)

// Judge gives the verdict on a response status and its cause, which Explain explains. overlap says
// that the request was signed with two secrets (reference: webhooks#delivery-and-retries).
func Judge(status int, overlap bool) (Verdict, string) {
	switch {
	case status >= 200 && status < 300:
		return Delivered, "ok"
	case status >= 300 && status < 400:
		return Retry, "redirect"
	case status == 408, status == 429, status >= 500, overlap && refused(status):
		return Retry, "http_" + strconv.Itoa(status)
	}
	return Declined, "http_" + strconv.Itoa(status)
}

// refused says whether the status may be that of a receiver which has not got the right secret.
func refused(status int) bool { return status == 401 || status == 403 }

// causes explains each cause that is no HTTP status, in one sentence with the remedy.
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

// ProxyAway is the cause of an attempt that could not reach Registrar's own egress proxy. It
// says nothing about the receiver, so it does not count towards SwitchOffAfter.
const ProxyAway = "proxy_away"

// FailureCauses lists the causes of failed attempts that are no answer's status, which is "http_" and the status.
func FailureCauses() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(causes)), func(cause string) bool { return cause == "ok" })
}

// Explain describes a cause and its remedy in one sentence for people.
func Explain(cause string) string {
	if s, ok := causes[cause]; ok {
		return s
	}
	status, _ := strconv.Atoi(strings.TrimPrefix(cause, "http_"))
	switch {
	case refused(status):
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

// Outcome is the report of one attempt, for Settle.
type Outcome struct {
	Delivery       id.Delivery
	Endpoint       id.Endpoint
	Organization   id.Organization
	Lease          [16]byte // what ends with the outcome; zero for none
	Run            int      // Health.Run when it was handed out
	More           bool     // its URL may have had more due than it could be given
	Number         int      // of the entry in the delivery's journal, from 1 on
	Tries          int      // earlier attempts in this round of the schedule
	Ping           bool
	Overlap        bool      // it was signed with two secrets
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
	Peer           string            // the address that was connected to
	Timing         Timing
}

// CommonHeaders are the headers that all attempts of an event have in common.
func CommonHeaders(kind Type, event id.Event, sequence int64) map[string]string {
	headers := map[string]string{
		"Content-Type": "application/json",
		"User-Agent":   "Registrar-Webhooks/1.0",
		HeaderEvent:    string(kind),
		HeaderDelivery: event.String(),
	}
	if sequence > 0 {
		headers[HeaderSequence] = strconv.FormatInt(sequence, 10)
	}
	return headers
}

// ownHeaders are those of the request's headers that only this attempt has. The journal keeps no
// others: they follow from the event.
func (o Outcome) ownHeaders() map[string]string {
	own := maps.Clone(o.RequestHeaders)
	for _, name := range []string{"Content-Type", "User-Agent", HeaderEvent, HeaderDelivery, HeaderSequence} {
		delete(own, name)
	}
	return own
}

// Timing splits an attempt's duration. A phase that was not reached is 0.
type Timing struct{ DNS, Connect, TLS, FirstByte time.Duration }

// at is when the attempt ended.
func (o Outcome) at() time.Time { return o.StartedAt.Add(o.Duration) }

// next decides the delivery's new status and, if it waits again, when it is due; otherwise
// at is when the delivery ended.
func (o Outcome) next() (status Status, at time.Time) {
	switch o.Verdict {
	case Delivered:
		return StatusDelivered, o.at()
	case Declined:
		return StatusDeclined, o.at()
	case Retry:
	}
	pause, ok := Pause(o.Tries + 1)
	if !ok || o.Ping {
		return StatusExhausted, o.at()
	}
	return StatusWaiting, o.at().Add(pauseWith(pause, o.RetryAfter))
}

// ParseRetryAfter reads the header Retry-After in both of its forms. It returns 0 when the
// header is absent or malformed.
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

// cleanText makes s acceptable to PostgreSQL: valid UTF-8 without NUL.
func cleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() || t.Year() <= 1 {
		return nil
	}
	return &t
}
