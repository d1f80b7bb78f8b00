// Package edge is where HTTP ends: what both APIs share of routing, requests, answers,
// faults, access logs and metrics.
//
// A handler returns its fault instead of writing it:
//
//	func (s *Server) showOrganization(w http.ResponseWriter, r *http.Request) error {
//		...
//		return edge.JSON(w, http.StatusOK, body)
//	}
//
//	r.Get("/organization", edge.Handle(s.showOrganization))
//
// Routes are registered without their trailing slash and match with and without it.
package edge

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/registrar-dev/registrar/api-server/internal/limit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// Options are what a router is made of.
type Options struct {
	API      string // names the API in metrics and logs: "partner"
	Metrics  *Metrics
	Log      *slog.Logger
	InFlight int // requests at once of each area, above which callers are asked to come back; at least 1
	Areas    []Area

	Bodies  *limit.Budget // memory of bodies; nil: there is enough
	MaxBody int           // the largest body in MiB that a route takes, where that is more than 1
	Proxies limit.Proxies // our own, in front of the router
	// Streams says of which requests the body is read by the handler as it comes (ArriveWithin). They take none of
	// the places: they have a limit of their own.
	Streams func(*http.Request) bool

	// Secret are beginnings of paths, in small letters and with a slash at their end, behind which
	// stands what nobody may read in a log.
	Secret []string

	// Page shows a browser a page for an error that no route's handler answers. It reports
	// false, and does nothing, where the caller is none; nil: no caller is one.
	Page func(http.ResponseWriter, *http.Request, error) bool

	HTTPS bool // callers come over https, and browsers shall come no other way for a year
}

// Area is a part of a router's paths that has places of its own, so that nobody who crowds another
// part takes them.
type Area struct {
	Name   string // in metrics
	Prefix string // of its paths; the first one that fits counts
}

// fail is writeFault, but for browsers.
func (o Options) fail(w http.ResponseWriter, r *http.Request, err error) {
	if o.Page == nil || !o.Page(w, r, err) {
		writeFault(w, r, err)
	}
}

func strictTransport(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		next.ServeHTTP(w, r)
	})
}

// NewRouter makes a router on which every request has an id, an access log line,
// metrics and, once its body has arrived, a place among those in flight; whatever has no route gets a JSON error, and a
// browser a page.
func NewRouter(o Options) *chi.Mux {
	if o.Bodies == nil {
		o.Bodies = &limit.Budget{All: math.MaxInt64, Each: math.MaxInt64}
	}
	r := chi.NewRouter()
	if o.HTTPS {
		r.Use(strictTransport)
	}
	r.Use(withRequestID, observe(o), recoverPanic(o), receive(o), withDeadline, limitInFlight(o), cleanPath(o), trimSlash, middleware.GetHead)
	r.NotFound(func(w http.ResponseWriter, req *http.Request) { o.fail(w, req, o.errNoRoute(req)) })
	r.MethodNotAllowed(func(w http.ResponseWriter, req *http.Request) {
		if o.Page == nil || !o.Page(w, req, o.errNoRoute(req)) { // to a browser, what is only posted to is no page
			noMethod(r, w, req)
		}
	})
	return r
}

// Handler answers a request, or returns why it does not.
type Handler func(w http.ResponseWriter, r *http.Request) error

// Handle makes an http.HandlerFunc of h: a returned error becomes the answer.
func Handle(h Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			writeFault(w, r, err)
		}
	}
}

// Param is a path parameter of the route, without percent-encoding.
func Param(r *http.Request, name string) string {
	raw := chi.URLParam(r, name)
	if text, err := url.PathUnescape(raw); err == nil {
		return text
	}
	return raw
}

// cleanPath answers 404 where the path, decoded, is no text: nothing can have such a name,
// and PostgreSQL takes no such parameter.
func cleanPath(o Options) func(http.Handler) http.Handler {
	stray := fault.New(fault.NotFound, "no_such_route", "there is nothing at this path: it is not valid UTF-8 or has the character NUL in it")
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !storable(r.URL.Path) {
				o.fail(w, r, stray)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// CleanQuery answers 400 where a query parameter is no text that PostgreSQL could take.
// It goes behind the check of the key.
func CleanQuery(next http.Handler) http.Handler {
	return Handle(func(w http.ResponseWriter, r *http.Request) error {
		for name, values := range r.URL.Query() {
			if !storable(name) || !storable(strings.Join(values, "")) {
				name = strings.Trim(strings.ToValidUTF8(name, "?"), "\x00")
				return fault.Field(name, "invalid_character", "%s: it is not valid UTF-8 or has the character NUL in it; send plain text", name)
			}
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

func storable(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// trimSlash lets every route match with and without a trailing slash, and makes chi
// route by the encoded path, so that an encoded slash stays inside its parameter.
func trimSlash(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chi.RouteContext(r.Context()).RoutePath = routePath(r)
		next.ServeHTTP(w, r)
	})
}

// Reroute is the request for another router with the same routes, which it has not been through.
func Reroute(r *http.Request) *http.Request {
	fresh := chi.NewRouteContext()
	fresh.RoutePath, fresh.RouteMethod = routePath(r), chi.RouteContext(r.Context()).RouteMethod
	return r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, fresh))
}

func routePath(r *http.Request) string {
	path := r.URL.EscapedPath()
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	return path
}

func (o Options) errNoRoute(r *http.Request) error {
	return fault.New(fault.NotFound, "no_such_route", "there is nothing at %s; the API's paths are listed in its openapi.yaml", o.pathOf(r))
}

// noMethod answers 405, which is no fault of a rule and so has no Kind.
func noMethod(routes chi.Routes, w http.ResponseWriter, r *http.Request) {
	path := routePath(r) // in a sub-router the context's own path is a part only
	var allowed []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if routes.Match(chi.NewRouteContext(), m, path) {
			allowed = append(allowed, m)
		}
		if m == http.MethodGet && len(allowed) > 0 {
			allowed = append(allowed, http.MethodHead)
		}
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	_ = JSON(w, http.StatusMethodNotAllowed, errorBody{Status: "error", Code: "method_not_allowed",
		Error: r.Method + " is not possible here; use " + strings.Join(allowed, " or ")})
}

// Bearer is the token of the header Authorization, "" when there is none.
func Bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// IDParam is a numeric path parameter. What is no positive number names nothing: NotFound.
func IDParam[T ~int64](r *http.Request, name string) (T, error) {
	text := Param(r, name)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, fault.New(fault.NotFound, "not_found", "there is nothing with the id %q", text)
	}
	return T(n), nil
}
