-- +goose NO TRANSACTION
-- +goose Up

-- The calendar's pass reads along it, page after page, so that several transactions work on different pages.
CREATE INDEX CONCURRENTLY IF NOT EXISTS enrollments_due ON enrollments (next_day, organization_id, id) WHERE next_day IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS enrollments_next_day;
