-- +goose Up

-- Positions order lists whose readers store a cursor. Writers of an organization draw them from a
-- sequence and wait for nobody, so they commit in another order than that of their positions. A
-- reader goes no further than settled_position: nothing is committed below it any more.
--
-- For that, a writer says before it draws below what it will not draw: it keeps a shared advisory
-- lock, until its transaction ends, whose key is the organization (24 bits) and that floor (40).
--
--   INSERT INTO t (organization_id, position, ...) SELECT $1, next_position($1), ...
--   SELECT * FROM settled_position($1);    -- a statement before the one that reads the list
--
-- Nothing of it belongs to a session, and roles need no rights on the sequences.

-- +goose StatementBegin
CREATE FUNCTION make_positions(organization bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    numbers text := 'positions_' || organization;
BEGIN
    EXECUTE format('CREATE SEQUENCE IF NOT EXISTS %I MINVALUE 0 START 0', numbers);
    IF pg_sequence_last_value(numbers::regclass) IS NULL THEN
        PERFORM nextval(numbers::regclass); -- 0, so that there is always a last one
    END IF;
END $$;
-- +goose StatementEnd

-- The next position of a row of the organization. One transaction draws ascending ones.
-- +goose StatementBegin
CREATE FUNCTION next_position(organization bigint) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    numbers regclass := to_regclass('positions_' || organization);
BEGIN
    IF numbers IS NULL THEN
        RAISE foreign_key_violation USING MESSAGE = 'organization ' || organization || ' does not exist';
    END IF;
    -- The first floor of the transaction is below all that it draws. Nobody takes such a lock otherwise
    -- than shared, so there is nothing to wait for.
    RETURN CASE
        WHEN current_setting('registrar.holds_positions', true) IS NOT DISTINCT FROM organization::text
            THEN nextval(numbers)
        WHEN pg_try_advisory_xact_lock_shared((organization << 40) | pg_sequence_last_value(numbers))
            AND set_config('registrar.holds_positions', organization::text, true) <> ''
            THEN nextval(numbers)
    END;
END $$;
-- +goose StatementEnd

-- The position up to which no row will be committed any more, and the last one that was drawn. They
-- differ while transactions that have drawn are under way. Rows are read by a later statement, whose
-- snapshot has all that was committed before these locks were looked at.
-- +goose StatementBegin
CREATE FUNCTION settled_position(organization bigint, OUT settled bigint, OUT drawn bigint)
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    -- Before the locks are looked at: who draws later has a floor that is not below it.
    drawn := pg_sequence_last_value(to_regclass('positions_' || organization));
    SELECT least(drawn, min(((l.classid::bigint & 255) << 32) | l.objid::bigint)) INTO settled
    FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.mode = 'ShareLock'
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (l.classid::bigint >> 8) = (organization & 16777215);
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION positions_enter() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM make_positions(NEW.id);
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER positions_enter AFTER INSERT ON organizations FOR EACH ROW EXECUTE FUNCTION positions_enter();

-- +goose StatementBegin
CREATE FUNCTION positions_leave() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    organization bigint;
BEGIN
    FOR organization IN SELECT id FROM gone LOOP
        EXECUTE format('DROP SEQUENCE IF EXISTS %I', 'positions_' || organization);
    END LOOP;
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- Triggers fire in the order of their names: this one after those that move people between lists.
CREATE TRIGGER positions_leave AFTER DELETE ON organizations REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION positions_leave();

-- Functions with the rights of the schema's owner look for names in the schema alone.
-- +goose StatementBegin
DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN SELECT oid FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace
          AND proname IN ('next_position', 'settled_position', 'positions_enter', 'positions_leave')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', f, current_schema());
    END LOOP;
END $$;
-- +goose StatementEnd
