package webhook

import (
	"context"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// ListManaged reads the endpoints of all organizations whose keeper (Settings.ManagedBy)
// begins with prefix, so that the keeper can find those that it has lost.
func (k Service) ListManaged(ctx context.Context, prefix string) ([]Endpoint, error) {
	return selectManagedAs(ctx, k.DB, prefix)
}

// Signs says whether secret is the endpoint's signing secret in force. It is false as
// well when what is stored cannot be opened any more: the caller's secret is to replace
// it. NotFound when there is no such endpoint.
func (k Service) Signs(ctx context.Context, org id.Organization, endpoint id.Endpoint, secret string) (bool, error) {
	version, sealed, err := selectSecret(ctx, k.DB, org, endpoint)
	if pg.None(err) {
		return false, errNoEndpoint(endpoint)
	}
	if err != nil {
		return false, err
	}
	plain, err := k.Box.Open(ctx, sealed, SecretContext(endpoint, version))
	return err == nil && seal.Equal(string(plain), secret), nil
}
