package rest_test

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"gopkg.in/yaml.v3"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/openapi"
	"github.com/registrar-dev/registrar/api-server/internal/server"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// madeKey makes a key over the platform API.
func madeKey(t *testing.T, e *apitest.Env, slug string, fields map[string]any) (text string, key int64) {
	t.Helper()
	var made struct {
		ID  int64  `json:"id"`
		Key string `json:"key"`
	}
	fields["name"] = "scoped"
	e.Platform.Post(t, "organizations/"+slug+"/api-keys", fields).Want(t, http.StatusCreated).Into(t, &made)
	return made.Key, made.ID
}

type operation struct {
	method, path, scope string
	public              bool // needs no key
}

// operations are those of the document, with the scope that it names.
func operations(t *testing.T) (all []operation) {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]struct {
			ID       string `yaml:"operationId"`
			Scope    string `yaml:"x-scope"`
			Security []any
		}
	}
	if err := yaml.Unmarshal(openapi.Partner(), &doc); err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths {
		for method, o := range item {
			if o.ID != "" {
				all = append(all, operation{strings.ToUpper(method), path, o.Scope, o.Security != nil})
			}
		}
	}
	check.True(check.Now(t), "there are operations", len(all) > 10, "%v", all)
	return all
}

// The document is the table: with the scope that it names an operation is open, and with all others closed.
// Reference: conventions#scopes.
func TestAKeyReachesWhatItsScopesName(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	clients := map[string][2]*apitest.Client{} // by scope: a key with it, and one with all others
	for _, s := range org.Scopes() {
		others := slices.DeleteFunc(org.Scopes(), func(o org.Scope) bool {
			return o == s || s == org.ScopeAssignmentsRead && o == org.ScopeAssignments || s == org.ScopeWebhooksRead && o == org.ScopeWebhooks
		})
		with, _ := madeKey(t, e, "north", map[string]any{"scopes": []org.Scope{s}})
		without, _ := madeKey(t, e, "north", map[string]any{"access": "scoped", "scopes": others})
		clients[string(s)] = [2]*apitest.Client{e.Partner(with), e.Partner(without)}
	}
	send := func(c *apitest.Client, o operation) *apitest.Answer {
		path := strings.TrimPrefix(strings.NewReplacer("{id}", "1", "{delivery}", "1").Replace(o.path), "/api/v1/")
		switch o.method {
		case http.MethodGet, http.MethodDelete:
			return c.Do(t, o.method, path, nil)
		}
		return c.Do(t, o.method, path, `{}`)
	}
	for _, o := range operations(t) {
		if o.public {
			continue
		}
		if strings.HasPrefix(o.path, "/api/v1/sandbox/") { // reading it is open to any key of a sandbox
			status, code := http.StatusForbidden, "missing_scope"
			if o.method == http.MethodGet {
				status, code = http.StatusNotFound, "not_a_sandbox"
			}
			for _, c := range clients {
				send(c[0].Freely(), o).WantFault(t, status, code, "")
			}
			continue
		}
		if o.scope == "" {
			for _, c := range clients {
				send(c[0], o).Want(t, http.StatusOK)
			}
			continue
		}
		c, known := clients[o.scope]
		if !check.True(t, "the scope exists", known, "%+v", o) {
			continue
		}
		a := send(c[1], o)
		a.WantFault(t, http.StatusForbidden, "missing_scope", "")
		check.Contains(t, "the refusal", string(a.Body), "lacks the scope "+o.scope+";", "%+v", o)
		if open := send(c[0], o); open.Status == http.StatusForbidden {
			check.Lacks(t, "an answer with the scope", string(open.Body), "scope", "%+v", o)
		}
	}
}

// A scope that changes something includes the one that reads it.
func TestChangingIncludesReading(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	for scope, list := range map[string]string{"assignments": "assignments/", "webhooks": "webhook-endpoints/"} {
		text, _ := madeKey(t, e, "north", map[string]any{"scopes": []string{scope}})
		e.Partner(text).Get(t, list).Want(t, http.StatusOK)
		e.Partner(text).Get(t, "results/").WantFault(t, http.StatusForbidden, "missing_scope", "")
	}
}

// The answer that another key of the organization was given is not replayed to a key without the scope.
func TestAStoredAnswerNeedsTheScope(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	body := `{"email": "asha@north-institute.org", "first_name": "Asha"}`
	north.Full.With(keyHeader, "order-7").Post(t, provisionPath, body).Want(t, http.StatusCreated)
	text, _ := madeKey(t, e, "north", map[string]any{"scopes": []string{"results:read"}})
	e.Partner(text).With(keyHeader, "order-7").Post(t, provisionPath, body).WantFault(t, http.StatusForbidden, "missing_scope", "")
}

// TestAKeyReachesWhatItsScopesName goes by the document.
func TestEveryRouteIsInTheDocument(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	documented := map[string]bool{}
	for _, o := range operations(t) {
		documented[o.method+" "+o.path] = true
	}
	err := chi.Walk(e.Routes, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		path, partner := strings.CutPrefix(route, "/api/v1/")
		if partner && !strings.HasPrefix(path, "openapi") && !strings.HasPrefix(path, "docs") && method != http.MethodOptions {
			check.True(t, "the route is documented, ", documented[method+" "+strings.TrimSuffix(route, "/")+"/"], "%s %s", method, route)
		}
		return nil
	})
	check.NoError(t, err, "the routes")
}

// An address that the key is not for, and a time after its end. Reference: conventions#authentication.
func TestAKeysNetworksAndEnd(t *testing.T) {
	t.Parallel()
	e := apitest.New(t, func(d *server.Deps) { d.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	e.Organization(t, "north")
	text, _ := madeKey(t, e, "north", map[string]any{"access": "full", "networks": []string{"203.0.113.0/28", "2001:db8::7"},
		"expires_at": e.Now().Add(time.Hour).Format(time.RFC3339)})
	c := e.Partner(text)
	for from, open := range map[string]bool{"203.0.113.15": true, "203.0.113.16": false, "2001:db8::7": true, "2001:db8::8": false, "::ffff:203.0.113.1": true,
		"198.51.100.1, 203.0.113.1": true, "203.0.113.1, 198.51.100.1": false, "unknown": false, "": false} {
		a := c.With("X-Forwarded-For", from).Get(t, "ping/")
		if open {
			a.Want(t, http.StatusOK)
		} else {
			a.WantFault(t, http.StatusForbidden, "network_not_allowed", "")
		}
	}
	e.Advance(time.Hour - time.Second)
	c.With("X-Forwarded-For", "203.0.113.1").Get(t, "ping/").Want(t, http.StatusOK)
	e.Advance(time.Second)
	c.With("X-Forwarded-For", "203.0.113.1").Get(t, "ping/").WantFault(t, http.StatusUnauthorized, "expired_api_key", "")
}

func TestWhenAKeyWasLastUsed(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	text, key := madeKey(t, e, "north", map[string]any{"access": "full"})
	type use struct {
		On   string `json:"on"`
		From string `json:"from"`
	}
	last := func() *use {
		t.Helper()
		if err := e.Usage.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		var list struct {
			Keys []struct {
				ID       int64 `json:"id"`
				LastUsed *use  `json:"last_used"`
			} `json:"api_keys"`
		}
		e.Platform.Get(t, "organizations/north/api-keys").Want(t, http.StatusOK).Into(t, &list)
		for _, k := range list.Keys {
			if k.ID == key {
				return k.LastUsed
			}
		}
		t.Fatal("the key is not listed")
		return nil
	}
	check.True(t, "a new key was not used", last() == nil, "%+v", last())
	writes := func() (n int64) {
		t.Helper()
		// A row's xmin is that of the transaction that wrote it last.
		if err := e.DB.QueryRow(t.Context(), `SELECT xmin::text::bigint FROM api_keys WHERE id = $1`, key).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for day, want := range []string{"2026-11-21", "2026-11-22"} {
		e.Partner(text).Get(t, "ping/").Want(t, http.StatusOK)
		if got := last(); check.True(t, "it is noted", got != nil, "day %d", day) {
			check.Equal(t, "the day", got.On, want, "day %d", day)
			check.Equal(t, "the address", got.From, "127.0.0.1", "day %d", day)
		}
		before := writes()
		e.Partner(text).Get(t, "ping/").Want(t, http.StatusOK)
		last()
		check.Equal(t, "the row's last write", writes(), before, "a second use on day %d", day)
		e.Advance(24 * time.Hour)
	}
}

func TestKeysThatCannotBeMade(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	for body, want := range map[string][2]string{
		`{"name": "x"}`:                                                         {"missing", "access"},
		`{"name": "x", "access": "scoped"}`:                                     {"missing", "scopes"},
		`{"name": "x", "scopes": []}`:                                           {"missing", "scopes"},
		`{"name": "x", "scopes": ["results"]}`:                                  {"not_a_choice", "scopes"},
		`{"name": "x", "access": "full", "scopes": ["roster"]}`:                 {"invalid", "scopes"},
		`{"name": "x", "access": "full", "networks": ["10.0.0.1/8"]}`:           {"not_a_network", "networks"},
		`{"name": "x", "access": "full", "networks": ["0.0.0.0/0"]}`:            {"not_a_network", "networks"},
		`{"name": "x", "access": "full", "expires_at": "2026-11-21T10:00:00Z"}`: {"out_of_range", "expires_at"},
		`{"name": "x", "access": "full", "expires_at": "tomorrow"}`:             {"not_a_timestamp", "expires_at"},
	} {
		e.Platform.Post(t, "organizations/north/api-keys", body).WantFault(t, http.StatusBadRequest, want[0], want[1])
	}
}
