package pages

import (
	"context"
	"strings"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// brand is the institute that a page shows itself as; its Name is "" on pages of nobody's.
type brand struct {
	Name string
	Logo string // the address; "": there is none
	Slug string
}

func newBrand(b org.Brand) brand { return brand{b.Name, LogoPath(b.Organization, b.Logo), b.Slug} }

// brandOf is the organization's; 0 for none.
func (s *Server) brandOf(ctx context.Context, o id.Organization) (brand, error) {
	if o == 0 {
		return brand{}, nil
	}
	b, err := org.BrandOf(ctx, s.DB, o)
	readerOf(ctx).organization = b.Language
	return newBrand(b), err
}

// brandOfLink is that of the organization whose link it is.
func (s *Server) brandOfLink(ctx context.Context, token string) (brand, error) {
	o, err := student.LinkOrganization(ctx, s.DB, token)
	if err != nil {
		return brand{}, err
	}
	return s.brandOf(ctx, o)
}

// brandAt is that of the organization of the slug, or else of the one in whose console next is.
func (s *Server) brandAt(ctx context.Context, slug, next string) (brand, error) {
	if slug == "" {
		if path, found := strings.CutPrefix(next, fixture); found {
			slug, _, _ = strings.Cut(path, "/")
		}
	}
	if slug == "" {
		return brand{}, nil
	}
	b, err := org.BrandBySlug(ctx, s.DB, slug)
	readerOf(ctx).organization = b.Language
	return newBrand(b), err
}

// atField names the organization whose sign-in page somebody opened (wire.SignInURL).
const atField = "at"
