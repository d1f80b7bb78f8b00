package org

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

const organizationColumns = `
	o.id,
	o.slug,
	o.name,
	o.language_tests_enabled,
	o.language,
	o.default_access_months,
	o.grace_period_days,
	o.starter_tests_per_course,
	o.visible_tests_limit,
	o.send_welcome_email_default,
	o.set_password_link_valid_days,
	o.created_at`

func (o *Organization) targets() []any {
	d := &o.Defaults
	return []any{&o.ID, &o.Slug, &o.Name, &o.LanguageTestsEnabled, &o.Language, &d.AccessMonths, &d.GracePeriodDays,
		&d.StarterTestsPerCourse, &d.VisibleTestsLimit, &d.SendWelcomeEmail, &d.SetPasswordLinkValidDays, &o.CreatedAt}
}

func selectBySlug(ctx context.Context, q pg.Querier, slug string) (o Organization, err error) {
	err = q.QueryRow(ctx, `SELECT `+organizationColumns+` FROM organizations o WHERE o.slug = $1`, slug).Scan(o.targets()...)
	return o, err
}

func selectByIDs(ctx context.Context, q pg.Querier, orgs []id.Organization) ([]Organization, error) {
	rows, err := q.Query(ctx, `SELECT `+organizationColumns+` FROM organizations o WHERE o.id = ANY ($1)`, orgs)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (o Organization, err error) {
		err = row.Scan(o.targets()...)
		return o, err
	})
}

func upsert(ctx context.Context, q pg.Querier, o Organization, now time.Time) (org id.Organization, err error) {
	d := o.Defaults
	err = q.QueryRow(ctx, `
		INSERT INTO organizations (
			slug,
			name,
			language_tests_enabled,
			language,
			default_access_months,
			grace_period_days,
			starter_tests_per_course,
			visible_tests_limit,
			send_welcome_email_default,
			set_password_link_valid_days,
			created_at,
			updated_at
		) VALUES (
			@slug,
			@name,
			@language_tests,
			@language,
			@access_months,
			@grace_days,
			@starter_tests,
			@visible_tests,
			@welcome_email,
			@link_days,
			@now,
			@now
		)
		ON CONFLICT (slug) DO UPDATE SET
			name = excluded.name,
			language_tests_enabled = excluded.language_tests_enabled,
			language = excluded.language,
			default_access_months = excluded.default_access_months,
			grace_period_days = excluded.grace_period_days,
			starter_tests_per_course = excluded.starter_tests_per_course,
			visible_tests_limit = excluded.visible_tests_limit,
			send_welcome_email_default = excluded.send_welcome_email_default,
			set_password_link_valid_days = excluded.set_password_link_valid_days,
			updated_at = excluded.updated_at
		RETURNING id`,
		pg.Args{
			"slug":           o.Slug,
			"name":           o.Name,
			"language_tests": o.LanguageTestsEnabled,
			"language":       o.Language,
			"access_months":  d.AccessMonths,
			"grace_days":     d.GracePeriodDays,
			"starter_tests":  d.StarterTestsPerCourse,
			"visible_tests":  d.VisibleTestsLimit,
			"welcome_email":  d.SendWelcomeEmail,
			"link_days":      d.SetPasswordLinkValidDays,
			"now":            now,
		}).Scan(&org)
	return org, err
}

func upsertLogo(ctx context.Context, tx *pg.Tx, org id.Organization, picture, digest []byte, now time.Time) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO organization_logos (organization_id, picture, digest, updated_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (organization_id) DO UPDATE SET
			picture = excluded.picture,
			digest = excluded.digest,
			updated_at = excluded.updated_at`, org, picture, digest, now)
	return err
}

func deleteLogo(ctx context.Context, tx *pg.Tx, org id.Organization) (found bool, err error) {
	tag, err := tx.Exec(ctx, `DELETE FROM organization_logos WHERE organization_id = $1`, org)
	return tag.RowsAffected() > 0, err
}

func selectLogo(ctx context.Context, q pg.Querier, org id.Organization, digest []byte) (picture []byte, err error) {
	err = q.QueryRow(ctx, `
		SELECT picture FROM organization_logos WHERE organization_id = $1 AND digest = $2`, org, digest).Scan(&picture)
	return picture, err
}

// erase puts what no slug can be in its place.
func erase(ctx context.Context, tx *pg.Tx, org id.Organization, now time.Time) error {
	var b pg.Batch
	b.Queue(`
		UPDATE organizations
		SET slug = 'erased ' || id, name = '', erased_at = $2, updated_at = $2, managed_by = NULL, managed_fields = '{}'
		WHERE id = $1`, org, now)
	b.Queue(`UPDATE api_keys SET revoked_at = coalesce(revoked_at, $2) WHERE organization_id = $1`, org, now)
	return b.Send(ctx, tx)
}

// ManagementOf reads who keeps the organization, and what of it.
func ManagementOf(ctx context.Context, q pg.Querier, org id.Organization) (m Management, err error) {
	err = q.QueryRow(ctx, `
		SELECT coalesce(managed_by, ''), managed_fields FROM organizations WHERE id = $1`, org).Scan(&m.By, &m.Fields)
	if pg.None(err) {
		return Management{}, nil
	}
	return m, err
}

func updateManagement(ctx context.Context, q pg.Querier, org id.Organization, m Management) error {
	_, err := q.Exec(ctx, `
		UPDATE organizations SET managed_by = $2, managed_fields = coalesce($3::text[], '{}') WHERE id = $1`, org, m.By, m.Fields)
	return err
}

func releaseManagement(ctx context.Context, tx *pg.Tx, org id.Organization, managedBy string) (name string, err error) {
	if _, err := tx.Exec(ctx, `
		UPDATE members SET managed = false
		WHERE organization_id = $1 AND managed
			AND EXISTS (SELECT FROM organizations WHERE id = $1 AND managed_by = $2)`, org, managedBy); err != nil {
		return "", err
	}
	err = tx.QueryRow(ctx, `
		UPDATE organizations SET managed_by = NULL, managed_fields = '{}'
		WHERE id = $1 AND managed_by = $2
		RETURNING name`, org, managedBy).Scan(&name)
	return name, err
}

// FindManaged reads the organization that the resource keeps. NotFound when there is none.
func FindManaged(ctx context.Context, q pg.Querier, managedBy string) (Organization, error) {
	var o Organization
	err := q.QueryRow(ctx, `SELECT `+organizationColumns+` FROM organizations o WHERE o.managed_by = $1`, managedBy).Scan(o.targets()...)
	if pg.None(err) {
		return o, fault.New(fault.NotFound, "not_found", "no organization is kept by %q", managedBy)
	}
	return o, err
}

// ListManaged lists the resources that keep organizations and whose names begin so, each with its organization.
func ListManaged(ctx context.Context, q pg.Querier, prefix string) (map[string]id.Organization, error) {
	rows, err := q.Query(ctx, `SELECT managed_by, id FROM organizations WHERE starts_with(managed_by, $1)`, prefix)
	if err != nil {
		return nil, err
	}
	all := map[string]id.Organization{}
	var by string
	var org id.Organization
	_, err = pgx.ForEachRow(rows, []any{&by, &org}, func() error {
		all[by] = org
		return nil
	})
	return all, err
}

// SetManaged says whether the organization's resource keeps the member's role.
func SetManaged(ctx context.Context, q pg.Querier, org id.Organization, user id.User, managed bool) error {
	_, err := q.Exec(ctx, `UPDATE members SET managed = $3 WHERE organization_id = $1 AND user_id = $2`, org, user, managed)
	return err
}

// selectMembersManager is the resource that keeps the member's role, and "" when people do.
func selectMembersManager(ctx context.Context, q pg.Querier, org id.Organization, user id.User) (managedBy string, err error) {
	err = q.QueryRow(ctx, `
		SELECT coalesce(o.managed_by, '') FROM members m JOIN organizations o ON o.id = m.organization_id
		WHERE m.organization_id = $1 AND m.user_id = $2 AND m.managed`, org, user).Scan(&managedBy)
	if pg.None(err) {
		return "", nil
	}
	return managedBy, err
}

const keyColumns = `
	k.id,
	k.organization_id,
	k.name,
	CASE WHEN k.scopes IS NULL THEN k.access ELSE 'scoped' END,
	k.scopes,
	k.networks,
	k.expires_at,
	k.sandbox,
	coalesce(k.managed_by, ''),
	k.prefix,
	k.created_at,
	k.revoked_at,
	k.last_used_on,
	k.last_used_from`

// keyRow is a row of keyColumns on its way into a Key.
type keyRow struct {
	Key
	expires, revoked *time.Time
	from             *netip.Addr
}

func (k *keyRow) targets() []any {
	return []any{&k.ID, &k.Organization, &k.Name, &k.Access, &k.Scopes, &k.Networks, &k.expires, &k.Sandbox, &k.ManagedBy, &k.Prefix, &k.CreatedAt,
		&k.revoked, &k.LastUsedOn, &k.from}
}

func (k *keyRow) key() Key {
	set(&k.ExpiresAt, k.expires)
	set(&k.RevokedAt, k.revoked)
	set(&k.LastUsedFrom, k.from)
	return k.Key
}

func scanKey(row pgx.CollectableRow) (Key, error) {
	var k keyRow
	err := row.Scan(k.targets()...)
	return k.key(), err
}

func insertKey(ctx context.Context, q pg.Querier, org id.Organization, k Key, hash []byte) (key id.APIKey, err error) {
	err = q.QueryRow(ctx, `
		INSERT INTO api_keys (
			organization_id,
			name,
			access,
			scopes,
			networks,
			expires_at,
			sandbox,
			managed_by,
			prefix,
			hash,
			created_at
		) VALUES (
			@organization,
			@name,
			CASE WHEN @access = 'scoped' THEN 'read_only' ELSE @access END,
			@scopes,
			coalesce(@networks::cidr[], '{}'),
			@expires,
			@sandbox,
			nullif(@managed_by, ''),
			@prefix,
			@hash,
			@created
		)
		RETURNING id`,
		pg.Args{
			"organization": org,
			"name":         k.Name,
			"access":       string(k.Access),
			"scopes":       k.Scopes,
			"networks":     k.Networks,
			"expires":      timeOrNull(k.ExpiresAt),
			"sandbox":      k.Sandbox,
			"managed_by":   k.ManagedBy,
			"prefix":       k.Prefix,
			"hash":         hash,
			"created":      k.CreatedAt,
		}).Scan(&key)
	return key, err
}

func queryKeys(ctx context.Context, q pg.Querier, statement string, args ...any) ([]Key, error) {
	rows, err := q.Query(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanKey)
}

// Keys lists the organization's keys by id, revoked ones included.
func Keys(ctx context.Context, q pg.Querier, org id.Organization) ([]Key, error) {
	return queryKeys(ctx, q, `SELECT `+keyColumns+` FROM api_keys k WHERE k.organization_id = $1 ORDER BY k.id`, org)
}

// ManagedKeys lists the keys that a resource keeps and that are not revoked, the newest first.
func ManagedKeys(ctx context.Context, q pg.Querier, managedBy string) ([]Key, error) {
	return queryKeys(ctx, q, `
		SELECT `+keyColumns+` FROM api_keys k WHERE k.managed_by = $1 AND k.revoked_at IS NULL ORDER BY k.id DESC`, managedBy)
}

// KeyManagers lists the resources whose names begin with the prefix and that keep keys.
func KeyManagers(ctx context.Context, q pg.Querier, prefix string) ([]string, error) {
	return pg.Column[string](ctx, q, `
		SELECT DISTINCT managed_by FROM api_keys WHERE starts_with(managed_by, $1) AND revoked_at IS NULL ORDER BY 1`, prefix)
}

// IsKey says whether text is that of the key.
func IsKey(ctx context.Context, q pg.Querier, org id.Organization, key id.APIKey, text string) (is bool, err error) {
	err = q.QueryRow(ctx, `
		SELECT hash IN ($3::bytea, sha256($3::bytea)) FROM api_keys
		WHERE organization_id = $1 AND id = $2`, org, key, seal.Hash(text)).Scan(&is)
	return is, err
}

// endKeys lets the keys that made replaces work until the given time at most.
func endKeys(ctx context.Context, q pg.Querier, made Key, until time.Time) ([]Key, error) {
	return queryKeys(ctx, q, `
		UPDATE api_keys k SET expires_at = $4
		WHERE k.organization_id = $1 AND k.managed_by = $2 AND k.id <> $3 AND k.revoked_at IS NULL
			AND (k.expires_at IS NULL OR k.expires_at > $4)
		RETURNING `+keyColumns, made.Organization, made.ManagedBy, made.ID, until)
}

// revokeKeysBefore revokes the keys that made replaces.
func revokeKeysBefore(ctx context.Context, q pg.Querier, made Key, now time.Time) ([]Key, error) {
	return queryKeys(ctx, q, `
		UPDATE api_keys k SET revoked_at = $4
		WHERE k.organization_id = $1 AND k.managed_by = $2 AND k.id <> $3 AND k.revoked_at IS NULL
		RETURNING `+keyColumns, made.Organization, made.ManagedBy, made.ID, now)
}

func releaseKeys(ctx context.Context, q pg.Querier, managedBy string) ([]Key, error) {
	return queryKeys(ctx, q, `
		UPDATE api_keys k SET managed_by = NULL WHERE k.managed_by = $1 AND k.revoked_at IS NULL RETURNING `+keyColumns, managedBy)
}

func revokeKey(ctx context.Context, q pg.Querier, org id.Organization, key id.APIKey, now time.Time) (Key, error) {
	rows, err := q.Query(ctx, `
		UPDATE api_keys k SET revoked_at = coalesce(k.revoked_at, $3)
		WHERE k.organization_id = $1 AND k.id = $2 RETURNING `+keyColumns, org, key, now)
	if err != nil {
		return Key{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scanKey)
}

// selectPrincipal finds a key that is not revoked, and its organization; sandbox is what the key's text says of
// it. The hash of a restricted key is hashed once more.
func selectPrincipal(ctx context.Context, q pg.Querier, hash []byte, sandbox bool) (p Principal, err error) {
	var k keyRow
	err = q.QueryRow(ctx, `
		SELECT `+organizationColumns+`, `+keyColumns+`
		FROM api_keys k JOIN organizations o ON o.id = k.organization_id
		WHERE k.hash IN ($1::bytea, sha256($1::bytea)) AND k.revoked_at IS NULL AND k.sandbox = $2 AND o.erased_at IS NULL`, hash, sandbox).
		Scan(append(p.Organization.targets(), k.targets()...)...)
	p.Key = k.key()
	return p, err
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// updateLastUsed keeps the first use of a key's last day.
func updateLastUsed(ctx context.Context, q pg.Querier, uses []use) error {
	orgs, keys := make([]id.Organization, len(uses)), make([]id.APIKey, len(uses))
	days, from := make([]clock.Date, len(uses)), make([]netip.Addr, len(uses))
	for i, u := range uses {
		orgs[i], keys[i], days[i], from[i] = u.organization, u.key, u.day, u.from
	}
	_, err := q.Exec(ctx, `
		UPDATE api_keys k SET last_used_on = u.day, last_used_from = u.address
		FROM (
			SELECT DISTINCT ON (organization, key) *
			FROM unnest($1::bigint[], $2::bigint[], $3::date[], $4::inet[])
				WITH ORDINALITY AS n(organization, key, day, address, number)
			ORDER BY organization, key, day DESC, number) AS u
		WHERE k.organization_id = u.organization AND k.id = u.key AND (k.last_used_on IS NULL OR k.last_used_on < u.day)`,
		orgs, keys, days, from)
	return err
}

// LoadMember queues the reading of the user's membership; into stays zero when there is
// none. Whoever changes memberships holds the lock of the person's address.
func LoadMember(b *pg.Batch, org id.Organization, user id.User, into *Member) {
	b.Queue(`
		SELECT role, status, created_via, joined_at FROM members
		WHERE organization_id = $1 AND user_id = $2`, org, user).QueryRow(into.scan)
}

// LoadMemberBy is LoadMember for the person with the address.
func LoadMemberBy(b *pg.Batch, org id.Organization, address string, into *Member) {
	b.Queue(`
		SELECT role, status, created_via, joined_at FROM members
		WHERE organization_id = $1 AND user_id = (SELECT id FROM accounts WHERE email = $2)`, org, address).QueryRow(into.scan)
}

// scan leaves m as it is when there is no row.
func (m *Member) scan(row pgx.Row) error {
	err := row.Scan(&m.Role, &m.Status, &m.Via, &m.JoinedAt)
	if pg.None(err) {
		return nil
	}
	return err
}

// InsertMember queues the writing of a new membership, as AddMember does. A student takes the next position of
// the organization's list of students: others who come into it wait until the commit.
func InsertMember(b *pg.Batch, org id.Organization, user id.User, m Member) {
	b.Queue(`
		INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $6)`, org, user, m.Role, m.Status, m.Via, m.JoinedAt)
}

func insertMembers(ctx context.Context, q pg.Querier, org id.Organization, users []id.User, via Via, now time.Time) ([]id.User, error) {
	return userIDs(q.Query(ctx, `
		INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
		SELECT $1, u, 'member', 'active', $3, $4, $4 FROM unnest($2::bigint[]) AS u
		ON CONFLICT (organization_id, user_id) DO NOTHING RETURNING user_id`, org, users, via, now))
}

func copyMembers(ctx context.Context, q pg.Querier, org id.Organization, users []id.User, via Via, now time.Time) error {
	_, err := q.CopyFrom(ctx, pgx.Identifier{"members"},
		[]string{"organization_id", "user_id", "role", "status", "created_via", "joined_at", "updated_at"},
		pgx.CopyFromSlice(len(users), func(i int) ([]any, error) {
			return []any{int64(org), int64(users[i]), string(RoleMember), string(MemberActive), string(via), now, now}, nil
		}))
	return err
}

func reviveMembers(ctx context.Context, q pg.Querier, org id.Organization, users []id.User, since []time.Time, now time.Time) ([]id.User, error) {
	return userIDs(q.Query(ctx, `
		UPDATE members m SET status = 'active', updated_at = $4
		FROM unnest($2::bigint[], $3::timestamptz[]) AS u(user_id, since)
		WHERE m.organization_id = $1 AND m.user_id = u.user_id AND m.status = 'inactive' AND m.updated_at = u.since
		RETURNING m.user_id`, org, users, since, now))
}

func endMembers(ctx context.Context, q pg.Querier, org id.Organization, users []id.User, via Via, now time.Time) ([]id.User, error) {
	return userIDs(q.Query(ctx, `
		UPDATE members SET status = 'inactive', updated_at = $4
		WHERE organization_id = $1 AND user_id = ANY ($2) AND status = 'active' AND role = 'member' AND created_via = $3
		RETURNING user_id`, org, users, via, now))
}

func userIDs(rows pgx.Rows, err error) ([]id.User, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[id.User])
}

// SetMemberStatus queues the change of a membership's status.
func SetMemberStatus(b *pg.Batch, org id.Organization, user id.User, status MemberStatus, now time.Time) {
	b.Queue(`
		UPDATE members
		SET status = $3, updated_at = $4
		WHERE organization_id = $1 AND user_id = $2`, org, user, status, now)
}

// RemoveMember queues the deletion of a membership. Enrollments, work and results stay.
func RemoveMember(b *pg.Batch, org id.Organization, user id.User) {
	b.Queue(`DELETE FROM members WHERE organization_id = $1 AND user_id = $2`, org, user)
}

func queueMemberRole(b *pg.Batch, org id.Organization, user id.User, m Member, now time.Time) {
	b.Queue(`
		UPDATE members SET role = $3, status = $4, updated_at = $5
		WHERE organization_id = $1 AND user_id = $2`, org, user, m.Role, m.Status, now)
}

// Belongings lists the organizations that the user belongs or belonged to, by name. Only the
// person may see it: no organization learns of another one.
func Belongings(ctx context.Context, q pg.Querier, user id.User) ([]Belonging, error) {
	rows, err := q.Query(ctx, `
		SELECT
			o.id,
			o.slug,
			o.name,
			coalesce(encode(l.digest, 'hex'), ''),
			o.language,
			m.role,
			m.status,
			m.created_via,
			m.joined_at
		FROM members m
		JOIN organizations o ON o.id = m.organization_id
		LEFT JOIN organization_logos l ON l.organization_id = o.id
		WHERE m.user_id = $1 AND o.erased_at IS NULL ORDER BY o.name, o.id`, user)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (b Belonging, err error) {
		err = row.Scan(&b.Organization, &b.Slug, &b.Name, &b.Logo, &b.Language, &b.Role, &b.Status, &b.Via, &b.JoinedAt)
		return b, err
	})
}

// Managers lists who is an active owner or admin of the organization.
func Managers(ctx context.Context, q pg.Querier, org id.Organization) ([]id.User, error) {
	return userIDs(q.Query(ctx, `
		SELECT user_id FROM members
		WHERE organization_id = $1 AND role IN ('owner', 'admin') AND status = 'active'`, org))
}

// Staff reads who is and was on the staff of the organization.
func Staff(ctx context.Context, q pg.Querier, org id.Organization) (map[id.User]Member, error) {
	rows, err := q.Query(ctx, `
		SELECT
			user_id,
			role,
			status,
			created_via,
			joined_at,
			managed
		FROM members
		WHERE organization_id = $1 AND role <> 'member'`, org)
	if err != nil {
		return nil, err
	}
	all := map[id.User]Member{}
	var user id.User
	var m Member
	_, err = pgx.ForEachRow(rows, []any{&user, &m.Role, &m.Status, &m.Via, &m.JoinedAt, &m.Managed}, func() error {
		all[user] = m
		return nil
	})
	return all, err
}

// LockOwners locks the organization's active owners, so that changes of them wait for each other, and lists them.
func LockOwners(ctx context.Context, tx *pg.Tx, org id.Organization) ([]id.User, error) {
	return userIDs(tx.Query(ctx, `
		SELECT user_id FROM members
		WHERE organization_id = $1 AND role = 'owner' AND status = 'active'
		ORDER BY user_id
		FOR UPDATE`, org))
}

// Members reads the memberships of several people; people without one are not in the map.
func Members(ctx context.Context, q pg.Querier, org id.Organization, users []id.User) (map[id.User]Member, error) {
	all, err := MembersOf(ctx, q, slices.Repeat([]id.Organization{org}, len(users)), users)
	found := make(map[id.User]Member, len(users))
	for i, m := range all {
		if m != (Member{}) {
			found[users[i]] = m
		}
	}
	return found, err
}

// MembersOf reads the memberships of users in the organizations at the same places; the zero Member where there is none.
func MembersOf(ctx context.Context, q pg.Querier, orgs []id.Organization, users []id.User) ([]Member, error) {
	rows, err := q.Query(ctx, `
		SELECT u.n, m.role, m.status, m.created_via, m.joined_at
		FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS u(org, id, n)
		CROSS JOIN LATERAL (
			SELECT role, status, created_via, joined_at
			FROM members
			WHERE organization_id = u.org AND user_id = u.id
			LIMIT 1) AS m`, orgs, users)
	if err != nil {
		return nil, err
	}
	all := make([]Member, len(users))
	var n int
	var m Member
	_, err = pgx.ForEachRow(rows, []any{&n, &m.Role, &m.Status, &m.Via, &m.JoinedAt}, func() error {
		all[n-1] = m
		return nil
	})
	return all, err
}

// IDs queues a read, into found, of organizations by their slugs; unknown ones are not in it.
func IDs(b *pg.Batch, slugs []string, found map[string]id.Organization) {
	if len(slugs) == 0 {
		return
	}
	var slug string
	var org id.Organization
	b.Rows(func() error { found[slug] = org; return nil }, []any{&slug, &org},
		`SELECT slug, id FROM organizations WHERE slug = ANY ($1)`, slugs)
}

// Brand is how an organization shows itself to whoever opens a page of its own, signed in or not.
type Brand struct {
	Organization id.Organization
	Slug         string
	Name         string
	Logo         string // the digest; "": it has none
	Language     string // its students' unless they chose another
}

const selectBrand = `
	SELECT
		o.id AS organization,
		o.slug,
		o.name,
		coalesce(encode(l.digest, 'hex'), '') AS logo,
		o.language
	FROM organizations o LEFT JOIN organization_logos l ON l.organization_id = o.id
	WHERE o.erased_at IS NULL `

// BrandOf reads the organization's brand; the zero Brand where there is no such organization.
func BrandOf(ctx context.Context, q pg.Querier, org id.Organization) (Brand, error) {
	return oneBrand(pg.One[Brand](ctx, q, selectBrand+`AND o.id = $1`, org))
}

// BrandBySlug is BrandOf for a slug.
func BrandBySlug(ctx context.Context, q pg.Querier, slug string) (Brand, error) {
	return oneBrand(pg.One[Brand](ctx, q, selectBrand+`AND o.slug = $1`, slug))
}

func oneBrand(b Brand, err error) (Brand, error) {
	if pg.None(err) {
		return Brand{}, nil
	}
	return b, err
}
