-- +goose Up

-- What people did in the console. Rows are only ever added.
CREATE TABLE audit_log (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    user_id         bigint REFERENCES accounts ON DELETE SET NULL,
    actor           text NOT NULL, -- the person's address then; it stays when the account goes
    action          text NOT NULL,
    target          text NOT NULL,
    created_at      timestamptz NOT NULL
);
CREATE INDEX audit_log_organization ON audit_log (organization_id, id DESC);
