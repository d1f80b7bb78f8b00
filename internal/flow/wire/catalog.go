package wire

import (
	"fmt"

	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// CatalogItem is one item on the wire (reference: catalog#catalog-items).
type CatalogItem struct {
	Kind      catalog.Kind   `json:"kind"`
	ItemID    id.Item        `json:"item_id"`
	Title     string         `json:"title"`
	Type      string         `json:"type"`
	TypeLabel string         `json:"type_label"`
	MaxScore  decimal.Number `json:"max_score"`
	LTILink   string         `json:"lti_link"`
}

// NewCatalogItem shows an item; publicURL is the base of its LTI link.
func NewCatalogItem(i catalog.Item, publicURL string) CatalogItem {
	return CatalogItem{Kind: i.Kind, ItemID: i.ID, Title: i.Title, Type: i.Type, TypeLabel: catalog.TypeLabel(i.Type),
		MaxScore: i.MaxScore, LTILink: fmt.Sprintf("%s/lti/launch/%s/%d", publicURL, i.Kind, i.ID)}
}
