package platform

import (
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// eraseWebhookData removes a person from the stored payloads.
func (s *Server) eraseWebhookData(w http.ResponseWriter, r *http.Request) error {
	user, err := edge.IDParam[id.User](r, "user_id")
	if err != nil {
		return err
	}
	n, err := journal.Erase(r.Context(), s.DB, audit.Platform, user, s.Clock())
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, struct {
		Status string  `json:"status"`
		User   id.User `json:"user_id"`
		Events int     `json:"erased_events"`
	}{"ok", user, n})
}
