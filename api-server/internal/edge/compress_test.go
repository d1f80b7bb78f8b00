package edge

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// Packing costs nothing where nobody asks for it: the handler writes to the connection, as it would without.
func TestAnAnswerThatNobodyWantsPackedPassesUntouched(t *testing.T) {
	var got http.ResponseWriter
	handler := Compress(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { got = w }))
	for name, r := range map[string]*http.Request{
		"a read":                        httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil),
		"a change that would be packed": httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil),
	} {
		if r.Method != http.MethodGet {
			r.Header.Set("Accept-Encoding", "gzip")
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		check.True(t, "the handler writes to the connection itself", got == http.ResponseWriter(w), "%s: %T", name, got)
		check.Equal(t, "allocations", testing.AllocsPerRun(100, func() { handler.ServeHTTP(w, r) }), 0, "%s", name)
	}
}
