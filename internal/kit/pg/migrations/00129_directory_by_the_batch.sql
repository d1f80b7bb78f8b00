-- +goose Up

-- A roster brings people a thousand at a time. To look up and lock the account and the
-- organization of each, for the entry's foreign keys, took longer than the entry; what is
-- deleted takes its entries along instead, as it does memberships.

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION forget_accounts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM roster_class_members m USING gone WHERE m.user_id = gone.id;
    DELETE FROM roster_identities i USING gone WHERE i.user_id = gone.id;
    DELETE FROM directory d USING gone WHERE d.user_id = gone.id;
    DELETE FROM members m USING gone WHERE m.user_id = gone.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION forget_organizations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM directory d USING gone WHERE d.organization_id = gone.id;
    DELETE FROM members m USING gone WHERE m.organization_id = gone.id;
    RETURN NULL;
END $$;
-- +goose StatementEnd

ALTER TABLE directory
    DROP CONSTRAINT directory_user_id_fkey,
    DROP CONSTRAINT directory_organization_id_fkey;

-- While accounts grow faster than their statistics, the planner takes them for few and reads
-- all of them for every thousand members. Their key is always the way to them.
ALTER FUNCTION directory_enter() SET enable_hashjoin = off;
ALTER FUNCTION directory_enter() SET enable_mergejoin = off;
ALTER FUNCTION directory_enter() SET enable_seqscan = off;
