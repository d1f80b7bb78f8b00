-- +goose Up

-- Work that a committed transaction owes. A row lives until its work is done; run_at is
-- when it may be (re)started, and moves ahead by a lease each time it is handed out.
CREATE TABLE outbox_tasks (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind            text NOT NULL,
    subject         bigint NOT NULL,
    organization_id bigint REFERENCES organizations ON DELETE CASCADE,
    run_at          timestamptz NOT NULL,
    claims          integer NOT NULL DEFAULT 0,
    created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX outbox_tasks_due ON outbox_tasks (kind, run_at, id);
CREATE INDEX outbox_tasks_subject ON outbox_tasks (kind, subject);

CREATE TABLE emails (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    user_id         bigint REFERENCES accounts ON DELETE CASCADE,
    type            text NOT NULL,
    recipient       text NOT NULL,
    -- Names the message to the outside (Message-ID) and is the place its secrets are sealed for.
    reference       uuid NOT NULL,
    -- What the template needs; whatever is secret is in sealed and goes once it is sent.
    params          jsonb NOT NULL,
    sealed          bytea,
    status          text NOT NULL CHECK (status IN ('queued', 'sent', 'uncertain', 'suppressed', 'failed')),
    detail          text NOT NULL DEFAULT '',
    attempts        integer NOT NULL DEFAULT 0,
    -- Set just before the message text is given to the mail server and cleared when the
    -- server refused it: a row found with it has perhaps been sent.
    handed_over_at  timestamptz,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL
);
CREATE INDEX emails_user ON emails (organization_id, user_id, id DESC);
CREATE INDEX emails_queued ON emails (created_at) WHERE status = 'queued';
