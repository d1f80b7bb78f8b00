-- +goose NO TRANSACTION
-- +goose Up

-- Deletes up to most of the oldest entries of the audit log, if they are from before that time, and returns how
-- many. Nobody deletes any otherwise, and this none that is younger than a year.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION drop_from_audit(before timestamptz, most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    dropped integer;
BEGIN
    IF before > now() - interval '365 days' THEN
        RAISE EXCEPTION 'the audit log is kept for a year at least';
    END IF;
    WITH oldest AS (SELECT id, created_at FROM audit_log ORDER BY id LIMIT most)
    DELETE FROM audit_log l USING oldest o WHERE l.id = o.id AND o.created_at < before;
    GET DIAGNOSTICS dropped = ROW_COUNT;
    RETURN dropped;
END $$;
-- +goose StatementEnd

-- It runs as its owner, and looks for names in the schema alone.
-- +goose StatementBegin
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION drop_from_audit SECURITY DEFINER SET search_path = %I, pg_temp', current_schema());
END $$;
-- +goose StatementEnd

-- Whether the history of a closed plan may still be there: the plans without are not looked at again.
ALTER TABLE plans ADD COLUMN IF NOT EXISTS history_dropped boolean NOT NULL DEFAULT false;
CREATE INDEX CONCURRENTLY IF NOT EXISTS plans_closed ON plans (closed_at, id) WHERE status = 'closed' AND NOT history_dropped;
-- For each run that is deleted, its foreign key looks for the one that took it back.
CREATE INDEX CONCURRENTLY IF NOT EXISTS roster_runs_undoes ON roster_runs (undoes) WHERE undoes IS NOT NULL;
