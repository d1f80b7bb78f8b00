-- +goose Up

CREATE TABLE webhook_endpoints (
    id                   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id      bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    -- Ten places an organization: the limit is a constraint.
    slot                 smallint NOT NULL CHECK (slot BETWEEN 1 AND 10),
    url                  text NOT NULL,
    events               text[] NOT NULL DEFAULT '{}', -- empty: all
    time_zone            text NOT NULL DEFAULT 'UTC',
    switched_on          boolean NOT NULL DEFAULT true,
    switched_off_at      timestamptz,
    switched_off_reason  text NOT NULL DEFAULT '',
    secret_version       integer NOT NULL DEFAULT 1,
    created_at           timestamptz NOT NULL,
    updated_at           timestamptz NOT NULL,
    CONSTRAINT webhook_endpoints_slot UNIQUE (organization_id, slot),
    CONSTRAINT webhook_endpoints_url UNIQUE (organization_id, url)
);

CREATE TABLE webhook_secrets (
    endpoint_id bigint NOT NULL REFERENCES webhook_endpoints ON DELETE CASCADE,
    version     integer NOT NULL,
    sealed      bytea NOT NULL,
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (endpoint_id, version)
);

-- What deliveries teach about a URL. Apart from its settings, because it is written
-- with every group of outcomes.
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
    user_id         bigint, -- the student it speaks of
    type            text NOT NULL,
    created_at      timestamptz NOT NULL,
    data            json NOT NULL
) PARTITION BY RANGE (id);

-- One event's way to one URL. The row is the outbox entry.
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
    finished_at     timestamptz
) PARTITION BY RANGE (id);
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (endpoint_id, due_at, id) WHERE status = 'waiting';
CREATE INDEX webhook_deliveries_leased ON webhook_deliveries (endpoint_id, lease_until) WHERE status = 'leased';
CREATE INDEX webhook_deliveries_endpoint ON webhook_deliveries (endpoint_id, id);

CREATE TABLE webhook_attempts (
    delivery_id      uuid NOT NULL,
    number           integer NOT NULL,
    endpoint_id      bigint NOT NULL,
    started_at       timestamptz NOT NULL,
    duration_us      integer NOT NULL,
    outcome          text NOT NULL CHECK (outcome IN ('delivered', 'retry', 'declined')),
    cause            text NOT NULL,
    detail           text NOT NULL DEFAULT '',
    response_status  integer,
    response_body    bytea,
    request_headers  json NOT NULL,
    peer             text NOT NULL DEFAULT '',
    dns_us           integer,
    connect_us       integer,
    tls_us           integer,
    first_byte_us    integer,
    PRIMARY KEY (delivery_id, number)
) PARTITION BY RANGE (delivery_id);

-- Days ahead get partitions of their own; the default ones catch what no day was made for.
CREATE TABLE webhook_events_default PARTITION OF webhook_events DEFAULT;
CREATE TABLE webhook_deliveries_default PARTITION OF webhook_deliveries DEFAULT;
CREATE TABLE webhook_attempts_default PARTITION OF webhook_attempts DEFAULT;

-- +goose StatementBegin
CREATE FUNCTION webhook_make_partitions(first date, days integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    parent text; day date; child text; made integer := 0;
BEGIN
    FOREACH parent IN ARRAY ARRAY['webhook_events', 'webhook_deliveries', 'webhook_attempts'] LOOP
        FOR day IN SELECT first + n FROM generate_series(0, days - 1) AS n LOOP
            child := parent || '_' || to_char(day, 'YYYYMMDD');
            IF to_regclass(child) IS NULL THEN
                EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L)',
                    child, parent, uuid7_floor(day::timestamp AT TIME ZONE 'UTC'), uuid7_floor((day + 1)::timestamp AT TIME ZONE 'UTC'));
                made := made + 1;
            END IF;
        END LOOP;
    END LOOP;
    RETURN made;
END $$;
-- +goose StatementEnd

SELECT webhook_make_partitions((now() AT TIME ZONE 'UTC')::date, 3);
