package lms

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

const columns = `
	r.id,
	r.name,
	r.issuer,
	r.client_id,
	r.authorize_url,
	r.token_url,
	r.token_audience AS audience,
	r.keys_url,
	r.deployments,
	r.waiting,
	r.launched_at,
	r.created_at,
	r.updated_at`

// List gives the organization's registrations, by their names.
func List(ctx context.Context, q pg.Querier, org id.Organization) ([]Registration, error) {
	return pg.List[Registration](ctx, q, `
		SELECT `+columns+` FROM lms_registrations r
		WHERE r.organization_id = $1
		ORDER BY r.name, r.id`, org)
}

func selectOne(ctx context.Context, q pg.Querier, org id.Organization, which id.Registration) (Registration, error) {
	return pg.One[Registration](ctx, q, `
		SELECT `+columns+` FROM lms_registrations r
		WHERE r.organization_id = $1 AND r.id = $2`, org, which)
}

// selectClient finds those that a request may mean, at most two; client may be "".
func selectClient(ctx context.Context, q pg.Querier, org id.Organization, issuer, client string) ([]Registration, error) {
	return pg.List[Registration](ctx, q, `
		SELECT `+columns+` FROM lms_registrations r
		WHERE r.organization_id = $1 AND r.issuer = $2 AND (r.client_id = $3 OR $3 = '')
		LIMIT 2`, org, issuer, client)
}

func arguments(org id.Organization, r Registration) pg.Args {
	return pg.Args{
		"organization": org,
		"id":           r.ID,
		"name":         r.Name,
		"issuer":       r.Issuer,
		"client":       r.ClientID,
		"authorize":    r.AuthorizeURL,
		"token":        r.TokenURL,
		"audience":     r.Audience,
		"keys":         r.KeysURL,
		"deployments":  r.Deployments,
		"waiting":      r.Waiting,
		"created":      r.CreatedAt,
		"updated":      r.UpdatedAt,
	}
}

func insert(ctx context.Context, tx *pg.Tx, org id.Organization, r Registration) (which id.Registration, err error) {
	args := arguments(org, r)
	delete(args, "id")
	err = tx.QueryRow(ctx, `
		INSERT INTO lms_registrations (
			organization_id,
			name,
			issuer,
			client_id,
			authorize_url,
			token_url,
			token_audience,
			keys_url,
			deployments,
			waiting,
			created_at,
			updated_at
		) VALUES (
			@organization,
			@name,
			@issuer,
			@client,
			@authorize,
			@token,
			@audience,
			@keys,
			@deployments,
			@waiting,
			@created,
			@updated
		)
		RETURNING id`, args).Scan(&which)
	return which, err
}

func update(ctx context.Context, tx *pg.Tx, org id.Organization, r Registration) error {
	args := arguments(org, r)
	delete(args, "created")
	_, err := tx.Exec(ctx, `
		UPDATE lms_registrations SET
			name = @name,
			issuer = @issuer,
			client_id = @client,
			authorize_url = @authorize,
			token_url = @token,
			token_audience = @audience,
			keys_url = @keys,
			deployments = @deployments,
			waiting = @waiting,
			updated_at = @updated
		WHERE organization_id = @organization AND id = @id`, args)
	return err
}

// Launched notes when the LMS last opened something, to the minute, so that many launches do not wait for each other.
func (s Service) Launched(ctx context.Context, org id.Organization, which id.Registration, now time.Time) error {
	_, err := s.DB.Exec(ctx, `
		UPDATE lms_registrations SET launched_at = $3
		WHERE organization_id = $1 AND id = $2 AND (launched_at IS NULL OR launched_at < $3::timestamptz - interval '1 minute')`,
		org, which, now)
	return err
}

func deleteOne(ctx context.Context, tx *pg.Tx, org id.Organization, which id.Registration) error {
	_, err := tx.Exec(ctx, `DELETE FROM lms_registrations WHERE organization_id = $1 AND id = $2`, org, which)
	return err
}

// deleteOf forgets who the people of a registration are, and its launches under way.
func deleteOf(ctx context.Context, tx *pg.Tx, org id.Organization, which id.Registration) error {
	_, err := tx.Exec(ctx, `
		WITH people AS (
			DELETE FROM lms_people WHERE organization_id = $1 AND registration_id = $2
		), marks AS (
			DELETE FROM lms_marks WHERE organization_id = $1 AND registration_id = $2
		), choices AS (
			DELETE FROM lms_choices WHERE organization_id = $1 AND registration_id = $2
		), contexts AS (
			DELETE FROM lms_contexts WHERE organization_id = $1 AND registration_id = $2
		)
		DELETE FROM lms_logins WHERE organization_id = $1 AND registration_id = $2`, org, which)
	return err
}

func insertLogin(ctx context.Context, q pg.Querier, org id.Organization, l Login, until time.Time) error {
	_, err := q.Exec(ctx, `
		INSERT INTO lms_logins (organization_id, state, registration_id, nonce, browser, storage, expires_at)
		VALUES (@organization, @state, @registration, @nonce, @browser, @storage, @until)`,
		pg.Args{
			"organization": org,
			"state":        seal.Hash(l.State),
			"registration": l.Registration.ID,
			"nonce":        seal.Hash(l.Nonce),
			"browser":      seal.Hash(l.Browser),
			"storage":      l.Storage,
			"until":        until,
		})
	return err
}

func selectLogin(ctx context.Context, q pg.Querier, org id.Organization, state []byte, now time.Time) (l Login, err error) {
	r := &l.Registration
	err = q.QueryRow(ctx, `
		SELECT l.nonce, l.browser, l.storage, `+columns+`
		FROM lms_logins l JOIN lms_registrations r ON r.organization_id = l.organization_id AND r.id = l.registration_id
		WHERE l.organization_id = $1 AND l.state = $2 AND l.expires_at > $3`, org, state, now).
		Scan(&l.nonce, &l.browser, &l.Storage, &r.ID, &r.Name, &r.Issuer, &r.ClientID, &r.AuthorizeURL, &r.TokenURL, &r.Audience, &r.KeysURL,
			&r.Deployments, &r.Waiting, &r.LaunchedAt, &r.CreatedAt, &r.UpdatedAt)
	return l, err
}

func deleteLogin(ctx context.Context, tx *pg.Tx, org id.Organization, state []byte, now time.Time) error {
	return tx.QueryRow(ctx, `
		DELETE FROM lms_logins
		WHERE organization_id = $1 AND state = $2 AND expires_at > $3
		RETURNING state`, org, state, now).Scan(&state)
}

func selectPerson(
	ctx context.Context, q pg.Querier, org id.Organization, which id.Registration, subject string,
) (user id.User, err error) {
	err = q.QueryRow(ctx, `
		SELECT user_id FROM lms_people
		WHERE organization_id = $1 AND registration_id = $2 AND subject = $3`, org, which, subject).Scan(&user)
	return user, err
}

// insertPerson leaves a subject or a person alone who is there.
func insertPerson(
	ctx context.Context, tx *pg.Tx, org id.Organization, which id.Registration, subject string, user id.User, now time.Time,
) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO lms_people (organization_id, registration_id, subject, user_id, created_at)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT DO NOTHING`, org, which, subject, user, now)
	return err
}

func deletePerson(ctx context.Context, tx *pg.Tx, org id.Organization, which id.Registration, user id.User) (bool, error) {
	tag, err := tx.Exec(ctx, `
		DELETE FROM lms_people
		WHERE organization_id = $1 AND registration_id = $2 AND user_id = $3`, org, which, user)
	return tag.RowsAffected() > 0, err
}

func insertTicket(ctx context.Context, q pg.Querier, org id.Organization, hash []byte, t Ticket, until time.Time) error {
	_, err := q.Exec(ctx, `
		INSERT INTO lms_tickets (organization_id, hash, user_id, leads_to, note, expires_at)
		VALUES (@organization, @hash, @user, @leads, @note, @until)`,
		pg.Args{
			"organization": org,
			"hash":         hash,
			"user":         t.User,
			"leads":        t.LeadsTo,
			"note":         t.Note,
			"until":        until,
		})
	return err
}

func deleteTicket(ctx context.Context, q pg.Querier, org id.Organization, hash []byte, now time.Time) (t Ticket, err error) {
	err = q.QueryRow(ctx, `
		DELETE FROM lms_tickets
		WHERE organization_id = $1 AND hash = $2 AND expires_at > $3
		RETURNING user_id, leads_to, note`, org, hash, now).Scan(&t.User, &t.LeadsTo, &t.Note)
	return t, err
}

// DropExpired deletes launches, tickets and choices that are over.
func DropExpired(ctx context.Context, q pg.Querier, now time.Time) error {
	_, err := q.Exec(ctx, `
		WITH logins AS (
			DELETE FROM lms_logins WHERE expires_at < $1
		), choices AS (
			DELETE FROM lms_choices WHERE expires_at < $1
		), invitations AS (
			DELETE FROM lms_invitations WHERE expires_at < $1
		)
		DELETE FROM lms_tickets WHERE expires_at < $1`, now)
	return err
}

// upsertInvitation ends the one before.
func upsertInvitation(ctx context.Context, tx *pg.Tx, org id.Organization, hash []byte, until time.Time) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO lms_invitations (organization_id, hash, expires_at)
		VALUES ($1, $2, $3)
		ON CONFLICT (organization_id) DO UPDATE SET hash = excluded.hash, expires_at = excluded.expires_at`, org, hash, until)
	return err
}

func selectInvitation(ctx context.Context, q pg.Querier, org id.Organization, hash []byte, now time.Time) error {
	return q.QueryRow(ctx, `
		SELECT hash FROM lms_invitations
		WHERE organization_id = $1 AND hash = $2 AND expires_at > $3`, org, hash, now).Scan(&hash)
}

func deleteInvitation(ctx context.Context, q pg.Querier, org id.Organization, hash []byte, now time.Time) error {
	return q.QueryRow(ctx, `
		DELETE FROM lms_invitations
		WHERE organization_id = $1 AND hash = $2 AND expires_at > $3
		RETURNING hash`, org, hash, now).Scan(&hash)
}

func insertChoice(
	ctx context.Context, tx *pg.Tx, org id.Organization, hash []byte, c Choice, until time.Time,
) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO lms_choices (organization_id, hash, registration_id, request, expires_at)
		VALUES ($1, $2, $3, $4, $5)`, org, hash, c.Registration, c.ChoiceRequest, until)
	return err
}

func selectChoice(
	ctx context.Context, q pg.Querier, org id.Organization, hash []byte, now time.Time,
) (c Choice, err error) {
	err = q.QueryRow(ctx, `
		SELECT c.registration_id, c.request, r.issuer, r.client_id
		FROM lms_choices c
		JOIN lms_registrations r ON r.organization_id = c.organization_id AND r.id = c.registration_id
		WHERE c.organization_id = $1 AND c.hash = $2 AND c.expires_at > $3`, org, hash, now).
		Scan(&c.Registration, &c.ChoiceRequest, &c.Issuer, &c.ClientID)
	return c, err
}

func deleteChoice(ctx context.Context, q pg.Querier, org id.Organization, hash []byte, now time.Time) error {
	return q.QueryRow(ctx, `
		DELETE FROM lms_choices
		WHERE organization_id = $1 AND hash = $2 AND expires_at > $3
		RETURNING hash`, org, hash, now).Scan(&hash)
}

func selectKeys(ctx context.Context, q pg.Querier) ([]Key, error) {
	return pg.List[Key](ctx, q, `
		SELECT kid, public, created_at, signs_from FROM lms_keys
		ORDER BY created_at DESC, kid`)
}

func selectSigner(ctx context.Context, q pg.Querier, now time.Time) (kid string, sealed []byte, err error) {
	err = q.QueryRow(ctx, `
		SELECT kid, sealed FROM lms_keys
		WHERE signs_from <= $1
		ORDER BY signs_from DESC, kid LIMIT 1`, now).Scan(&kid, &sealed)
	return kid, sealed, err
}

func insertKey(ctx context.Context, tx *pg.Tx, k Key, sealed []byte) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO lms_keys (kid, sealed, public, created_at, signs_from)
		VALUES ($1, $2, $3, $4, $5)`, k.KID, sealed, k.Public, k.CreatedAt, k.SignsFrom)
	return err
}

// deleteKeys drops the keys whose successors have signed since before.
func deleteKeys(ctx context.Context, q pg.Querier, before time.Time) error {
	_, err := q.Exec(ctx, `
		DELETE FROM lms_keys k
		WHERE EXISTS (SELECT FROM lms_keys n WHERE n.signs_from > k.signs_from AND n.signs_from <= $1)`, before)
	return err
}

func deleteAllKeys(ctx context.Context, tx *pg.Tx) error {
	_, err := tx.Exec(ctx, `DELETE FROM lms_keys`)
	return err
}

// Called finds who has come from one of the organization's LMSes and has the address. NotFound.
func Called(ctx context.Context, q pg.Querier, org id.Organization, address string) (user id.User, err error) {
	err = q.QueryRow(ctx, `
		SELECT a.id FROM accounts a
		WHERE a.email = $2 AND EXISTS (SELECT FROM lms_people p WHERE p.organization_id = $1 AND p.user_id = a.id)`, org, address).
		Scan(&user)
	if pg.None(err) {
		return 0, errNobody
	}
	return user, err
}

// Link remembers where the marks of a student's work on an item go. One that is final already is sent; nil: there is none.
func Link(ctx context.Context, tx *pg.Tx, org id.Organization, l Line, last *Score, now time.Time) error {
	args := pg.Args{
		"organization": org,
		"registration": l.Registration,
		"line":         seal.Hash(l.Address),
		"user":         l.User,
		"address":      l.Address,
		"item":         l.Item,
		"score":        nil,
		"max":          nil,
		"at":           nil,
		"version":      0,
		"due":          nil,
		"now":          now,
	}
	if last != nil {
		args["score"], args["max"], args["at"], args["version"], args["due"] = int64(last.Value), int64(last.Max), last.At, 1, now
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO lms_marks (
			organization_id,
			registration_id,
			line,
			user_id,
			line_item,
			item_id,
			score_e4,
			max_score_e4,
			scored_at,
			version,
			due_at,
			updated_at
		) VALUES (
			@organization,
			@registration,
			@line,
			@user,
			@address,
			@item,
			@score::bigint,
			@max::bigint,
			@at::timestamptz,
			@version,
			@due::timestamptz,
			@now
		)
		ON CONFLICT (organization_id, registration_id, line, user_id) DO UPDATE SET item_id = excluded.item_id
		WHERE lms_marks.item_id <> excluded.item_id`, args)
	return err
}

// updateScores locks the marks in one order.
func updateScores(b *pg.Batch, scores []Score, now time.Time) {
	n := len(scores)
	orgs, users, items := make([]int64, n), make([]int64, n), make([]int64, n)
	values, highest, times := make([]int64, n), make([]int64, n), make([]time.Time, n)
	for i, s := range scores {
		orgs[i], users[i], items[i] = int64(s.Organization), int64(s.User), int64(s.Item)
		values[i], highest[i], times[i] = int64(s.Value), int64(s.Max), s.At
	}
	b.Queue(`
		WITH source AS (
			SELECT *
			FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::timestamptz[])
				AS s(organization, person, item, score, highest, at)
		), locked AS (
			SELECT m.organization_id, m.registration_id, m.line, m.user_id, s.score, s.highest, s.at
			FROM source s
			JOIN lms_marks m ON m.organization_id = s.organization AND m.user_id = s.person AND m.item_id = s.item
			ORDER BY m.organization_id, m.registration_id, m.line, m.user_id
			FOR UPDATE OF m
		)
		UPDATE lms_marks m SET
			score_e4 = l.score,
			max_score_e4 = l.highest,
			scored_at = greatest(l.at, m.scored_at + interval '1 millisecond'),
			version = m.version + 1,
			tries = 0,
			due_at = CASE WHEN m.in_hand THEN m.due_at ELSE $7 END, -- whoever has it in hand makes it due
			updated_at = $7
		FROM locked l
		WHERE m.organization_id = l.organization_id AND m.registration_id = l.registration_id AND m.line = l.line
			AND m.user_id = l.user_id`, orgs, users, items, values, highest, times, now)
}

// updateDue takes turns between LMSes. It looks at none while nothing at all is due.
func updateDue(ctx context.Context, q pg.Querier, orgs, registrations []int64, now, until time.Time) ([]Mark, error) {
	return pg.List[Mark](ctx, q, `
		WITH lmses AS (
			SELECT r.organization_id, r.id, r.client_id, r.token_url, r.token_audience
			FROM lms_registrations r
			WHERE EXISTS (SELECT FROM lms_marks WHERE due_at <= $1)
				AND EXISTS (SELECT FROM lms_marks m
				WHERE m.organization_id = r.organization_id AND m.registration_id = r.id AND m.due_at <= $1)
				AND NOT EXISTS (
					SELECT FROM unnest($3::bigint[], $4::bigint[]) AS busy(organization, registration)
					WHERE busy.organization = r.organization_id AND busy.registration = r.id)
		), due AS (
			SELECT m.organization_id, m.registration_id, m.line, m.user_id, l.client_id, l.token_url, l.token_audience
			FROM lmses l CROSS JOIN LATERAL (
				SELECT * FROM lms_marks m
				WHERE m.organization_id = l.organization_id AND m.registration_id = l.id AND m.due_at <= $1
				ORDER BY m.due_at LIMIT $5
				FOR UPDATE SKIP LOCKED
			) AS m
		)
		UPDATE lms_marks m SET due_at = $2, in_hand = true, claim = m.claim + 1
		FROM due d
		LEFT JOIN lms_people p ON p.organization_id = d.organization_id AND p.registration_id = d.registration_id
			AND p.user_id = d.user_id
		WHERE m.organization_id = d.organization_id AND m.registration_id = d.registration_id AND m.line = d.line
			AND m.user_id = d.user_id
		RETURNING
			m.organization_id AS organization,
			m.registration_id AS registration,
			m.line,
			m.user_id AS "user",
			m.claim,
			m.line_item,
			coalesce(p.subject, '') AS subject,
			m.score_e4 AS score,
			m.max_score_e4 AS max_score,
			m.scored_at,
			m.version,
			m.tries,
			d.client_id,
			d.token_url,
			d.token_audience AS audience`, now, until, orgs, registrations, handful)
}

// Measure counts the due marks of all organizations, and says how long the oldest has waited.
func Measure(ctx context.Context, q pg.Querier, now time.Time) (due int, oldest time.Duration, err error) {
	since := now
	err = q.QueryRow(ctx, `SELECT count(*), coalesce(min(due_at), $1) FROM lms_marks WHERE due_at <= $1`, now).Scan(&due, &since)
	return due, now.Sub(since), err
}

// Settle records an attempt. next is when the mark is due again; zero: it was taken, or given up. A mark that was handed out again
// meanwhile stays as it is; one that was marked again stays due.
func Settle(ctx context.Context, q pg.Querier, m Mark, a MarkAttempt, next time.Time) error {
	var due *time.Time
	if !next.IsZero() {
		due = &next
	}
	_, err := q.Exec(ctx, `
		UPDATE lms_marks SET
			sent_version = CASE WHEN @taken THEN @version ELSE sent_version END,
			sent_at = CASE WHEN @taken THEN @at ELSE sent_at END,
			tries = CASE WHEN version <> @version THEN 0 WHEN @taken THEN tries ELSE tries + 1 END,
			due_at = CASE WHEN version <> @version THEN @at ELSE @due::timestamptz END,
			in_hand = false,
			attempts = (
				SELECT coalesce(jsonb_agg(e.value ORDER BY e.n), '[]')
				FROM jsonb_array_elements(attempts || @attempt::jsonb) WITH ORDINALITY AS e(value, n)
				WHERE e.n > jsonb_array_length(attempts) + 1 - 20
			)
		WHERE organization_id = @organization AND registration_id = @registration AND line = @line AND user_id = @user
			AND claim = @claim`,
		pg.Args{
			"taken":        a.Cause == "",
			"version":      m.Version,
			"at":           a.At,
			"due":          due,
			"attempt":      a,
			"organization": m.Organization,
			"registration": m.Registration,
			"line":         m.Line,
			"user":         m.User,
			"claim":        m.Claim,
		})
	return err
}

// Marks lists those of an LMS that it has not taken, and then the last that it has.
func Marks(ctx context.Context, q pg.Querier, org id.Organization, r id.Registration) ([]Sent, error) {
	return pg.List[Sent](ctx, q, `
		SELECT
			user_id AS "user",
			item_id AS item,
			score_e4 AS score,
			max_score_e4 AS max_score,
			scored_at,
			tries,
			sent_version = version AS taken,
			due_at,
			attempts
		FROM lms_marks
		WHERE organization_id = $1 AND registration_id = $2 AND version > 0
		ORDER BY sent_version = version, scored_at DESC, user_id LIMIT $3`, org, r, shownMarks)
}

func updateGivenUp(ctx context.Context, q pg.Querier, org id.Organization, r id.Registration, now time.Time) (int64, error) {
	tag, err := q.Exec(ctx, `
		UPDATE lms_marks SET due_at = $3, tries = 0
		WHERE organization_id = $1 AND registration_id = $2 AND due_at IS NULL AND version > sent_version`, org, r, now)
	return tag.RowsAffected(), err
}

const contextColumns = `
	c.id,
	c.registration_id AS registration,
	c.deployment,
	c.context AS course,
	c.title,
	c.seen_at,
	c.pulled,
	c.due_at,
	c.in_hand,
	c.tries,
	c.pulled_at,
	c.attempts`

// Contexts lists the courses of a registration, those that are pulled first, and then those that were opened last.
func Contexts(ctx context.Context, q pg.Querier, org id.Organization, r id.Registration) ([]Context, error) {
	return pg.List[Context](ctx, q, `
		SELECT `+contextColumns+` FROM lms_contexts c
		WHERE c.organization_id = $1 AND c.registration_id = $2
		ORDER BY c.pulled DESC, c.seen_at DESC, c.id`, org, r)
}

func selectContext(
	ctx context.Context, q pg.Querier, org id.Organization, r id.Registration, which id.LMSContext,
) (Context, error) {
	return pg.One[Context](ctx, q, `
		SELECT `+contextColumns+` FROM lms_contexts c
		WHERE c.organization_id = $1 AND c.registration_id = $2 AND c.id = $3`, org, r, which)
}

// selectNoted says whether a course is known as it is, and was seen since.
func selectNoted(
	ctx context.Context, q pg.Querier, org id.Organization, r id.Registration, deployment string, c Course, since time.Time,
) (known bool, err error) {
	err = q.QueryRow(ctx, `
		SELECT EXISTS (
			SELECT FROM lms_contexts
			WHERE organization_id = @organization AND registration_id = @registration AND deployment = @deployment
				AND context = @course AND title = @title AND memberships_url = @url AND seen_at > @since
		)`,
		pg.Args{
			"organization": org,
			"registration": r,
			"deployment":   deployment,
			"course":       c.ID,
			"title":        c.Title,
			"url":          c.MembershipsURL,
			"since":        since,
		}).Scan(&known)
	return known, err
}

func upsertContext(
	ctx context.Context, tx *pg.Tx, org id.Organization, r id.Registration, deployment string, c Course, now time.Time,
) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO lms_contexts (
			organization_id,
			registration_id,
			deployment,
			context,
			title,
			memberships_url,
			seen_at
		) VALUES (
			@organization,
			@registration,
			@deployment,
			@course,
			@title,
			@url,
			@now
		)
		ON CONFLICT (organization_id, registration_id, deployment, context) DO UPDATE SET
			title = excluded.title,
			memberships_url = excluded.memberships_url,
			seen_at = excluded.seen_at`,
		pg.Args{
			"organization": org,
			"registration": r,
			"deployment":   deployment,
			"course":       c.ID,
			"title":        c.Title,
			"url":          c.MembershipsURL,
			"now":          now,
		})
	return err
}

// deleteSurplus keeps so many courses of a registration, and all that are pulled.
func deleteSurplus(ctx context.Context, tx *pg.Tx, org id.Organization, r id.Registration, kept int) error {
	_, err := tx.Exec(ctx, `
		DELETE FROM lms_contexts d
		USING (
			SELECT id FROM lms_contexts
			WHERE organization_id = $1 AND registration_id = $2
			ORDER BY pulled DESC, seen_at DESC, id DESC OFFSET $3
		) AS s
		WHERE d.organization_id = $1 AND d.id = s.id AND NOT d.pulled`, org, r, kept)
	return err
}

func countPulled(ctx context.Context, tx *pg.Tx, org id.Organization) (n int, err error) {
	err = tx.QueryRow(ctx, `SELECT count(*) FROM lms_contexts WHERE organization_id = $1 AND pulled`, org).Scan(&n)
	return n, err
}

// updatePulled takes a pull that is in hand from whoever makes it.
func updatePulled(
	ctx context.Context, tx *pg.Tx, org id.Organization, which id.LMSContext, on bool, by audit.Actor, now time.Time,
) error {
	_, err := tx.Exec(ctx, `
		UPDATE lms_contexts SET
			pulled = $3,
			asked_at = $5,
			asked_by = CASE WHEN $3 THEN $4::jsonb END,
			due_at = CASE WHEN $3 THEN $5::timestamptz END,
			in_hand = false,
			claim = claim + 1,
			tries = 0
		WHERE organization_id = $1 AND id = $2`, org, which, on, by, now)
	return err
}

func updateAsked(
	ctx context.Context, tx *pg.Tx, org id.Organization, which id.LMSContext, by audit.Actor, now time.Time,
) error {
	_, err := tx.Exec(ctx, `
		UPDATE lms_contexts SET asked_at = $4, asked_by = $3, due_at = $4, in_hand = false, claim = claim + 1, tries = 0
		WHERE organization_id = $1 AND id = $2`, org, which, by, now)
	return err
}

func selectAnyDue(ctx context.Context, q pg.Querier, now time.Time) (some bool, err error) {
	err = q.QueryRow(ctx, `SELECT EXISTS (SELECT FROM lms_contexts WHERE due_at <= $1 AND tries < $2)`, now, maxPulls).Scan(&some)
	return some, err
}

func updateDuePulls(ctx context.Context, q pg.Querier, most int, now, until time.Time) ([]Pull, error) {
	return pg.List[Pull](ctx, q, `
		WITH lmses AS (
			SELECT r.organization_id, r.id, r.client_id, r.token_url, r.token_audience
			FROM lms_registrations r
			WHERE NOT r.waiting
				AND NOT EXISTS (
					SELECT FROM lms_contexts c
					WHERE c.organization_id = r.organization_id AND c.registration_id = r.id
						AND c.in_hand AND c.due_at > $1)
		), due AS (
			SELECT c.organization_id, c.id, l.client_id, l.token_url, l.token_audience
			FROM lmses l CROSS JOIN LATERAL (
				SELECT * FROM lms_contexts c
				WHERE c.organization_id = l.organization_id AND c.registration_id = l.id
					AND c.due_at <= $1 AND c.tries < $4
				ORDER BY c.due_at LIMIT 1
				FOR UPDATE SKIP LOCKED
			) AS c
			LIMIT $3
		)
		UPDATE lms_contexts c SET due_at = $2, in_hand = true, claim = c.claim + 1, tries = c.tries + 1
		FROM due d
		WHERE c.organization_id = d.organization_id AND c.id = d.id
		RETURNING
			c.organization_id AS organization,
			c.registration_id AS registration,
			d.client_id,
			d.token_url,
			d.token_audience AS audience,
			c.id,
			c.context AS course,
			c.title,
			c.memberships_url,
			c.claim,
			c.tries,
			c.asked_by`, now, until, most, maxPulls)
}

func selectInHand(ctx context.Context, q pg.Querier, p Pull) (is bool, err error) {
	err = q.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM lms_contexts WHERE organization_id = $1 AND id = $2 AND claim = $3)`,
		p.Organization, p.ID, p.Claim).Scan(&is)
	return is, err
}

func updateSettled(ctx context.Context, q pg.Querier, p Pull, a PullAttempt, due *time.Time) error {
	_, err := q.Exec(ctx, `
		UPDATE lms_contexts SET
			due_at = @due,
			asked_by = CASE WHEN @due::timestamptz IS NOT NULL THEN asked_by END,
			in_hand = false,
			tries = CASE WHEN @taken THEN 0 ELSE tries END,
			pulled_at = CASE WHEN @taken THEN @at ELSE pulled_at END,
			attempts = (
				SELECT coalesce(jsonb_agg(e.value ORDER BY e.n), '[]')
				FROM jsonb_array_elements(attempts || @attempt::jsonb) WITH ORDINALITY AS e(value, n)
				WHERE e.n > jsonb_array_length(attempts) + 1 - 20
			)
		WHERE organization_id = @organization AND id = @id AND claim = @claim`,
		pg.Args{
			"due":          due,
			"taken":        a.Cause == "",
			"at":           a.At,
			"attempt":      a,
			"organization": p.Organization,
			"id":           p.ID,
			"claim":        p.Claim,
		})
	return err
}

func updateScheduled(ctx context.Context, q pg.Querier, night, now time.Time) error {
	_, err := q.Exec(ctx, `
		UPDATE lms_contexts SET
			asked_at = $2,
			asked_by = NULL,
			due_at = $2,
			in_hand = false,
			claim = claim + 1,
			tries = 0
		WHERE pulled AND asked_at < $1 AND $1::timestamptz + make_interval(secs => (id * 7919 % $3)::float8) <= $2`,
		night, now, int64(pullSpread.Seconds()))
	return err
}

func countFailing(ctx context.Context, q pg.Querier) (n int, err error) {
	err = q.QueryRow(ctx, `
		SELECT count(*) FROM lms_contexts
		WHERE pulled AND NOT in_hand AND tries >= $1 AND attempts->-1->>'cause' IS NOT NULL`, maxPulls).Scan(&n)
	return n, err
}
