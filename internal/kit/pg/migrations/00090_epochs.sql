-- +goose Up

-- A database may come back with an earlier state: from a backup, or because a standby took over that did
-- not have the last commits. It would give positions again that readers have seen. So every list begins an
-- epoch when PostgreSQL's timeline is another one, or after-restore says so: its positions are greater than
-- all that any state of the database can have given.
CREATE TABLE list_epochs (
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    list            text NOT NULL CHECK (list IN ('positions', 'assignments', 'results')),
    begins          bigint NOT NULL, -- the positions of the epoch are greater
    kept            bigint NOT NULL, -- the last position of before; what was given between the two is lost
    timeline        text NOT NULL,
    began_at        timestamptz NOT NULL,
    PRIMARY KEY (organization_id, list, begins)
);

CREATE FUNCTION current_timeline() RETURNS text LANGUAGE sql AS $$
    SELECT left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)
$$;

-- Nobody gives 1,000 positions of an organization in each second since 2026, so this is more than all that
-- were given. The 40 bits that next_position has are enough for it until 2060.
CREATE FUNCTION beyond_positions() RETURNS bigint LANGUAGE sql AS $$
    SELECT (extract(epoch FROM clock_timestamp() - timestamptz '2026-01-01 00:00:00Z') * 1000)::bigint
$$;

-- Begins an epoch of a list if it has to, and returns where; NULL if not. reached is the last position that
-- was given. Who calls it has given none in this transaction.
-- +goose StatementBegin
CREATE FUNCTION enter_epoch(organization bigint, name text, reached bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    now_on CONSTANT text := current_timeline();
    asked  CONSTANT boolean := coalesce(current_setting('registrar.begin_epochs', true), '') = 'on';
    known  text;
    start  bigint;
    stays  bigint := reached;
BEGIN
    SELECT timeline INTO known FROM list_epochs
    WHERE organization_id = organization AND list = name ORDER BY begins DESC LIMIT 1;
    IF known = now_on AND NOT asked THEN
        RETURN NULL;
    END IF;
    -- Of several transactions that come first, one begins it.
    PERFORM pg_advisory_xact_lock(hashtext('list_epochs'), (organization % 2147483647)::integer);
    SELECT timeline, begins INTO known, start FROM list_epochs
    WHERE organization_id = organization AND list = name ORDER BY begins DESC LIMIT 1;
    IF known = now_on AND NOT asked THEN
        RETURN NULL;
    END IF;
    IF name = 'positions' THEN
        -- A sequence may be ahead of what was committed.
        SELECT greatest(
            (SELECT max(position) FROM arrivals WHERE organization_id = organization),
            (SELECT max(sequence) FROM webhook_events WHERE organization_id = organization),
            0) INTO stays;
    END IF;
    start := greatest(beyond_positions(), reached + 1, start + 1);
    INSERT INTO list_epochs (organization_id, list, begins, kept, timeline, began_at)
    VALUES (organization, name, start, stays, now_on, clock_timestamp());
    RETURN start;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION next_position(organization bigint) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    numbers regclass := to_regclass('positions_' || organization);
    begins  bigint;
BEGIN
    IF numbers IS NULL THEN
        RAISE foreign_key_violation USING MESSAGE = 'organization ' || organization || ' does not exist';
    END IF;
    IF current_setting('registrar.holds_positions', true) IS NOT DISTINCT FROM organization::text THEN
        RETURN nextval(numbers);
    END IF;
    begins := enter_epoch(organization, 'positions', pg_sequence_last_value(numbers));
    IF begins IS NOT NULL THEN
        PERFORM setval(numbers, begins);
    END IF;
    -- The first floor of the transaction is below all that it draws. Nobody takes such a lock otherwise
    -- than shared, so there is nothing to wait for.
    RETURN CASE
        WHEN pg_try_advisory_xact_lock_shared((organization << 40) | pg_sequence_last_value(numbers))
            AND set_config('registrar.holds_positions', organization::text, true) <> ''
            THEN nextval(numbers)
    END;
END $$;
-- +goose StatementEnd

-- The counters of assignments and results begin their epochs as they are moved, so their rows are there
-- from the beginning.
-- +goose StatementBegin
CREATE FUNCTION counters_enter_epoch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    begins CONSTANT bigint := enter_epoch(NEW.organization_id, TG_ARGV[0], OLD.last);
BEGIN
    IF begins IS NOT NULL THEN
        NEW.last := begins + NEW.last - OLD.last;
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER assignment_positions_enter_epoch BEFORE UPDATE ON assignment_positions
    FOR EACH ROW EXECUTE FUNCTION counters_enter_epoch('assignments');
CREATE TRIGGER result_positions_enter_epoch BEFORE UPDATE ON result_positions
    FOR EACH ROW EXECUTE FUNCTION counters_enter_epoch('results');

-- +goose StatementBegin
CREATE FUNCTION begin_lists(organizations bigint[]) RETURNS void LANGUAGE sql AS $$
    INSERT INTO assignment_positions (organization_id, last, last_at)
    SELECT id, 0, '-infinity' FROM unnest(organizations) AS id ON CONFLICT DO NOTHING;
    INSERT INTO result_positions (organization_id, last)
    SELECT id, 0 FROM unnest(organizations) AS id ON CONFLICT DO NOTHING;
    INSERT INTO list_epochs (organization_id, list, begins, kept, timeline, began_at)
    SELECT id, list, 0, 0, current_timeline(), now()
    FROM unnest(organizations) AS id, unnest(ARRAY['positions', 'assignments', 'results']) AS list ON CONFLICT DO NOTHING;
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION positions_enter() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM make_positions(NEW.id);
    PERFORM begin_lists(ARRAY[NEW.id]);
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- Begins epochs of all lists of some organizations, whatever the timeline is.
-- +goose StatementBegin
CREATE FUNCTION begin_epochs(organizations bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    organization bigint;
    numbers      regclass;
BEGIN
    PERFORM set_config('registrar.begin_epochs', 'on', true);
    FOREACH organization IN ARRAY organizations LOOP
        numbers := to_regclass('positions_' || organization);
        PERFORM setval(numbers, enter_epoch(organization, 'positions', pg_sequence_last_value(numbers)));
    END LOOP;
    UPDATE assignment_positions SET last = last WHERE organization_id = ANY (organizations);
    UPDATE result_positions SET last = last WHERE organization_id = ANY (organizations);
    PERFORM set_config('registrar.begin_epochs', '', true);
END $$;
-- +goose StatementEnd

-- Functions with the rights of the schema's owner look for names in the schema alone.
-- +goose StatementBegin
DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN SELECT oid FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace
          AND proname IN ('next_position', 'positions_enter', 'counters_enter_epoch')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', f, current_schema());
    END LOOP;
END $$;
-- +goose StatementEnd

SELECT begin_lists(ARRAY(SELECT id FROM organizations));
