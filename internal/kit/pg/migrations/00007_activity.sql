-- +goose Up

-- What the platform saw of its users, an event a row, in partitions of a day each in Indian
-- Standard Time. There is no index, as rows are only read a whole day at a time. The same event
-- may be stored more than once; the compilation counts it once.
CREATE TABLE activity_events (
    organization_id bigint NOT NULL,
    user_id         bigint NOT NULL,
    at              timestamptz NOT NULL,
    kind            text NOT NULL
) PARTITION BY RANGE (at);

-- Holds the events of days without a partition, which are few.
CREATE TABLE activity_events_default PARTITION OF activity_events DEFAULT;
CREATE INDEX activity_events_default_at ON activity_events_default (at);

SELECT make_partitions('activity_events', 'Asia/Kolkata', (now() AT TIME ZONE 'Asia/Kolkata')::date, 3, false);

-- Drops the events of the days before keep, and returns how many partitions these had.
-- +goose StatementBegin
CREATE FUNCTION activity_drop_partitions(keep date) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    child   text;
    dropped integer := 0;
BEGIN
    FOR child IN
        SELECT c.relname
        FROM pg_inherits i
        JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'activity_events'::regclass
          AND c.relname ~ '^activity_events_\d{8}$'
          AND to_date(right(c.relname, 8), 'YYYYMMDD') < keep
    LOOP
        EXECUTE format('DROP TABLE %I', child);
        dropped := dropped + 1;
    END LOOP;
    DELETE FROM activity_events_default WHERE at < keep::timestamp AT TIME ZONE 'Asia/Kolkata';
    RETURN dropped;
END $$;
-- +goose StatementEnd

-- The attendance register: what a student did on a day in Indian Standard Time.
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
