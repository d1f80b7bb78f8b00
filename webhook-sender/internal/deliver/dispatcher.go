// Package deliver makes delivery attempts: it takes a lease from the run queue, POSTs its
// deliveries, and acknowledges the task once the outcomes are recorded.
package deliver

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/obs"
)

const (
	// attemptLimit is the receiver's time to answer, from the name lookup to the last byte
	// (reference: webhooks#delivery-and-retries).
	attemptLimit = 10 * time.Second
	// keptResponse is how much of a response is recorded.
	keptResponse = 4 << 10
	// readResponse is how much of a response is read at most.
	readResponse = 64 << 10
)

// Dispatcher sends requests to receivers. It is the only outbound HTTP client.
type Dispatcher struct {
	client  *http.Client
	clock   clock.Clock
	proxied bool
}

// NewDispatcher makes the client.
func NewDispatcher(policy *egress.Policy, now clock.Clock) *Dispatcher {
	transport := policy.Transport(attemptLimit)
	transport.TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(1024)
	transport.MaxIdleConns = 4096
	// An organization's URLs often share a host.
	transport.MaxIdleConnsPerHost = webhook.MaxEndpoints * webhook.MaxAllowance
	transport.IdleConnTimeout = 90 * time.Second
	transport.DisableCompression = true
	transport.MaxResponseHeaderBytes = 32 << 10
	return &Dispatcher{clock: now, proxied: policy.Proxied(), client: &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// message is one request, ready to be signed and sent.
type message struct {
	url     string
	secrets []string // the current one first
	due     dispatch.Due
	body    []byte
}

// call makes one attempt. It always returns an outcome, whose cause says what went wrong.
func (c *Dispatcher) call(ctx context.Context, m message) webhook.Outcome {
	started := c.clock()
	began := time.Now()
	o := webhook.Outcome{Delivery: m.due.Delivery, Run: m.due.Run, More: m.due.More,
		Number: m.due.Number, Tries: m.due.Tries,
		Ping: m.due.Event.Type == webhook.Ping, Overlap: len(m.secrets) > 1, EventAt: m.due.Event.CreatedAt, StartedAt: started}
	o.RequestHeaders = webhook.CommonHeaders(m.due.Event.Type, m.due.Event.ID, m.due.Event.Sequence)
	o.RequestHeaders[webhook.HeaderSignature] = webhook.Sign(started, m.body, m.secrets...)
	ctx, traceparent, end := obs.StartRemote(ctx, m.due.Event.Traceparent, "webhook attempt",
		"event.type", string(m.due.Event.Type), "event.id", m.due.Event.ID.String())
	if traceparent != "" {
		o.RequestHeaders["traceparent"] = traceparent
	}
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	var trace trace
	err := c.post(httptrace.WithClientTrace(ctx, trace.hooks(began)), m, &o)
	o.Duration = max(time.Since(began), time.Microsecond)
	trace.into(&o)
	if c.proxied {
		o.Peer = "" // the proxy's address, which is not the receiver's business
	}
	if err != nil {
		c.failed(ctx, err, &trace, &o)
	}
	if o.Verdict == webhook.Delivered {
		end("")
	} else {
		end(o.Cause)
	}
	return o
}

// failed records why an attempt did not complete. A status that declines counts, however the
// rest of the response fails (reference: webhooks#delivery-and-retries).
func (c *Dispatcher) failed(ctx context.Context, err error, trace *trace, o *webhook.Outcome) {
	cause := causeOf(ctx, err, trace, o.Status)
	if o.Verdict != webhook.Declined {
		o.Verdict, o.Cause = webhook.Retry, cause
	}
	o.Detail = detail(err)
	if cause == addressNotPublic {
		o.Peer = "" // nor is what names of the network that we are in lead to
	}
	slog.DebugContext(ctx, "attempt failed", "delivery", o.Delivery.String(), "cause", cause, "error", withoutURL(err))
}

func (c *Dispatcher) post(ctx context.Context, m message, o *webhook.Outcome) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(m.body))
	if err != nil {
		return err
	}
	for name, value := range o.RequestHeaders {
		req.Header.Set(name, value)
	}
	// Not recorded: they say what the headers that are recorded say.
	req.Header.Set(webhook.HeaderStandardID, m.due.Event.ID.String())
	req.Header.Set(webhook.HeaderStandardTimestamp, strconv.FormatInt(o.StartedAt.Unix(), 10))
	req.Header.Set(webhook.HeaderStandardSignature, webhook.SignStandard(m.due.Event.ID, o.StartedAt, m.body, m.secrets...))
	// An empty value is not sent, but lets net/http repeat this POST: when a receiver closes an
	// idle connection just as it is used again, the event is sent at once over another one, and
	// not a minute later. A receiver that has taken the event already knows its id.
	req.Header["Idempotency-Key"] = nil
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	o.Status = resp.StatusCode
	o.RetryAfter = webhook.ParseRetryAfter(resp.Header.Get("Retry-After"), c.clock())
	o.Verdict, o.Cause = webhook.Judge(resp.StatusCode, o.Overlap)
	body, err := io.ReadAll(io.LimitReader(resp.Body, readResponse))
	o.Response = body[:min(len(body), keptResponse)]
	if err == nil {
		// A receiver that sees us hang up may properly end an endless body before we stop reading.
		err = ctx.Err()
	}
	return err
}

// Close closes idle connections.
func (c *Dispatcher) Close() { c.client.CloseIdleConnections() }
