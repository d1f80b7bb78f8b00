-- +goose Up

-- Deliveries that are pending: a row from the commit of the event until the delivery ends, then
-- it is deleted and its last entry stands in webhook_journal. Nothing updates a row but a failed
-- attempt and a person's request.
CREATE TABLE webhook_queue (
    organization_id bigint NOT NULL,
    endpoint_id     bigint NOT NULL,
    id              uuid NOT NULL,
    event_id        uuid NOT NULL,
    due_at          timestamptz NOT NULL,
    entries         integer NOT NULL DEFAULT 0,  -- that the journal has of this delivery
    tries           smallint NOT NULL DEFAULT 0, -- in the schedule's current round, 12 at most
    -- A person asked for it (Send test, Resend): it is sent ahead of the backlog, whatever the
    -- allowance is, and also while the endpoint is switched off.
    asked           boolean NOT NULL DEFAULT false,
    -- A recovery put it back: such deliveries are sent one after the other, oldest first.
    in_order        boolean NOT NULL DEFAULT false,
    PRIMARY KEY (organization_id, endpoint_id, id)
) WITH (vacuum_truncate = false, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX webhook_queue_due ON webhook_queue (endpoint_id, due_at, id);
CREATE INDEX webhook_queue_asked ON webhook_queue (endpoint_id) WHERE asked;
CREATE INDEX webhook_queue_in_order ON webhook_queue (endpoint_id, id) WHERE in_order;

-- The file keeps some pages for good. PostgreSQL would take an empty one for a table that is best
-- read whole, and keep that plan while the backlog grows.
INSERT INTO webhook_queue (organization_id, endpoint_id, id, event_id, due_at)
SELECT 0, 0, uuid7_floor(to_timestamp(n)), uuid7_floor(to_timestamp(n)), to_timestamp(n) FROM generate_series(1, 2000) AS n;
DELETE FROM webhook_queue;

-- Deliveries that senders have in hand, a row for each task on the run queue. It may vanish when
-- PostgreSQL crashes: then these deliveries are due, and their attempts may be made twice.
CREATE UNLOGGED TABLE webhook_leases (
    organization_id bigint NOT NULL,
    endpoint_id     bigint NOT NULL,
    id              uuid NOT NULL, -- version 7, so that a leader's later leases have greater ids
    until           timestamptz NOT NULL,
    in_order        boolean NOT NULL,
    deliveries      uuid[] NOT NULL,
    PRIMARY KEY (organization_id, endpoint_id, id)
) WITH (vacuum_truncate = false, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX webhook_leases_until ON webhook_leases (until);

-- What happened to deliveries, an entry each: an attempt, or an end without one.
CREATE TABLE webhook_journal (
    organization_id bigint NOT NULL,
    endpoint_id     bigint NOT NULL,
    delivery_id     uuid NOT NULL,
    number          integer NOT NULL, -- of the entry within its delivery, from 1 on
    event_id        uuid NOT NULL,
    -- How the delivery ended with this entry. NULL: it did not, or it was put back afterwards.
    status          text CHECK (status IN
                    ('delivered', 'declined', 'exhausted', 'skipped', 'cancelled', 'superseded')),
    started_at      timestamptz NOT NULL,
    duration_us     integer NOT NULL DEFAULT 0,
    outcome         text CHECK (outcome IN ('delivered', 'retry', 'declined')), -- NULL: no attempt
    cause           text NOT NULL DEFAULT '',
    detail          text NOT NULL DEFAULT '',
    response_status integer,
    response_body   bytea,
    -- Those that differ between attempts; the others follow from the event.
    request_headers json,
    peer            text NOT NULL DEFAULT '',
    dns_us          integer,
    connect_us      integer,
    tls_us          integer,
    first_byte_us   integer,
    PRIMARY KEY (organization_id, endpoint_id, delivery_id, number)
) PARTITION BY RANGE (delivery_id);
-- What ended without an acknowledgement: listed by status, and put back by a recovery.
CREATE INDEX webhook_journal_ended ON webhook_journal (endpoint_id, delivery_id)
    WHERE status IN ('declined', 'exhausted', 'skipped', 'cancelled', 'superseded');
CREATE TABLE webhook_journal_default PARTITION OF webhook_journal DEFAULT;

-- The days for which there are deliveries, and today and the next two.
SELECT make_partitions('webhook_journal', 'UTC', day, 1, true)
FROM (
    SELECT to_date(right(relname, 8), 'YYYYMMDD') AS day FROM pg_class
    WHERE relkind = 'r' AND relname ~ '^webhook_deliveries_[0-9]{8}$'
    UNION
    SELECT (now() AT TIME ZONE 'UTC')::date + n FROM generate_series(0, 2) AS n
) AS days;

-- webhook_deliveries and webhook_attempts are what these tables were before. The worker moves their
-- rows to the queue and to the journal (journal.Adopt). What a program of the version before
-- records in the meantime goes to the queue at once.
-- +goose StatementBegin
CREATE FUNCTION webhook_deliveries_to_queue() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status <> 'waiting' THEN
        RETURN NEW;
    END IF;
    INSERT INTO webhook_queue (organization_id, endpoint_id, id, event_id, due_at, entries, tries, asked, in_order)
    VALUES (NEW.organization_id, NEW.endpoint_id, NEW.id, NEW.event_id, NEW.due_at, NEW.attempts, NEW.tries,
        NEW.asked, NEW.in_order);
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER webhook_deliveries_to_queue BEFORE INSERT ON webhook_deliveries
    FOR EACH ROW EXECUTE FUNCTION webhook_deliveries_to_queue();

-- Every delivery in the state that it is in, for people who look into the database.
CREATE VIEW webhook_states AS
SELECT q.organization_id, q.endpoint_id, q.id, q.event_id,
    CASE WHEN EXISTS (
            SELECT FROM webhook_leases l
            WHERE l.organization_id = q.organization_id AND l.endpoint_id = q.endpoint_id AND q.id = ANY (l.deliveries))
        THEN 'in_flight' ELSE 'waiting' END AS status,
    q.due_at, q.entries, q.tries, q.asked, q.in_order
FROM webhook_queue q
UNION ALL
SELECT organization_id, endpoint_id, delivery_id, event_id, status, started_at, number, 0, false, false
FROM webhook_journal WHERE status IS NOT NULL;

-- Drops the days before the given one whose deliveries have all ended, and returns the number of
-- tables dropped. A delivery may be in the partition of the day after its event's, when midnight
-- passed between the two. So the events of a day are kept while a delivery of them is pending.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION webhook_drop_partitions(before date) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    found      record;
    deliveries date[];
    events     date[];
    open       boolean;
    dropped    integer := 0;
BEGIN
    SELECT array_agg(DISTINCT (uuid7_time(id) AT TIME ZONE 'UTC')::date),
        array_agg(DISTINCT (uuid7_time(event_id) AT TIME ZONE 'UTC')::date)
    INTO deliveries, events
    FROM webhook_queue WHERE event_id < uuid7_floor(before::timestamp AT TIME ZONE 'UTC');
    FOR found IN
        SELECT relname AS name, to_date(right(relname, 8), 'YYYYMMDD') AS day, relname ~ '^webhook_events' AS of_events
        FROM pg_class
        WHERE relkind = 'r'
          AND relname ~ '^webhook_(events|journal|deliveries|attempts)_[0-9]{8}$'
          AND to_date(right(relname, 8), 'YYYYMMDD') < before
        ORDER BY 2, 1
    LOOP
        CONTINUE WHEN found.day = ANY (CASE WHEN found.of_events THEN events ELSE deliveries END);
        IF to_regclass('webhook_deliveries_' || to_char(found.day, 'YYYYMMDD')) IS NOT NULL THEN
            EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE status IN (''waiting'', ''leased''))',
                'webhook_deliveries_' || to_char(found.day, 'YYYYMMDD')) INTO open;
            CONTINUE WHEN open;
        END IF;
        EXECUTE format('DROP TABLE %I', found.name);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END $$;
-- +goose StatementEnd
