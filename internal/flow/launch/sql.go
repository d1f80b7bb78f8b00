package launch

import (
	"context"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// selectRostered is who the message's subject is by the rosters that were pulled from its LMS (lms.Context); 0 where they name
// nobody, or several people.
func selectRostered(ctx context.Context, tx *pg.Tx, m Message) (id.User, error) {
	users, err := pg.Column[id.User](ctx, tx, `
		SELECT DISTINCT i.user_id
		FROM lms_contexts c
		JOIN roster_sources s ON s.organization_id = c.organization_id AND s.name = 'lms-' || c.id
		JOIN roster_identities i ON i.source_id = s.id AND i.external_id = $3
		WHERE c.organization_id = $1 AND c.registration_id = $2 AND c.pulled_at IS NOT NULL
		LIMIT 2`, m.Organization, m.Registration, m.Subject)
	if err != nil || len(users) != 1 {
		return 0, err
	}
	return users[0], nil
}
