-- +goose Up

-- Every command, and who gave it. Rows are only ever added.
CREATE TABLE audit_log (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id bigint REFERENCES organizations ON DELETE CASCADE, -- NULL: the command is about no single one
    actor_kind      text NOT NULL
                    CHECK (actor_kind IN ('partner_key', 'platform_key', 'staff', 'operator', 'schedule')),
    actor_id        bigint,        -- of the API key or the account; it stays when that is deleted
    actor_name      text NOT NULL, -- at the time of the command
    action          text NOT NULL,
    target          text NOT NULL,
    created_at      timestamptz NOT NULL
);
CREATE INDEX audit_log_organization ON audit_log (organization_id, id DESC);
