package stack

import (
	"context"

	"github.com/jackc/pgx/v5/pgconn"
)

// AddIdle adds so many organizations in which nothing happens, each with ten webhook URLs.
func AddIdle(ctx context.Context, db interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}, organizations int,
) error {
	const atOnce = 500 // each organization makes a sequence, which takes locks
	for made := 0; made < organizations; made += atOnce {
		_, err := db.Exec(ctx, `
			WITH o AS (
				INSERT INTO organizations (slug, name, language_tests_enabled, default_access_months, grace_period_days, starter_tests_per_course,
					visible_tests_limit, send_welcome_email_default, set_password_link_valid_days, created_at, updated_at)
				SELECT 'idle-' || gen_random_uuid(), 'Idle', true, 6, 7, 0, 10, true, 7, now(), now() FROM generate_series(1, $1::int) RETURNING id
			), e AS (
				INSERT INTO webhook_endpoints (organization_id, slot, url, created_at, updated_at)
				SELECT o.id, slot, 'https://hooks.idle.org/' || slot, now(), now() FROM o, generate_series(1, 10) AS slot RETURNING id
			)
			INSERT INTO webhook_health (endpoint_id) SELECT id FROM e`, min(atOnce, organizations-made))
		if err != nil {
			return err
		}
	}
	return nil
}
