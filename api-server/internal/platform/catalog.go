package platform

import (
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

type itemBody struct {
	Status       string          `json:"status"`
	ItemID       id.Item         `json:"item_id"`
	Organization *string         `json:"organization"` // null: everyone's
	Kind         catalog.Kind    `json:"kind"`
	Code         string          `json:"code"`
	Title        string          `json:"title"`
	Type         string          `json:"type"`
	Scope        string          `json:"scope"`
	MaxScore     decimal.Number  `json:"max_score"`
	Difficulty   *decimal.Number `json:"difficulty"`
	Starter      bool            `json:"starter"`
	Retake       bool            `json:"retake"`
	Active       bool            `json:"active"`
	LaunchURL    string          `json:"launch_url"` // "": none
}

// putSharedTest makes a test that is everyone's.
func (s *Server) putSharedTest(w http.ResponseWriter, r *http.Request) error {
	return s.putItem(w, r, catalog.Test)
}

// putOwnItem makes an item of one organization.
func (s *Server) putOwnItem(kind catalog.Kind) edge.Handler {
	return func(w http.ResponseWriter, r *http.Request) error { return s.putItem(w, r, kind) }
}

func (s *Server) putItem(w http.ResponseWriter, r *http.Request, kind catalog.Kind) error {
	patch, err := readItem(w, r)
	if err != nil {
		return err
	}
	var owner id.Organization
	var slug *string
	if edge.Param(r, "slug") != "" {
		o, err := s.organization(r)
		if err != nil {
			return err
		}
		owner, slug = o.ID, &o.Slug
	}
	key := catalog.Key{Kind: kind, Code: edge.Param(r, "code")}
	i, created, err := s.Plans.PutItem(r.Context(), audit.Platform, owner, key, patch)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return edge.JSON(w, status, itemBody{"ok", i.ID, slug, i.Kind, i.Code, i.Title, i.Type, i.Scope, i.MaxScore, i.Difficulty, i.Starter, i.Retake, i.Active, i.LaunchURL})
}

func readItem(w http.ResponseWriter, r *http.Request) (catalog.Patch, error) {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return catalog.Patch{}, err
	}
	p := catalog.Patch{
		Title:      b.Text("title", 300),
		Type:       b.Text("type", 100),
		Scope:      b.Text("scope", 100),
		MaxScore:   b.Number("max_score"),
		Difficulty: b.Number("difficulty"),
		Starter:    b.Bool("starter"),
		Retake:     b.Bool("retake"),
		Active:     b.Bool("active"),
		LaunchURL:  b.Text("launch_url", 2000),
	}
	if none := ""; b.Cleared("launch_url") {
		p.LaunchURL = &none
	}
	return p, b.Err()
}
