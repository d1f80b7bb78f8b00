package org

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/network"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Access is what an API key may do.
type Access string

// The kinds of access. A read-only key is refused every POST, a scoped one what its scopes do not name.
const (
	Full     Access = "full"
	ReadOnly Access = "read_only"
	Scoped   Access = "scoped"
)

// Key is an API key without its text, which is shown once and not stored.
type Key struct {
	ID           id.APIKey
	Organization id.Organization
	Name         string
	Access       Access
	Scopes       []Scope        // with Scoped alone
	Networks     []netip.Prefix // that it works from; none: from everywhere
	ExpiresAt    time.Time      // from when on it does not work; zero: never
	Sandbox      bool           // it works for the organization's sandbox, and for nothing else
	ManagedBy    string         // the resource that keeps it; "" when people do
	Prefix       string         // its first characters, enough for a person to recognise it
	CreatedAt    time.Time
	RevokedAt    time.Time // zero: it was not revoked

	// LastUsedOn is the last day with a use, and LastUsedFrom the address that it came from first.
	// They are noted a little later (Usage).
	LastUsedOn   *clock.Date
	LastUsedFrom netip.Addr
}

// Works says whether the key was neither revoked nor has expired.
func (k Key) Works(now time.Time) bool { return k.RevokedAt.IsZero() && !k.Expired(now) }

// Expired says whether the key's time is over.
func (k Key) Expired(now time.Time) bool { return !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt) }

// WorksFrom says whether the key is accepted from the address.
func (k Key) WorksFrom(a netip.Addr) bool {
	return len(k.Networks) == 0 || slices.ContainsFunc(k.Networks, func(n netip.Prefix) bool { return n.Contains(a) })
}

// restricted says whether programs that know only of access must not find the key.
func (k Key) restricted() bool {
	return k.Access == Scoped || len(k.Networks) > 0 || !k.ExpiresAt.IsZero()
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

// A key's text is a start and a token. The start and shownLength more characters are shown.
const (
	keyStart    = "reg_"
	testStart   = "reg_test_" // of a sandbox's key
	tokenLength = 43
	shownLength = 8
)

// startOf is what the text of a key begins with, and "" for a text that is no key. The length tells keys of a
// sandbox from others, whose token may begin with "test_".
func startOf(text string) string {
	for _, start := range []string{keyStart, testStart} {
		if len(text) == len(start)+tokenLength && strings.HasPrefix(text, start) {
			return start
		}
	}
	return ""
}

// CreateKey makes a key with the name, access, scopes, networks, end and manager of wanted, for the organization or its sandbox, and returns its
// text, which cannot be read again. The same transaction does what is also to be done with the key. Invalid lists each field at fault.
func CreateKey(
	ctx context.Context, db *pg.DB, by audit.Actor, org id.Organization, wanted Key, now time.Time, also ...func(*pg.Tx, Key) error,
) (Key, string, error) {
	k := Key{Organization: org, Name: strings.TrimSpace(wanted.Name), Access: wanted.Access, Scopes: wanted.Scopes, Networks: wanted.Networks,
		ExpiresAt: wanted.ExpiresAt, Sandbox: wanted.Sandbox, ManagedBy: wanted.ManagedBy, CreatedAt: now}
	if err := k.check(now); err != nil {
		return Key{}, "", err
	}
	start := keyStart
	if k.Sandbox {
		start = testStart
	}
	text := start + seal.Token()
	k.Prefix = text[:len(start)+shownLength]
	hash := seal.Hash(text)
	if k.restricted() {
		hash = seal.Hash(string(hash))
	}
	err := db.InTx(ctx, func(tx *pg.Tx) (err error) {
		if k.ID, err = insertKey(ctx, tx, org, k, hash); err != nil {
			return err
		}
		for _, do := range also {
			if err := do(tx, k); err != nil {
				return err
			}
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "created API key", Target: k.label(), At: now})
	})
	return k, text, err
}

// PrefixOf is what is shown of a text that may be a key, and "" for one that is none.
func PrefixOf(text string) string {
	start := startOf(text)
	if start == "" {
		return ""
	}
	return strings.ToValidUTF8(text[:len(start)+shownLength], "?") + "…"
}

// label is what the key is called in the audit log.
func (k Key) label() string { return k.Name + " (" + k.Prefix + "…)" }

// maxNetworks is how many networks a key may be limited to.
const maxNetworks = 50

// ParseNetworks reads the networks that a key may be limited to, each once. Invalid, on networks.
func ParseNetworks(texts []string) ([]netip.Prefix, error) {
	var faults fault.List
	var networks []netip.Prefix
	for _, text := range texts {
		n, err := network.Parse(strings.TrimSpace(text))
		switch {
		case err != nil:
			_ = faults.Add(fault.Field("networks", "not_a_network", "networks: %v", err))
		case !slices.Contains(networks, n):
			networks = append(networks, n)
		}
	}
	if len(networks) > maxNetworks {
		_ = faults.Add(fault.Field("networks", "out_of_range", "networks: send %d at most", maxNetworks))
	}
	return networks, faults.Err()
}

// ParseScopes reads scopes, each once. Invalid, on scopes.
func ParseScopes(texts []string) ([]Scope, error) {
	var faults fault.List
	var scopes []Scope
	for _, text := range texts {
		s := Scope(strings.TrimSpace(text))
		switch {
		case !slices.Contains(Scopes(), s):
			_ = faults.Add(fault.Field("scopes", "not_a_choice", "scopes: %.100q is no scope; the scopes are %s", text, scopeList(Scopes())))
		case !slices.Contains(scopes, s):
			scopes = append(scopes, s)
		}
	}
	return scopes, faults.Err()
}

func scopeList(scopes []Scope) string {
	texts := make([]string, len(scopes))
	for i, s := range scopes {
		texts[i] = string(s)
	}
	return strings.Join(texts, ", ")
}

func (k Key) check(now time.Time) error {
	var faults fault.List
	if n := utf8.RuneCountInString(k.Name); n < 1 || n > maxName {
		_ = faults.Add(fault.Field("name", "invalid", "name: send a label of 1 to %d characters for the key", maxName))
	}
	switch k.Access {
	case Full, ReadOnly:
		if len(k.Scopes) > 0 {
			_ = faults.Add(fault.Field("scopes", "invalid", "scopes: send access or scopes, not both"))
		}
	case Scoped:
		if len(k.Scopes) == 0 {
			_ = faults.Add(fault.Field("scopes", "missing", "scopes: name at least one of %s", scopeList(Scopes())))
		}
	default:
		_ = faults.Add(fault.Field("access", "invalid", "access: %q is no kind of access; send full, read_only or scoped", string(k.Access)))
	}
	if k.Expired(now) {
		_ = faults.Add(fault.Field("expires_at", "out_of_range", "expires_at: send a time to come"))
	}
	return faults.Err()
}

// RevokeKey revokes a key for good: in every process at once, and while wake-ups are lost within
// keyTTL. A key that was revoked before keeps its time. NotFound for a key of another organization; Conflict
// "managed" for staff, when a resource keeps the key. The platform may revoke it, and the resource gets another.
func RevokeKey(ctx context.Context, db *pg.DB, by audit.Actor, org id.Organization, key id.APIKey, now time.Time) (k Key, err error) {
	err = db.InTx(ctx, func(tx *pg.Tx) error {
		if k, err = revokeKey(ctx, tx, org, key, now); err != nil {
			return err
		}
		if by.Kind == audit.Staff && k.ManagedBy != "" {
			return errManaged("this API key", k.ManagedBy)
		}
		entry := audit.Entry{Organization: org, Actor: by, Action: "revoked API key", Target: k.label(), At: now}
		wakeKeyrings(tx, org)
		return audit.Write(ctx, tx, entry)
	})
	if pg.None(err) {
		return Key{}, fault.New(fault.NotFound, "not_found", "the organization has no API key %d", key)
	}
	return k, err
}
