-- +goose Up

-- Tests, quizzes and assessments that can be assigned. A test without an organization is for all
-- organizations. Scores are in ten-thousandths, here and in all tables.
CREATE TABLE catalog_items (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id bigint REFERENCES organizations ON DELETE CASCADE,
    kind            text NOT NULL CHECK (kind IN ('test', 'quiz', 'assessment')),
    code            text NOT NULL,
    title           text NOT NULL,
    type            text NOT NULL,                -- of a test its score scale, else the kind again
    scope           text NOT NULL DEFAULT 'full', -- or the one section that a test examines
    max_score_e4    bigint NOT NULL CHECK (max_score_e4 > 0),
    difficulty_e4   bigint,
    starter         boolean NOT NULL DEFAULT false,
    active          boolean NOT NULL DEFAULT true,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    CONSTRAINT catalog_items_code UNIQUE NULLS NOT DISTINCT (organization_id, kind, code),
    CONSTRAINT catalog_items_owned CHECK (kind = 'test' OR organization_id IS NOT NULL)
);

-- Practice tests that a student was given together with a course. They are no assignments, as
-- nobody expects a result.
CREATE TABLE starter_tests (
    organization_id bigint NOT NULL,
    user_id         bigint NOT NULL REFERENCES accounts ON DELETE CASCADE,
    item_id         bigint NOT NULL REFERENCES catalog_items ON DELETE CASCADE,
    course_id       bigint NOT NULL,
    placed_at       timestamptz NOT NULL,
    PRIMARY KEY (organization_id, user_id, item_id),
    FOREIGN KEY (organization_id, course_id) REFERENCES courses (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX starter_tests_item ON starter_tests (item_id);
