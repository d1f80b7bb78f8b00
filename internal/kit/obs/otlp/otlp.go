// Package otlp sends the spans of package obs to a collector. It is a package of its own because what it
// needs is a good part of a binary, and programs alone need it.
package otlp

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Start exports the program's spans over OTLP/HTTP when OTEL_EXPORTER_OTLP_ENDPOINT
// or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT names a collector; otherwise nothing is recorded. The
// other OTEL_ variables work as OpenTelemetry defines them. stop sends the remaining spans.
func Start(ctx context.Context, program string, getenv func(string) string) (stop func(), err error) {
	if getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		return func() {}, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", program), attribute.String("service.namespace", "registrar"))))
	otel.SetTracerProvider(provider)
	return func() { _ = provider.Shutdown(context.WithoutCancel(ctx)) }, nil // spans are worth no wait at the end
}
