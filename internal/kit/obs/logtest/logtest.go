// Package logtest finds secrets in what programs have logged. The end-to-end tests hold
// the logs of every program against it, and the API tests those of both APIs.
package logtest

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// shapes are what secrets look like: API keys, signing secrets, links that set a password,
// password hashes, keysets, and headers that carry a key.
var shapes = regexp.MustCompile(`reg_[A-Za-z0-9_-]{20,}|whsec_[A-Za-z0-9_+/=-]{20,}|(set|reset)-password/[A-Za-z0-9_-]{20,}|` +
	`\$argon2id\$|primaryKeyId|(?i:bearer)[ +][A-Za-z0-9_-]{16,}`)

// A text that is shorter, or made of fewer characters, is in a log by coincidence.
const shortest, fewest = 12, 6

func revealing(secret string) bool {
	different := map[rune]bool{}
	for _, r := range secret {
		different[r] = true
	}
	return len(secret) >= shortest && len(different) >= fewest
}

// Check fails the test for every line of the log that holds one of the secrets, or what
// looks like one. It shows the line without it.
func Check(t testing.TB, log string, secrets ...string) {
	t.Helper()
	for line := range strings.Lines(log) {
		if hidden := hide(line, secrets); hidden != line {
			t.Errorf("a secret is in the log: %s", strings.TrimSpace(hidden))
		}
	}
}

// Errors shows the lines of the log that are errors, without the secrets: what an answer only calls an
// unexpected error has its cause there.
func Errors(t testing.TB, log string, secrets ...string) {
	t.Helper()
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"level":"ERROR"`) {
			t.Log(strings.TrimSpace(hide(line, secrets)))
		}
	}
}

func hide(line string, secrets []string) string {
	for _, secret := range secrets {
		if revealing(secret) {
			line = strings.ReplaceAll(line, secret, "<SECRET>")
		}
	}
	return shapes.ReplaceAllString(line, "<SECRET>")
}

// Secrets are those that passed over HTTP.
type Secrets struct {
	mu   sync.Mutex
	seen map[string]bool
}

// Seen are the secrets so far.
func (s *Secrets) Seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for secret := range s.seen {
		all = append(all, secret)
	}
	return all
}

// Add remembers a secret.
func (s *Secrets) Add(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	s.seen[secret] = true
}

// Watch remembers what requests to the handler bring and answers take along: keys,
// passwords, and the ids of sessions.
func (s *Secrets) Watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Add(r.Header.Get("X-API-Key"))
		_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		s.Add(token)
		passwords := passwords(r)
		answer := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(answer, r)
		for _, password := range passwords {
			if answer.status < http.StatusBadRequest { // else it is nobody's
				s.Add(password)
			}
		}
		for _, cookie := range (&http.Response{Header: w.Header()}).Cookies() {
			s.Add(cookie.Value)
		}
	})
}

// mostOfBody is what is looked at of a request, in bytes; passwords come in small ones.
const mostOfBody = 64 << 10

// passwords are those in a request, whose body can still be read afterwards.
func passwords(r *http.Request) []string {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.Body == nil || kind != "application/json" && kind != "application/x-www-form-urlencoded" {
		return nil
	}
	begin, err := io.ReadAll(io.LimitReader(r.Body, mostOfBody))
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(begin), r.Body), r.Body}
	if err != nil || len(begin) == mostOfBody {
		return nil
	}
	fields := map[string]any{}
	if kind == "application/json" {
		_ = json.Unmarshal(begin, &fields) // what is no object has no password
	} else if form, err := url.ParseQuery(string(begin)); err == nil {
		for name := range form {
			fields[name] = form.Get(name)
		}
	}
	var found []string
	for _, name := range []string{"password", "again", "current"} {
		if text, ok := fields[name].(string); ok {
			found = append(found, text)
		}
	}
	return found
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
