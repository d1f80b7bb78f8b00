-- +goose Up

-- Test sessions that were begun while their student's tests open only in the secure exam
-- browser. What holds for a started test is never changed.
CREATE TABLE plan_browser_sessions (
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    ref             text NOT NULL, -- the result's
    PRIMARY KEY (organization_id, ref)
);
