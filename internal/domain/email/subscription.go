package email

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Subscription is what an owner or admin of an organization gets mails of an optional type by.
type Subscription struct {
	Organization id.Organization
	User         id.User
	Of           Type
}

// UnsubscribePath is the page before the token of a Subscription.
const UnsubscribePath = "/unsubscribe/"

// subscriptionContext is what the token of a Subscription is sealed for.
const subscriptionContext = "unsubscribe"

// Token is what is behind the address that ends the subscription without a sign-in. It can do nothing else, and works as
// long as the keyset has its key.
func (s Subscription) Token(ctx context.Context, box *seal.Box) (string, error) {
	sealed, err := box.Seal(ctx, fmt.Appendf(nil, "%d %d %s", s.Organization, s.User, s.Of), subscriptionContext)
	return base64.RawURLEncoding.EncodeToString(sealed), err
}

// ReadToken gives the Subscription of a token. NotFound for a text that is none.
func ReadToken(ctx context.Context, box *seal.Box, token string) (s Subscription, err error) {
	sealed, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		sealed, err = box.Open(ctx, sealed, subscriptionContext)
	}
	if err == nil {
		_, err = fmt.Sscanf(string(sealed), "%d %d %s", &s.Organization, &s.User, &s.Of)
	}
	if err != nil || !s.Of.Optional() {
		return Subscription{}, fault.New(fault.NotFound, "not_found", "this link ends no mails")
	}
	return s, nil
}

// Choose ends the person's subscriptions to the organization's mails but for the wanted types.
func Choose(ctx context.Context, db *pg.DB, org id.Organization, user id.User, wanted []Type, now time.Time) error {
	return db.InTx(ctx, func(tx *pg.Tx) error {
		for _, t := range Alerts() {
			change := func(s Subscription) error { return s.End(ctx, tx, now) }
			if slices.Contains(wanted, t) {
				change = func(s Subscription) error { return deleteOptout(ctx, tx, s) }
			}
			if err := change(Subscription{org, user, t}); err != nil {
				return err
			}
		}
		return nil
	})
}
