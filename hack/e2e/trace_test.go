package e2e

import (
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// spans is a collector of one trace: which programs recorded which spans.
type spans struct {
	trace   string // in hexadecimal
	mu      sync.Mutex
	have    map[string]bool // "program: span"
	changed chan struct{}
}

func (s *spans) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var export collector.ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(body, &export) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range export.ResourceSpans {
		program := ""
		for _, a := range resource.Resource.Attributes {
			if a.Key == "service.name" {
				program = a.Value.GetStringValue()
			}
		}
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				if hex.EncodeToString(span.TraceId) == s.trace {
					s.have[program+": "+span.Name] = true
				}
			}
		}
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// missing are the wanted spans that have not come.
func (s *spans) missing(want []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(want), func(w string) bool { return s.have[w] })
}

func TestOneTraceGoesFromTheCallThroughEveryProgramToTheReceiver(t *testing.T) {
	t.Parallel()
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	got := &spans{trace: trace, have: map[string]bool{}, changed: make(chan struct{}, 1)}
	server := httptest.NewServer(got)
	defer server.Close()
	h := newHouseOn(t, pgtest.URL(t), "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, "OTEL_BSP_SCHEDULE_DELAY=100")

	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.settings.PublicURL()+"/api/v1/provision/student/",
		strings.NewReader(`{"email": "asha@north-institute.org", "first_name": "Asha", "courses": ["ielts"]}`))
	must(t, err)
	req.Header.Set("X-API-Key", h.key)
	req.Header.Set("traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
	resp, err := web.Do(req)
	must(t, err)
	must(t, resp.Body.Close())
	for _, r := range h.awaitEvents("asha@north-institute.org", 2) {
		if parent := r.Headers["Traceparent"]; !strings.HasPrefix(parent, "00-"+trace+"-") {
			t.Errorf("the receiver got traceparent %q", parent)
		}
	}

	want := []string{"api-server: POST /api/v1/provision/student", "api-server: INSERT", "worker: webhook relay",
		"webhook-sender: webhook queue", "webhook-sender: webhook load", "webhook-sender: webhook attempt", "webhook-sender: webhook record"}
	for deadline := time.After(limit); len(got.missing(want)) > 0; {
		select {
		case <-got.changed:
		case <-deadline:
			t.Fatal(fmt.Sprint("missing: ", got.missing(want), "; there are ", slices.Sorted(maps.Keys(got.have))))
		}
	}
}
