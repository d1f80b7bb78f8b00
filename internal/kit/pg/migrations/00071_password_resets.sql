-- +goose Up

-- Who asked for a new password, until the worker has looked whether there is such an account.
CREATE TABLE password_resets (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email      text NOT NULL,
    created_at timestamptz NOT NULL
);

-- A link that no organization was given, and the mail that carries it: the person asked for it.
ALTER TABLE set_password_tokens ALTER COLUMN organization_id DROP NOT NULL;
ALTER TABLE emails ALTER COLUMN organization_id DROP NOT NULL;
