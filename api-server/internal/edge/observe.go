package edge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/obs"
)

// Metrics are the HTTP metrics of a process, shared by its routers.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
	refused  *prometheus.CounterVec
}

// NewMetrics registers the HTTP metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "registrar_http_requests_total",
			Help: "HTTP requests answered, by the route's pattern."}, []string{"api", "method", "route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "registrar_http_request_duration_seconds",
			Help:    "Time from the arrival of the request, with its body unless that is read as a stream, to the end of the answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}}, []string{"api", "method", "route"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "registrar_http_requests_in_flight",
			Help: "HTTP requests that are being answered."}, []string{"api"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "registrar_http_overload_refusals_total",
			Help: "HTTP requests refused with 503 because too many were in flight: of the replica, or those that the limit is for."}, []string{"api", "limit"}),
	}
	reg.MustRegister(m.requests, m.duration, m.inFlight, m.refused)
	return m
}

// record is what a request's handlers leave for its access log line.
type record struct {
	err      error
	attrs    []any
	arrived  time.Time // when all of it was there; zero: it never was
	panicked bool
}

type recordKey struct{}

// note keeps err for the access log line.
func note(r *http.Request, err error) {
	if rec, ok := r.Context().Value(recordKey{}).(*record); ok && rec.err == nil {
		rec.err = err
	}
}

// Refusal is the error that the request was answered with so far; nil where it was none.
func Refusal(ctx context.Context) error {
	if rec, ok := ctx.Value(recordKey{}).(*record); ok {
		return rec.err
	}
	return nil
}

// Annotate adds attributes (as for slog) to the request's access log line.
func Annotate(ctx context.Context, attrs ...any) {
	if rec, ok := ctx.Value(recordKey{}).(*record); ok {
		rec.attrs = append(rec.attrs, attrs...)
	}
}

// requestIDForm is what is taken over from a caller.
var requestIDForm = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

func withRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-Request-Id")
		if !requestIDForm.MatchString(id) {
			id = uuid.Must(uuid.NewV7()).String()
		}
		w.Header().Set("X-Request-Id", id)
		next.ServeHTTP(w, r.WithContext(obs.WithRequestID(r.Context(), id)))
	})
}

// observe writes one access log line a request and counts it. The query string, which
// may hold personal data, is not logged.
func observe(o Options) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			rec := &record{arrived: began}
			wrapped := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
			r = r.WithContext(context.WithValue(r.Context(), recordKey{}, rec))
			r, endTrace := obs.StartRequest(r)
			o.Metrics.inFlight.WithLabelValues(o.API).Inc()
			defer func() {
				o.Metrics.inFlight.WithLabelValues(o.API).Dec()
				finish(o, wrapped, r, rec, time.Since(began))
				endTrace(routeOf(r), wrapped.Status())
			}()
			next.ServeHTTP(wrapped, r)
		})
	}
}

func finish(o Options, w middleware.WrapResponseWriter, r *http.Request, rec *record, took time.Duration) {
	route, method, status := routeOf(r), methodOf(r), w.Status()
	if status == 0 {
		status = http.StatusOK
	}
	if status >= http.StatusInternalServerError && r.Context().Err() != nil && !rec.panicked {
		status = StatusGone // however it was answered
	}
	o.Metrics.requests.WithLabelValues(o.API, method, route, strconv.Itoa(status)).Inc()
	if !rec.arrived.IsZero() {
		o.Metrics.duration.WithLabelValues(o.API, method, route).Observe(time.Since(rec.arrived).Seconds())
	}
	attrs := append([]any{
		"api", o.API, "method", r.Method, "route", route, "path", o.pathOf(r), "status", status,
		"bytes", w.BytesWritten(), "duration_ms", float64(took.Microseconds()) / 1000,
		"remote", r.RemoteAddr, "user_agent", r.UserAgent(),
	}, rec.attrs...)
	if rec.err != nil {
		attrs = append(attrs, "error", causes(rec.err), "kind", fault.KindOf(rec.err).String())
	}
	level := slog.LevelInfo
	if status >= 500 {
		level = slog.LevelError
	}
	o.Log.Log(r.Context(), level, "request", attrs...)
}

// pathOf is the path without what is secret in it. It goes by the path's text alone: a request
// that is refused before it has a route, or that has none, may carry the secret all the same.
func (o Options) pathOf(r *http.Request) string {
	lower := strings.ToLower(r.URL.Path)
	for _, prefix := range o.Secret {
		if i := strings.Index(lower, prefix); i >= 0 {
			return prefix + "{secret}"
		}
	}
	return r.URL.Path
}

// causes is the error's text with what a fault hides from callers.
func causes(err error) string {
	text := err.Error()
	var f *fault.Error
	if errors.As(err, &f) && f.Err != nil {
		text += ": " + f.Err.Error()
	}
	return text
}

// routeOf is the pattern of the route, so that metrics have few values.
func routeOf(r *http.Request) string {
	if pattern := chi.RouteContext(r.Context()).RoutePattern(); pattern != "" && pattern != "/*" && pattern[len(pattern)-1] != '*' {
		return pattern
	}
	return "unmatched"
}

func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return r.Method
	}
	return "other"
}

// recoverPanic answers 500 for a handler that panicked and logs where.
func recoverPanic(o Options) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if p := recover(); p != nil {
					failPanic(o, w, r, p)
				}
			}()
			next.ServeHTTP(w, r)
		})
	}
}

func failPanic(o Options, w http.ResponseWriter, r *http.Request, p any) {
	if p == http.ErrAbortHandler { //nolint:errorlint // a panic's value is compared as it is
		panic(p)
	}
	Annotate(r.Context(), "stack", string(debug.Stack()))
	if rec, ok := r.Context().Value(recordKey{}).(*record); ok {
		rec.panicked = true
	}
	o.fail(w, r, fmt.Errorf("panic: %v", p))
}
