-- +goose NO TRANSACTION
-- +goose Up

-- The events of an organization in their order, for those who read them; events of before 00036 have
-- no place in it. One partition after the other is kept from writers, and only today's has any.
-- +goose StatementBegin
DO $$
DECLARE
    part  regclass;
    child text;
    tries integer := 100;
BEGIN
    FOR part IN
        SELECT 'webhook_events'::regclass
        UNION ALL
        (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'webhook_events'::regclass ORDER BY inhrelid DESC)
    LOOP
        LOOP
            BEGIN
                PERFORM set_config('lock_timeout', '2s', true);
                IF part = 'webhook_events'::regclass THEN
                    CREATE INDEX IF NOT EXISTS webhook_events_sequence ON ONLY webhook_events (organization_id, sequence)
                        WHERE sequence IS NOT NULL;
                -- A partition that was made meanwhile has its index, and one may have been dropped.
                ELSIF EXISTS (SELECT FROM pg_class WHERE oid = part) AND NOT EXISTS (
                    SELECT FROM pg_index i JOIN pg_inherits h ON h.inhrelid = i.indexrelid
                    WHERE i.indrelid = part AND h.inhparent = 'webhook_events_sequence'::regclass)
                THEN
                    child := part || '_sequence';
                    EXECUTE format('CREATE INDEX %I ON %s (organization_id, sequence) WHERE sequence IS NOT NULL', child, part);
                    EXECUTE format('ALTER INDEX webhook_events_sequence ATTACH PARTITION %I', child);
                END IF;
                EXIT;
            EXCEPTION WHEN lock_not_available THEN
                tries := tries - 1;
                IF tries = 0 THEN
                    RAISE;
                END IF;
            END;
            COMMIT;
            PERFORM pg_sleep(1);
        END LOOP;
        COMMIT;
    END LOOP;
END $$;
-- +goose StatementEnd
