-- +goose NO TRANSACTION
-- +goose Up

-- Lists that are narrowed to one course begin with its people.
CREATE INDEX CONCURRENTLY IF NOT EXISTS enrollments_course_user ON enrollments (course_id, user_id);
