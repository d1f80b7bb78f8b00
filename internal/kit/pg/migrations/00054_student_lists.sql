-- +goose NO TRANSACTION
-- +goose Up

-- The lists of students that the console begins with, each along an index: whose access ends first, who joined
-- last, who is at risk.
CREATE INDEX CONCURRENTLY IF NOT EXISTS enrollments_end ON enrollments (organization_id, end_date, user_id)
    WHERE state = 'running';
CREATE INDEX CONCURRENTLY IF NOT EXISTS members_joined ON members (organization_id, joined_at, user_id)
    WHERE role = 'member';
CREATE INDEX CONCURRENTLY IF NOT EXISTS plans_at_risk ON plans (organization_id, user_id)
    WHERE at_risk AND status = 'active';
