package platform

import (
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/auditlog"
	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/org"
)

// exportAudit gives the audit log as JSON lines, by id.
func (s *Server) exportAudit(w http.ResponseWriter, r *http.Request) error {
	q := edge.ReadQuery(r)
	span := auditlog.Span(q, s.Clock(), s.Zone)
	limit, slug := q.Limit(auditlog.Most, auditlog.Usual), q.Text("organization")
	if err := q.Err(); err != nil {
		return err
	}
	if slug != "" {
		o, err := org.Find(r.Context(), s.DB, slug)
		if err != nil {
			return err
		}
		span.Organization = o.ID
	}
	return auditlog.Write(w, r, s.DB, span, limit, s.Clock())
}
