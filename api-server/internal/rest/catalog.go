package rest

import (
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/flow/wire"
)

type catalogBody struct {
	Status string             `json:"status"`
	Count  int                `json:"count"`
	Items  []wire.CatalogItem `json:"items"`
}

func (s *Server) listCatalog(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	kinds := q.kinds()
	if err := q.Err(); err != nil {
		return err
	}
	if kinds == nil {
		kinds = catalog.Kinds()
	}
	items, err := catalog.List(r.Context(), s.DB, principal(r.Context()).Organization.ID, kinds)
	if err != nil {
		return err
	}
	body := catalogBody{Status: "ok", Count: len(items), Items: make([]wire.CatalogItem, len(items))}
	for i, item := range items {
		body.Items[i] = wire.NewCatalogItem(item, s.PublicURL)
	}
	return edge.Tagged(w, r, body)
}
