-- +goose Up

-- A course that is cancelled is no type's default any more: the next grant of the type makes
-- another one.
UPDATE courses SET is_default = false, updated_at = now() WHERE is_default AND status = 'cancelled';
ALTER TABLE courses ADD CONSTRAINT courses_default_is_offered CHECK (NOT (is_default AND status = 'cancelled'));
