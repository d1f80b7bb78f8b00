package edge_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
)

func TestWait(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"": 0, "wait=3": 3 * time.Second, `respond-async, Wait = "4"; x`: 4 * time.Second, "wait=11": 10 * time.Second, "wait=99999999999999999999": 0,
		"wait=999999999": 10 * time.Second, "wait": 0, "wait=-1": 0, "wait=1.5": 0, "wait=2, wait=9": 2 * time.Second, "waits=3": 0,
	} {
		if got := edge.Wait(&http.Request{Header: http.Header{"Prefer": {header}}}, 10*time.Second); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}
