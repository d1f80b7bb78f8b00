-- +goose Up

-- How staff find the people of an organization: by the beginning of a name, either way round, or
-- of an address. Everybody who was ever a member has a row. Triggers write it, because several
-- areas write members and accounts. There are no foreign keys: see forget_accounts.
CREATE TABLE directory (
    user_id         bigint NOT NULL,
    organization_id bigint NOT NULL,
    name            text COLLATE "C" NOT NULL, -- directory_key of first and last name
    surname         text COLLATE "C" NOT NULL, -- directory_key of last and first name
    email           text COLLATE "C" NOT NULL,
    PRIMARY KEY (user_id, organization_id)
);
CREATE INDEX directory_name ON directory (organization_id, name, user_id);
CREATE INDEX directory_surname ON directory (organization_id, surname, user_id);
CREATE INDEX directory_email ON directory (organization_id, email, user_id);

-- One spelling for what people type and what is stored: small letters, single spaces.
CREATE FUNCTION directory_key(typed text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT left(btrim(regexp_replace(lower(typed), '[\s,]+', ' ', 'g')), 200)
$$;

-- A roster adds members a thousand at a time. While accounts grow faster than their statistics,
-- the planner expects few of them and would read them all each time. Their primary key is always
-- the better way.
-- +goose StatementBegin
CREATE FUNCTION directory_enter() RETURNS trigger LANGUAGE plpgsql
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
AS $$
BEGIN
    INSERT INTO directory (user_id, organization_id, name, surname, email)
    SELECT
        a.id,
        m.organization_id,
        directory_key(a.first_name || ' ' || a.last_name),
        directory_key(a.last_name || ' ' || a.first_name),
        a.email
    FROM entered m
    JOIN accounts a ON a.id = m.user_id
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER members_directory AFTER INSERT ON members
    REFERENCING NEW TABLE AS entered FOR EACH STATEMENT
    EXECUTE FUNCTION directory_enter();

-- +goose StatementBegin
CREATE FUNCTION directory_rename() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE directory SET
        name = directory_key(NEW.first_name || ' ' || NEW.last_name),
        surname = directory_key(NEW.last_name || ' ' || NEW.first_name),
        email = NEW.email
    WHERE user_id = NEW.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER accounts_directory AFTER UPDATE OF email, first_name, last_name ON accounts FOR EACH ROW
    WHEN ((OLD.email, OLD.first_name, OLD.last_name) IS DISTINCT FROM (NEW.email, NEW.first_name, NEW.last_name))
    EXECUTE FUNCTION directory_rename();

-- A roster writes hundreds of thousands of members, identities, seats and directory entries. For a
-- foreign key, the database would find and lock the account, class, source or organization of each
-- one, which takes as long as writing the row. These triggers do what ON DELETE CASCADE would do.
-- +goose StatementBegin
CREATE FUNCTION forget_accounts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM roster_class_members m USING gone WHERE m.user_id = gone.id;
    DELETE FROM roster_identities i USING gone WHERE i.user_id = gone.id;
    DELETE FROM directory d USING gone WHERE d.user_id = gone.id;
    DELETE FROM members m USING gone WHERE m.user_id = gone.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION forget_organizations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM directory d USING gone WHERE d.organization_id = gone.id;
    DELETE FROM members m USING gone WHERE m.organization_id = gone.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION roster_forget_classes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM roster_class_members m USING gone WHERE m.class_id = gone.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION roster_forget_sources() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM roster_identities i USING gone WHERE i.source_id = gone.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER forget AFTER DELETE ON accounts REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION forget_accounts();
CREATE TRIGGER forget AFTER DELETE ON organizations REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION forget_organizations();
CREATE TRIGGER forget AFTER DELETE ON roster_classes REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION roster_forget_classes();
CREATE TRIGGER forget AFTER DELETE ON roster_sources REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION roster_forget_sources();
