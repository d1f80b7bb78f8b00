package edge

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/limit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// How slowly a body may come (reference: conventions#requests). Who is slower takes nothing from others but a
// connection, and is cut off for it.
const (
	slowStart   = 10 * time.Second // for the first bytes, and for pauses later
	slowestRate = 16 << 10         // bytes a second, on the average since then
)

// A body is kept in pieces of its own size up to that one, so that few bytes take little memory.
const (
	firstPiece = 2 << 10
	overrun    = 4 << 20 // bytes beyond the limit that are read so that the sender reads the answer
)

var (
	errSlow = &refusal{http.StatusRequestTimeout, fault.New(fault.Invalid, "body_too_slow",
		"the body came too slowly; send the whole request again, at 16 KiB a second at least")}
	errBodies = &refusal{http.StatusTooManyRequests, fault.New(fault.Unavailable, "rate_limited",
		"too much is being sent from this address at once; send the same request again after the time in Retry-After")}
	errUnreadable = fault.New(fault.Invalid, "body_unreadable", "the body broke off; send the whole request again")
	errHungUp     = errUnreadable.Because(context.Canceled)
)

// arrival is how a request's body came in.
type arrival struct {
	stream *paced // where the handler reads it as it comes

	err atomic.Pointer[error] // why it did not: that is the answer, whatever the handler makes of it
}

type arrivalKey struct{}

func (a *arrival) fail(err error) { a.err.CompareAndSwap(nil, &err) }

// failedArrival is why the body did not arrive; nil when it did.
func failedArrival(r *http.Request) error {
	if a, ok := r.Context().Value(arrivalKey{}).(*arrival); ok {
		if err := a.err.Load(); err != nil {
			return *err
		}
	}
	return nil
}

// receive lets a request pass once its body has arrived, so that nothing else is taken by one that
// is still on its way. What a route reads as a stream arrives while it is worked on.
func receive(o Options) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a, control := &arrival{}, http.NewResponseController(w)
			ctx := context.WithValue(r.Context(), arrivalKey{}, a)
			r = r.WithContext(ctx)
			if r.Body == nil || r.Body == http.NoBody {
				arrived(r, control)
				next.ServeHTTP(w, r)
				return
			}
			allowance := o.Bodies.Open(o.Proxies.Client(r), func() { _ = control.SetReadDeadline(time.Unix(1, 0)) })
			defer allowance.Close()
			body := &paced{ReadCloser: r.Body, arrival: a, control: control, allowance: allowance}
			r.Body = body
			if o.streams(r) {
				a.stream = body
				allowance.Arrived() // it takes no memory
				limit.Working(ctx)
				next.ServeHTTP(w, r)
				return
			}
			text, err := o.read(r, body)
			if err == nil && !allowance.Arrived() {
				err = errBodies
			}
			if err != nil {
				o.cutOff(w, r, err)
				return
			}
			r.Body = text
			arrived(r, control)
			next.ServeHTTP(w, r)
		})
	}
}

// arrived begins the time in which the request is worked on: from now on no more is awaited of its
// sender than to read the answer.
func arrived(r *http.Request, control *http.ResponseController) {
	limit.Working(r.Context())
	_ = control.SetReadDeadline(time.Time{}) // else the server takes it for a hang-up when it passes
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && server.WriteTimeout > 0 {
		_ = control.SetWriteDeadline(time.Now().Add(server.WriteTimeout))
	}
	if rec, ok := r.Context().Value(recordKey{}).(*record); ok {
		rec.arrived = time.Now()
	}
}

// cutOff answers a request whose body did not arrive.
func (o Options) cutOff(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errBodies) {
		o.Metrics.refused.WithLabelValues(o.API, "bodies").Inc()
	}
	if rec, ok := r.Context().Value(recordKey{}).(*record); ok {
		rec.arrived = time.Time{}
	}
	w.Header().Set("Connection", "close")
	o.fail(w, r, err)
}

func (o Options) streams(r *http.Request) bool { return o.Streams != nil && o.Streams(r) }

// read reads the body as far as any route of the API takes it.
func (o Options) read(r *http.Request, body *paced) (io.ReadCloser, error) {
	most := int64(max(o.MaxBody, maxBody)) << 20
	text := make([]byte, 0, firstPiece)
	if !body.allowance.Take(int64(cap(text))) {
		return nil, errBodies
	}
	for r.ContentLength <= most && int64(len(text)) <= most {
		if len(text) == cap(text) {
			more := min(int64(cap(text)), most+1-int64(cap(text)))
			if !body.allowance.Take(more) {
				return nil, errBodies
			}
			text = append(make([]byte, 0, int64(cap(text))+more), text...)
		}
		n, err := body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case errors.Is(err, io.EOF):
			return io.NopCloser(bytes.NewReader(text)), nil
		case failedArrival(r) != nil:
			return nil, failedArrival(r)
		case err != nil:
			return nil, errUnreadable.Because(err)
		}
	}
	if !strings.EqualFold(r.Header.Get("Expect"), "100-continue") { // who asks first has sent nothing yet
		_, _ = io.CopyN(io.Discard, body, overrun)
	}
	if err := failedArrival(r); err != nil {
		return nil, err
	}
	return io.NopCloser(tooLong{most}), nil
}

// tooLong is a body over the limit.
type tooLong struct{ limit int64 }

// Read implements io.Reader.
func (t tooLong) Read([]byte) (int, error) { return 0, &http.MaxBytesError{Limit: t.limit} }

// paced is a body that has to come at the slowest rate at least.
type paced struct {
	io.ReadCloser

	arrival   *arrival
	control   *http.ResponseController
	allowance *limit.Allowance
	began     time.Time // when it was first read: before, others may have been waited for
	read      int64
	within    time.Duration // all of it, where that is not 0
	ended     bool
}

// Read implements io.Reader.
func (p *paced) Read(into []byte) (int, error) {
	if err := p.arrival.err.Load(); err != nil {
		return 0, *err
	}
	if p.ended {
		return p.ReadCloser.Read(into) // and no deadline, in which the caller who waits for the answer would seem to hang up
	}
	if p.began.IsZero() {
		p.began = time.Now()
	}
	due := p.began.Add(slowStart + time.Duration(p.read)*time.Second/slowestRate)
	if end := p.began.Add(p.within); p.within > 0 && due.After(end) {
		due = end
	}
	_ = p.control.SetReadDeadline(due) // without a connection, in tests, nothing is slow
	if p.allowance.Taken() {
		return 0, p.broken(errBodies)
	}
	n, err := p.ReadCloser.Read(into)
	p.read += int64(n)
	switch {
	case errors.Is(err, io.EOF):
		p.end()
	case err != nil:
		return n, p.broken(err)
	}
	return n, err
}

func (p *paced) end() {
	p.ended = true
	_ = p.control.SetReadDeadline(time.Time{})
}

// broken says why the body will not come to its end. What the sender wrote wrongly is the handler's
// to answer.
func (p *paced) broken(err error) error {
	switch {
	case p.allowance.Taken():
		err = errBodies
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errSlow
	case hungUp(err):
		err = errHungUp
	default:
		return err
	}
	p.arrival.fail(err)
	return err
}

// hungUp tells a connection that ended from a body that is written wrongly.
func hungUp(err error) bool {
	var network interface{ Timeout() bool } // every error of a connection
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network)
}

// ArriveWithin gives a body that is read as it comes so much time, from its first reading on.
func ArriveWithin(r *http.Request, within time.Duration) {
	if a, ok := r.Context().Value(arrivalKey{}).(*arrival); ok && a.stream != nil {
		a.stream.within = within
	}
}
