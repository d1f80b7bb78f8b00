-- +goose NO TRANSACTION
-- +goose Up

-- Whoever has access is counted from these alone.
CREATE INDEX CONCURRENTLY IF NOT EXISTS enrollments_access ON enrollments (organization_id, grace_period_end, course_id, user_id) WHERE state = 'running';
CREATE INDEX CONCURRENTLY IF NOT EXISTS members_staff ON members (organization_id, user_id) WHERE role <> 'member';
