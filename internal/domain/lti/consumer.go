// Package lti holds the consumer key and secret of an organization's LMS, and checks whether a
// launch (LTI 1.1, signed with OAuth 1.0a) comes from it.
package lti

import (
	"context"
	"fmt"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Consumer is an organization's LMS. An organization has at most one.
type Consumer struct {
	Organization id.Organization
	Key          string // oauth_consumer_key; it stays the same when the secret is rotated
	Version      int    // of the secret
	CreatedAt    time.Time
	RotatedAt    time.Time // when the secret was drawn
	sealed       []byte
}

// keyStart begins every consumer key, and keyLength characters of a token follow.
const (
	keyStart  = "lti_"
	keyLength = 22
)

// Service makes and finds consumers.
type Service struct {
	DB  *pg.DB
	Box *seal.Box
}

// Renew makes the organization's consumer, or draws a new secret for it, which replaces
// the old one at once. It returns the secret, which is shown this once.
func (k Service) Renew(ctx context.Context, by audit.Actor, org id.Organization, now time.Time) (c Consumer, secret string, created bool, err error) {
	secret = seal.Token()
	err = k.DB.InTx(ctx, func(tx *pg.Tx) error {
		if err := pg.Lock(ctx, tx, pg.LockLTI, fmt.Sprint(org)); err != nil {
			return err
		}
		c, err = selectConsumer(ctx, tx, org)
		if created = pg.None(err); created {
			c, err = Consumer{Organization: org, Key: keyStart + seal.Token()[:keyLength], CreatedAt: now}, nil
		}
		if err != nil {
			return err
		}
		c.Version, c.RotatedAt = c.Version+1, now
		if c.sealed, err = k.Box.Seal(ctx, []byte(secret), c.boundTo()); err != nil {
			return err
		}
		if err := upsertConsumer(ctx, tx, c); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "renewed LTI consumer", Target: c.Key, At: now})
	})
	return c, secret, created, err
}

// boundTo is what the sealed secret is bound to.
func (c Consumer) boundTo() string {
	return fmt.Sprintf("lti_consumers/%d/%d", c.Organization, c.Version)
}

var errNone = fault.New(fault.NotFound, "not_found", "the organization has no LTI consumer; make one first")

// Find reads the organization's consumer. NotFound when there is none.
func (k Service) Find(ctx context.Context, org id.Organization) (Consumer, error) {
	c, err := selectConsumer(ctx, k.DB, org)
	if pg.None(err) {
		return Consumer{}, errNone
	}
	return c, err
}

// RemoveConsumer deletes the consumer of an organization that is erased, if it has one.
func RemoveConsumer(ctx context.Context, tx *pg.Tx, org id.Organization) error {
	_, err := deleteConsumer(ctx, tx, org)
	if pg.None(err) {
		return nil
	}
	return err
}

// Remove deletes the organization's consumer, so that launches are refused. NotFound when there
// is none.
func (k Service) Remove(ctx context.Context, by audit.Actor, org id.Organization, now time.Time) error {
	err := k.DB.InTx(ctx, func(tx *pg.Tx) error {
		key, err := deleteConsumer(ctx, tx, org)
		if err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "removed LTI consumer", Target: key, At: now})
	})
	if pg.None(err) {
		return errNone
	}
	return err
}
