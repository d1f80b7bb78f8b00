package apicheck_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/apicheck"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

const document = `
openapi: 3.1.0
info: {title: Things, version: '1'}
paths:
  /things/:
    post:
      requestBody:
        required: true
        content:
          application/json:
            schema:
              type: object
              required: [name]
              properties: {name: {type: string, x-also-accepts: [integer]}}
      responses:
        '201':
          description: Made
          headers: {X-Request-Id: {required: true, schema: {type: string}}}
          content: {application/json: {schema: {$ref: '#/components/schemas/MadeThing'}}}
        '409': {$ref: '#/components/responses/There'}
        '400': {description: Wrong, content: {application/json: {schema: {type: object, properties: {error: {type: string}}}}}}
  /things/{id}:
    get:
      parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
      responses:
        '200': {description: One, content: {application/json: {schema: {$ref: '#/components/schemas/MadeThing'}}}}
  /news/:
    get:
      responses:
        '200': {description: All, content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/News'}}}}}
components:
  responses:
    There: {description: Is there, content: {application/json: {schema: {type: object, required: [since], properties: {since: {type: string, format: date}}}}}}
  schemas:
    News:
      type: object
      required: [kind, place]
      properties: {kind: {type: string}, place: {type: integer}}
      oneOf: [{$ref: '#/components/schemas/Birth'}, {$ref: '#/components/schemas/Death'}]
      discriminator: {propertyName: kind, mapping: {birth: '#/components/schemas/Birth', death: '#/components/schemas/Death'}}
    Birth: {type: object, required: [name], properties: {kind: {const: birth}, name: {type: string}}}
    Death: {type: object, required: [name, of], properties: {kind: {const: death}, name: {type: string}, of: {type: object, properties: {cause: {type: string}}}}}
    Thing:
      type: object
      required: [name, end]
      properties:
        name: {type: string}
        end: {oneOf: [{type: string, pattern: '^[0-9]{4}$'}, {type: 'null'}]}
    MadeThing:
      allOf: [{$ref: '#/components/schemas/Thing'}]
      required: [status]
      properties: {status: {const: ok}}
`

// exchange sends a request to a server that gives a fixed answer.
func exchange(t *testing.T, c *apicheck.Checker, method, path, sent string, status int, received string) error {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got, _ := io.ReadAll(r.Body); string(got) != sent {
			t.Errorf("the server got %q, not %q", got, sent)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Request-Id", "1")
		if strings.Contains(path, "noid") {
			w.Header().Del("X-Request-Id")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, received)
	}))
	defer s.Close()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	client := http.Client{Transport: c.Transport(nil)}
	res, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	check.NoError(t, err, "reading the answer")
	if method != http.MethodHead {
		check.Equal(t, "the answer that the client got", string(got), received, "%s %s", method, path)
	}
	return nil
}

func TestExchanges(t *testing.T) {
	const made = `{"status": "ok", "name": "x", "end": null}`
	for _, c := range []struct {
		name, method, path, sent string
		status                   int
		received, mismatch       string
	}{
		{"as documented", "POST", "/things/", `{"name": "x"}`, 201, made, ""},
		{"a type that is accepted too", "POST", "/things/", `{"name": 7}`, 201, made, ""},
		{"without the slash", "POST", "/things", `{"name": "x"}`, 201, made, ""},
		{"with a slash too many", "GET", "/things/7/", ``, 200, made, ""},
		{"HEAD", "HEAD", "/things/7", ``, 200, ``, ""},
		{"undocumented field", "GET", "/things/7", ``, 200, `{"status": "ok", "name": "x", "end": null, "more": 1}`, "more"},
		{"missing field", "GET", "/things/7", ``, 200, `{"status": "ok", "name": "x"}`, "end"},
		{"other constant", "GET", "/things/7", ``, 200, `{"status": "fine", "name": "x", "end": null}`, "status"},
		{"wrong pattern", "GET", "/things/7", ``, 200, `{"status": "ok", "name": "x", "end": "26"}`, "end"},
		{"an answer of several calls", "POST", "/things/", `{"name": "x"}`, 409, `{"since": "2026-11-21"}`, ""},
		{"wrong format of an answer of several calls", "POST", "/things/", `{"name": "x"}`, 409, `{"since": "21.11."}`, "since"},
		{"no JSON", "POST", "/things/", `{"name": "x"}`, 409, `{"since"`, "EOF"},
		{"missing header", "POST", "/things/?noid", `{"name": "x"}`, 201, made, "X-Request-Id"},
		{"undocumented status", "GET", "/things/7", ``, 204, ``, "status is not supported"},
		{"one of several", "GET", "/news", ``, 200, `[{"kind": "birth", "name": "x", "place": 1}, {"kind": "death", "name": "x", "of": {"cause": "age"}, "place": 2}]`, ""},
		{"an undocumented field of one of several", "GET", "/news", ``, 200, `[{"kind": "birth", "name": "x", "place": 1, "more": 1}]`, "more"},
		{"an undocumented field in one of several", "GET", "/news", ``, 200, `[{"kind": "death", "name": "x", "of": {"more": 1}, "place": 2}]`, "more"},
		{"a field of another of several", "GET", "/news", ``, 200, `[{"kind": "birth", "name": "x", "of": {}, "place": 1}]`, "of"},
		{"undocumented method", "DELETE", "/things/7", ``, 200, made, "no such path"},
		{"undocumented route", "GET", "/other", ``, 200, made, "no such path"},
		{"no route, and the server says so", "GET", "/other", ``, 404, `{}`, ""},
		{"no method, and the server says so", "DELETE", "/things/7", ``, 405, `{}`, ""},
		{"wrong request that was taken", "POST", "/things/", `{"name": true}`, 201, made, "the request was taken"},
		{"wrong request that was refused", "POST", "/things/", `{"name": true}`, 400, `{"error": "name"}`, ""},
		{"wrong path parameter that was taken", "GET", "/things/x", ``, 200, made, "the request was taken"},
		{"a body where none belongs", "GET", "/things/7", `{}`, 200, made, "the request was taken"},
	} {
		t.Run(c.name, func(t *testing.T) {
			checker, err := apicheck.New([]byte(document))
			if err != nil {
				t.Fatal(err)
			}
			err = exchange(t, checker, c.method, c.path, c.sent, c.status, c.received)
			var mismatch *apicheck.Mismatch
			check.Equal(check.Now(t), "there is a mismatch", errors.As(err, &mismatch), c.mismatch != "", "%v", err)
			if c.mismatch != "" {
				check.Contains(t, "reason", mismatch.Reason, c.mismatch, "%v", err)
				check.Equal(t, "status", mismatch.Status, c.status, "%v", err)
			}
		})
	}
}

func TestOperations(t *testing.T) {
	checker, err := apicheck.New([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	if got, all := checker.Operations(), []string{"GET /news/", "GET /things/{id}", "POST /things/"}; !slices.Equal(got, all) {
		t.Fatalf("%q", got)
	}
}

func TestExamplesAreHeldAgainstTheDocument(t *testing.T) {
	schema := "application/json: {schema: {$ref: '#/components/schemas/MadeThing'}"
	for name, c := range map[string]struct{ example, says string }{
		"right":                 {`{status: ok, name: x, end: null}`, ""},
		"a missing field":       {`{status: ok, name: x}`, "end"},
		"an undocumented field": {`{status: ok, name: x, end: null, more: 1}`, "more"},
	} {
		err := apicheck.Valid([]byte(strings.ReplaceAll(document, schema, schema+", example: "+c.example)))
		if check.Equal(t, "it is valid", err == nil, c.says == "", "%s: %v", name, err) && err != nil {
			check.Contains(t, "the error", err.Error(), c.says, "%s", name)
		}
	}
}

func TestDocumentsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ old, new, says string }{
		"an older version": {"3.1.0", "3.0.3", "not 3.1"},
		"a broken $ref":    {"schemas/Thing'", "schemas/Nothing'", "Nothing"},
		"no YAML":          {"openapi: 3.1.0", "\t", ""},
	} {
		if _, err := apicheck.New([]byte(strings.Replace(document, c.old, c.new, 1))); check.True(t, "there is an error", err != nil, "%s: %v", name, err) {
			check.Contains(t, "the error", err.Error(), c.says, "%s: %v", name, err)
		}
	}
}
