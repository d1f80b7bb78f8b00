// Package obs is what an operator of the programs sees: logs, metrics, health and
// profiles, and the way a program starts and ends.
package obs

import (
	"context"
	"io"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

type requestIDKey struct{}

// WithRequestID returns a context whose log lines carry the request id.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// requestID is the request id of ctx, "" outside a request.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// Logger writes JSON lines at level (debug, info, warn or error) and above. Every line
// names the program, and the request and the trace of the context that it was logged with.
func Logger(w io.Writer, level, program string) *slog.Logger {
	var threshold slog.Level
	err := threshold.UnmarshalText([]byte(level))
	handler := slog.NewJSONHandler(w, &slog.HandlerOptions{Level: threshold})
	log := slog.New(requestHandler{handler}).With("program", program)
	if err != nil {
		log.Warn("LOG_LEVEL is none of debug, info, warn, error; logging from info on", "level", level)
	}
	return log
}

// requestHandler adds the context's request id to each record, and its trace, by which logs are found from a span.
type requestHandler struct{ slog.Handler }

func (h requestHandler) Handle(ctx context.Context, r slog.Record) error {
	if id := requestID(ctx); id != "" {
		r.AddAttrs(slog.String("request_id", id))
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h requestHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requestHandler{h.Handler.WithAttrs(attrs)}
}

func (h requestHandler) WithGroup(name string) slog.Handler {
	return requestHandler{h.Handler.WithGroup(name)}
}
