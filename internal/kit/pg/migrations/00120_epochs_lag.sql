-- +goose Up

-- More positions than 1,000 a second may have been given since the epoch before began, as by a large roster shortly after a
-- failover. Then the clock is behind them, and what an asynchronous standby has reached is too: it lacks less than lag.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION enter_epoch(organization bigint, name text, reached bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    lag    CONSTANT bigint := 10000000;
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
    start := greatest(beyond_positions(), reached + lag, start + lag);
    INSERT INTO list_epochs (organization_id, list, begins, kept, timeline, began_at)
    VALUES (organization, name, start, stays, now_on, clock_timestamp());
    RETURN start;
END $$;
-- +goose StatementEnd
