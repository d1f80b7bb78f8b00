// Package rest is the partner API: what an organization's own systems call with an API
// key. One file a noun. The document that openapi serves describes every call, and docs/reference every rule.
package rest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/idempotency"
	"github.com/registrar-dev/registrar/api-server/internal/limit"
	"github.com/registrar-dev/registrar/api-server/internal/sandboxes"
	"github.com/registrar-dev/registrar/api-server/internal/upload"
	"github.com/registrar-dev/registrar/api-server/internal/webhooks"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/assign"
	"github.com/registrar-dev/registrar/internal/flow/enrollment"
	"github.com/registrar-dev/registrar/internal/flow/explain"
	"github.com/registrar-dev/registrar/internal/flow/provision"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/flow/work"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/page"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/replay"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

// Streams says which requests' bodies are read as they come (edge.Options).
func Streams(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.TrimSuffix(r.URL.Path, "/") == "/api/v1/roster/import"
}

// Server holds what the handlers need.
type Server struct {
	DB    *pg.DB
	Reads *pg.Reads // of what only reads; running
	Clock clock.Clock
	Zone  *time.Location // the platform's: decides today
	Keys  *org.Keyring
	Usage *org.Usage // of keys

	Proxies  limit.Proxies // our own
	Refusals *audit.Refusals

	Provisioning *provision.Service
	Assignments  *assign.Service
	Enrollments  *enrollment.Service
	Plans        *testplan.Service
	Explains     *explain.Service
	Webhooks     webhook.Service
	Cursors      *page.Cursors
	Rosters      *wake.Watch // running

	Box    *seal.Box
	Limits *limit.Limiter
	Rate   Rate // of each key
	Places *Shares

	PublicURL string // base of links, without a slash at its end

	SafeExamBrowser bool // the site's option

	Sandboxes *sandboxes.Pool // nil: there are none

	inside *sandboxes.Open // the sandbox whose Server this is; nil: of none
	work   *work.Service   // of students in it
}

// Routes registers everything that needs an API key, below /api/v1.
func (s *Server) Routes(r chi.Router) {
	r.Use(edge.Compress, s.authenticate)
	s.routes(r)
}

// routes registers the same for requests whose principal is known.
func (s *Server) routes(r chi.Router) {
	repeats := s.Clock
	if s.inside != nil { // a repeat comes soon in real time, however far its first request moved the clock
		repeats = s.Sandboxes.Service.Clock
	}
	service := &idempotency.Middleware{DB: s.DB, Clock: repeats, Box: s.Box, Bounds: replay.Bounds{Answers: 100_000, Bytes: 128 << 20},
		Organization: func(r *http.Request) id.Organization { return principal(r.Context()).Organization.ID }}
	r.With(s.enter(s.Places.imports, upload.Drain), service.Middleware, edge.CleanQuery).Post("/roster/import", edge.Handle(s.importRoster))
	r.With(s.enter(s.Places.requests, func(*http.Request) {}), edge.CleanQuery).Post(wipePath, s.inSandbox(s.wipeSandbox)) // with what it answered before
	r = r.With(s.enter(s.Places.requests, func(*http.Request) {}), service.Middleware, edge.CleanQuery)
	r.Get("/ping", edge.Handle(s.ping))
	r.Get("/organization", edge.Handle(s.showOrganization))
	r.Get("/courses", edge.Handle(s.listCourses))
	r.Post("/provision/student", edge.Handle(s.provisionStudent))
	r.Get("/students", edge.Handle(s.students))
	r.Get("/catalog", edge.Handle(s.listCatalog))
	r.Get("/activity/daily", edge.Handle(s.listActivity))
	r.Get("/progress/daily", edge.Handle(s.listProgress))
	r.Post("/assignments", edge.Handle(s.assignWork))
	r.Get("/assignments", edge.Handle(s.listAssignments))
	r.Delete("/assignments/{id}", edge.Handle(s.withdrawWork))
	r.Post("/enrollments/{id}/end", edge.Handle(s.endAccess))
	r.Post("/enrollments/{id}/suspend", edge.Handle(s.suspendAccess))
	r.Post("/enrollments/{id}/resume", edge.Handle(s.resumeAccess))
	r.Get("/results", edge.Handle(s.listResults))
	r.Get("/events", edge.Handle(s.listEvents))
	r.Get("/explain", edge.Handle(s.explain))
	r.Get("/sandbox", s.inSandbox(s.showSandbox))
	r.Post("/sandbox/advance", s.inSandbox(s.advanceSandbox))
	r.Post("/sandbox/act", s.inSandbox(s.actInSandbox))
	r.Get("/sandbox/mails", s.inSandbox(s.listSandboxMails))
	(&webhooks.Server{Endpoints: s.Webhooks, Clock: s.Clock, Cursors: s.Cursors, Reads: s.Reads, Caller: caller}).Routes(r, "")
}

// caller is the key, which calls about its organization.
func caller(r *http.Request) (webhooks.Caller, error) {
	p := principal(r.Context())
	return webhooks.Caller{Organization: p.Organization.ID, Actor: p.Actor()}, nil
}

// today is the platform's day.
func (s *Server) today() clock.Date { return clock.DateIn(s.Clock(), s.Zone) }

type principalKey struct{}

// principal is whom the request speaks for; authenticate has put it there.
func principal(ctx context.Context) org.Principal {
	p, ok := ctx.Value(principalKey{}).(org.Principal)
	if !ok {
		panic("rest: a route without authenticate")
	}
	return p
}

// authenticate finds the principal, and refuses a read-only key whatever writes.
func (s *Server) authenticate(next http.Handler) http.Handler {
	return edge.Handle(func(w http.ResponseWriter, r *http.Request) error {
		p, err := s.identify(r)
		var often *org.TooManyGuesses
		if errors.As(err, &often) {
			edge.RetryAfter(w, often.RetryAfter)
			edge.Refuse(w, r, http.StatusTooManyRequests, "rate_limited", often.Error())
			return nil
		}
		if err != nil {
			s.refusedKey(r, err)
			return err
		}
		edge.Annotate(r.Context(), "organization", p.Organization.Slug, "api_key", int64(p.Key.ID))
		from := s.Proxies.Address(r)
		if err := usable(p.Key, s.Clock(), from); err != nil {
			s.refusedCall(r, p, err)
			return err
		}
		s.Usage.Note(p, s.today(), from)
		if !s.mayCall(w, r, p.Key.ID) {
			return nil
		}
		if err := reaches(p.Key, r); err != nil {
			s.refusedCall(r, p, err)
			return err
		}
		if p.Key.Sandbox { // which never comes to this Server's own routes
			return s.answerInSandbox(w, r, p)
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, p)))
		return nil
	})
}

// enter lets in as much of an organization at once as leaves room for others. refused is called for
// the rest.
func (*Server) enter(shares *limit.Shares, refused func(*http.Request)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return edge.Handle(func(w http.ResponseWriter, r *http.Request) error {
			leave, err := edge.Enter(r, shares, principal(r.Context()).Organization.ID)
			if err != nil {
				refused(r)
				return err
			}
			defer leave()
			next.ServeHTTP(w, r)
			return nil
		})
	}
}

func (s *Server) identify(r *http.Request) (org.Principal, error) {
	key := keyOf(r)
	if key == "" {
		return org.Principal{}, errNoKey
	}
	return s.Keys.Principal(r.Context(), key, s.Proxies.Client(r))
}

var (
	errNoKey = fault.New(fault.Unauthenticated, "missing_api_key",
		"the API key is missing; send it in the header X-API-Key, or as Authorization: Bearer")
	errExpired = fault.New(fault.Unauthenticated, "expired_api_key",
		"the API key has expired; an owner or admin of the organization creates another in the console")
	errNetwork = fault.New(fault.Forbidden, "network_not_allowed",
		"this API key does not work from the address that the request came from; call from one of the key's networks")
	errReadOnly = fault.New(fault.Forbidden, "read_only_key",
		"this API key is read-only; use a key with full access for requests that change something")
)

// keyOf reads the key from the request; X-API-Key wins.
func keyOf(r *http.Request) string {
	if key := strings.TrimSpace(r.Header.Get("X-API-Key")); key != "" {
		return key
	}
	return edge.Bearer(r)
}
