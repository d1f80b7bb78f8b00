package org

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// AuditEntry is one thing that a person did in the console.
type AuditEntry struct {
	ID     int64
	Actor  string // the person's email address at the time
	Action string // a verb and a noun: "revoked API key"
	Target string // what it was done to, as people know it; never a secret
	At     time.Time
}

// Audit writes down what the person did.
func Audit(ctx context.Context, q pg.Querier, org id.Organization, user id.User, d AuditEntry) error {
	return insertAuditEntry(ctx, q, org, user, d)
}

// AuditPage is how many deeds AuditEntries returns at most.
const AuditPage = 50

// AuditEntries lists what was done, latest first: the AuditPage that come before the deed with
// the id before, or the latest ones for 0.
func AuditEntries(ctx context.Context, q pg.Querier, org id.Organization, before int64) ([]AuditEntry, error) {
	return selectAuditEntries(ctx, q, org, before)
}
