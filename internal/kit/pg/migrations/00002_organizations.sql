-- +goose Up

CREATE TABLE organizations (
    id                           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    slug                         text NOT NULL CONSTRAINT organizations_slug UNIQUE,
    name                         text NOT NULL,
    language_tests_enabled       boolean NOT NULL,
    default_access_months        integer NOT NULL CHECK (default_access_months BETWEEN 1 AND 120),
    grace_period_days            integer NOT NULL CHECK (grace_period_days BETWEEN 0 AND 365),
    starter_tests_per_course     integer NOT NULL CHECK (starter_tests_per_course BETWEEN 0 AND 1000),
    visible_tests_limit          integer NOT NULL CHECK (visible_tests_limit BETWEEN 0 AND 10000),
    send_welcome_email_default   boolean NOT NULL,
    set_password_link_valid_days integer NOT NULL CHECK (set_password_link_valid_days BETWEEN 1 AND 365),
    created_at                   timestamptz NOT NULL,
    updated_at                   timestamptz NOT NULL
);

-- Keys of the partner API. The key itself is shown once and stored only as its hash.
CREATE TABLE api_keys (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    name            text NOT NULL,
    access          text NOT NULL CHECK (access IN ('full', 'read_only')),
    prefix          text NOT NULL,
    hash            bytea NOT NULL CONSTRAINT api_keys_hash UNIQUE,
    created_at      timestamptz NOT NULL,
    revoked_at      timestamptz
);
CREATE INDEX api_keys_organization ON api_keys (organization_id, id);

-- The keys that cursors are signed with, encrypted. The first process that needs one makes it.
CREATE TABLE page_keys (
    version integer PRIMARY KEY,
    sealed  bytea NOT NULL
);

-- The consumer key and secret with which an organization's learning management system signs its
-- LTI launches.
CREATE TABLE lti_consumers (
    organization_id bigint PRIMARY KEY REFERENCES organizations ON DELETE CASCADE,
    consumer_key    text NOT NULL CONSTRAINT lti_consumers_key UNIQUE,
    version         integer NOT NULL DEFAULT 1, -- of the secret
    sealed          bytea NOT NULL,             -- the secret, encrypted
    created_at      timestamptz NOT NULL,
    rotated_at      timestamptz NOT NULL
);

-- The nonces of launches, each of which is accepted once. A row is kept for as long as a launch
-- with its timestamp would be accepted.
CREATE TABLE lti_nonces (
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    nonce           text NOT NULL,
    used_at         timestamptz NOT NULL,
    PRIMARY KEY (organization_id, nonce)
);
CREATE INDEX lti_nonces_used_at ON lti_nonces (used_at);
