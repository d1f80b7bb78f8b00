package factor

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Sealed is where seeds and passkeys are stored.
var Sealed = seal.Column{Table: "factors", Context: `'factors/' || id`}

// Of lists the person's factors, the first one first.
func Of(ctx context.Context, q pg.Querier, user id.User) ([]Factor, error) {
	return pg.List[Factor](ctx, q, `
		SELECT
			id,
			kind,
			name,
			created_at,
			last_used_at
		FROM factors
		WHERE user_id = $1
		ORDER BY id`, user)
}

// Have lists which of the people have a factor.
func Have(ctx context.Context, q pg.Querier, users []id.User) (map[id.User]bool, error) {
	rows, err := q.Query(ctx, `SELECT DISTINCT user_id FROM factors WHERE user_id = ANY ($1)`, users)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[id.User])
	have := make(map[id.User]bool, len(found))
	for _, user := range found {
		have[user] = true
	}
	return have, err
}

// Left counts the person's recovery codes.
func Left(ctx context.Context, q pg.Querier, user id.User) (n int, err error) {
	err = q.QueryRow(ctx, `SELECT count(*) FROM recovery_codes WHERE user_id = $1`, user).Scan(&n)
	return n, err
}

// lockPerson lets changes of one person's factors wait for each other. Unauthenticated (ErrRefused) for one who
// was erased meanwhile.
func lockPerson(ctx context.Context, tx *pg.Tx, user id.User) error {
	err := tx.QueryRow(ctx, `
		SELECT id
		FROM accounts
		WHERE id = $1 AND strpos(email, '@') > 0
		FOR NO KEY UPDATE`, user).Scan(&user)
	if pg.None(err) {
		return ErrRefused
	}
	return err
}

func insert(ctx context.Context, tx *pg.Tx, user id.User, f Factor, sealed, credential []byte, step int64) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO factors (
			id,
			user_id,
			kind,
			name,
			sealed,
			credential_id,
			last_step,
			created_at
		) VALUES (
			@id,
			@user,
			@kind,
			@name,
			@sealed,
			@credential,
			@step,
			@now
		)`,
		pg.Args{
			"id":         f.ID,
			"user":       user,
			"kind":       string(f.Kind),
			"name":       f.Name,
			"sealed":     sealed,
			"credential": credential,
			"step":       step,
			"now":        f.CreatedAt,
		})
	return err
}

func remove(ctx context.Context, tx *pg.Tx, user id.User, which uuid.UUID) (Factor, error) {
	return pg.One[Factor](ctx, tx, `
		DELETE FROM factors
		WHERE user_id = $1 AND id = $2
		RETURNING
			id,
			kind,
			name,
			created_at,
			last_used_at`, user, which)
}

func removeAll(ctx context.Context, tx *pg.Tx, user id.User) error {
	_, err := tx.Exec(ctx, `DELETE FROM factors WHERE user_id = $1`, user)
	return err
}

// stored is a factor with its secret.
type stored struct {
	ID       uuid.UUID
	User     id.User `db:"user_id"`
	Sealed   []byte
	LastStep int64
}

func selectApps(ctx context.Context, q pg.Querier, user id.User) ([]stored, error) {
	return pg.List[stored](ctx, q, `
		SELECT id, user_id, sealed, last_step
		FROM factors
		WHERE user_id = $1 AND kind = 'totp'`, user)
}

// takeStep says whether no code of the step or a later one was taken before.
func takeStep(ctx context.Context, q pg.Querier, which uuid.UUID, step int64, now time.Time) (bool, error) {
	tag, err := q.Exec(ctx, `
		UPDATE factors SET last_step = $2, last_used_at = $3
		WHERE id = $1 AND last_step < $2`, which, step, now)
	return tag.RowsAffected() > 0, err
}

func selectPasskeys(ctx context.Context, q pg.Querier, user id.User) ([]stored, error) {
	return pg.List[stored](ctx, q, `
		SELECT id, user_id, sealed, last_step
		FROM factors
		WHERE user_id = $1 AND kind = 'passkey'
		ORDER BY id`, user)
}

func selectPasskey(ctx context.Context, q pg.Querier, credential []byte) (stored, error) {
	return pg.One[stored](ctx, q, `
		SELECT id, user_id, sealed, last_step
		FROM factors
		WHERE credential_id = $1`, credential)
}

func updatePasskey(ctx context.Context, q pg.Querier, which uuid.UUID, sealed []byte, now time.Time) (bool, error) {
	tag, err := q.Exec(ctx, `UPDATE factors SET sealed = $2, last_used_at = $3 WHERE id = $1`, which, sealed, now)
	return tag.RowsAffected() > 0, err
}

func insertRecoveryCodes(ctx context.Context, tx *pg.Tx, user id.User, hashes [][]byte) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO recovery_codes (user_id, hash)
		SELECT $1, h FROM unnest($2::bytea[]) AS h`, user, hashes)
	return err
}

func deleteRecoveryCodes(ctx context.Context, tx *pg.Tx, user id.User) error {
	_, err := tx.Exec(ctx, `DELETE FROM recovery_codes WHERE user_id = $1`, user)
	return err
}

func takeRecoveryCode(ctx context.Context, q pg.Querier, user id.User, hash []byte) (bool, error) {
	tag, err := q.Exec(ctx, `DELETE FROM recovery_codes WHERE user_id = $1 AND hash = $2`, user, hash)
	return tag.RowsAffected() > 0, err
}

// countTry counts a try, and says how many there were since the moment.
func countTry(ctx context.Context, q pg.Querier, user id.User, now, since time.Time) (tries int, err error) {
	err = q.QueryRow(ctx, `
		INSERT INTO factor_tries AS t (user_id, since, tries)
		VALUES ($1, $2, 1)
		ON CONFLICT (user_id) DO UPDATE SET
			since = CASE WHEN t.since > $3 THEN t.since ELSE excluded.since END,
			tries = CASE WHEN t.since > $3 THEN t.tries + 1 ELSE 1 END
		RETURNING tries`, user, now, since).Scan(&tries)
	return tries, err
}

func forgetTries(ctx context.Context, q pg.Querier, user id.User) error {
	_, err := q.Exec(ctx, `DELETE FROM factor_tries WHERE user_id = $1`, user)
	return err
}

// PolicyOf reads what the organization demands.
func PolicyOf(ctx context.Context, q pg.Querier, org id.Organization) (p Policy, err error) {
	err = q.QueryRow(ctx, `
		SELECT factor_roles, factor_since, grace_days
		FROM sign_in_policies
		WHERE organization_id = $1`, org).Scan(&p.Roles, &p.Since, &p.GraceDays)
	if pg.None(err) {
		return Policy{}, nil
	}
	return p, err
}

func upsertPolicy(ctx context.Context, tx *pg.Tx, org id.Organization, p Policy, now time.Time) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO sign_in_policies (organization_id, factor_roles, factor_since, grace_days, updated_at)
		VALUES ($1, coalesce($2::text[], '{}'), $3, $4, $5)
		ON CONFLICT (organization_id) DO UPDATE SET
			factor_roles = excluded.factor_roles,
			factor_since = excluded.factor_since,
			grace_days = excluded.grace_days,
			updated_at = excluded.updated_at`, org, p.Roles, p.Since, p.GraceDays, now)
	return err
}

// Lacks lists where the person lacks a factor; nowhere for who has one. The days of grace count from when the policy began or
// the person came, whatever was later. Owners who may go past the identity provider need a factor, too.
func Lacks(ctx context.Context, q pg.Querier, user id.User) ([]Lack, error) {
	return pg.List[Lack](ctx, q, `
		SELECT
			m.organization_id AS organization,
			greatest(p.factor_since, m.joined_at) + make_interval(days => p.grace_days) AS due
		FROM members m JOIN sign_in_policies p ON p.organization_id = m.organization_id
		WHERE m.user_id = $1 AND m.status = 'active'
			AND (m.role = ANY (p.factor_roles)
				OR p.provider_only AND m.role = 'owner' AND m.user_id = ANY (p.break_glass))
			AND NOT EXISTS (SELECT FROM factors f WHERE f.user_id = m.user_id)`, user)
}
