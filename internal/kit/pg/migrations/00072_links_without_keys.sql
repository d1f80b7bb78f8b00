-- +goose Up

-- Every provisioning call makes a link. Its row used to lock the rows of its organization,
-- which all calls of the organization share, and of its account, which cost more than the
-- row itself. Links end by themselves, and one without an account leads nowhere.
ALTER TABLE set_password_tokens
    DROP CONSTRAINT set_password_tokens_organization_id_fkey,
    DROP CONSTRAINT set_password_tokens_user_id_fkey;

-- Rows lie in the order in which they expire, more or less: ranges are enough for the sweep.
DROP INDEX set_password_tokens_expiry;
CREATE INDEX set_password_tokens_expiry ON set_password_tokens USING brin (expires_at) WITH (pages_per_range = 16, autosummarize = on);
