package audit

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Write adds the entry to the log, in the transaction of the command that it is about.
func Write(ctx context.Context, tx *pg.Tx, e Entry) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO audit_log (organization_id, actor_kind, actor_id, actor_name, action, target, created_at)
		VALUES (nullif(@organization::bigint, 0), @kind, nullif(@actor::bigint, 0), @name, @action, @target, @at)`,
		pg.Args{"organization": e.Organization, "kind": e.Actor.Kind, "actor": e.Actor.ID, "name": e.Actor.Name,
			"action": e.Action, "target": e.Target, "at": e.At})
	return err
}

// List reads the organization's entries, latest first: the PageSize that come before the one
// with the id before, or the latest ones for 0.
func List(ctx context.Context, q pg.Querier, org id.Organization, before int64) ([]Entry, error) {
	rows, err := q.Query(ctx, `
		SELECT id, organization_id, actor_kind, coalesce(actor_id, 0), actor_name, action, target, created_at
		FROM audit_log
		WHERE organization_id = $1 AND ($2::bigint = 0 OR id < $2)
		ORDER BY id DESC LIMIT $3`, org, before, PageSize)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Entry, err error) {
		err = row.Scan(&e.ID, &e.Organization, &e.Actor.Kind, &e.Actor.ID, &e.Actor.Name, &e.Action, &e.Target, &e.At)
		return e, err
	})
}
