package org

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// ReplaceKey is CreateKey by the resource that wanted.ManagedBy names. The organization's keys that the resource has kept so far work
// until the given time, and are revoked when that has come.
func ReplaceKey(
	ctx context.Context, db *pg.DB, by audit.Actor, org id.Organization, wanted Key, until, now time.Time, also ...func(*pg.Tx, Key) error,
) (Key, string, error) {
	return CreateKey(ctx, db, by, org, wanted, now, append(also, func(tx *pg.Tx, made Key) error {
		action := "set end of API key"
		retire := func() ([]Key, error) { return endKeys(ctx, tx, made, until) }
		if !until.After(now) {
			action = "revoked API key"
			retire = func() ([]Key, error) { return revokeKeysBefore(ctx, tx, made, now) }
		}
		retired, err := retire()
		if err != nil || len(retired) == 0 {
			return err
		}
		wakeKeyrings(tx, org)
		for _, k := range retired {
			if err := audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: action, Target: k.label(), At: now}); err != nil {
				return err
			}
		}
		return nil
	})...)
}

// ReleaseKeys leaves the keys of a resource to people. They work as before.
func ReleaseKeys(ctx context.Context, db *pg.DB, by audit.Actor, managedBy string, now time.Time) error {
	return db.InTx(ctx, func(tx *pg.Tx) error {
		released, err := releaseKeys(ctx, tx, managedBy)
		if err != nil {
			return err
		}
		for _, k := range released {
			entry := audit.Entry{Organization: k.Organization, Actor: by, Action: "left API key to the staff", Target: k.label(), At: now}
			if err := audit.Write(ctx, tx, entry); err != nil {
				return err
			}
		}
		return nil
	})
}
