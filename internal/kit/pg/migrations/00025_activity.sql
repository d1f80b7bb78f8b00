-- +goose Up

-- What the platform saw of its users, an event a row, in partitions of an IST day each.
-- There is no index: rows are only ever read a whole day at a time. The same event may
-- be here more than once; the compilation counts it once.
CREATE TABLE activity_events (
    organization_id bigint NOT NULL,
    user_id         bigint NOT NULL,
    at              timestamptz NOT NULL,
    kind            text NOT NULL
) PARTITION BY RANGE (at);

-- Days ahead get partitions of their own; the default one catches what arrives for
-- other days, which is little.
CREATE TABLE activity_events_default PARTITION OF activity_events DEFAULT;
CREATE INDEX activity_events_default_at ON activity_events_default (at);

-- +goose StatementBegin
CREATE FUNCTION activity_make_partitions(first date, days integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    day date; child text; low timestamptz; high timestamptz;
BEGIN
    FOR day IN SELECT first + n FROM generate_series(0, days - 1) AS n LOOP
        child := 'activity_events_' || to_char(day, 'YYYYMMDD');
        low := day::timestamp AT TIME ZONE 'Asia/Kolkata';
        high := (day + 1)::timestamp AT TIME ZONE 'Asia/Kolkata';
        -- A day that has begun in the default partition stays there.
        IF to_regclass(child) IS NULL AND NOT EXISTS (SELECT FROM activity_events_default WHERE at >= low AND at < high) THEN
            EXECUTE format('CREATE TABLE %I PARTITION OF activity_events FOR VALUES FROM (%L) TO (%L)', child, low, high);
        END IF;
    END LOOP;
END $$;
-- +goose StatementEnd

-- Drops the partitions of the days before keep, and returns how many there were.
-- +goose StatementBegin
CREATE FUNCTION activity_drop_partitions(keep date) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    child text; dropped integer := 0;
BEGIN
    FOR child IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = 'activity_events'::regclass AND c.relname ~ '^activity_events_\d{8}$'
              AND to_date(right(c.relname, 8), 'YYYYMMDD') < keep LOOP
        EXECUTE format('DROP TABLE %I', child);
        dropped := dropped + 1;
    END LOOP;
    DELETE FROM activity_events_default WHERE at < keep::timestamp AT TIME ZONE 'Asia/Kolkata';
    RETURN dropped;
END $$;
-- +goose StatementEnd

SELECT activity_make_partitions((now() AT TIME ZONE 'Asia/Kolkata')::date, 3);

-- The attendance register: what a student did on a day, in IST.
CREATE TABLE activity_days (
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    date            date NOT NULL,
    user_id         bigint NOT NULL REFERENCES accounts ON DELETE CASCADE,
    first_seen_at   timestamptz NOT NULL,
    last_seen_at    timestamptz NOT NULL,
    visits          integer NOT NULL,
    active_minutes  integer NOT NULL,
    page_views      integer NOT NULL,
    tests_started   integer NOT NULL,
    tests_completed integer NOT NULL,
    PRIMARY KEY (organization_id, date, user_id)
);
CREATE INDEX activity_days_user ON activity_days (user_id, organization_id, date);

-- Days that are over. An event that arrives for one of them, or for an earlier day, is late.
CREATE TABLE activity_closed_days (
    date        date PRIMARY KEY,
    closed_at   timestamptz NOT NULL,
    compiled_at timestamptz
);
CREATE INDEX activity_closed_days_due ON activity_closed_days (date) WHERE compiled_at IS NULL;
