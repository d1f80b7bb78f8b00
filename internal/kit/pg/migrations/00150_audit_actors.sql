-- +goose Up

-- The log has every command now, whoever gave it: people, keys, Kubernetes resources and the
-- worker itself. Commands that are about no single organization have none.
ALTER TABLE audit_log
    ADD COLUMN actor_kind text NOT NULL DEFAULT 'staff'
        CHECK (actor_kind IN ('partner_key', 'platform_key', 'staff', 'operator', 'schedule')),
    ADD COLUMN actor_id bigint, -- the API key's or the account's
    ALTER COLUMN organization_id DROP NOT NULL;
ALTER TABLE audit_log ALTER COLUMN actor_kind DROP DEFAULT;
UPDATE audit_log SET actor_id = user_id;
ALTER TABLE audit_log RENAME COLUMN actor TO actor_name;
ALTER TABLE audit_log DROP COLUMN user_id;
