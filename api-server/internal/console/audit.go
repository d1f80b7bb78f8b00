package console

import (
	"net/http"
	"strconv"

	"github.com/registrar-dev/registrar/internal/domain/org"
)

type auditPage struct {
	frame
	Entries []org.AuditEntry
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
	entries, err := org.AuditEntries(r.Context(), s.DB, f.Here.Organization, before)
	if err != nil {
		return err
	}
	p := auditPage{frame: f, Entries: entries}
	if len(entries) == org.AuditPage {
		p.Older = entries[len(entries)-1].ID
	}
	return show(w, http.StatusOK, "audit.html", p)
}

func formatID[T ~int64](id T) string { return strconv.FormatInt(int64(id), 10) }
