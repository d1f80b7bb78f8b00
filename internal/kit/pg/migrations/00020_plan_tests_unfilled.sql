-- +goose NO TRANSACTION
-- +goose Up

-- The tests that wait for a paper, for when the catalog gains one. There are few.
CREATE INDEX CONCURRENTLY IF NOT EXISTS plan_tests_unfilled ON plan_tests (plan_id) WHERE state = 'unfilled';
