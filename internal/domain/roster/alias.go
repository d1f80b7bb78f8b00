package roster

import (
	"context"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Alias is what a source calls a person.
type Alias struct {
	Source     string // its name
	ExternalID string
	Present    bool // in the source, as of its last import
}

// Aliases lists what the organization's sources call the person.
func Aliases(ctx context.Context, q pg.Querier, org id.Organization, user id.User) ([]Alias, error) {
	return selectAliases(ctx, q, org, user)
}

// Holders are whom the organization's sources mean by the external id; several sources may
// mean several people.
func Holders(ctx context.Context, q pg.Querier, org id.Organization, externalID string) ([]id.User, error) {
	return selectHolders(ctx, q, org, externalID)
}
