package obs

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// propagator carries a trace from process to process (W3C traceparent).
var propagator propagation.TraceContext

// Tracing says whether spans are recorded, so that work for them can be skipped otherwise.
func Tracing() bool {
	_, recording := otel.GetTracerProvider().(*sdktrace.TracerProvider)
	return recording
}

func tracer() trace.Tracer { return otel.Tracer("github.com/registrar-dev/registrar") }

// StartRequest begins the span of a request, below the caller's when it sent a traceparent.
// end takes the route's pattern and the answer's status.
func StartRequest(r *http.Request) (_ *http.Request, end func(route string, status int)) {
	ctx := propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := tracer().Start(ctx, r.Method, trace.WithSpanKind(trace.SpanKindServer))
	return r.WithContext(ctx), func(route string, status int) {
		span.SetName(r.Method + " " + route)
		span.SetAttributes(attribute.String("http.route", route), attribute.Int("http.response.status_code", status))
		if status >= 500 {
			span.SetStatus(codes.Error, http.StatusText(status))
		}
		span.End()
	}
}

// Traceparent is the context's span, to be stored with work that another process continues; ""
// when nothing is traced.
func Traceparent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagator.Inject(ctx, carrier)
	return carrier.Get("traceparent")
}

// StartRemote begins a span below a stored Traceparent. sent is what a request that belongs
// to the span carries; "" when nothing is traced. end takes what went wrong, "" for nothing.
func StartRemote(ctx context.Context, traceparent, name string, attributes ...string) (_ context.Context, sent string, end func(fault string)) {
	ctx = propagator.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
	ctx, span := tracer().Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(pairs(attributes)...))
	return ctx, Traceparent(ctx), func(fault string) {
		if fault != "" {
			span.SetStatus(codes.Error, fault)
		}
		span.End()
	}
}

// Past records a span below a stored Traceparent for work that has just been done for several
// traces at once. It does nothing without a traceparent.
func Past(traceparent, name string, began, ended time.Time, attributes ...string) {
	if traceparent == "" {
		return
	}
	ctx := propagator.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent})
	_, span := tracer().Start(ctx, name, trace.WithTimestamp(began), trace.WithAttributes(pairs(attributes)...))
	span.End(trace.WithTimestamp(ended))
}

func pairs(attributes []string) []attribute.KeyValue {
	var out []attribute.KeyValue
	for i := 0; i+1 < len(attributes); i += 2 {
		out = append(out, attribute.String(attributes[i], attributes[i+1]))
	}
	return out
}
