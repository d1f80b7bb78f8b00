// Package apitest runs both APIs in a test: a database of the test's own, a clock that
// stands still until it is moved, and clients that hold every exchange against the
// OpenAPI documents.
//
//	func TestPing(t *testing.T) {
//		t.Parallel()
//		e := apitest.New(t)
//		north := e.Organization(t, "north")          // switched on for language tests, with two keys
//		north.Full.Get(t, "ping/").Want(t, 200).Golden(t, "ping")
//		north.ReadOnly.Post(t, "provision/student/", `{}`).WantFault(t, 403, "read_only_key", "")
//		e.Platform.Put(t, "organizations/x", `{"name":"X"}`).Want(t, 201)
//	}
//
// A path without a leading slash is below /api/v1/ or /platform/v1/. A body is a string
// that is sent as it is, or anything else as its JSON.
//
// To add a route: write the path with every status into openapi/partner.yaml or
// openapi/platform.yaml (openapi/common.yaml has those of every route), register it in rest.Server.Routes or platform.Server.Routes, and
// call it through these clients. An answer that the document does not describe, down to
// an unknown field, fails the test, and so does a request that was taken though the
// document does not allow it. Package server's test fails when a route is missing in the
// document or the other way round.
//
// To give handlers something new, add it to server.Deps and, here, to New.
//
// Golden bodies live in testdata/<name>.json; `go test -update` writes them.
package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"gopkg.in/yaml.v3"

	"github.com/registrar-dev/registrar/api-server/internal/openapi"
	"github.com/registrar-dev/registrar/api-server/internal/server"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/apicheck"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/obs/logtest"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/seal/sealtest"
)

// PlatformKey is the platform API's key in tests, PublicURL the base of links.
const (
	PlatformKey = "platform-key-of-the-tests"
	PublicURL   = "https://registrar.test"
)

// Env is a running pair of APIs.
type Env struct {
	DB       *pg.DB          // its owner's, for the test
	Served   *pg.DB          // the same one for api-server's role, which the APIs use
	Keys     *org.Keyring    // running
	Usage    *org.Usage      // written when a test calls Flush
	Refusals *audit.Refusals // likewise
	Box      *seal.Box
	Registry *prometheus.Registry
	Log      *LogBuffer // the programs' log lines
	Platform *Client    // with the platform key
	Routes   chi.Routes // of the public port

	publicURL string
	checker   *apicheck.Checker

	mu  sync.Mutex
	now time.Time
}

// Start is the time of every Env until it is moved.
var Start = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// A sign-in takes tens of milliseconds of hashing elsewhere, and tests sign in all the time.
func init() { student.CheapHashes() }

// New starts the APIs; they end with the test, which fails when a secret is in their log.
// Each change may adjust the parts before the routers are made.
func New(t testing.TB, changes ...func(*server.Deps)) *Env {
	t.Helper()
	db := pgtest.New(t)
	e := &Env{DB: db, Served: pgtest.OpenAs(t, db, "api-server"), Box: sealtest.New(t), Registry: prometheus.NewRegistry(), Log: &LogBuffer{}, now: Start}
	e.Keys = org.NewKeyring(e.Served)
	e.Refusals = audit.NewRefusals(e.Served, e.Now, slog.New(slog.DiscardHandler))
	e.Usage = org.NewUsage(e.Served, slog.New(slog.DiscardHandler))
	mails := email.NewWatch(e.Served)
	run(t, e.Keys.Run)
	rosters := roster.NewWatch(e.Served)
	run(t, mails.Run)
	run(t, rosters.Run)
	deps := server.Deps{DB: e.Served, Clock: e.Now, Zone: time.UTC, Keys: e.Keys, Usage: e.Usage, Refusals: e.Refusals, Mails: mails, Rosters: rosters, Box: e.Box, Egress: egress.New(egress.Config{}),
		Log: slog.New(slog.NewJSONHandler(e.Log, nil)), Registry: e.Registry,
		PlatformKey: PlatformKey, PublicURL: PublicURL, SafeExamBrowser: true, InFlight: 100, Connections: e.Served.Config().MaxConns,
		RedisPatience: time.Minute, PlacePatience: time.Minute} // a slow machine's limits are applied, too, and its bursts served
	for _, change := range changes {
		change(&deps)
	}
	apis := server.New(deps)
	e.Routes = apis.Public
	var secrets logtest.Secrets
	t.Cleanup(func() { // after the servers' end
		logtest.Check(t, e.Log.String(), secrets.Seen()...)
		if t.Failed() {
			logtest.Errors(t, e.Log.String(), secrets.Seen()...)
		}
	})
	e.publicURL, e.checker = serve(t, secrets.Watch(apis.Public)), checker(t, partner)
	e.Platform = newClient(serve(t, secrets.Watch(apis.Platform)), "/platform/v1/", checker(t, platform)).
		With("Authorization", "Bearer "+PlatformKey)
	return e
}

// run runs a part until the test ends.
func run(t testing.TB, part func(context.Context) error) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := part(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func serve(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// The documents are read once: it takes longer than most tests.
var (
	partner  = sync.OnceValues(func() (*apicheck.Checker, error) { return apicheck.New(openapi.Partner()) })
	platform = sync.OnceValues(func() (*apicheck.Checker, error) { return apicheck.New(openapi.Platform()) })
)

// EventData is what an event of the type may hold: the data of the document's example.
func EventData(t testing.TB, of webhook.Type) json.RawMessage {
	t.Helper()
	var document struct {
		Webhooks map[webhook.Type]struct {
			Post struct {
				RequestBody struct {
					Content map[string]struct{ Example struct{ Data any } }
				} `yaml:"requestBody"`
			}
		}
	}
	err := yaml.Unmarshal(openapi.Partner(), &document)
	check.NoError(check.Now(t), err, "%s", of)
	data, err := json.Marshal(document.Webhooks[of].Post.RequestBody.Content["application/json"].Example.Data)
	check.NoError(check.Now(t), err, "%s", of)
	return data
}

func checker(t testing.TB, read func() (*apicheck.Checker, error)) *apicheck.Checker {
	t.Helper()
	c, err := read()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Now is the time of the APIs.
func (e *Env) Now() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.now
}

// Advance moves the time of the APIs.
func (e *Env) Advance(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now = e.now.Add(d)
}

// URL is the address of the public port, for requests that a Client does not make.
func (e *Env) URL() string { return e.publicURL }

// Partner is a client of the partner API with the key; "" sends none.
func (e *Env) Partner(key string) *Client {
	c := newClient(e.publicURL, "/api/v1/", e.checker)
	if key == "" {
		return c
	}
	return c.With("X-API-Key", key)
}

// Organization is one made for a test, with a client for each kind of key.
type Organization struct {
	org.Organization
	Full, ReadOnly       *Client
	FullKey, ReadOnlyKey string
}

// Organization makes an organization called slug that may provision.
func (e *Env) Organization(t testing.TB, slug string) Organization {
	t.Helper()
	e.Platform.Put(t, "organizations/"+slug, map[string]any{"name": "Institute " + slug, "language_tests_enabled": true}).Want(t, http.StatusCreated)
	o, err := org.Find(t.Context(), e.DB, slug)
	if err != nil {
		t.Fatal(err)
	}
	made := Organization{Organization: o, FullKey: e.Key(t, slug, org.Full), ReadOnlyKey: e.Key(t, slug, org.ReadOnly)}
	made.Full, made.ReadOnly = e.Partner(made.FullKey), e.Partner(made.ReadOnlyKey)
	return made
}

// Key makes an API key and returns its text.
func (e *Env) Key(t testing.TB, slug string, access org.Access) string {
	t.Helper()
	var made struct {
		Key string `json:"key"`
	}
	e.Platform.Post(t, "organizations/"+slug+"/api-keys", map[string]any{"name": "Key " + string(access), "access": access}).
		Want(t, http.StatusCreated).Into(t, &made)
	return made.Key
}

// LogBuffer keeps log lines; it may be used from many goroutines.
type LogBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *LogBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String is everything logged so far.
func (b *LogBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Client calls one API; each method fails the test when the exchange is not as the
// API's document says.
type Client struct {
	base, prefix string
	http         *http.Client
	header       http.Header
	checker      *apicheck.Checker
}

func newClient(base, prefix string, checker *apicheck.Checker) *Client {
	client := &http.Client{Transport: checker.Transport(nil), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Client{base, prefix, client, http.Header{}, checker}
}

// Freely is the client for requests that may be anything: its answers alone are held
// against the document.
func (c *Client) Freely() *Client {
	copied, client := *c, *c.http
	client.Transport = c.checker.Answers(nil)
	copied.http = &client
	return &copied
}

// With is the client with one more header; "" removes it.
func (c *Client) With(name, value string) *Client {
	copied := *c
	copied.header = c.header.Clone()
	copied.header.Set(name, value)
	if value == "" {
		copied.header.Del(name)
	}
	return &copied
}

// Get, Post, Put, Patch and Delete make a request.
func (c *Client) Get(t testing.TB, path string) *Answer {
	t.Helper()
	return c.Do(t, http.MethodGet, path, nil)
}

// Post sends body.
func (c *Client) Post(t testing.TB, path string, body any) *Answer {
	t.Helper()
	return c.Do(t, http.MethodPost, path, body)
}

// Put sends body.
func (c *Client) Put(t testing.TB, path string, body any) *Answer {
	t.Helper()
	return c.Do(t, http.MethodPut, path, body)
}

// Patch sends body.
func (c *Client) Patch(t testing.TB, path string, body any) *Answer {
	t.Helper()
	return c.Do(t, http.MethodPatch, path, body)
}

// Delete sends no body.
func (c *Client) Delete(t testing.TB, path string) *Answer {
	t.Helper()
	return c.Do(t, http.MethodDelete, path, nil)
}

// Do makes a request with any method.
func (c *Client) Do(t testing.TB, method, path string, body any) *Answer {
	t.Helper()
	if !strings.HasPrefix(path, "/") {
		path = c.prefix + path
	}
	var content io.Reader
	if body != nil {
		content = strings.NewReader(bodyText(t, body))
	}
	r, err := http.NewRequestWithContext(t.Context(), method, c.base+path, content)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range c.header {
		r.Header[name] = values
	}
	if body != nil && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return &Answer{Status: res.StatusCode, Header: res.Header, Body: text, request: method + " " + path}
}

func bodyText(t testing.TB, body any) string {
	t.Helper()
	if text, ok := body.(string); ok {
		return text
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
