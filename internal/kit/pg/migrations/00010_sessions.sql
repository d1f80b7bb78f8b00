-- +goose Up

-- Browsers that are signed in. A token is stored only as its hash.
CREATE TABLE sessions (
    hash       text PRIMARY KEY,
    data       jsonb NOT NULL,
    -- Whose session it is: a new password ends all of them.
    user_id    bigint GENERATED ALWAYS AS ((data -> 'values' ->> 'user')::bigint) STORED REFERENCES accounts ON DELETE CASCADE,
    expires_at timestamptz NOT NULL
);
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);
