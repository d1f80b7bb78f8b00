-- +goose Up

-- Practice tests that were placed with a student when a course was granted. They are no
-- assignments: nobody waits for them.
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
