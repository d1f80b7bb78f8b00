-- +goose Up

-- What a key may do beyond its access, until when, and from where. Programs of the previous version
-- do not find a key that has any of these: its hash is hashed once more.
ALTER TABLE api_keys ADD COLUMN scopes text[] CHECK (scopes IS NULL OR access = 'read_only');
ALTER TABLE api_keys ADD COLUMN networks cidr[] NOT NULL DEFAULT '{}'; -- empty: from everywhere
ALTER TABLE api_keys ADD COLUMN expires_at timestamptz;

-- The first use of the last day with one, as each replica saw it.
ALTER TABLE api_keys ADD COLUMN last_used_on date;
ALTER TABLE api_keys ADD COLUMN last_used_from inet;
