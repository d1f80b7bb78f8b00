package audit

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Write adds the entry to the log, in the transaction of the command that it is about.
func Write(ctx context.Context, tx *pg.Tx, e Entry) error {
	var b pg.Batch
	Queue(&b, e)
	return b.Send(ctx, tx)
}

// Queue queues what Write does. The batch must be sent in the transaction of the command.
func Queue(b *pg.Batch, e Entry) {
	b.Queue(`
		INSERT INTO audit_log (organization_id, actor_kind, actor_id, actor_name, action, target, created_at)
		VALUES (nullif(@organization::bigint, 0), @kind, nullif(@actor::bigint, 0), @name, @action, @target, @at)`,
		pg.Args{"organization": e.Organization, "kind": e.Actor.Kind, "actor": e.Actor.ID, "name": e.Actor.Name,
			"action": e.Action, "target": e.Target, "at": e.At})
}

// List reads the organization's entries, latest first: the PageSize that come before the one
// with the id before, or the latest ones for 0.
func List(ctx context.Context, q pg.Querier, org id.Organization, before int64) ([]Entry, error) {
	rows, err := q.Query(ctx, `
		SELECT `+columns+`
		FROM audit_log
		WHERE organization_id = $1 AND ($2::bigint = 0 OR id < $2)
		ORDER BY id DESC LIMIT $3`, org, before, PageSize)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// About reads up to limit of the organization's entries until that time whose target is subject, begins with it
// and a blank, or is one of others, latest first.
func About(ctx context.Context, q pg.Querier, org id.Organization, subject string, others []string, until time.Time, limit int) ([]Entry, error) {
	// Two statements in one, each along the index of targets. The character after a blank is "!".
	const part = `
		SELECT * FROM audit_log
		WHERE organization_id = @organization AND target <> '' AND created_at <= @until AND `
	rows, err := q.Query(ctx, `
		SELECT `+columns+`
		FROM (`+part+`target COLLATE "C" = ANY (@exact::text[])
			UNION ALL`+part+`target COLLATE "C" >= @subject::text || ' ' AND target COLLATE "C" < @subject::text || '!'
		) AS found
		ORDER BY created_at DESC, id DESC LIMIT @limit`,
		pg.Args{
			"organization": org,
			"subject":      subject,
			"exact":        append([]string{subject}, others...),
			"until":        until,
			"limit":        limit,
		})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

const columns = `
	id,
	coalesce(organization_id, 0),
	actor_kind,
	coalesce(actor_id, 0),
	actor_name,
	action,
	target,
	created_at,
	address,
	times`

func scan(row pgx.CollectableRow) (e Entry, err error) {
	err = row.Scan(&e.ID, &e.Organization, &e.Actor.Kind, &e.Actor.ID, &e.Actor.Name, &e.Action, &e.Target, &e.At, &e.Address, &e.Times)
	return e, err
}

// Span is a part of the log: the entries behind one, made from since to before until.
type Span struct {
	Organization id.Organization // 0: of all, and of none
	Since, Until time.Time
	After        int64 // an entry's id; 0: from the beginning
}

// Export hands on the entries of the span by their ids, up to so many. It reads them in portions, and
// holds no connection while each is handed on.
func Export(ctx context.Context, q pg.Querier, s Span, most int, each func(Entry) error) error {
	const portion = 1000
	for most > 0 {
		limit := min(portion, most)
		rows, err := q.Query(ctx, `
			SELECT `+columns+`
			FROM audit_log
			WHERE ($1::bigint = 0 OR organization_id = $1) AND id > $2 AND created_at >= $3 AND created_at < $4
			ORDER BY id LIMIT $5`, s.Organization, s.After, s.Since, s.Until, limit)
		if err != nil {
			return err
		}
		entries, err := pgx.CollectRows(rows, scan)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := each(e); err != nil {
				return err
			}
			s.After = e.ID
		}
		if most -= len(entries); len(entries) < limit {
			return nil
		}
	}
	return nil
}

// WriteOwn adds what a person did to their own account, such as signing in: a row for each organization on whose
// staff the person is, or one for none.
func WriteOwn(
	ctx context.Context, q pg.Querier, by Actor, orgs []id.Organization, action, target, address string, now time.Time,
) error {
	if len(orgs) == 0 {
		orgs = []id.Organization{0}
	}
	_, err := q.Exec(ctx, `
		INSERT INTO audit_log (
			organization_id,
			actor_kind,
			actor_id,
			actor_name,
			action,
			target,
			created_at,
			address
		)
		SELECT
			nullif(o, 0),
			@kind,
			@actor,
			@name,
			@action,
			@target,
			@at,
			@address
		FROM unnest(@organizations::bigint[]) AS o`,
		pg.Args{
			"kind":          string(by.Kind),
			"actor":         by.ID,
			"name":          by.Name,
			"action":        action,
			"target":        target,
			"at":            now,
			"address":       address,
			"organizations": orgs,
		})
	return err
}

func insertRefusals(ctx context.Context, q pg.Querier, counted map[Refusal]int, now time.Time) error {
	var b pg.Batch
	for r, times := range counted {
		b.Queue(`
			INSERT INTO audit_log (
				organization_id,
				actor_kind,
				actor_id,
				actor_name,
				action,
				target,
				created_at,
				address,
				times
			) VALUES (
				nullif(@organization::bigint, 0),
				@kind,
				nullif(@actor::bigint, 0),
				@name,
				@action,
				@target,
				@at,
				@address,
				@times
			)`,
			pg.Args{"organization": r.Organization, "kind": string(r.Actor.Kind), "actor": r.Actor.ID, "name": r.Actor.Name,
				"action": r.Action, "target": r.Target, "at": now, "address": r.Address, "times": times})
	}
	return b.Send(ctx, q)
}
