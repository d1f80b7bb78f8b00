-- +goose NO TRANSACTION
-- +goose Up

CREATE INDEX CONCURRENTLY IF NOT EXISTS enrolments_next_day ON enrolments (next_day) WHERE next_day IS NOT NULL;
