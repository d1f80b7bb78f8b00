package console

import (
	"net/http"
	"strconv"

	"github.com/registrar-dev/registrar/api-server/internal/auditlog"
	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

type auditPage struct {
	frame
	Entries []audit.Entry
	Older   int64 // where the next page begins; 0: there is none
}

func (s *Server) showAudit(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "audit-log", "Audit log")
	if err != nil {
		return err
	}
	before, err := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64)
	if err != nil || before < 0 {
		before = 0 // the latest
	}
	p := auditPage{frame: f}
	err = s.Reads.Do(r.Context(), func(db *pg.DB) (err error) {
		p.Entries, err = audit.List(r.Context(), db, f.Here.Organization, before)
		return err
	})
	if err != nil {
		return err
	}
	if n := len(p.Entries); n == audit.PageSize {
		p.Older = p.Entries[n-1].ID
	}
	return show(w, http.StatusOK, "audit.html", p)
}

// downloadAudit gives the days that the visitor chose as JSON lines. The file of a longer time goes on behind its
// last id.
func (s *Server) downloadAudit(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "audit-log", "Audit log")
	if err != nil {
		return err
	}
	q := edge.ReadQuery(r)
	span := auditlog.Span(q, s.Clock(), s.Zone)
	if err := q.Err(); err != nil {
		return err
	}
	span.Organization = f.Here.Organization
	w.Header().Set("Content-Disposition", `attachment; filename="audit-log-`+f.Here.Slug+`.jsonl"`)
	return auditlog.Write(w, r, s.DB, span, auditlog.Most, s.Clock())
}

// actorKind says in words what sort of actor it is; "" for people of the staff, whose name says
// enough.
func actorKind(k audit.Kind) string {
	switch k {
	case audit.PartnerKey:
		return "API key"
	case audit.PlatformKey:
		return "platform"
	case audit.Operator:
		return "Kubernetes"
	case audit.Schedule:
		return "automatic"
	case audit.Student:
		return "student"
	case audit.Staff, audit.Nobody:
	}
	return ""
}

func formatID[T ~int64](id T) string { return strconv.FormatInt(int64(id), 10) }
