package provider

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Sealed is where the secrets of clients are stored.
var Sealed = seal.Column{Table: "identity_providers", Context: `'identity_providers/' || organization_id || '/' || version`}

type row struct {
	Settings
	Sealed  []byte
	Version int
}

func selectProvider(ctx context.Context, q pg.Querier, org id.Organization) (r row, err error) {
	err = q.QueryRow(ctx, `
		SELECT
			issuer,
			client_id,
			ca,
			students,
			role_claim,
			roles,
			sealed,
			version
		FROM identity_providers
		WHERE organization_id = $1`, org).
		Scan(&r.Issuer, &r.ClientID, &r.CA, &r.Students, &r.RoleClaim, &r.Roles, &r.Sealed, &r.Version)
	return r, err
}

func upsertProvider(
	ctx context.Context, tx *pg.Tx, org id.Organization, p Settings, sealed []byte, version int, now time.Time,
) error {
	roles := p.Roles
	if roles == nil {
		roles = map[string]string{}
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO identity_providers (
			organization_id,
			issuer,
			client_id,
			sealed,
			version,
			ca,
			students,
			role_claim,
			roles,
			created_at,
			updated_at
		) VALUES (
			@organization,
			@issuer,
			@client,
			@sealed,
			@version,
			@ca,
			@students,
			@claim,
			@roles,
			@now,
			@now
		)
		ON CONFLICT (organization_id) DO UPDATE SET
			issuer = excluded.issuer,
			client_id = excluded.client_id,
			sealed = excluded.sealed,
			version = excluded.version,
			ca = excluded.ca,
			students = excluded.students,
			role_claim = excluded.role_claim,
			roles = excluded.roles,
			updated_at = excluded.updated_at`,
		pg.Args{
			"organization": org,
			"issuer":       p.Issuer,
			"client":       p.ClientID,
			"sealed":       sealed,
			"version":      version,
			"ca":           p.CA,
			"students":     p.Students,
			"claim":        p.RoleClaim,
			"roles":        roles,
			"now":          now,
		})
	return err
}

func deleteProvider(ctx context.Context, tx *pg.Tx, org id.Organization) (issuer string, err error) {
	err = tx.QueryRow(ctx, `
		DELETE FROM identity_providers
		WHERE organization_id = $1
		RETURNING issuer`, org).Scan(&issuer)
	return issuer, err
}

// PolicyOf reads whether the organization's staff must sign in at its provider.
func PolicyOf(ctx context.Context, q pg.Querier, org id.Organization) (p Policy, err error) {
	err = q.QueryRow(ctx, `
		SELECT provider_only, break_glass
		FROM sign_in_policies
		WHERE organization_id = $1`, org).Scan(&p.Only, &p.BreakGlass)
	if pg.None(err) {
		return Policy{}, nil
	}
	return p, err
}

func upsertPolicy(ctx context.Context, tx *pg.Tx, org id.Organization, p Policy, now time.Time) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO sign_in_policies (organization_id, factor_since, grace_days, provider_only, break_glass, updated_at)
		VALUES ($1, $4, 0, $2, coalesce($3::bigint[], '{}'), $4)
		ON CONFLICT (organization_id) DO UPDATE SET
			provider_only = excluded.provider_only,
			break_glass = excluded.break_glass,
			updated_at = excluded.updated_at`, org, p.Only, p.BreakGlass, now)
	return err
}

// Demanding lists the organizations of which the user is a member, and whose staff must sign in at their provider,
// without those in which the user need not.
func Demanding(ctx context.Context, q pg.Querier, user id.User) ([]id.Organization, error) {
	return pg.Column[id.Organization](ctx, q, `
		SELECT m.organization_id
		FROM members m JOIN sign_in_policies p ON p.organization_id = m.organization_id
		WHERE m.user_id = $1 AND p.provider_only AND NOT (m.role = 'owner' AND m.user_id = ANY (p.break_glass))`, user)
}

// Domains lists the organization's domains, by name.
func Domains(ctx context.Context, q pg.Querier, org id.Organization) ([]Domain, error) {
	return pg.List[Domain](ctx, q, `
		SELECT domain, token, proven_at, proven_by
		FROM mail_domains
		WHERE organization_id = $1
		ORDER BY domain`, org)
}

// Of finds the organization that has proven the domain of the address and has a provider; 0 for none.
func Of(ctx context.Context, q pg.Querier, address string) (org id.Organization, slug, name string, err error) {
	err = q.QueryRow(ctx, `
		SELECT o.id, o.slug, o.name
		FROM mail_domains d
		JOIN identity_providers i ON i.organization_id = d.organization_id
		JOIN organizations o ON o.id = d.organization_id
		WHERE d.domain = split_part(lower($1), '@', 2) AND d.proven_at IS NOT NULL`, address).Scan(&org, &slug, &name)
	if pg.None(err) {
		return 0, "", "", nil
	}
	return org, slug, name, err
}

func insertDomain(ctx context.Context, tx *pg.Tx, org id.Organization, d Domain, now time.Time) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO mail_domains (organization_id, domain, token, created_at)
		VALUES ($1, $2, $3, $4)`, org, d.Domain, d.Token, now)
	return err
}

// updateProven says whether the domain was not proven yet.
func updateProven(ctx context.Context, tx *pg.Tx, org id.Organization, domain, how string, now time.Time) (bool, error) {
	tag, err := tx.Exec(ctx, `
		UPDATE mail_domains SET proven_at = $3, proven_by = $4
		WHERE organization_id = $1 AND domain = $2 AND proven_at IS NULL`, org, domain, now, how)
	return tag.RowsAffected() > 0, err
}

func deleteDomain(ctx context.Context, tx *pg.Tx, org id.Organization, domain string) error {
	return tx.QueryRow(ctx, `
		DELETE FROM mail_domains
		WHERE organization_id = $1 AND domain = $2
		RETURNING domain`, org, domain).Scan(&domain)
}
