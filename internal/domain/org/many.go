package org

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// AddMembers makes active student memberships for users without one, and returns these users.
func AddMembers(ctx context.Context, tx *pg.Tx, org id.Organization, users []id.User, via Via, now time.Time) ([]id.User, error) {
	if len(users) == 0 {
		return nil, nil
	}
	return insertMembers(ctx, tx, org, users, via, now)
}

// CopyMembers makes active student memberships for people who were made in this transaction.
func CopyMembers(ctx context.Context, tx *pg.Tx, org id.Organization, users []id.User, via Via, now time.Time) error {
	if len(users) == 0 {
		return nil
	}
	return copyMembers(ctx, tx, org, users, via, now)
}

// ReviveMembers makes inactive memberships active again, unless they have changed since the
// given times, and returns their users.
func ReviveMembers(ctx context.Context, tx *pg.Tx, org id.Organization, users []id.User, since []time.Time, now time.Time) ([]id.User, error) {
	if len(users) == 0 {
		return nil, nil
	}
	return reviveMembers(ctx, tx, org, users, since, now)
}

// EndMembers makes active student memberships inactive that were created via via, and returns
// their users.
func EndMembers(ctx context.Context, tx *pg.Tx, org id.Organization, users []id.User, via Via, now time.Time) ([]id.User, error) {
	if len(users) == 0 {
		return nil, nil
	}
	return endMembers(ctx, tx, org, users, via, now)
}
