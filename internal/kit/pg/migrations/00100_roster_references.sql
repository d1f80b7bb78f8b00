-- +goose Up

-- A roster brings hundreds of thousands of people and places at a time, whose accounts and
-- classes are written by the same transaction or run. To look each of them up and to lock it,
-- for every row, took as long as the rows themselves. What is deleted takes them along from
-- here on instead.

-- +goose StatementBegin
CREATE FUNCTION forget_accounts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM roster_class_members m USING gone WHERE m.user_id = gone.id;
    DELETE FROM roster_identities i USING gone WHERE i.user_id = gone.id;
    DELETE FROM members m USING gone WHERE m.user_id = gone.id;
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

-- +goose StatementBegin
CREATE FUNCTION forget_organizations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM members m USING gone WHERE m.organization_id = gone.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER forget AFTER DELETE ON organizations REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION forget_organizations();
CREATE TRIGGER forget AFTER DELETE ON accounts REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION forget_accounts();
CREATE TRIGGER forget AFTER DELETE ON roster_classes REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION roster_forget_classes();
CREATE TRIGGER forget AFTER DELETE ON roster_sources REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION roster_forget_sources();

ALTER TABLE members
    DROP CONSTRAINT members_organization_id_fkey,
    DROP CONSTRAINT members_user_id_fkey;
ALTER TABLE roster_identities
    DROP CONSTRAINT roster_identities_source_id_fkey,
    DROP CONSTRAINT roster_identities_user_id_fkey;
ALTER TABLE roster_class_members
    DROP CONSTRAINT roster_class_members_class_id_fkey,
    DROP CONSTRAINT roster_class_members_user_id_fkey;

-- Only the deletion of an account looked for places by it.
DROP INDEX roster_class_members_user;
