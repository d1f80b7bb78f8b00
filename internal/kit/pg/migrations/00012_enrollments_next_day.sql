-- +goose NO TRANSACTION
-- +goose Up

CREATE INDEX CONCURRENTLY IF NOT EXISTS enrollments_next_day ON enrollments (next_day) WHERE next_day IS NOT NULL;
