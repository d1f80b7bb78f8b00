-- +goose Up

-- When the organization was erased: what is left of it is a number.
ALTER TABLE organizations ADD COLUMN erased_at timestamptz;

-- How far the erasure of each organization is.
CREATE TABLE organization_erasures (
    organization_id bigint PRIMARY KEY,
    slug_hash       bytea, -- until it has ended: whoever repeats the call finds it
    erased_at       timestamptz NOT NULL,
    emptied_at      timestamptz, -- when the worker has gone through everything for the first time
    finished_at     timestamptz,
    deleted         jsonb NOT NULL DEFAULT '{}' -- rows by what they are
);
CREATE INDEX organization_erasures_unfinished ON organization_erasures (erased_at) WHERE finished_at IS NULL;

-- The condition for rows of the organization $1 in a table, or in a partition of one, along an index.
-- +goose StatementBegin
CREATE FUNCTION rows_of_organization(piece text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN piece IN ('roster_chunks', 'roster_changes', 'roster_class_changes', 'roster_issues')
            THEN 'run_id = ANY (ARRAY(SELECT id FROM roster_runs WHERE organization_id = $1))'
        WHEN piece IN ('roster_identities', 'roster_classes')
            THEN 'source_id = ANY (ARRAY(SELECT id FROM roster_sources WHERE organization_id = $1))'
        WHEN piece LIKE 'webhook_events%' THEN 'organization_id = $1 AND sequence IS NOT NULL'
        WHEN piece = 'catalog_items' THEN 'organization_id = $1 AND code <> ''erased '' || id'
        ELSE 'organization_id = $1'
    END
$$;
-- +goose StatementEnd

-- Counts rows of an organization that is being erased, under a name.
-- +goose StatementBegin
CREATE FUNCTION count_erased(organization bigint, named text, n bigint) RETURNS void LANGUAGE sql AS $$
    UPDATE organization_erasures
    SET deleted = jsonb_set(deleted, ARRAY[named], to_jsonb(coalesce((deleted ->> named)::bigint, 0) + n))
    WHERE organization_id = organization AND n > 0
$$;
-- +goose StatementEnd

-- Fails unless the organization is being erased.
-- +goose StatementBegin
CREATE FUNCTION check_erased(organization bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM organization_erasures e JOIN organizations o ON o.id = e.organization_id
        WHERE o.id = organization AND o.erased_at IS NOT NULL AND e.finished_at IS NULL)
    THEN
        RAISE EXCEPTION 'organization % is not being erased', organization;
    END IF;
END $$;
-- +goose StatementEnd

-- Deletes up to most rows of an organization that is being erased from a table or a partition, and returns how many
-- these were. Items of the catalog stay as numbers: to delete one, its foreign keys would read all results. With
-- blocks, it looks at that many from the block start on instead, for tables without an index. It returns NULL behind the
-- last one, and when there is no such table any more.
-- +goose StatementBegin
CREATE FUNCTION erase_organization_rows(organization bigint, piece text, named text, most integer,
    start bigint DEFAULT NULL, blocks bigint DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    which   text := rows_of_organization(piece);
    deleted bigint;
BEGIN
    PERFORM check_erased(organization);
    IF to_regclass(quote_ident(piece)) IS NULL THEN
        RETURN NULL;
    ELSIF piece = 'catalog_items' THEN
        UPDATE catalog_items SET code = 'erased ' || id, title = '', active = false, starter = false, updated_at = now()
        WHERE id = ANY (ARRAY(SELECT id FROM catalog_items
            WHERE organization_id = organization AND code <> 'erased ' || id LIMIT most));
    ELSIF start IS NOT NULL THEN
        IF start * current_setting('block_size')::bigint >= pg_relation_size(to_regclass(quote_ident(piece))) THEN
            RETURN NULL;
        END IF;
        EXECUTE format('DELETE FROM %I WHERE ctid >= $2::tid AND ctid < $3::tid AND %s', piece, which)
        USING organization, format('(%s,0)', start), format('(%s,0)', start + blocks);
    ELSE
        EXECUTE format('DELETE FROM %1$I WHERE ctid = ANY (ARRAY(SELECT ctid FROM %1$I WHERE %2$s LIMIT $2)) AND %2$s',
            piece, which)
        USING organization, most;
    END IF;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    PERFORM count_erased(organization, named, deleted);
    RETURN deleted;
END $$;
-- +goose StatementEnd

-- Takes people out of an organization that is being erased. The accounts of those whom no other organization knows
-- become numbers (see erase_person); the others stay as they are. The caller has the locks of their addresses.
-- +goose StatementBegin
CREATE FUNCTION erase_organization_people(organization bigint, people bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    alone   bigint[];
    known   bigint;
    deleted bigint;
BEGIN
    PERFORM check_erased(organization);
    alone := ARRAY(
        SELECT a.id FROM accounts a
        WHERE a.id = ANY (people) AND a.email <> 'erased-' || a.id
            AND NOT EXISTS (SELECT FROM directory d WHERE d.user_id = a.id AND d.organization_id <> organization)
            AND NOT EXISTS (SELECT FROM members m WHERE m.user_id = a.id AND m.organization_id <> organization)
            AND NOT EXISTS (SELECT FROM enrollments e WHERE e.user_id = a.id AND e.organization_id <> organization));
    SELECT count(*) INTO known FROM accounts
    WHERE id = ANY (people) AND id <> ALL (alone) AND email <> 'erased-' || id;
    -- Before the memberships, whose end makes arrivals of those who are enrolled.
    DELETE FROM enrollments WHERE user_id = ANY (people) AND organization_id = organization;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    PERFORM count_erased(organization, 'enrollments', deleted);
    DELETE FROM members WHERE user_id = ANY (people) AND organization_id = organization;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    PERFORM count_erased(organization, 'members', deleted);
    DELETE FROM arrivals WHERE user_id = ANY (people) AND organization_id = organization;
    DELETE FROM directory WHERE user_id = ANY (people) AND organization_id = organization;
    DELETE FROM set_password_tokens WHERE user_id = ANY (people) AND organization_id = organization;
    DELETE FROM password_resets WHERE email IN (SELECT email FROM accounts WHERE id = ANY (alone));
    DELETE FROM set_password_tokens WHERE user_id = ANY (alone);
    DELETE FROM sessions WHERE user_id = ANY (alone);
    DELETE FROM emails WHERE user_id = ANY (alone) AND organization_id IS NULL;
    UPDATE accounts SET
        email = 'erased-' || id,
        username = 'erased ' || id,
        first_name = '',
        last_name = '',
        password_hash = NULL,
        own_password = false,
        proven_password = false,
        must_change_password = false,
        last_login = NULL,
        updated_at = now()
    WHERE id = ANY (alone);
    PERFORM count_erased(organization, 'accounts', cardinality(alone));
    PERFORM count_erased(organization, 'shared_accounts', known);
END $$;
-- +goose StatementEnd

-- Takes away, in up to most entries of the audit log behind one, from where people signed in whose accounts are
-- numbers by now, and what they were called. It returns the last entry that it looked at, NULL for none.
-- +goose StatementBegin
CREATE FUNCTION erase_accounts_from_audit(organization bigint, behind bigint, most integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    last bigint;
BEGIN
    PERFORM check_erased(organization);
    SELECT max(id) INTO last FROM (SELECT id FROM audit_log WHERE id > behind ORDER BY id LIMIT most) AS entries;
    UPDATE audit_log l SET
        actor_name = CASE WHEN l.actor_kind IN ('staff', 'student') THEN 'user ' || l.actor_id ELSE l.actor_name END,
        address = ''
    FROM accounts a
    WHERE l.id > behind AND l.id <= last AND l.organization_id IS NULL AND l.address <> ''
        AND a.id = CASE WHEN l.actor_kind IN ('staff', 'student') THEN l.actor_id
            ELSE substring(l.target FROM '^user ([0-9]{1,18})$')::bigint END
        AND a.email = 'erased-' || a.id;
    RETURN last;
END $$;
-- +goose StatementEnd

-- How many rows an organization that was erased has in a table, up to most.
-- +goose StatementBegin
CREATE FUNCTION count_organization_rows(organization bigint, piece text, most integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM organization_erasures WHERE organization_id = organization) THEN
        RAISE EXCEPTION 'organization % is not being erased', organization;
    END IF;
    EXECUTE format('SELECT count(*) FROM (SELECT FROM %I WHERE %s LIMIT $2) AS found', piece, rows_of_organization(piece))
    INTO n USING organization, most;
    RETURN n;
END $$;
-- +goose StatementEnd

-- They run as their owner, and look for names in the schema alone.
-- +goose StatementBegin
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['erase_organization_rows', 'erase_organization_people', 'erase_accounts_from_audit',
        'count_organization_rows']
    LOOP
        EXECUTE format('ALTER FUNCTION %I SECURITY DEFINER SET search_path = %I, pg_temp', name, current_schema());
    END LOOP;
END $$;
-- +goose StatementEnd
