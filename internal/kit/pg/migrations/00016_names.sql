-- +goose Up

-- What an organization calls its people: names belong to a membership, and no organization sees
-- what another one sent. Both are NULL where the names are the account's own, as with the
-- organization that made it. Rows from before this migration are such, so none is rewritten.
ALTER TABLE directory
    ADD COLUMN first_name text,
    ADD COLUMN last_name text,
    ADD CONSTRAINT directory_names CHECK ((first_name IS NULL) = (last_name IS NULL)) NOT VALID;

-- Whoever takes in a person with an account enters the names before the membership. Without them
-- the person has none here, rather than those that another organization sent.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION directory_enter() RETURNS trigger LANGUAGE plpgsql
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
AS $$
BEGIN
    INSERT INTO directory (user_id, organization_id, first_name, last_name, name, surname, email)
    SELECT
        a.id,
        m.organization_id,
        CASE WHEN a.created_by_organization <> m.organization_id THEN '' END,
        CASE WHEN a.created_by_organization <> m.organization_id THEN '' END,
        CASE WHEN a.created_by_organization <> m.organization_id THEN ''
            ELSE directory_key(a.first_name || ' ' || a.last_name) END,
        CASE WHEN a.created_by_organization <> m.organization_id THEN ''
            ELSE directory_key(a.last_name || ' ' || a.first_name) END,
        a.email
    FROM entered m
    JOIN accounts a ON a.id = m.user_id
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- A new name of an account is one for the organization that made it. The others keep what they had.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION directory_rename() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE directory SET
        first_name = coalesce(first_name, OLD.first_name),
        last_name = coalesce(last_name, OLD.last_name),
        email = NEW.email
    WHERE user_id = NEW.id AND organization_id IS DISTINCT FROM NEW.created_by_organization;
    UPDATE directory SET
        first_name = NULL,
        last_name = NULL,
        name = directory_key(NEW.first_name || ' ' || NEW.last_name),
        surname = directory_key(NEW.last_name || ' ' || NEW.first_name),
        email = NEW.email
    WHERE user_id = NEW.id AND organization_id = NEW.created_by_organization;
    RETURN NULL;
END $$;
-- +goose StatementEnd
