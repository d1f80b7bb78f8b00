package student

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/scope"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// accountColumns are those of a (accounts), in the order of scan.
const accountColumns = `a.first_name, a.last_name, false AS known,` + plainColumns

// calledColumns are those of a with n (entry). The names are the organization's, where it has the person.
const calledColumns = `
	coalesce(n.first_name, a.first_name),
	coalesce(n.last_name, a.last_name),
	n.user_id IS NOT NULL AS known,` + plainColumns

// entry joins n, the organization's entry for the person of a (accounts). LIMIT 1 keeps PostgreSQL from
// reading all entries of the organization, which seems as cheap to it while the table has no statistics.
func entry(organization string) string {
	return ` LEFT JOIN LATERAL (
		SELECT * FROM directory WHERE organization_id = ` + organization + ` AND user_id = a.id LIMIT 1) AS n ON true`
}

const plainColumns = `
	a.id,
	a.email,
	a.username,
	a.must_change_password,
	coalesce(a.language, ''),
	a.own_password,
	a.last_login,
	coalesce(a.created_by_organization, 0),
	a.created_via,
	coalesce(a.password_hash, ''),
	a.proven_password`

func scanAccount(row pgx.CollectableRow) (a Account, err error) { return a, a.scan(row) }

func (a *Account) scan(row pgx.CollectableRow, more ...any) error {
	var lastLogin *time.Time
	err := row.Scan(append([]any{&a.FirstName, &a.LastName, &a.known, &a.ID, &a.Email, &a.Username, &a.MustChangePassword, &a.Language, &a.OwnPassword,
		&lastLogin, &a.CreatedBy, &a.CreatedVia, &a.passwordHash, &a.proven}, more...)...)
	if lastLogin != nil {
		a.LastLogin = *lastLogin
	}
	return err
}

func oneAccount(rows pgx.Rows, err error) (Account, error) {
	if err != nil {
		return Account{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scanAccount)
}

// LoadByID queues the reading of an account as org may know it, with the names that org calls the
// person; into stays zero when there is none.
func LoadByID(b *pg.Batch, org id.Organization, user id.User, into *Account) {
	b.Queue(`SELECT `+calledColumns+` FROM accounts a`+entry("$1")+` WHERE a.id = $2`, org, user).Query(func(rows pgx.Rows) error {
		a, err := oneAccount(rows, nil)
		if pg.None(err) {
			return nil
		}
		*into = a.SeenBy(org)
		return err
	})
}

func queueByEmail(b *pg.Batch, org id.Organization, email Email, lock string, into *Account) {
	query := `SELECT ` + calledColumns + ` FROM accounts a` + entry("$1") + ` WHERE a.email = $2 ` + lock
	b.Queue(query, org, email).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if err := into.scan(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// LookUpUsername queues a query of whether an account with another address has the username.
// Sending b fills taken.
func LookUpUsername(b *pg.Batch, username string, email Email, taken *bool) {
	b.Queue(`SELECT EXISTS (SELECT FROM accounts WHERE lower(username) = lower($1) AND email <> $2)`, username, email).
		QueryRow(func(row pgx.Row) error { return row.Scan(taken) })
}

// SetSignIn queues the writing of the account's username and must_change_password and, unless
// it is "", of a new password's hash. The caller holds the account's row lock. Named turns the
// error of a taken username into a fault.
func SetSignIn(b *pg.Batch, a Account, passwordHash string, now time.Time) {
	b.Queue(`
		UPDATE accounts SET
			username = $2,
			must_change_password = $3,
			password_hash = coalesce(nullif($4, ''), password_hash),
			updated_at = $5
		WHERE id = $1`, a.ID, a.Username, a.MustChangePassword, passwordHash, now)
}

func selectAccount(ctx context.Context, q pg.Querier, user id.User) (Account, error) {
	return oneAccount(q.Query(ctx, `SELECT `+accountColumns+` FROM accounts a WHERE a.id = $1`, user))
}

// insertAccount gives no row when the username is taken.
func insertAccount(ctx context.Context, q pg.Querier, d Draft, now time.Time) (Account, error) {
	return oneAccount(q.Query(ctx, `
		INSERT INTO accounts AS a (
			email,
			username,
			first_name,
			last_name,
			password_hash,
			must_change_password,
			created_by_organization,
			created_via,
			created_at,
			updated_at)
		VALUES (
			@email,
			@username,
			@first_name,
			@last_name,
			nullif(@password_hash, ''),
			@must_change_password,
			nullif(@created_by::bigint, 0),
			@created_via,
			@now,
			@now)
		ON CONFLICT (lower(username)) DO NOTHING
		RETURNING `+accountColumns,
		pg.Args{
			"email":                d.Email,
			"username":             d.Username,
			"first_name":           d.FirstName,
			"last_name":            d.LastName,
			"password_hash":        d.PasswordHash,
			"must_change_password": d.MustChangePassword,
			"created_by":           d.CreatedBy,
			"created_via":          d.CreatedVia,
			"now":                  now,
		}))
}

// insertAccounts leaves out accounts whose address or username is taken.
func insertAccounts(ctx context.Context, q pg.Querier, drafts []Draft, now time.Time) ([]Account, error) {
	n := len(drafts)
	emails, usernames, first, last := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for i, d := range drafts {
		emails[i], usernames[i], first[i], last[i] = string(d.Email), d.Username, d.FirstName, d.LastName
	}
	return allAccounts(q.Query(ctx, `
		INSERT INTO accounts AS a (
			email,
			username,
			first_name,
			last_name,
			created_by_organization,
			created_via,
			created_at,
			updated_at)
		SELECT
			d.email,
			d.username,
			d.first_name,
			d.last_name,
			@created_by,
			@created_via,
			@now,
			@now
		FROM unnest(@emails::text[], @usernames::text[], @first::text[], @last::text[])
			AS d(email, username, first_name, last_name)
		ON CONFLICT DO NOTHING
		RETURNING `+accountColumns,
		pg.Args{
			"emails":      emails,
			"usernames":   usernames,
			"first":       first,
			"last":        last,
			"created_by":  drafts[0].CreatedBy,
			"created_via": drafts[0].CreatedVia,
			"now":         now,
		}))
}

func reserveUsers(ctx context.Context, q pg.Querier, n int) ([]id.User, error) {
	rows, err := q.Query(ctx, `
		SELECT nextval((SELECT pg_get_serial_sequence('accounts', 'id')::regclass))
		FROM generate_series(1, $1::integer)`, n)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[id.User])
}

func copyAccounts(ctx context.Context, q pg.Querier, users []id.User, drafts []Draft, now time.Time) error {
	_, err := q.CopyFrom(ctx, pgx.Identifier{"accounts"},
		[]string{"id", "email", "username", "first_name", "last_name", "created_by_organization", "created_via", "created_at", "updated_at"},
		pgx.CopyFromSlice(len(drafts), func(i int) ([]any, error) {
			d := &drafts[i]
			return []any{int64(users[i]), string(d.Email), usernameFor(d.Email), d.FirstName, d.LastName, int64(d.CreatedBy), string(d.CreatedVia), now, now}, nil
		}))
	return err
}

func selectByEmails(ctx context.Context, q pg.Querier, emails []Email) ([]Account, error) {
	return allAccounts(q.Query(ctx, `SELECT `+accountColumns+` FROM accounts a WHERE a.email = ANY ($1)`, emails))
}

// FindCalled reads the accounts of users as the organizations at the same places call them. Users who do not exist are left out.
func FindCalled(ctx context.Context, q pg.Querier, orgs []id.Organization, users []id.User) ([]Called, error) {
	rows, err := q.Query(ctx, `
		SELECT `+calledColumns+`, u.org
		FROM unnest($1::bigint[], $2::bigint[]) AS u(org, id)
		CROSS JOIN LATERAL (SELECT * FROM accounts WHERE id = u.id LIMIT 1) AS a`+entry("u.org"), orgs, users)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c Called, err error) {
		return c, c.scan(row, &c.Organization)
	})
}

func allAccounts(rows pgx.Rows, err error) ([]Account, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanAccount)
}

// isShared is the condition on a (accounts) for staff, and for people who are or were members of,
// or enrolled in, an organization other than the one that made the account: nobody gives their account
// another address.
const isShared = `(EXISTS (SELECT FROM members s WHERE s.user_id = a.id
		AND (s.role <> 'member' OR s.organization_id IS DISTINCT FROM a.created_by_organization))
	OR EXISTS (SELECT FROM enrollments s WHERE s.user_id = a.id
		AND s.organization_id IS DISTINCT FROM a.created_by_organization))`

// updateProfiles gives the users whose address it has changed.
func updateProfiles(ctx context.Context, q pg.Querier, org id.Organization, profiles []Profile, now time.Time) ([]id.User, error) {
	n := len(profiles)
	users, before, emails, first, last := make([]int64, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for i, p := range profiles {
		users[i], before[i], emails[i], first[i], last[i] = int64(p.User), string(p.Before), string(p.Email), p.FirstName, p.LastName
	}
	rows, err := q.Query(ctx, `
		WITH changed AS (
			UPDATE accounts a
			SET email = p.email, first_name = p.first_name, last_name = p.last_name, updated_at = @now
			FROM unnest(@users::bigint[], @before::text[], @emails::text[], @first::text[], @last::text[])
				AS p(user_id, before, email, first_name, last_name)
			WHERE a.id = p.user_id AND a.email = p.before AND a.created_via = 'roster'
				AND a.created_by_organization = @org
				AND a.last_login IS NULL AND NOT a.own_password AND a.password_hash IS NULL AND NOT `+isShared+`
				AND NOT EXISTS (SELECT FROM accounts o WHERE o.email = p.email AND o.id <> a.id)
			RETURNING a.id, p.before <> p.email AS moved)
		SELECT id FROM changed WHERE moved`,
		pg.Args{
			"org":    org,
			"users":  users,
			"before": before,
			"emails": emails,
			"first":  first,
			"last":   last,
			"now":    now,
		})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[id.User])
}

// queueNames fixes what the organization calls people, unless it has names for them already.
func queueNames(b *pg.Batch, org id.Organization, users []id.User, first, last []string) {
	b.Queue(`
		INSERT INTO directory AS d (user_id, organization_id, first_name, last_name, name, surname, email)
		SELECT
			a.id,
			$1,
			p.first,
			p.last,
			directory_key(p.first || ' ' || p.last),
			directory_key(p.last || ' ' || p.first),
			a.email
		FROM unnest($2::bigint[], $3::text[], $4::text[]) AS p(id, first, last)
		CROSS JOIN LATERAL (SELECT id, email FROM accounts WHERE id = p.id LIMIT 1) AS a
		ON CONFLICT (user_id, organization_id) DO UPDATE SET
			first_name = excluded.first_name,
			last_name = excluded.last_name,
			name = excluded.name,
			surname = excluded.surname
		WHERE coalesce(d.first_name || d.last_name, (
			SELECT a.first_name || a.last_name FROM accounts a WHERE a.id = d.user_id)) = ''`, org, users, first, last)
}

// selectUsernames reads which of base, base-2, base-3… are taken, in lower case.
func selectUsernames(ctx context.Context, q pg.Querier, base string) (map[string]bool, error) {
	rows, err := q.Query(ctx, `
		SELECT lower(username) FROM accounts
		WHERE lower(username) = ANY (
			SELECT lower($1)
			UNION ALL
			SELECT lower(left($1, 149 - length(n::text))) || '-' || n FROM generate_series(2, 200) AS n)`, base)
	if err != nil {
		return nil, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	taken := make(map[string]bool, len(names))
	for _, n := range names {
		taken[n] = true
	}
	return taken, err
}

func queueInsertLink(b *pg.Batch, org id.Organization, user id.User, mailed bool, l Link, now time.Time) {
	b.Queue(`
		INSERT INTO set_password_tokens (hash, user_id, organization_id, mailed, created_at, expires_at)
		VALUES (@hash, @user, nullif(@org::bigint, 0), @mailed, @now, @expires)`,
		pg.Args{"hash": seal.Hash(l.Token), "user": user, "org": org, "mailed": mailed, "now": now, "expires": l.ExpiresAt})
}

// AskReset stores a request for a new password, whether the address has an account or not, and
// returns the request's number.
func AskReset(ctx context.Context, tx *pg.Tx, email Email, now time.Time) (reset int64, err error) {
	err = tx.QueryRow(ctx, `
		INSERT INTO password_resets (email, created_at)
		VALUES ($1, $2)
		RETURNING id`, email, now).Scan(&reset)
	return reset, err
}

func deleteReset(ctx context.Context, tx *pg.Tx, reset int64) (email Email, err error) {
	err = tx.QueryRow(ctx, `DELETE FROM password_resets WHERE id = $1 RETURNING email`, reset).Scan(&email)
	return email, err
}

func countResets(ctx context.Context, tx *pg.Tx, user id.User, now time.Time) (n int, err error) {
	err = tx.QueryRow(ctx, `
		SELECT count(*) FROM set_password_tokens
		WHERE user_id = $1 AND organization_id IS NULL AND expires_at > $2`, user, now).Scan(&n)
	return n, err
}

// provesMailbox is the condition on l (set_password_tokens) for a link that no organization was given.
// One that the person asked for is nobody's.
const provesMailbox = `(l.mailed OR l.organization_id IS NULL)`

// isGood is the condition on l (set_password_tokens) and its account a for a link that can be
// used at $2. A link that an organization was given ends with the first password that the person
// chooses, also if it was being made meanwhile.
const isGood = `l.expires_at > $2 AND (` + provesMailbox + ` OR NOT a.own_password)`

// linkProof is what l proves.
const linkProof = `CASE WHEN ` + provesMailbox + ` THEN 'mailbox' ELSE 'organization ' || l.organization_id END`

func selectLinkAccount(ctx context.Context, q pg.Querier, hash []byte, now time.Time) (a Account, p Proof, err error) {
	rows, err := q.Query(ctx, `
		SELECT `+accountColumns+`, `+linkProof+` FROM set_password_tokens l JOIN accounts a ON a.id = l.user_id
		WHERE l.hash = $1 AND `+isGood, hash, now)
	if err != nil {
		return a, "", err
	}
	a, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (a Account, err error) { return a, a.scan(row, &p) })
	return a, p, err
}

// LinkOrganization says which organization made the link; 0 where the person asked for it, or there is no such link.
func LinkOrganization(ctx context.Context, q pg.Querier, token string) (org id.Organization, err error) {
	err = q.QueryRow(ctx, `
		SELECT coalesce(organization_id, 0) FROM set_password_tokens WHERE hash = $1`, seal.Hash(token)).Scan(&org)
	if pg.None(err) {
		return 0, nil
	}
	return org, err
}

// takeLink locks the account first: links of one account wait for each other, and the
// second finds that the first has deleted it.
func takeLink(ctx context.Context, tx *pg.Tx, hash []byte, now time.Time) (user id.User, p Proof, err error) {
	err = tx.QueryRow(ctx, `
		SELECT a.id FROM accounts a JOIN set_password_tokens l ON l.user_id = a.id
		WHERE l.hash = $1 AND `+isGood+` FOR NO KEY UPDATE OF a`, hash, now).Scan(&user)
	if err != nil {
		return 0, "", err
	}
	err = tx.QueryRow(ctx, `
		DELETE FROM set_password_tokens l
		WHERE l.hash = $1
		RETURNING l.user_id, `+linkProof, hash).Scan(&user, &p)
	return user, p, err
}

func queueOwnPassword(b *pg.Batch, user id.User, hash string, p Proof, now time.Time) {
	b.Queue(`
		UPDATE accounts SET password_hash = $2, own_password = true, must_change_password = false, proven_password = $3,
			updated_at = $4
		WHERE id = $1`, user, hash, p == Mailbox, now)
}

// ChooseLanguage remembers the language of the person's pages and mails.
func ChooseLanguage(ctx context.Context, q pg.Querier, user id.User, code string, now time.Time) error {
	_, err := q.Exec(ctx, `UPDATE accounts SET language = $2, updated_at = $3 WHERE id = $1`, user, code, now)
	return err
}

func deleteLinks(ctx context.Context, q pg.Querier, users []id.User) error {
	_, err := q.Exec(ctx, `DELETE FROM set_password_tokens WHERE user_id = ANY ($1)`, users)
	return err
}

// queueEndWays deletes the account's links and sessions that the proof covers: all for the mailbox.
func queueEndWays(b *pg.Batch, user id.User, p Proof) {
	b.Queue(`
		DELETE FROM set_password_tokens l
		WHERE l.user_id = $1 AND ($2::text = 'mailbox' OR `+linkProof+` = $2)`, user, p)
	b.Queue(`
		DELETE FROM sessions
		WHERE user_id = $1 AND ($2::text = 'mailbox' OR data -> 'values' ->> 'proof' = $2)`, user, p)
}

// DropExpiredLinks deletes the links that have expired.
func DropExpiredLinks(ctx context.Context, q pg.Querier, now time.Time) (int64, error) {
	return pg.Drop(ctx, q, "set_password_tokens", `expires_at <= $1`, now)
}

// selectByName prefers the account of the first address to that of another, and both to one whose
// username reads like them.
func selectByName(ctx context.Context, q pg.Querier, emails []Email, username string) (Account, error) {
	return oneAccount(q.Query(ctx, `
		SELECT `+accountColumns+` FROM accounts a WHERE a.email = ANY ($1::text[]) OR lower(a.username) = lower($2)
		ORDER BY array_position($1::text[], a.email) LIMIT 1`, emails, username))
}

// updateSignedIn gives no row when the password is not the one of the hash any more.
func updateSignedIn(ctx context.Context, q pg.Querier, user id.User, hash string, now time.Time) (Account, error) {
	return oneAccount(q.Query(ctx, `
		UPDATE accounts a SET last_login = greatest(a.last_login, $3), updated_at = $3
		WHERE a.id = $1 AND a.password_hash = $2 RETURNING `+accountColumns, user, hash, now))
}

// lockWithPassword gives no row when the account's password is another.
func lockWithPassword(ctx context.Context, tx *pg.Tx, user id.User, hash string) error {
	return tx.QueryRow(ctx, `
		SELECT id
		FROM accounts
		WHERE id = $1 AND password_hash = $2
		FOR NO KEY UPDATE`, user, hash).Scan(&user)
}

// NoteLaunch remembers a sign-in through the LMS of org, at an account that org made: of other
// accounts it is no other organization's affair.
func NoteLaunch(ctx context.Context, q pg.Querier, org id.Organization, user id.User, now time.Time) error {
	_, err := q.Exec(ctx, `
		UPDATE accounts
		SET last_login = greatest(last_login, $3)
		WHERE id = $2 AND created_by_organization = $1`, org, user, now)
	return err
}

func updateLastLogin(ctx context.Context, q pg.Querier, user id.User, at time.Time) (Account, error) {
	return oneAccount(q.Query(ctx, `
		UPDATE accounts a
		SET last_login = greatest(a.last_login, $2)
		WHERE a.id = $1 AND strpos(a.email, '@') > 0
		RETURNING `+accountColumns, user, at))
}

func selectSession(ctx context.Context, q pg.Querier, hash string) (data []byte, err error) {
	err = q.QueryRow(ctx, `SELECT data FROM sessions WHERE hash = $1 AND expires_at > now()`, hash).Scan(&data)
	return data, err
}

// Begin stores the session of somebody who signed in as a, and gave a second factor or none. It stores
// nothing when the password has changed since, as that ends all sessions, nor without a factor when there
// is one by now. It waits for a transaction that is changing the account, or its factors: then either what
// was given is not enough any more or the session is there to be deleted.
func (s Sessions) Begin(ctx context.Context, hash string, data []byte, expires time.Time, a Account, factor bool) error {
	return s.DB.InTx(ctx, func(tx *pg.Tx) error {
		var b pg.Batch
		b.Queue(`SELECT FROM accounts WHERE id = $1 FOR SHARE`, a.ID) // the next statement sees what was waited for
		b.Queue(`
			INSERT INTO sessions (hash, data, expires_at)
			SELECT $1::text, $2::jsonb, $3::timestamptz FROM accounts a
			WHERE a.id = $4 AND coalesce(a.password_hash, '') = $5
				AND ($6::boolean OR NOT EXISTS (SELECT FROM factors f WHERE f.user_id = a.id))`,
			hash, data, expires, a.ID, a.passwordHash, factor)
		return b.Send(ctx, tx)
	})
}

// Keep stores a session of somebody who is not signed in.
func (s Sessions) Keep(ctx context.Context, hash string, data []byte, expires time.Time) error {
	_, err := s.DB.Exec(ctx, `INSERT INTO sessions (hash, data, expires_at) VALUES ($1, $2, $3)`, hash, data, expires)
	return err
}

// Update stores a session again, unless it was deleted in the meantime.
func (s Sessions) Update(ctx context.Context, hash string, data []byte, expires time.Time) error {
	_, err := s.DB.Exec(ctx, `UPDATE sessions SET data = $2, expires_at = $3 WHERE hash = $1`, hash, data, expires)
	return err
}

// seenFrom is the condition on s (sessions) for those that own, the one of the request, may know of:
// the person's, unless it proves an organization alone; then those that prove the same.
const seenFrom = `s.user_id = own.user_id
	AND (coalesce(own.data -> 'values' ->> 'proof', 'mailbox') = 'mailbox'
		OR s.data -> 'values' ->> 'proof' = own.data -> 'values' ->> 'proof')`

// named is a name for s (sessions) that opens nothing.
const named = `left(encode(sha256(convert_to(s.hash, 'UTF8')), 'hex'), 24)`

// List reads where the person of the session is signed in: that session first, then the last used.
func (s Sessions) List(ctx context.Context, hash string) ([]Open, error) {
	return pg.List[Open](ctx, s.DB, `
		SELECT
			`+named+` AS name,
			coalesce(s.data -> 'values' ->> 'agent', '') AS agent,
			coalesce(s.data -> 'values' ->> 'from', '') AS "from",
			coalesce(s.data -> 'values' ->> 'began', '') AS began,
			coalesce(s.data -> 'values' ->> 'used', '') AS used,
			coalesce(s.data -> 'values' ->> 'used_from', '') AS used_from,
			s.hash = own.hash AS current
		FROM sessions own JOIN sessions s ON `+seenFrom+`
		WHERE own.hash = $1 AND s.expires_at > now()
		ORDER BY current DESC, used DESC, began DESC, s.hash LIMIT $2`, hash, maxOpen)
}

// EndOthers ends all that List has but the session itself, and those beyond its bound, and says how
// many.
func (s Sessions) EndOthers(ctx context.Context, hash string) (int64, error) {
	tag, err := s.DB.Exec(ctx, `
		DELETE FROM sessions s USING sessions own
		WHERE own.hash = $1 AND s.hash <> own.hash AND `+seenFrom, hash)
	return tag.RowsAffected(), err
}

// EndSessions ends all sessions of the person but the one of the hash.
func EndSessions(ctx context.Context, q pg.Querier, user id.User, but string) error {
	_, err := q.Exec(ctx, `DELETE FROM sessions WHERE user_id = $1 AND hash <> $2`, user, but)
	return err
}

// EndOne ends the one of those that List has, but not the session itself, that has the name. It says
// whether there was one.
func (s Sessions) EndOne(ctx context.Context, hash, name string) (bool, error) {
	tag, err := s.DB.Exec(ctx, `
		DELETE FROM sessions s USING sessions own
		WHERE own.hash = $1 AND s.hash <> own.hash AND `+seenFrom+` AND `+named+` = $2`, hash, name)
	return tag.RowsAffected() > 0, err
}

// Delete ends a session, if it exists.
func (s Sessions) Delete(ctx context.Context, hash string) error {
	_, err := s.DB.Exec(ctx, `DELETE FROM sessions WHERE hash = $1`, hash)
	return err
}

// DropExpiredSessions deletes what nobody can use any more.
func DropExpiredSessions(ctx context.Context, q pg.Querier) (int64, error) {
	return pg.Drop(ctx, q, "sessions", `expires_at <= now()`)
}

// isStudent is the condition on a (accounts) for people who are or were students of organization $1.
var isStudent = scope.IsStudent(scope.Role("$1", "a.id"), "$1", "a.id")

func selectStudents(ctx context.Context, q pg.Querier, org id.Organization, w Ref) ([]Account, error) {
	rows, err := q.Query(ctx, `
		SELECT `+calledColumns+` FROM accounts a`+entry("$1")+`
		WHERE a.id IN (SELECT id FROM accounts WHERE email = $2 UNION ALL SELECT $3) AND `+isStudent, org, w.Email, w.User)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanAccount)
}

func selectPerson(ctx context.Context, q pg.Querier, org id.Organization, email Email) (Account, error) {
	return oneAccount(q.Query(ctx, `
		SELECT `+calledColumns+` FROM accounts a`+entry("$1")+`
		WHERE a.email = $2 AND (
			EXISTS (SELECT FROM members m WHERE m.organization_id = $1 AND m.user_id = a.id)
			OR EXISTS (SELECT FROM enrollments e WHERE e.organization_id = $1 AND e.user_id = a.id))`, org, email))
}

// Conditions on p (people of the roster) for having access on the day $5, and for having
// had it or having left.
var (
	hasAccess = scope.HasAccess("$1", "p.user_id", "$5")
	isGone    = `coalesce((SELECT true FROM members x
		WHERE x.organization_id = $1 AND x.user_id = p.user_id AND x.status = 'inactive'),
		(SELECT true FROM enrollments x WHERE x.organization_id = $1 AND x.user_id = p.user_id
			AND (x.state <> 'running' OR x.grace_period_end < $5) LIMIT 1), false)`
	role = scope.Role("$1", "p.user_id")
)

// rosterPage is the statement of a page of students, with its arguments. It reads along the positions or,
// byPerson, those of a course's people. The limit of NULL is none. As PostgreSQL does not know it when it plans once
// for all courses, it reads a course's people along their index.
func rosterPage(org id.Organization, f RosterFilter, s Stretch, limit int, byPerson bool) (query string, args []any) {
	args = []any{org, s.After, limit, f.Course, f.Today, s.Until}
	// Every parameter has to be in the statement, used or not.
	chosen := `p.organization_id = $1 AND p.position > $2 AND p.position <= $6
		AND $4::bigint IS NOT NULL AND $5::date IS NOT NULL
		AND ` + scope.IsStudent(role, "$1", "p.user_id")
	switch f.Status {
	case RosterActive:
		chosen += ` AND ` + hasAccess
	case RosterInactive:
		chosen += ` AND NOT ` + hasAccess + ` AND ` + isGone
	case RosterAny:
	}
	people := `SELECT p.user_id, p.position FROM arrivals p WHERE ` + chosen
	switch {
	case byPerson:
		people = `
			SELECT p.user_id, p.position
			FROM (
				SELECT e.user_id FROM enrollments e WHERE e.organization_id = $1 AND e.course_id = $4
				ORDER BY e.user_id LIMIT nullif($3::bigint, $3)) AS x
			CROSS JOIN LATERAL (
				SELECT * FROM arrivals WHERE user_id = x.user_id AND organization_id = $1 LIMIT 1) AS p
			WHERE ` + chosen
	case f.Course != 0:
		people += ` AND (SELECT true FROM enrollments x
			WHERE x.user_id = p.user_id AND x.course_id = $4 AND x.organization_id = $1 LIMIT 1)`
	}
	return `
		SELECT ` + calledColumns + `, p.position
		FROM (` + people + ` ORDER BY p.position LIMIT $3) AS p
		CROSS JOIN LATERAL (SELECT * FROM accounts WHERE id = p.user_id LIMIT 1) AS a` + entry("$1") + `
		ORDER BY p.position`, args
}

func selectRoster(
	ctx context.Context, q pg.Querier, org id.Organization, f RosterFilter, s Stretch, limit int, byPerson bool,
) ([]Listed, error) {
	query, args := rosterPage(org, f, s, limit, byPerson)
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (l Listed, err error) {
		err = l.scan(row, &l.Position)
		l.Account = l.SeenBy(org)
		return l, err
	})
}

// Sealed is where it is kept what people were called who are being erased; a value is bound to place.
var Sealed = seal.Column{Table: "erasures", Context: `'erasures/' || user_id`}
