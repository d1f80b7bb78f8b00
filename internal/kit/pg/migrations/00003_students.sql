-- +goose Up

-- People. An email address is one person on the whole platform.
CREATE TABLE accounts (
    id                      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email                   text NOT NULL CONSTRAINT accounts_email UNIQUE,
    username                text NOT NULL,
    first_name              text NOT NULL,
    last_name               text NOT NULL DEFAULT '',
    password_hash           text,
    -- The student chose the password: nobody else sets the sign-in details any more.
    own_password            boolean NOT NULL DEFAULT false,
    must_change_password    boolean NOT NULL DEFAULT false,
    last_login              timestamptz,
    -- Who made the account, and how: sign-in details may only be set by its maker.
    created_by_organization bigint REFERENCES organizations ON DELETE SET NULL,
    created_via             text NOT NULL CHECK (created_via IN ('api', 'roster', 'staff', 'lti')),
    created_at              timestamptz NOT NULL,
    updated_at              timestamptz NOT NULL
);
CREATE UNIQUE INDEX accounts_username ON accounts (lower(username));

CREATE TABLE members (
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    user_id         bigint NOT NULL REFERENCES accounts ON DELETE CASCADE,
    role            text NOT NULL CHECK (role IN ('member', 'owner', 'admin', 'examiner', 'teacher')),
    status          text NOT NULL CHECK (status IN ('active', 'inactive')),
    created_via     text NOT NULL CHECK (created_via IN ('api', 'roster', 'staff', 'lti')),
    joined_at       timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    PRIMARY KEY (organization_id, user_id)
);
CREATE INDEX members_user ON members (user_id);

CREATE TABLE enrollments (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id  bigint NOT NULL,
    user_id          bigint NOT NULL REFERENCES accounts ON DELETE CASCADE,
    course_id        bigint NOT NULL,
    -- What a person decided; the status shown follows from it and the dates.
    state            text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'suspended', 'dropped', 'completed')),
    start_date       date NOT NULL,
    end_date         date NOT NULL,
    grace_period_end date NOT NULL,
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    CONSTRAINT enrollments_one_a_course UNIQUE (user_id, course_id),
    CONSTRAINT enrollments_dates CHECK (end_date >= start_date AND grace_period_end >= end_date),
    FOREIGN KEY (organization_id, course_id) REFERENCES courses (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX enrollments_organization_user ON enrollments (organization_id, user_id);
CREATE INDEX enrollments_course ON enrollments (course_id, grace_period_end) WHERE state = 'running';

-- An extension or grant that was made for a caller's reference is never made again for it.
CREATE TABLE enrollment_refs (
    enrollment_id bigint NOT NULL REFERENCES enrollments ON DELETE CASCADE,
    ref          text NOT NULL,
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (enrollment_id, ref)
);

CREATE TABLE set_password_tokens (
    hash            bytea PRIMARY KEY,
    user_id         bigint NOT NULL REFERENCES accounts ON DELETE CASCADE,
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    created_at      timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL
);
CREATE INDEX set_password_tokens_user ON set_password_tokens (user_id);
CREATE INDEX set_password_tokens_expiry ON set_password_tokens (expires_at);
