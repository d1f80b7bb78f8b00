-- +goose Up

-- Deliveries that a recovery put back leave one after the other, oldest first.
ALTER TABLE webhook_deliveries ADD COLUMN in_order boolean NOT NULL DEFAULT false;
CREATE INDEX webhook_deliveries_in_order ON webhook_deliveries (endpoint_id, id) WHERE status IN ('waiting', 'leased') AND in_order;

-- What ended without a receipt: listed by status, and put back by a recovery.
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (endpoint_id, id) WHERE status IN ('declined', 'exhausted', 'skipped', 'cancelled');

-- What speaks of a person, so that the person can be erased.
ALTER TABLE webhook_events ADD COLUMN erased boolean NOT NULL DEFAULT false;
CREATE INDEX webhook_events_user ON webhook_events (user_id) WHERE user_id IS NOT NULL;

-- The instant of a version 7 UUID, to the millisecond.
-- +goose StatementBegin
CREATE FUNCTION uuid7_time(id uuid) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_timestamp((('x0000' || left(replace(id::text, '-', ''), 12))::bit(64)::bigint) / 1000.0)
$$;
-- +goose StatementEnd

-- Runs that put undelivered events of a stretch of time back, a few at a time.
CREATE TABLE webhook_recoveries (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    endpoint_id     bigint NOT NULL REFERENCES webhook_endpoints ON DELETE CASCADE,
    since           timestamptz NOT NULL,
    until           timestamptz NOT NULL,
    status          text NOT NULL CHECK (status IN ('running', 'done', 'stopped')),
    total           integer NOT NULL,            -- undelivered when it began
    put_back        integer NOT NULL DEFAULT 0,
    position        uuid,                        -- the last delivery that was looked at
    created_at      timestamptz NOT NULL,
    finished_at     timestamptz
);
CREATE INDEX webhook_recoveries_endpoint ON webhook_recoveries (endpoint_id, id);
CREATE UNIQUE INDEX webhook_recoveries_running ON webhook_recoveries (endpoint_id) WHERE status = 'running';

-- A day's partition is made beside its parent and attached, which keeps nobody from reading
-- and writing the other days. Rows that the default partition holds for the day move into it.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION webhook_make_partitions(first date, days integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    parent text; day date; child text; lower_bound uuid; upper_bound uuid; made integer := 0; key text;
BEGIN
    FOREACH parent IN ARRAY ARRAY['webhook_events', 'webhook_deliveries', 'webhook_attempts'] LOOP
        key := CASE parent WHEN 'webhook_attempts' THEN 'delivery_id' ELSE 'id' END;
        FOR day IN SELECT first + n FROM generate_series(0, days - 1) AS n LOOP
            child := parent || '_' || to_char(day, 'YYYYMMDD');
            CONTINUE WHEN to_regclass(child) IS NOT NULL;
            lower_bound := uuid7_floor(day::timestamp AT TIME ZONE 'UTC');
            upper_bound := uuid7_floor((day + 1)::timestamp AT TIME ZONE 'UTC');
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)', child, parent);
            EXECUTE format('WITH moved AS (DELETE FROM %I WHERE %I >= %L AND %I < %L RETURNING *) INSERT INTO %I SELECT * FROM moved',
                parent || '_default', key, lower_bound, key, upper_bound, child);
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, child, lower_bound, upper_bound);
            made := made + 1;
        END LOOP;
    END LOOP;
    RETURN made;
END $$;
-- +goose StatementEnd

-- Drops the days before the given one whose deliveries have all ended, and returns how many
-- tables that were. A delivery may lie a day after its event (midnight passed between the
-- two), so an event's day goes once the day after it has ended, too.
-- +goose StatementBegin
CREATE FUNCTION webhook_drop_partitions(before date) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    day date; dropped integer := 0; part text; open boolean;
BEGIN
    FOR day IN
        SELECT DISTINCT to_date(right(relname, 8), 'YYYYMMDD') AS d FROM pg_class
        WHERE relkind = 'r' AND relname ~ '^webhook_(events|deliveries|attempts)_[0-9]{8}$'
          AND to_date(right(relname, 8), 'YYYYMMDD') < before ORDER BY d
    LOOP
        part := 'webhook_deliveries_' || to_char(day, 'YYYYMMDD');
        open := false;
        IF to_regclass(part) IS NOT NULL THEN
            EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE status IN (''waiting'', ''leased''))', part) INTO open;
            IF NOT open THEN
                EXECUTE format('DROP TABLE %I', part);
                EXECUTE format('DROP TABLE IF EXISTS %I', 'webhook_attempts_' || to_char(day, 'YYYYMMDD'));
                dropped := dropped + 2;
            END IF;
        END IF;
        CONTINUE WHEN open;
        part := 'webhook_deliveries_' || to_char(day + 1, 'YYYYMMDD');
        IF to_regclass(part) IS NOT NULL THEN
            EXECUTE format('SELECT EXISTS (SELECT FROM %I d WHERE status IN (''waiting'', ''leased'') AND event_id < %L)',
                part, uuid7_floor((day + 1)::timestamp AT TIME ZONE 'UTC')) INTO open;
        END IF;
        part := 'webhook_events_' || to_char(day, 'YYYYMMDD');
        IF NOT open AND to_regclass(part) IS NOT NULL THEN
            EXECUTE format('DROP TABLE %I', part);
            dropped := dropped + 1;
        END IF;
    END LOOP;
    RETURN dropped;
END $$;
-- +goose StatementEnd
