-- +goose Up

CREATE TABLE webhook_endpoints (
    id                  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id     bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    -- An organization has ten slots, which makes the limit a constraint.
    slot                smallint NOT NULL CHECK (slot BETWEEN 1 AND 10),
    url                 text NOT NULL,
    events              text[] NOT NULL DEFAULT '{}', -- empty: all
    time_zone           text NOT NULL DEFAULT 'UTC',
    switched_on         boolean NOT NULL DEFAULT true,
    switched_off_at     timestamptz,
    switched_off_reason text NOT NULL DEFAULT '',
    secret_version      integer NOT NULL DEFAULT 1,
    -- The operator's reference to the resource that defines the endpoint. NULL: people define it,
    -- over the console or the platform API.
    managed_by          text CONSTRAINT webhook_endpoints_managed_by UNIQUE,
    created_at          timestamptz NOT NULL,
    updated_at          timestamptz NOT NULL,
    CONSTRAINT webhook_endpoints_slot UNIQUE (organization_id, slot),
    CONSTRAINT webhook_endpoints_url UNIQUE (organization_id, url)
);

-- Signing secrets, encrypted.
CREATE TABLE webhook_secrets (
    endpoint_id bigint NOT NULL REFERENCES webhook_endpoints ON DELETE CASCADE,
    version     integer NOT NULL,
    sealed      bytea NOT NULL,
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (endpoint_id, version)
);

-- How deliveries to an endpoint went lately. Apart from its settings, because each group of
-- outcomes writes it.
CREATE TABLE webhook_health (
    endpoint_id          bigint PRIMARY KEY REFERENCES webhook_endpoints ON DELETE CASCADE,
    consecutive_failures integer NOT NULL DEFAULT 0,
    allowance            real NOT NULL DEFAULT 8,
    next_probe_at        timestamptz,
    last_success_at      timestamptz,
    last_failure_at      timestamptz
) WITH (fillfactor = 50);

CREATE TABLE webhook_events (
    id              uuid NOT NULL PRIMARY KEY,
    organization_id bigint NOT NULL,
    user_id         bigint, -- the student that it is about
    type            text NOT NULL,
    data            json NOT NULL,
    erased          boolean NOT NULL DEFAULT false, -- the data of the person were removed
    traceparent     text,   -- W3C trace context of the change; NULL when nothing was traced
    created_at      timestamptz NOT NULL
) PARTITION BY RANGE (id);
-- For the erasure of a person.
CREATE INDEX webhook_events_user ON webhook_events (user_id) WHERE user_id IS NOT NULL;

-- The delivery of one event to one endpoint. The row is the outbox entry.
CREATE TABLE webhook_deliveries (
    id              uuid NOT NULL DEFAULT uuid7() PRIMARY KEY,
    event_id        uuid NOT NULL,
    organization_id bigint NOT NULL,
    endpoint_id     bigint NOT NULL,
    status          text NOT NULL CHECK (status IN
                    ('waiting', 'leased', 'delivered', 'declined', 'exhausted', 'skipped', 'cancelled')),
    tries           smallint NOT NULL DEFAULT 0, -- in the schedule's current round, 12 at most
    attempts        integer NOT NULL DEFAULT 0,  -- ever made, resends included
    due_at          timestamptz NOT NULL,
    lease           uuid,
    lease_until     timestamptz,
    finished_at     timestamptz,
    -- A person asked for it (Send test, Resend): it is sent ahead of the backlog, whatever the
    -- allowance is, and also while the endpoint is switched off.
    asked           boolean NOT NULL DEFAULT false,
    -- A recovery put it back: such deliveries are sent one after the other, oldest first.
    in_order        boolean NOT NULL DEFAULT false
) PARTITION BY RANGE (id);
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (endpoint_id, due_at, id) WHERE status = 'waiting';
CREATE INDEX webhook_deliveries_leased ON webhook_deliveries (endpoint_id, lease_until) WHERE status = 'leased';
CREATE INDEX webhook_deliveries_endpoint ON webhook_deliveries (endpoint_id, id);
CREATE INDEX webhook_deliveries_asked ON webhook_deliveries (endpoint_id) WHERE status = 'waiting' AND asked;
CREATE INDEX webhook_deliveries_in_order ON webhook_deliveries (endpoint_id, id)
    WHERE status IN ('waiting', 'leased') AND in_order;
-- What ended without an acknowledgement: listed by status, and put back by a recovery.
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (endpoint_id, id)
    WHERE status IN ('declined', 'exhausted', 'skipped', 'cancelled');

CREATE TABLE webhook_attempts (
    delivery_id     uuid NOT NULL,
    number          integer NOT NULL,
    endpoint_id     bigint NOT NULL,
    started_at      timestamptz NOT NULL,
    duration_us     integer NOT NULL,
    outcome         text NOT NULL CHECK (outcome IN ('delivered', 'retry', 'declined')),
    cause           text NOT NULL,
    detail          text NOT NULL DEFAULT '',
    response_status integer,
    response_body   bytea,
    request_headers json NOT NULL,
    peer            text NOT NULL DEFAULT '',
    dns_us          integer,
    connect_us      integer,
    tls_us          integer,
    first_byte_us   integer,
    PRIMARY KEY (delivery_id, number)
) PARTITION BY RANGE (delivery_id);

-- These hold the rows of days without partitions.
CREATE TABLE webhook_events_default PARTITION OF webhook_events DEFAULT;
CREATE TABLE webhook_deliveries_default PARTITION OF webhook_deliveries DEFAULT;
CREATE TABLE webhook_attempts_default PARTITION OF webhook_attempts DEFAULT;

SELECT make_partitions(parent, 'UTC', (now() AT TIME ZONE 'UTC')::date, 3, true)
FROM unnest(ARRAY['webhook_events', 'webhook_deliveries', 'webhook_attempts']) AS parent;

-- Drops the days before the given one whose deliveries have all ended, and returns the number of
-- tables dropped. A delivery may be in the partition of the day after its event's, when midnight
-- passed between the two. So the events of a day are dropped once the day after it has ended, too.
-- +goose StatementBegin
CREATE FUNCTION webhook_drop_partitions(before date) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    day     date;
    part    text;
    open    boolean;
    dropped integer := 0;
BEGIN
    FOR day IN
        SELECT DISTINCT to_date(right(relname, 8), 'YYYYMMDD') AS d
        FROM pg_class
        WHERE relkind = 'r'
          AND relname ~ '^webhook_(events|deliveries|attempts)_[0-9]{8}$'
          AND to_date(right(relname, 8), 'YYYYMMDD') < before
        ORDER BY d
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
            EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE status IN (''waiting'', ''leased'') AND event_id < %L)',
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

-- Runs that put the undelivered events of a period back, a few at a time.
CREATE TABLE webhook_recoveries (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    endpoint_id     bigint NOT NULL REFERENCES webhook_endpoints ON DELETE CASCADE,
    since           timestamptz NOT NULL,
    until           timestamptz NOT NULL,
    status          text NOT NULL CHECK (status IN ('running', 'done', 'stopped')),
    total           integer NOT NULL,           -- undelivered when it began
    put_back        integer NOT NULL DEFAULT 0,
    position        uuid,                       -- the last delivery that was examined
    created_at      timestamptz NOT NULL,
    finished_at     timestamptz
);
CREATE INDEX webhook_recoveries_endpoint ON webhook_recoveries (endpoint_id, id);
CREATE UNIQUE INDEX webhook_recoveries_running ON webhook_recoveries (endpoint_id) WHERE status = 'running';
