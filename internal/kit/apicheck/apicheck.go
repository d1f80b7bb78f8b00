// Package apicheck holds HTTP exchanges against an OpenAPI 3.1 document, so that the
// document cannot drift from what a server does.
//
// Checker.Transport is an http.RoundTripper for a test's client. It fails an exchange
//
//   - whose route or method the document does not have, unless the answer is 404 or 405
//     (a trailing slash makes no difference, as in the server);
//   - whose status the document does not list for the route;
//   - whose answer does not match its schema, or has a field that the schema does not have;
//   - whose request the server took (2xx) though it does not match the document. Where a schema
//     names types in x-also-accepts, these match too.
package apicheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// Checker checks exchanges against one document.
type Checker struct {
	doc    *openapi3.T
	router routers.Router
	bodies *bodies
}

// JSON lines are compared as text: their document describes a line in words.
func init() {
	openapi3filter.RegisterBodyDecoder("application/jsonl", openapi3filter.RegisteredBodyDecoder("text/plain"))
}

// New reads a document in YAML or JSON. It has to be valid OpenAPI 3.1; whether its examples are, Valid
// says. Its servers do not count: paths begin at the root.
func New(document []byte) (*Checker, error) {
	doc, closed, err := load(document)
	if err != nil {
		return nil, err
	}
	router, err := legacy.NewRouter(doc, openapi3.DisableExamplesValidation())
	if err != nil {
		return nil, err
	}
	bodies, err := newBodies(closed)
	if err != nil {
		return nil, err
	}
	return &Checker{doc: doc, router: router, bodies: bodies}, nil
}

// Valid says what is wrong with a document. Its examples are held against it as it is, and as a server is
// held to it: without other fields. It takes seconds.
func Valid(document []byte) error {
	open, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		return fmt.Errorf("the OpenAPI document cannot be read: %w", err)
	}
	closed, _, err := load(document)
	if err != nil {
		return err
	}
	return errors.Join(open.Validate(context.Background()), closed.Validate(context.Background()))
}

// load reads a document as a server is held to it, and returns it as JSON too.
func load(document []byte) (*openapi3.T, []byte, error) {
	closed, err := strict(document)
	if err != nil {
		return nil, nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(closed)
	if err != nil {
		return nil, nil, fmt.Errorf("the OpenAPI document cannot be read: %w", err)
	}
	if !doc.IsOpenAPI31OrLater() {
		return nil, nil, fmt.Errorf("the document is OpenAPI %s, not 3.1", doc.OpenAPI)
	}
	doc.Servers = nil
	return doc, closed, nil
}

// Transport checks every exchange that next makes (nil: http.DefaultTransport). One that
// fails the check is an error of the round trip, of type *Mismatch.
func (c *Checker) Transport(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return transport{checker: c, next: next}
}

// Answers is Transport for requests that may be anything: a server may take more than
// the document promises, but has to answer as it says.
func (c *Checker) Answers(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return transport{checker: c, next: next, anyRequest: true}
}

// Mismatch is an exchange that is not as the document says.
type Mismatch struct {
	Method, Path string
	Status       int
	Reason       string
}

func (m *Mismatch) Error() string {
	return fmt.Sprintf("%s %s → %d is not as documented: %s", m.Method, m.Path, m.Status, m.Reason)
}

type transport struct {
	checker    *Checker
	next       http.RoundTripper
	anyRequest bool
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil {
		var err error
		if sent, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(sent))
	}
	res, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	received, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(received))
	if err := t.checker.check(r, sent, res, received, t.anyRequest); err != nil {
		return nil, err
	}
	return res, nil
}

// check checks one exchange whose bodies have been read; the error is a *Mismatch.
func (c *Checker) check(r *http.Request, sent []byte, res *http.Response, received []byte, anyRequest bool) error {
	mismatch := func(err error) error {
		return &Mismatch{r.Method, r.URL.Path, res.StatusCode, err.Error()}
	}
	route, params, err := c.route(r)
	if err != nil {
		if res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusMethodNotAllowed {
			return nil
		}
		return mismatch(err)
	}
	ctx := r.Context()
	request := r.Clone(ctx)
	request.Body = io.NopCloser(bytes.NewReader(sent))
	sentSchema, receivedSchema := sentSchema(route, r.Header), receivedSchema(route, res.StatusCode, res.Header)
	if len(sent) == 0 {
		sentSchema = ""
	}
	if r.Method == http.MethodHead {
		receivedSchema = ""
	}
	options := &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true, RejectWhenRequestBodyNotSpecified: true,
		SkipSettingDefaults: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
		ExcludeRequestBody: sentSchema != "", ExcludeResponseBody: receivedSchema != ""}
	input := &openapi3filter.RequestValidationInput{Request: request, PathParams: params, Route: route, Options: options}
	if res.StatusCode < 300 && !anyRequest {
		err := openapi3filter.ValidateRequest(ctx, input)
		if err == nil && sentSchema != "" {
			err = c.bodies.check(sentSchema, sent)
		}
		if err != nil {
			return mismatch(fmt.Errorf("the request was taken: %w", err))
		}
	}
	err = openapi3filter.ValidateResponse(ctx, &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: res.StatusCode, Header: res.Header,
		Body: io.NopCloser(bytes.NewReader(received)), Options: options,
	})
	if err == nil && receivedSchema != "" {
		err = c.bodies.check(receivedSchema, received)
	}
	if err != nil {
		return mismatch(fmt.Errorf("%w\nbody: %.2000s", err, received))
	}
	return nil
}

// route finds the operation, with the path's trailing slash as the document has it.
func (c *Checker) route(r *http.Request) (*routers.Route, map[string]string, error) {
	if !utf8.ValidString(r.URL.Path) || strings.Contains(r.URL.Path, "\x00") {
		return nil, nil, errors.New("the path is no text, so no path of the document")
	}
	// By the encoded path, as the server: an encoded slash stays inside its parameter.
	trimmed := strings.TrimSuffix(r.URL.EscapedPath(), "/")
	for _, path := range []string{trimmed + "/", trimmed} {
		request := r.Clone(r.Context())
		request.URL.Path, request.URL.RawPath = path, ""
		if r.Method == http.MethodHead {
			request.Method = http.MethodGet
		}
		route, params, err := c.router.FindRoute(request)
		if err == nil {
			for name, value := range params {
				if text, err := url.PathUnescape(value); err == nil {
					params[name] = text
				}
			}
			return route, params, nil
		}
	}
	return nil, nil, errors.New("the document has no such path and method")
}

// Operations lists every operation of the document, as "GET /api/v1/ping/".
func (c *Checker) Operations() []string {
	var all []string
	for path, item := range c.doc.Paths.Map() {
		for method := range item.Operations() {
			all = append(all, method+" "+path)
		}
	}
	slices.Sort(all)
	return all
}
