-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX CONCURRENTLY IF NOT EXISTS webhook_endpoints_previous_until ON webhook_endpoints (previous_until)
    WHERE previous_until IS NOT NULL;
