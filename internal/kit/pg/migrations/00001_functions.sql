-- +goose Up

-- A version 7 UUID of the server's clock. Its first 48 bits are the time in milliseconds, which
-- is what the partitions of a day are bounded by.
-- +goose StatementBegin
CREATE FUNCTION uuid7() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
    SELECT encode(
        set_bit(set_bit(
            overlay(uuid_send(gen_random_uuid())
                    PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
                    FROM 1 FOR 6),
            52, 1), 53, 1), 'hex')::uuid
$$;
-- +goose StatementEnd

-- The smallest version 7 UUID of an instant.
-- +goose StatementBegin
CREATE FUNCTION uuid7_floor(at timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;
-- +goose StatementEnd

-- The instant of a version 7 UUID, to the millisecond.
-- +goose StatementBegin
CREATE FUNCTION uuid7_time(id uuid) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_timestamp((('x0000' || left(replace(id::text, '-', ''), 12))::bit(64)::bigint) / 1000.0)
$$;
-- +goose StatementEnd

-- Makes the missing partitions of a table for so many days from the first one on, and returns
-- how many it made. A day begins at midnight in the given zone. The table is partitioned by one
-- column, an instant or a version 7 UUID, and has a default partition named <parent>_default.
--
-- The default may hold rows of a day that has no partition yet. With move_rows they are moved to
-- the new partition; without, such a day gets no partition and its rows stay where they are.
--
-- A partition is created as a table of its own and then attached, so that the other days can be
-- read and written meanwhile. Call it for one table in a transaction: its locks on two tables
-- could end in a deadlock with a query that reads both.
-- +goose StatementBegin
CREATE FUNCTION make_partitions(parent text, zone text, first date, days integer, move_rows boolean)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    remainder text := parent || '_default';
    key       text;
    by_uuid   boolean;
    day       date;
    child     text;
    low       text;
    high      text;
    occupied  boolean;
    made      integer := 0;
BEGIN
    SELECT a.attname, a.atttypid = 'uuid'::regtype
    INTO STRICT key, by_uuid
    FROM pg_partitioned_table p
    JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
    WHERE p.partrelid = parent::regclass;

    FOR day IN SELECT first + n FROM generate_series(0, days - 1) AS n LOOP
        child := parent || '_' || to_char(day, 'YYYYMMDD');
        CONTINUE WHEN to_regclass(child) IS NOT NULL;
        low := day::timestamp AT TIME ZONE zone;
        high := (day + 1)::timestamp AT TIME ZONE zone;
        IF by_uuid THEN
            low := uuid7_floor(low::timestamptz);
            high := uuid7_floor(high::timestamptz);
        END IF;
        IF move_rows THEN
            -- A row that came in between the move and the attachment would make the latter fail.
            EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', remainder);
        ELSE
            EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE %I >= %L AND %I < %L)',
                remainder, key, low, key, high) INTO occupied;
            CONTINUE WHEN occupied;
        END IF;
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)',
            child, parent);
        IF move_rows THEN
            EXECUTE format('WITH moved AS (DELETE FROM %I WHERE %I >= %L AND %I < %L RETURNING *)
                INSERT INTO %I SELECT * FROM moved', remainder, key, low, key, high, child);
        END IF;
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, child, low, high);
        made := made + 1;
    END LOOP;
    RETURN made;
END $$;
-- +goose StatementEnd
