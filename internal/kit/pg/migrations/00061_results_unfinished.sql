-- +goose NO TRANSACTION
-- +goose Up

-- Work that students have begun, or whose result is under review.
CREATE INDEX CONCURRENTLY IF NOT EXISTS results_unfinished ON results (organization_id, user_id) WHERE position IS NULL;
