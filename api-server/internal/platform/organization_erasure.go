package platform

import (
	"net/http"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/flow/organization"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// organizationErasureBody is how far the erasure of an organization is, and what it leaves.
type organizationErasureBody struct {
	Status       string             `json:"status"`
	Organization id.Organization    `json:"organization_id"`
	State        organization.State `json:"state"`
	ErasedAt     *clock.Timestamp   `json:"erased_at"`
	FinishedAt   *clock.Timestamp   `json:"finished_at"`
	Deleted      map[string]int64   `json:"deleted"`
	Left         map[string]int64   `json:"left"`
	Stays        staysBody          `json:"stays"`
}

type staysBody struct {
	SharedAccounts int64 `json:"shared_accounts"`
	AccountNumbers int64 `json:"account_numbers"`
	CatalogNumbers int64 `json:"catalog_numbers"`
}

func newOrganizationErasureBody(e organization.Erasure) organizationErasureBody {
	b := organizationErasureBody{Status: "ok", Organization: e.Organization, State: e.State(),
		ErasedAt: clock.Stamp(e.At, time.UTC), FinishedAt: clock.Stamp(e.Finished, time.UTC),
		Deleted: map[string]int64{}, Left: map[string]int64{}}
	for kind, n := range e.Deleted {
		switch kind {
		case organization.SharedAccounts:
			b.Stays.SharedAccounts = n
		case organization.Accounts:
			b.Stays.AccountNumbers = n
		case organization.CatalogItems:
			b.Stays.CatalogNumbers = n
		default:
			b.Deleted[kind] = n
		}
	}
	for kind, n := range e.Left {
		b.Left[kind] = n
	}
	return b
}

func (s *Server) eraseOrganization(w http.ResponseWriter, r *http.Request) error {
	e, err := s.Orgs.Erase(r.Context(), audit.Platform, edge.Param(r, "slug"))
	if err != nil {
		return err
	}
	s.Keys.Forget(e.Organization)
	return edge.JSON(w, http.StatusAccepted, newOrganizationErasureBody(e))
}

func (s *Server) showOrganizationErasure(w http.ResponseWriter, r *http.Request) error {
	which, err := edge.IDParam[id.Organization](r, "organization_id")
	if err != nil {
		return err
	}
	e, err := s.Orgs.Find(r.Context(), which)
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, newOrganizationErasureBody(e))
}
