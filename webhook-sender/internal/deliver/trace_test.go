package deliver_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

func TestATraceGoesFromTheCallToTheReceiver(t *testing.T) { // not parallel: the provider is the process's
	spans := tracetest.NewInMemoryExporter()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
	defer otel.SetTracerProvider(before)
	var in inbox
	server := httptest.NewServer(&in)
	defer server.Close()
	h := newHouse(t, loopback)
	h.addURL(t, server.URL)

	const dispatcher = "4bf92f3577b34da6a3ce929d0e0e4736"
	r := httptest.NewRequest(http.MethodPost, "/api/v1/provision/student/", http.NoBody)
	r.Header.Set("traceparent", "00-"+dispatcher+"-00f067aa0ba902b7-01")
	r, end := obs.StartRequest(r)
	err := h.db.InTx(r.Context(), func(tx *pg.Tx) error {
		return webhook.Record(r.Context(), tx, h.org, time.Now(), webhook.Event{Type: webhook.StudentJoined, Data: struct{}{}})
	})
	end("/api/v1/provision/student", http.StatusCreated)
	if err != nil {
		t.Fatal(err)
	}
	h.handle(t, h.lease(t, time.Second))
	var attempt tracetest.SpanStub
	for _, span := range spans.GetSpans() {
		if span.Name == "webhook attempt" {
			attempt = span
		}
	}
	want := "00-" + dispatcher + "-" + attempt.SpanContext.SpanID().String() + "-01"
	if got := in.requests[0].Header.Get("traceparent"); check.Equal(t, "got", got, want, "the receiver got traceparent %q, want %q", got, want) {
		check.Equal(t, "the attempt's trace", attempt.Parent.TraceID().String(), dispatcher, "the receiver got traceparent %q, want %q", got, want)
	}
	var kept string
	if err := h.db.QueryRow(t.Context(), `SELECT request_headers->>'traceparent' FROM webhook_journal`).Scan(&kept); check.NoError(t, err, "the attempt keeps %q, %v", kept, err) {
		check.Contains(t, "what is kept", kept, dispatcher, "the attempt keeps %q, %v", kept, err)
	}
}
