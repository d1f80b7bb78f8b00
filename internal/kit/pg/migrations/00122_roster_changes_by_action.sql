-- +goose NO TRANSACTION
-- +goose Up

-- A review shows leavers and changes first, which may be at the end of a long run. Creations,
-- the bulk of most runs, cost nothing here.
CREATE INDEX CONCURRENTLY IF NOT EXISTS roster_changes_action ON roster_changes (run_id, action, n) WHERE action <> 'create';
