package email

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// row is a mail as it is stored.
type row struct {
	ID           id.Email
	Organization id.Organization
	User         id.User
	Type         Type
	Recipient    string
	Reference    uuid.UUID
	Params       []byte
	Sealed       []byte
	Status       Status
	Detail       string
	Attempts     int
	HandedOver   bool
	CreatedAt    time.Time
	Logo         string // the digest of the organization's; "": there is none
	Language     string // that the person chose, or else the organization's; "": none's
}

// onboarding is the condition on emails for the types that LoadLatest and the share of an address are
// about, as the index emails_onboarding has it.
const onboarding = `type IN ('welcome', 'credentials', 'access_update')`

// queueInsert stores r as suppressed, with the detail over and without its secrets, where most is not
// 0 and its recipient has had that many onboarding mails since then. It fills into.
func queueInsert(b *pg.Batch, r row, most int, since time.Time, over string, into *Record) {
	b.Queue(`
		INSERT INTO emails (
			organization_id,
			user_id,
			type,
			recipient,
			reference,
			params,
			sealed,
			status,
			detail,
			created_at,
			updated_at
		) SELECT
			nullif(@org::bigint, 0),
			@user::bigint,
			@type::text,
			@recipient::text,
			@reference::uuid,
			@params::jsonb,
			CASE WHEN NOT is_over THEN @sealed::bytea END,
			CASE WHEN is_over THEN 'suppressed' ELSE @status::text END,
			CASE WHEN is_over THEN @over::text ELSE @detail::text END,
			@created::timestamptz,
			@created::timestamptz
		FROM (SELECT CASE WHEN @most::integer = 0 THEN false ELSE @most::integer <= (
			SELECT count(*)
			FROM emails
			WHERE recipient = @recipient AND `+onboarding+` AND created_at > @since AND status <> 'suppressed'
		) END AS is_over) AS share
		RETURNING id, type, status, detail, created_at`,
		pg.Args{
			"org":       r.Organization,
			"user":      r.User,
			"type":      r.Type,
			"recipient": r.Recipient,
			"reference": r.Reference,
			"params":    r.Params,
			"sealed":    r.Sealed,
			"status":    r.Status,
			"detail":    r.Detail,
			"created":   r.CreatedAt,
			"most":      most,
			"since":     since,
			"over":      over,
		}).Query(func(rows pgx.Rows) (err error) {
		*into, err = oneRecord(rows, nil)
		return err
	})
}

// LoadLatest queues the reading of the last onboarding mail (welcome, credentials or
// access_update) that the organization sent to the student who now has the address. Sending b
// fills into, with the zero Record when there is none.
func LoadLatest(b *pg.Batch, org id.Organization, address string, into *Record) {
	b.Queue(`
		SELECT id, type, status, detail, created_at FROM emails
		WHERE organization_id = $1 AND user_id = (SELECT id FROM accounts WHERE email = $2)
		  AND `+onboarding+`
		ORDER BY id DESC LIMIT 1`, org, address).Query(func(rows pgx.Rows) (err error) {
		*into, err = oneRecord(rows, nil)
		return err
	})
}

// Find reads a mail's record; the zero Record when the organization has no such mail.
func Find(ctx context.Context, q pg.Querier, org id.Organization, mail id.Email) (Record, error) {
	return oneRecord(q.Query(ctx, `
		SELECT id, type, status, detail, created_at FROM emails WHERE organization_id = $1 AND id = $2`, org, mail))
}

func oneRecord(rows pgx.Rows, err error) (Record, error) {
	if err != nil {
		return Record{}, err
	}
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Record])
	if pg.None(err) {
		return Record{}, nil
	}
	return r, err
}

func load(ctx context.Context, q pg.Querier, mail id.Email) (row, error) {
	return pg.One[row](ctx, q, `
		SELECT
			id,
			coalesce(organization_id, 0) AS organization,
			coalesce(user_id, 0) AS "user",
			type,
			recipient,
			reference,
			params,
			sealed,
			status,
			detail,
			attempts,
			handed_over_at IS NOT NULL AS handed_over,
			created_at,
			coalesce((
				SELECT encode(l.digest, 'hex') FROM organization_logos l
				WHERE l.organization_id = emails.organization_id), '') AS logo,
			coalesce(
				(SELECT a.language FROM accounts a WHERE a.id = emails.user_id),
				(SELECT o.language FROM organizations o WHERE o.id = emails.organization_id),
				'') AS language
		FROM emails WHERE id = $1`, mail)
}

// markHandedOver returns false when the mail is already marked or final.
func markHandedOver(ctx context.Context, q pg.Querier, mail id.Email, now time.Time) (bool, error) {
	tag, err := q.Exec(ctx, `
		UPDATE emails SET handed_over_at = $2, updated_at = $2
		WHERE id = $1 AND status = 'queued' AND handed_over_at IS NULL`, mail, now)
	return tag.RowsAffected() == 1, err
}

// record removes the mark of a mail that stays queued, and the secrets of one that is final.
func record(ctx context.Context, q pg.Querier, mail id.Email, f outcome, now time.Time) error {
	_, err := q.Exec(ctx, `
		UPDATE emails SET status = $2, detail = $3, attempts = attempts + 1, updated_at = $4,
			sealed = CASE WHEN $2 = 'queued' THEN sealed END,
			handed_over_at = CASE WHEN $2 = 'queued' THEN NULL ELSE handed_over_at END
		WHERE id = $1 AND status = 'queued'`, mail, f.status, f.detail, now)
	return err
}

// OfStudent lists up to limit of the organization's mails about the person that were written by until, whoever
// receives them, the last one first.
func OfStudent(ctx context.Context, q pg.Querier, org id.Organization, user id.User, until time.Time, limit int) ([]Sending, error) {
	return pg.List[Sending](ctx, q, `
		SELECT id, type, recipient, status, detail, attempts, created_at FROM emails
		WHERE organization_id = $1 AND user_id = $2 AND created_at <= $3
		ORDER BY created_at DESC, id DESC LIMIT $4`, org, user, until, limit)
}

// Sealed is where the secrets of waiting mails are; a value is bound to place.
var Sealed = seal.Column{Table: "emails", Context: `'emails/' || reference`}

// End ends the subscription; who has left the organization has none. It may be repeated.
func (s Subscription) End(ctx context.Context, q pg.Querier, now time.Time) error {
	_, err := q.Exec(ctx, `
		INSERT INTO mail_optouts (organization_id, user_id, type, created_at)
		SELECT organization_id, user_id, $3, $4 FROM members WHERE organization_id = $1 AND user_id = $2
		ON CONFLICT DO NOTHING`, s.Organization, s.User, s.Of, now)
	return err
}

func deleteOptout(ctx context.Context, q pg.Querier, s Subscription) error {
	_, err := q.Exec(ctx, `
		DELETE FROM mail_optouts WHERE organization_id = $1 AND user_id = $2 AND type = $3`, s.Organization, s.User, s.Of)
	return err
}

// Ended lists the types of mails that the person does not want of the organization.
func Ended(ctx context.Context, q pg.Querier, org id.Organization, user id.User) ([]Type, error) {
	return pg.Column[Type](ctx, q, `
		SELECT type FROM mail_optouts WHERE organization_id = $1 AND user_id = $2 ORDER BY type`, org, user)
}

// EndedBy lists who does not want the organization's mails of the type.
func EndedBy(ctx context.Context, q pg.Querier, org id.Organization, of Type) ([]id.User, error) {
	return pg.Column[id.User](ctx, q, `
		SELECT user_id FROM mail_optouts WHERE organization_id = $1 AND type = $2`, org, of)
}
