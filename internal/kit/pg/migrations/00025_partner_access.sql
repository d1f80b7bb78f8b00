-- +goose Up

-- The partner's own label, of the last call that gave, renewed or extended access with one.
ALTER TABLE enrollments ADD COLUMN source text;
-- Whether the organization suspended it by its own API key, and so may lift that. Of enrollments in
-- another state it means nothing.
ALTER TABLE enrollments ADD COLUMN partner_suspended boolean NOT NULL DEFAULT false;
