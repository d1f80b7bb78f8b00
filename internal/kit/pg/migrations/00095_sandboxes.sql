-- +goose Up

-- The sandboxes of organizations. Each has a database of its own with this same schema, which its organization and
-- generation name: to wipe a sandbox is to move it to a new one.
CREATE TABLE sandboxes (
    organization_id bigint PRIMARY KEY REFERENCES organizations ON DELETE CASCADE,
    generation      integer NOT NULL,
    created_at      timestamptz NOT NULL,
    filled_at       timestamptz NOT NULL, -- when the present database was made
    -- A worker works on it while more was asked than is done.
    asked           bigint NOT NULL DEFAULT 0,
    done            bigint NOT NULL DEFAULT 0
);

-- A key of the organization's sandbox, which works for nothing else. Programs of the version before refuse its text.
ALTER TABLE api_keys ADD COLUMN sandbox boolean NOT NULL DEFAULT false;

-- The clock of a sandbox, in the sandbox's database. The installation's own database has no row here: its time is
-- PostgreSQL's.
CREATE TABLE sandbox_clock (
    organization_id bigint PRIMARY KEY REFERENCES organizations ON DELETE CASCADE,
    now_at          timestamptz NOT NULL,
    from_at         timestamptz NOT NULL, -- where it was when the last move was asked for
    target_at       timestamptz, -- where it is being moved; NULL: it stands still
    receiver        text NOT NULL DEFAULT 'accepts' CHECK (receiver IN ('real', 'accepts', 'fails')),
    kept_on         date NOT NULL, -- the last day whose daily work is done
    -- The task that is in hand, and when it was due: it is due then again if the process ends before the task does.
    task_id         bigint,
    task_due_at     timestamptz,
    CHECK (target_at IS NULL OR target_at >= now_at)
);

-- The mails of a sandbox, in the sandbox's database. They are read and not sent.
CREATE TABLE sandbox_mails (
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    email_id        bigint NOT NULL,
    sent_at         timestamptz NOT NULL,
    recipient       text NOT NULL,
    subject         text NOT NULL,
    plain           text NOT NULL,
    html            text NOT NULL,
    PRIMARY KEY (organization_id, email_id)
);
