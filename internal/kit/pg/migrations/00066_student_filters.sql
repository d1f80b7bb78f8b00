-- +goose NO TRANSACTION
-- +goose Up

-- Further lists of students, each along an index: by the state of an enrollment, whose course begins later, who has
-- never signed in.
CREATE INDEX CONCURRENTLY IF NOT EXISTS enrollments_not_running ON enrollments (organization_id, state, course_id, user_id)
    WHERE state <> 'running';
CREATE INDEX CONCURRENTLY IF NOT EXISTS enrollments_pending ON enrollments (organization_id, start_date, course_id, user_id)
    WHERE notified_status = 'pending';
CREATE INDEX CONCURRENTLY IF NOT EXISTS accounts_never_signed_in ON accounts (created_by_organization, id)
    WHERE last_login IS NULL;
