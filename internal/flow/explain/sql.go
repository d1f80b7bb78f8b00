package explain

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// membership is a person's membership, with what roster imports had to do with it.
type membership struct {
	org.Member
	UpdatedAt time.Time
	Run       id.RosterRun // that made it; 0: none
	Source    string       // of that run
	EndedBy   string       // the source whose import ended it; "": none
}

// selectMembership recognises the run that made a membership, and the source that ended it, by the time that the
// run writes into all of its rows.
func selectMembership(ctx context.Context, q pg.Querier, in id.Organization, user id.User) (membership, error) {
	return pg.One[membership](ctx, q, `
		SELECT
			m.role,
			m.status,
			m.created_via AS via,
			m.joined_at,
			m.updated_at,
			coalesce(made.id, 0) AS run,
			coalesce(made.name, '') AS source,
			coalesce(CASE WHEN m.status = 'inactive' THEN (
				SELECT s.name
				FROM roster_identities i JOIN roster_sources s ON s.id = i.source_id
				WHERE i.user_id = m.user_id AND i.organization_id = m.organization_id AND i.left_at = m.updated_at
				ORDER BY s.name LIMIT 1
			) END, '') AS ended_by
		FROM members m
		LEFT JOIN LATERAL (
			SELECT r.id, s.name
			FROM roster_runs r JOIN roster_sources s ON s.id = r.source_id
			WHERE m.created_via = 'roster' AND r.organization_id = m.organization_id AND r.stamp = m.joined_at
			ORDER BY r.id LIMIT 1
		) AS made ON true
		WHERE m.organization_id = $1 AND m.user_id = $2`, in, user)
}
