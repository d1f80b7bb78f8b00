package rest

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// scopes says what each route needs (reference: conventions#scopes). A route that is not here is closed to
// keys with scopes.
var scopes = map[string]org.Scope{
	"GET /ping":                      "",
	"GET /organization":              "",
	"GET /courses":                   org.ScopeCatalogRead,
	"GET /catalog":                   org.ScopeCatalogRead,
	"POST /provision/student":        org.ScopeProvision,
	"POST /enrollments/{id}/end":     org.ScopeProvision,
	"POST /enrollments/{id}/suspend": org.ScopeProvision,
	"POST /enrollments/{id}/resume":  org.ScopeProvision,
	"GET /students":                  org.ScopeStudentsRead,
	"POST /roster/import":            org.ScopeRoster,
	"GET /activity/daily":            org.ScopeReportsRead,
	"GET /progress/daily":            org.ScopeReportsRead,
	"POST /assignments":              org.ScopeAssignments,
	"DELETE /assignments/{id}":       org.ScopeAssignments,
	"GET /assignments":               org.ScopeAssignmentsRead,
	"GET /results":                   org.ScopeResultsRead,
	"GET /events":                    org.ScopeEventsRead,
	"GET /explain":                   org.ScopeExplainRead,
	"GET /sandbox":                   "",
	"GET /sandbox/mails":             "",

	"GET /webhook-endpoints":                                    org.ScopeWebhooksRead,
	"POST /webhook-endpoints":                                   org.ScopeWebhooks,
	"GET /webhook-endpoints/{id}":                               org.ScopeWebhooksRead,
	"PATCH /webhook-endpoints/{id}":                             org.ScopeWebhooks,
	"DELETE /webhook-endpoints/{id}":                            org.ScopeWebhooks,
	"POST /webhook-endpoints/{id}/rotate-secret":                org.ScopeWebhooks,
	"POST /webhook-endpoints/{id}/send-test":                    org.ScopeWebhooks,
	"POST /webhook-endpoints/{id}/turn-on":                      org.ScopeWebhooks,
	"GET /webhook-endpoints/{id}/deliveries":                    org.ScopeWebhooksRead,
	"GET /webhook-endpoints/{id}/deliveries/{delivery}":         org.ScopeWebhooksRead,
	"POST /webhook-endpoints/{id}/deliveries/{delivery}/resend": org.ScopeWebhooks,
	"POST /webhook-endpoints/{id}/recover":                      org.ScopeWebhooks,
	"GET /webhook-endpoints/{id}/recoveries":                    org.ScopeWebhooksRead,
}

// usable refuses a key whose time is over, or that is used from elsewhere than it may be.
func usable(k org.Key, now time.Time, from netip.Addr) error {
	switch {
	case k.Expired(now):
		return errExpired
	case !k.WorksFrom(from):
		return errNetwork
	}
	return nil
}

// reaches is Forbidden for what the key may not call.
func reaches(k org.Key, r *http.Request) error {
	if k.Access == org.Full || k.Access == org.ReadOnly && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		return nil
	}
	if k.Access != org.Scoped {
		return errReadOnly
	}
	pattern := strings.TrimPrefix(chi.RouteContext(r.Context()).RoutePattern(), "/api/v1")
	need, known := scopes[strings.Replace(r.Method, http.MethodHead, http.MethodGet, 1)+" "+pattern]
	if !known {
		return fault.New(fault.Forbidden, "missing_scope", "keys with scopes cannot call this; use a key with full access")
	}
	if !k.May(need) {
		return fault.New(fault.Forbidden, "missing_scope", "this API key lacks the scope %s; use a key that has it", need)
	}
	return nil
}

// refusedKey counts a key that does not work for the audit log, by its first characters.
func (s *Server) refusedKey(r *http.Request, err error) {
	if fault.Has(err, "invalid_api_key") {
		s.Refusals.Note(audit.Refusal{Actor: audit.Unknown, Action: "refused API key", Target: org.PrefixOf(keyOf(r)), Address: s.Proxies.Client(r)})
	}
}

// refusedCall counts a call that the key may not make, for the audit log of its organization.
func (s *Server) refusedCall(r *http.Request, p org.Principal, err error) {
	var f *fault.Error
	if errors.As(err, &f) {
		s.Refusals.Note(audit.Refusal{Organization: p.Organization.ID, Actor: p.Actor(), Action: "refused API call", Target: f.Code, Address: s.Proxies.Client(r)})
	}
}
