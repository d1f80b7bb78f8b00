package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// What a browser is watched for is noticed.
func TestABrowserIsWatched(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ policy, body, want string }{
		"a script that the policy forbids": {"script-src 'none'", `<script>document.title = "ran"</script>`, "Content Security Policy"},
		"another host":                     {"", `<img src="http://127.0.0.2:9/pixel.png" alt="">`, "a request to http://127.0.0.2:9/pixel.png"},
		"a dialog":                         {"", `<script>setTimeout(() => alert("hello"))</script>`, "a dialog: hello"},
		"an exception":                     {"", `<script>throw new Error("no")</script>`, "an exception"},
		"an error on the console":          {"", `<script>console.error("no")</script>`, "console.error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := Open(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Security-Policy", c.policy)
				fmt.Fprintf(w, `<!doctype html><html lang="en"><title>x</title><link rel="icon" href="data:,"><h1>Page</h1>%s</html>`, c.body)
			}))
			t.Cleanup(server.Close)
			b.Visit(server.URL)
			b.awaitFault(c.want)
		})
	}
}

// awaitFault waits for a fault that says want, and forgets what was found.
func (b *Browser) awaitFault(want string) {
	b.t.Helper()
	for {
		faults := b.faults(true)
		if slices.ContainsFunc(faults, func(fault string) bool { return strings.Contains(fault, want) }) {
			return
		}
		if len(faults) == 0 {
			b.t.Fatalf("nothing was noticed of %q", want)
		}
	}
}

func TestWhatKeepsPeopleOutIsFound(t *testing.T) {
	t.Parallel()
	b := Open(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<!doctype html><html lang="en"><title>x</title><link rel="icon" href="data:,"><main><h1>Page</h1><input></main></html>`)
	}))
	t.Cleanup(server.Close)
	b.Visit(server.URL)
	if found := b.violations(axe(t)); check.Equal(t, "number of violations", len(found), 1, "found %+v, want the field without a label", found) {
		check.Equal(t, "the first violation's id", found[0].ID, "label", "found %+v, want the field without a label", found)
	}
}
