-- +goose Up

-- The pictures by which organizations are known on pages. They are PNG, as we encoded them.
CREATE TABLE organization_logos (
    organization_id bigint PRIMARY KEY REFERENCES organizations ON DELETE CASCADE,
    picture         bytea NOT NULL,
    digest          bytea NOT NULL, -- of the picture; its address changes with it
    updated_at      timestamptz NOT NULL
);
