-- +goose NO TRANSACTION
-- +goose Up

-- Lists that are narrowed to one course begin with its people.
CREATE INDEX CONCURRENTLY IF NOT EXISTS enrolments_course_user ON enrolments (course_id, user_id);
