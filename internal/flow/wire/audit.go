package wire

import (
	"time"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// AuditEntry is a line of an exported audit log.
type AuditEntry struct {
	ID           int64            `json:"id"`
	At           *clock.Timestamp `json:"at"`
	Organization *id.Organization `json:"organization_id"`
	Actor        AuditActor       `json:"actor"`
	Action       string           `json:"action"`
	Target       string           `json:"target"`
	Address      *string          `json:"address"`
	Times        int              `json:"times"`
}

// AuditActor is who did it.
type AuditActor struct {
	Kind audit.Kind `json:"kind"`
	ID   *int64     `json:"id"`
	Name string     `json:"name"`
}

// NewAuditEntry is the line of the entry.
func NewAuditEntry(e audit.Entry) AuditEntry {
	return AuditEntry{ID: e.ID, At: clock.Stamp(e.At, time.UTC), Organization: known(e.Organization),
		Actor:  AuditActor{Kind: e.Actor.Kind, ID: known(e.Actor.ID), Name: e.Actor.Name},
		Action: e.Action, Target: e.Target, Address: known(e.Address), Times: e.Times}
}

// known is nil for the zero value.
func known[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
