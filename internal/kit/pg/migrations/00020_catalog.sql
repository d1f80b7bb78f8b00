-- +goose Up

-- What cursors are signed with, sealed; drawn by whichever process needs it first.
CREATE TABLE page_keys (
    version integer PRIMARY KEY,
    sealed  bytea NOT NULL
);

-- Assignable work. A test without an organization is everyone's.
CREATE TABLE catalog_items (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id bigint REFERENCES organizations ON DELETE CASCADE,
    kind            text NOT NULL CHECK (kind IN ('test', 'quiz', 'assessment')),
    code            text NOT NULL,
    title           text NOT NULL,
    type            text NOT NULL, -- a score scale, or the kind itself where it is no test
    scope           text NOT NULL DEFAULT 'full', -- or the one section that a test examines
    max_score_e4    bigint NOT NULL CHECK (max_score_e4 > 0), -- scores are in ten-thousandths
    difficulty_e4   bigint,
    starter         boolean NOT NULL DEFAULT false,
    active          boolean NOT NULL DEFAULT true,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    CONSTRAINT catalog_items_code UNIQUE NULLS NOT DISTINCT (organization_id, kind, code),
    CONSTRAINT catalog_items_owned CHECK (kind = 'test' OR organization_id IS NOT NULL)
);
