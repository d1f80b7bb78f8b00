-- +goose Up

-- Work that a committed transaction left to do. A row is deleted when its work is done. run_at is
-- when it may be started or started again; each claim moves it ahead by a lease.
CREATE TABLE outbox_tasks (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind            text NOT NULL,
    subject         bigint NOT NULL,
    organization_id bigint REFERENCES organizations ON DELETE CASCADE,
    run_at          timestamptz NOT NULL,
    claims          integer NOT NULL DEFAULT 0
);
CREATE INDEX outbox_tasks_due ON outbox_tasks (kind, run_at, id);
CREATE INDEX outbox_tasks_subject ON outbox_tasks (kind, subject);

CREATE TABLE emails (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id bigint REFERENCES organizations ON DELETE CASCADE, -- NULL: the person asked for it
    user_id         bigint REFERENCES accounts ON DELETE CASCADE,
    type            text NOT NULL,
    recipient       text NOT NULL,
    -- The Message-ID is made of it, and the message's secrets are encrypted for it.
    reference       uuid NOT NULL,
    -- What the template needs. Secrets are in sealed, encrypted, until the message is sent.
    params          jsonb NOT NULL,
    sealed          bytea,
    status          text NOT NULL CHECK (status IN ('queued', 'sent', 'uncertain', 'suppressed', 'failed')),
    detail          text NOT NULL DEFAULT '',
    attempts        integer NOT NULL DEFAULT 0,
    -- Set just before the text is handed to the mail server, and cleared when the server refused
    -- it. A row that is found with it may have been sent.
    handed_over_at  timestamptz,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL
);
CREATE INDEX emails_user ON emails (organization_id, user_id, id DESC);
CREATE INDEX emails_queued ON emails (created_at) WHERE status = 'queued';

-- The first answers to requests with an Idempotency-Key. They are encrypted, as they may hold a
-- password or a one-time link.
CREATE TABLE idempotency_keys (
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    key             text NOT NULL,
    request         bytea NOT NULL, -- hash of method, path and body
    -- The process that executes the request. It keeps moving alive_at; once that stops, another
    -- may take over.
    holder          uuid NOT NULL,
    alive_at        timestamptz NOT NULL,
    status          integer,        -- NULL: there is no answer yet
    content_type    text NOT NULL DEFAULT '',
    sealed          bytea,
    created_at      timestamptz NOT NULL,
    PRIMARY KEY (organization_id, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);
