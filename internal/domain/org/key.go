package org

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Access is what an API key may do.
type Access string

// The kinds of access. A read-only key is refused every POST.
const (
	Full     Access = "full"
	ReadOnly Access = "read_only"
)

// Key is an API key without its text, which is shown once and not stored.
type Key struct {
	ID        id.APIKey
	Name      string
	Access    Access
	Prefix    string // its first characters, enough for a person to recognise it
	CreatedAt time.Time
	RevokedAt time.Time // zero: it works
}

// Principal is the organization that makes a request, and the key that it used.
type Principal struct {
	Organization Organization
	Key          Key
}

// Actor is the key as the giver of a command.
func (p Principal) Actor() audit.Actor {
	return audit.Actor{Kind: audit.PartnerKey, ID: int64(p.Key.ID), Name: p.Key.Name}
}

// A key's text is keyStart and a token; the first prefixLength characters are shown.
const (
	keyStart     = "reg_"
	keyLength    = len(keyStart) + 43
	prefixLength = len(keyStart) + 8
)

// CreateKey makes a key and returns its text, which cannot be read again.
func CreateKey(ctx context.Context, db *pg.DB, by audit.Actor, org id.Organization, name string, access Access, now time.Time) (Key, string, error) {
	k := Key{Name: strings.TrimSpace(name), Access: access, CreatedAt: now}
	if err := k.check(); err != nil {
		return Key{}, "", err
	}
	text := keyStart + seal.Token()
	k.Prefix = text[:prefixLength]
	err := db.InTx(ctx, func(tx *pg.Tx) (err error) {
		if k.ID, err = insertKey(ctx, tx, org, k, seal.Hash(text)); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "created API key", Target: k.label(), At: now})
	})
	return k, text, err
}

// label is what the key is called in the audit log.
func (k Key) label() string { return k.Name + " (" + k.Prefix + "…)" }

func (k Key) check() error {
	var faults fault.List
	if n := utf8.RuneCountInString(k.Name); n < 1 || n > maxName {
		_ = faults.Add(fault.Field("name", "invalid", "name: send a label of 1 to %d characters for the key", maxName))
	}
	if k.Access != Full && k.Access != ReadOnly {
		_ = faults.Add(fault.Field("access", "invalid", "access: %q is no kind of access; send full or read_only", string(k.Access)))
	}
	return faults.Err()
}

// RevokeKey revokes a key for good, and at once in every process. A key that was revoked before
// keeps its time. NotFound for a key of another organization.
func RevokeKey(ctx context.Context, db *pg.DB, by audit.Actor, org id.Organization, key id.APIKey, now time.Time) (k Key, err error) {
	err = db.InTx(ctx, func(tx *pg.Tx) error {
		if k, err = revokeKey(ctx, tx, org, key, now); err != nil {
			return err
		}
		entry := audit.Entry{Organization: org, Actor: by, Action: "revoked API key", Target: k.label(), At: now}
		if err := audit.Write(ctx, tx, entry); err != nil {
			return err
		}
		return announce(ctx, tx, org)
	})
	if pg.None(err) {
		return Key{}, fault.New(fault.NotFound, "not_found", "the organization has no API key %d", key)
	}
	return k, err
}
