// Package provider is where an organization's people sign in, by OpenID Connect: which provider that
// is, which domains of mail addresses are the organization's, and whom an answer of the provider means.
//
// A provider vouches for addresses of its organization's proven domains, and for no others: whoever
// keeps a domain keeps its mailboxes, so such an address is as good as a link that was opened there.
// It makes nobody a member of anything. A role that it names replaces the role of who is on the staff
// already.
package provider

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Settings are an organization's provider. The zero Settings are none.
type Settings struct {
	Issuer    string // an https address
	ClientID  string
	Secret    string            // "" keeps the one that is there
	CA        string            // PEM: the authorities that its certificates are of; "": the public ones
	Students  bool              // whether students may use it, too
	RoleClaim string            // the claim that names the role; "": roles are given here alone
	Roles     map[string]string // roles of the claim's values
}

// Set says whether there is a provider.
func (p Settings) Set() bool { return p.Issuer != "" }

// RoleOf is the role that the values of the claim mean: the one with the most rights of ranked, which begins
// with it; "" for none.
func (p Settings) RoleOf(values, ranked []string) string {
	for _, role := range ranked {
		for _, v := range values {
			if p.Roles[v] == role {
				return role
			}
		}
	}
	return ""
}

// Service keeps providers and domains.
type Service struct {
	DB  *pg.DB
	Box *seal.Box
}

// Place is what a client's secret is bound to.
func place(org id.Organization, version int) string {
	return fmt.Sprintf("identity_providers/%d/%d", org, version)
}

// Find reads the organization's provider with its secret; the zero Settings for none.
func (s Service) Find(ctx context.Context, org id.Organization) (Settings, error) {
	row, err := selectProvider(ctx, s.DB, org)
	if pg.None(err) {
		return Settings{}, nil
	}
	if err != nil {
		return Settings{}, err
	}
	secret, err := s.Box.Open(ctx, row.Sealed, place(org, row.Version))
	row.Secret = string(secret)
	return row.Settings, err
}

// Put stores the organization's provider. Invalid lists each fault.
func (s Service) Put(ctx context.Context, by audit.Actor, org id.Organization, p Settings, now time.Time) error {
	if err := p.check(); err != nil {
		return err
	}
	return s.DB.InTx(ctx, func(tx *pg.Tx) error {
		before, err := selectProvider(ctx, tx, org)
		if err != nil && !pg.None(err) {
			return err
		}
		sealed, version := before.Sealed, before.Version
		if p.Secret != "" {
			version++
			if sealed, err = s.Box.Seal(ctx, []byte(p.Secret), place(org, version)); err != nil {
				return err
			}
		}
		if sealed == nil {
			return fault.Field("client_secret", "missing", "client_secret: send the secret that the provider gave the client")
		}
		if p.Secret == "" && before.Issuer != p.Issuer { // it is not told to somebody else
			return fault.Field("client_secret", "missing", "client_secret: another issuer needs its own secret")
		}
		if err := upsertProvider(ctx, tx, org, p, sealed, version, now); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "set identity provider", Target: p.Issuer, At: now})
	})
}

// Remove takes the organization's provider, unless the staff must sign in there. Conflict: provider_demanded.
func (s Service) Remove(ctx context.Context, by audit.Actor, org id.Organization, now time.Time) error {
	return s.DB.InTx(ctx, func(tx *pg.Tx) error {
		p, err := PolicyOf(ctx, tx, org)
		if err != nil {
			return err
		}
		if p.Only {
			return errDemanded
		}
		issuer, err := deleteProvider(ctx, tx, org)
		if pg.None(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "removed identity provider", Target: issuer, At: now})
	})
}

// errDemanded is an error, which cmp.Or takes.
var errDemanded error = fault.New(fault.Conflict, "provider_demanded", "The staff must sign in there. Change that first.")

const (
	maxText  = 500
	maxCA    = 16 << 10
	maxRoles = 100 // values of the claim
)

func (p Settings) check() error {
	var faults fault.List
	for field, text := range map[string]string{"issuer": p.Issuer, "client_id": p.ClientID} {
		if text == "" || len(text) > maxText {
			_ = faults.Add(fault.Field(field, "missing", "%s: required, at most %d characters", field, maxText))
		}
	}
	for field, text := range map[string]string{"client_secret": p.Secret, "role_claim": p.RoleClaim} {
		if len(text) > maxText {
			_ = faults.Add(fault.Field(field, "too_long", "%s: at most %d characters", field, maxText))
		}
	}
	if len(p.Roles) > maxRoles {
		_ = faults.Add(fault.Field("roles", "too_many", "roles: at most %d values of the claim", maxRoles))
	}
	if p.CA != "" && (len(p.CA) > maxCA || !x509.NewCertPool().AppendCertsFromPEM([]byte(p.CA))) {
		_ = faults.Add(fault.Field("ca", "invalid", "ca: send certificates in PEM form (-----BEGIN CERTIFICATE-----), at most %d KiB of them", maxCA>>10))
	}
	if (p.RoleClaim == "") != (len(p.Roles) == 0) {
		_ = faults.Add(fault.Field("role_claim", "invalid", "role_claim: a claim needs roles for its values, and roles a claim"))
	}
	return faults.Err()
}

// Policy says whether the organization's staff must sign in at its provider.
type Policy struct {
	Only       bool
	BreakGlass []id.User // owners who need not
}

// breakGlass is how many owners keep another way in, for when the provider is away.
const breakGlass = 2

// SetPolicy stores the policy. owners are the organization's active ones, who have a second factor: they stay so until
// the transaction ends. Conflict: no_provider, no_domain; Invalid on break_glass.
func SetPolicy(ctx context.Context, tx *pg.Tx, by audit.Actor, org id.Organization, p Policy, owners []id.User, now time.Time) error {
	if p.Only {
		if err := checkPolicy(ctx, tx, org, p, owners); err != nil {
			return err
		}
	}
	if err := upsertPolicy(ctx, tx, org, p, now); err != nil {
		return err
	}
	target := "staff may sign in with a password"
	if p.Only {
		target = "staff must sign in at the identity provider"
	}
	return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "changed sign-in policy", Target: target, At: now})
}

func checkPolicy(ctx context.Context, tx *pg.Tx, org id.Organization, p Policy, owners []id.User) error {
	if _, err := selectProvider(ctx, tx, org); err != nil {
		if pg.None(err) {
			return fault.New(fault.Conflict, "no_provider", "Set up the identity provider first, and test it.")
		}
		return err
	}
	proven, err := anyProven(ctx, tx, org)
	if err != nil {
		return err
	}
	if !proven {
		return fault.New(fault.Conflict, "no_domain", "Prove a domain first: nobody could sign in there.")
	}
	chosen := slices.Compact(slices.Sorted(slices.Values(p.BreakGlass)))
	if len(chosen) != breakGlass || slices.ContainsFunc(chosen, func(u id.User) bool { return !slices.Contains(owners, u) }) {
		return fault.Field("break_glass", "invalid", "break_glass: choose %d owners with a second factor, who can still sign in with a password and that when the provider is away", breakGlass)
	}
	return nil
}

func anyProven(ctx context.Context, q pg.Querier, org id.Organization) (bool, error) {
	domains, err := Domains(ctx, q, org)
	return slices.ContainsFunc(domains, func(d Domain) bool { return d.ProvenAt != nil }), err
}

// Domain is one of an organization's mail addresses.
type Domain struct {
	Domain   string
	Token    string
	ProvenAt *time.Time
	ProvenBy *string
}

// Record is the TXT record that proves the domain.
func (d Domain) Record() (name, value string) {
	return "_registrar." + d.Domain, "registrar-domain=" + d.Token
}

// maxDomains is how many domains an organization may have.
const maxDomains = 20

// AddDomain stores a domain that is to be proven. Invalid on domain; Conflict: domain_limit.
func AddDomain(ctx context.Context, db *pg.DB, by audit.Actor, org id.Organization, domain string, now time.Time) (Domain, error) {
	domain, err := parseDomain(domain)
	if err != nil {
		return Domain{}, err
	}
	d := Domain{Domain: domain, Token: seal.Token()}
	err = db.InTx(ctx, func(tx *pg.Tx) error {
		all, err := Domains(ctx, tx, org)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(all, func(there Domain) bool { return there.Domain == domain }); i >= 0 {
			d = all[i]
			return nil
		}
		if len(all) >= maxDomains {
			return fault.New(fault.Conflict, "domain_limit", "There are %d domains already. Remove one first.", maxDomains)
		}
		if err := insertDomain(ctx, tx, org, d, now); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "added mail domain", Target: domain, At: now})
	})
	return d, err
}

// Resolver looks TXT records up.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
}

// ProveByDNS looks whether the DNS says that the domain is the organization's. Conflict: domain_unproven with what
// was found, domain_taken.
func ProveByDNS(ctx context.Context, db *pg.DB, dns Resolver, by audit.Actor, org id.Organization, domain string, now time.Time) error {
	d, err := findDomain(ctx, db, org, domain)
	if err != nil {
		return err
	}
	name, value := d.Record()
	records, err := dns.LookupTXT(ctx, name+".")
	var none *net.DNSError
	switch {
	case err != nil && asDNS(err, &none) && none.IsNotFound:
		return fault.New(fault.Conflict, "domain_unproven", "There is no TXT record %s yet. New records take minutes, sometimes hours, to be seen.", name)
	case err != nil:
		return fault.New(fault.Conflict, "domain_unproven", "The name servers of %s do not answer. Try again in a few minutes.", d.Domain)
	case !slices.Contains(records, value):
		return fault.New(fault.Conflict, "domain_unproven", "The TXT record %s says something else than %s.", name, value)
	}
	return prove(ctx, db, by, org, d.Domain, "dns", now)
}

// ProveByPlatform takes the platform's word that the domain is the organization's. Conflict: domain_taken.
func ProveByPlatform(ctx context.Context, db *pg.DB, org id.Organization, domain string, now time.Time) error {
	d, err := AddDomain(ctx, db, audit.Platform, org, domain, now)
	if err != nil {
		return err
	}
	return prove(ctx, db, audit.Platform, org, d.Domain, "platform", now)
}

func prove(ctx context.Context, db *pg.DB, by audit.Actor, org id.Organization, domain, how string, now time.Time) error {
	err := db.InTx(ctx, func(tx *pg.Tx) error {
		proven, err := updateProven(ctx, tx, org, domain, how, now)
		if err != nil || !proven {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "proved mail domain", Target: domain + " (" + how + ")", At: now})
	})
	if pg.Violates(err, "mail_domains_proven") {
		return fault.New(fault.Conflict, "domain_taken", "Another organization has proven this domain.")
	}
	return err
}

// RemoveDomain takes a domain away: the provider vouches for its addresses no more. NotFound. Conflict
// (provider_demanded) for the last one that is proven while the staff must sign in there.
func RemoveDomain(ctx context.Context, db *pg.DB, by audit.Actor, org id.Organization, domain string, now time.Time) error {
	return db.InTx(ctx, func(tx *pg.Tx) error {
		err := deleteDomain(ctx, tx, org, domain)
		if pg.None(err) {
			return errNoDomain
		}
		if err != nil {
			return err
		}
		p, err := PolicyOf(ctx, tx, org)
		if err != nil {
			return err
		}
		if proven, err := anyProven(ctx, tx, org); err != nil || p.Only && !proven {
			return cmp.Or(err, errDemanded)
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "removed mail domain", Target: domain, At: now})
	})
}

var errNoDomain = fault.New(fault.NotFound, "not_found", "the organization has no such domain")

func findDomain(ctx context.Context, q pg.Querier, org id.Organization, domain string) (Domain, error) {
	all, err := Domains(ctx, q, org)
	if err != nil {
		return Domain{}, err
	}
	for _, d := range all {
		if d.Domain == domain {
			return d, nil
		}
	}
	return Domain{}, errNoDomain
}

// Vouches says whether the organization's provider vouches for the address: its domain is proven, as a whole.
func Vouches(domains []Domain, address string) bool {
	_, domain, found := strings.Cut(address, "@")
	return found && slices.ContainsFunc(domains, func(d Domain) bool { return d.ProvenAt != nil && d.Domain == domain })
}
