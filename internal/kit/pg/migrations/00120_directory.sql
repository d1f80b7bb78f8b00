-- +goose Up

-- How staff find the people of an organization: by the beginning of their name, either way
-- round, or of their address. Whoever was ever a member has a row. Triggers keep it, because
-- several areas and both program versions write members and accounts.
CREATE TABLE directory (
    user_id         bigint NOT NULL REFERENCES accounts ON DELETE CASCADE,
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    name            text COLLATE "C" NOT NULL, -- directory_key of first and last name
    surname         text COLLATE "C" NOT NULL, -- of last and first name
    email           text COLLATE "C" NOT NULL,
    PRIMARY KEY (user_id, organization_id)
);
CREATE INDEX directory_name ON directory (organization_id, name, user_id);
CREATE INDEX directory_surname ON directory (organization_id, surname, user_id);
CREATE INDEX directory_email ON directory (organization_id, email, user_id);

-- One spelling for what people type and what is stored: small letters, single spaces.
CREATE FUNCTION directory_key(said text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT left(btrim(regexp_replace(lower(said), '[\s,]+', ' ', 'g')), 200)
$$;

-- +goose StatementBegin
CREATE FUNCTION directory_enter() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO directory (user_id, organization_id, name, surname, email)
    SELECT a.id, m.organization_id, directory_key(a.first_name || ' ' || a.last_name), directory_key(a.last_name || ' ' || a.first_name), a.email
    FROM entered m JOIN accounts a ON a.id = m.user_id
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER members_directory AFTER INSERT ON members
    REFERENCING NEW TABLE AS entered FOR EACH STATEMENT EXECUTE FUNCTION directory_enter();

-- +goose StatementBegin
CREATE FUNCTION directory_rename() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE directory SET name = directory_key(NEW.first_name || ' ' || NEW.last_name),
        surname = directory_key(NEW.last_name || ' ' || NEW.first_name), email = NEW.email
    WHERE user_id = NEW.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER accounts_directory AFTER UPDATE OF email, first_name, last_name ON accounts FOR EACH ROW
    WHEN ((OLD.email, OLD.first_name, OLD.last_name) IS DISTINCT FROM (NEW.email, NEW.first_name, NEW.last_name))
    EXECUTE FUNCTION directory_rename();
