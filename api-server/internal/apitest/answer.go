package apitest

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

var update = flag.Bool("update", false, "write the golden bodies instead of comparing with them")

// Answer is a response whose body has been read.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte

	request string
}

// Want stops the test unless the answer has the status.
func (a *Answer) Want(t testing.TB, status int) *Answer {
	t.Helper()
	if a.Status != status {
		t.Fatalf("%s: status %d, want %d\n%s", a.request, a.Status, status, a.Body)
	}
	return a
}

// Fault is the error body.
type Fault struct {
	Status string  `json:"status"`
	Error  string  `json:"error"`
	Code   string  `json:"code"`
	Field  string  `json:"field"`
	Errors []Fault `json:"errors"`
}

// WantFault stops the test unless the answer is the fault: its status, code and field
// ("" for none).
func (a *Answer) WantFault(t testing.TB, status int, code, field string) Fault {
	t.Helper()
	var f Fault
	a.Want(t, status).Into(t, &f)
	check.Equal(check.Now(t), "the status in the body", f.Status, "error", "%s\n%s", a.request, a.Body)
	check.Equal(check.Now(t), "code", f.Code, code, "%s\n%s", a.request, a.Body)
	check.Equal(check.Now(t), "field", f.Field, field, "%s\n%s", a.request, a.Body)
	return f
}

// Into decodes the body.
func (a *Answer) Into(t testing.TB, into any) *Answer {
	t.Helper()
	if err := json.Unmarshal(a.Body, into); err != nil {
		t.Fatalf("%s: %v\n%s", a.request, err, a.Body)
	}
	return a
}

// Object is the body as a JSON object.
func (a *Answer) Object(t testing.TB) map[string]any {
	t.Helper()
	var object map[string]any
	a.Into(t, &object)
	return object
}

// random is what differs from run to run: API keys and their prefixes, signing secrets,
// 43-character tokens, cursors, events and deliveries.
var random = regexp.MustCompile(`reg_[A-Za-z0-9_-]{8,43}|\bAQ[A-Za-z0-9_-]{40,}|whsec_[A-Za-z0-9_+/=-]+|\b[A-Za-z0-9_-]{43}\b|(evt|dlv)_[0-9a-f]{32}`)

// link is random too, and may begin or end with a dash, where no word does.
var link = regexp.MustCompile(`(/set-password/)[A-Za-z0-9_-]{43}`)

// Golden compares the body with testdata/<name>.json, with random texts blotted out.
func (a *Answer) Golden(t testing.TB, name string) *Answer {
	t.Helper()
	var got bytes.Buffer
	if err := json.Indent(&got, bytes.TrimSpace(random.ReplaceAll(link.ReplaceAll(a.Body, []byte("${1}RANDOM")), []byte("RANDOM"))), "", "  "); err != nil {
		t.Fatalf("%s: %v\n%s", a.request, err, a.Body)
	}
	got.WriteByte('\n')
	file := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; `go test -update` writes it", err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s is not as in %s (go test -update accepts it):\ngot:\n%s\nwant:\n%s", a.request, file, got.Bytes(), want)
	}
	return a
}
