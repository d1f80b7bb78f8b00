-- +goose Up

-- First answers to requests that carried an Idempotency-Key. Answers may hold a password
-- or a one-time link and are encrypted.
CREATE TABLE idempotency_keys (
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    key             text NOT NULL,
    request         bytea NOT NULL, -- hash of method, path and body
    -- Who executes it. A process that has died stops moving alive_at, and another takes over.
    holder          uuid NOT NULL,
    alive_at        timestamptz NOT NULL,
    status          integer, -- NULL: there is no answer yet
    content_type    text NOT NULL DEFAULT '',
    sealed          bytea,
    created_at      timestamptz NOT NULL,
    PRIMARY KEY (organization_id, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);
