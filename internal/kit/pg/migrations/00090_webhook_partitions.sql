-- +goose Up

-- As the function without parent, for one of webhook_events, webhook_deliveries and
-- webhook_attempts: whoever makes the days of all three in one transaction locks them in an
-- order in which readers of two of them do not, and one of both is a deadlock's victim.
-- +goose StatementBegin
CREATE FUNCTION webhook_make_partitions(parent text, first date, days integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    day date; child text; lower_bound uuid; upper_bound uuid; made integer := 0; key text;
BEGIN
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
    RETURN made;
END $$;
-- +goose StatementEnd
