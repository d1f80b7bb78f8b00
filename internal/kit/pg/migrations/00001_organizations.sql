-- +goose Up

-- Version 7 UUIDs from the server's clock: their time prefix is what daily partitions
-- are bounded by.
-- +goose StatementBegin
CREATE FUNCTION uuid7() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    SELECT encode(
        set_bit(set_bit(
            overlay(uuid_send(gen_random_uuid())
                    PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
                    FROM 1 FOR 6),
            52, 1), 53, 1), 'hex')::uuid
$$;
-- +goose StatementEnd

-- The smallest version 7 UUID of an instant.
-- +goose StatementBegin
CREATE FUNCTION uuid7_floor(at timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;
-- +goose StatementEnd

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
