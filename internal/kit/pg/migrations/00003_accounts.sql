-- +goose Up

-- People. An email address is one person on the whole platform.
CREATE TABLE accounts (
    id                      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email                   text NOT NULL CONSTRAINT accounts_email UNIQUE,
    username                text NOT NULL,
    first_name              text NOT NULL,
    last_name               text NOT NULL DEFAULT '',
    password_hash           text,
    -- The student chose the password. Nobody else can set the sign-in details from then on.
    own_password            boolean NOT NULL DEFAULT false,
    -- No partner can know the password: it was set over a link that was sent to the mailbox alone,
    -- or by the platform. A person who becomes staff keeps only such a password.
    proven_password         boolean NOT NULL DEFAULT false,
    must_change_password    boolean NOT NULL DEFAULT false,
    last_login              timestamptz,
    -- Who made the account, and how. Only its maker may set the sign-in details.
    created_by_organization bigint REFERENCES organizations ON DELETE SET NULL,
    created_via             text NOT NULL CHECK (created_via IN ('api', 'roster', 'staff', 'lti')),
    created_at              timestamptz NOT NULL,
    updated_at              timestamptz NOT NULL
);
CREATE UNIQUE INDEX accounts_username ON accounts (lower(username));

-- Students and staff of an organization. There are no foreign keys: see forget_accounts.
CREATE TABLE members (
    organization_id bigint NOT NULL,
    user_id         bigint NOT NULL,
    role            text NOT NULL CHECK (role IN ('member', 'owner', 'admin', 'examiner', 'teacher')),
    status          text NOT NULL CHECK (status IN ('active', 'inactive')),
    created_via     text NOT NULL CHECK (created_via IN ('api', 'roster', 'staff', 'lti')),
    joined_at       timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    PRIMARY KEY (organization_id, user_id)
);
CREATE INDEX members_user ON members (user_id);
CREATE INDEX members_staff ON members (organization_id, user_id) WHERE role <> 'member';

-- Browsers that are signed in. A token is stored only as its hash.
CREATE TABLE sessions (
    hash       text PRIMARY KEY,
    data       jsonb NOT NULL,
    -- A new password ends all sessions of its account.
    user_id    bigint GENERATED ALWAYS AS ((data -> 'values' ->> 'user')::bigint) STORED
               REFERENCES accounts ON DELETE CASCADE,
    expires_at timestamptz NOT NULL
);
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);

-- Links with which a student sets a password. Every provisioning call makes one. There are no
-- foreign keys, because they would lock the row of the organization, which all of its calls
-- share. A link ends by itself, and one whose account is deleted opens nothing.
CREATE TABLE set_password_tokens (
    hash            bytea PRIMARY KEY,
    user_id         bigint NOT NULL,
    organization_id bigint, -- NULL: the person asked for the link
    created_at      timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL
);
CREATE INDEX set_password_tokens_user ON set_password_tokens (user_id);
-- Rows are stored nearly in the order in which they expire, so the sweep needs only ranges.
CREATE INDEX set_password_tokens_expiry ON set_password_tokens
    USING brin (expires_at) WITH (pages_per_range = 16, autosummarize = on);

-- Requests for a new password, until the worker has checked whether the address has an account.
CREATE TABLE password_resets (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email      text NOT NULL,
    created_at timestamptz NOT NULL
);
