-- +goose Up

-- What an organization's LMS signs its launches with.
CREATE TABLE lti_consumers (
    organization_id bigint PRIMARY KEY REFERENCES organizations ON DELETE CASCADE,
    consumer_key    text NOT NULL CONSTRAINT lti_consumers_key UNIQUE,
    version         integer NOT NULL DEFAULT 1, -- of the secret
    sealed          bytea NOT NULL,
    created_at      timestamptz NOT NULL,
    rotated_at      timestamptz NOT NULL
);

-- A launch is good once. Rows are kept for as long as its timestamp would be taken.
CREATE TABLE lti_nonces (
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    nonce           text NOT NULL,
    used_at         timestamptz NOT NULL,
    PRIMARY KEY (organization_id, nonce)
);
CREATE INDEX lti_nonces_used_at ON lti_nonces (used_at);
