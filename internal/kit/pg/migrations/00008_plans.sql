-- +goose Up

-- What a student prepares for in a course that has no active plan. With one, the plan says it.
CREATE TABLE plan_goals (
    enrollment_id   bigint PRIMARY KEY REFERENCES enrollments ON DELETE CASCADE,
    organization_id bigint NOT NULL,
    target_score_e4 bigint,
    exam_date       date,
    updated_at      timestamptz NOT NULL
);

-- Students whose tests open only in the secure exam browser.
CREATE TABLE plan_browsers (
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    user_id         bigint NOT NULL REFERENCES accounts ON DELETE CASCADE,
    since           timestamptz NOT NULL,
    PRIMARY KEY (organization_id, user_id)
);

-- Test sessions that began while their student's tests opened only in the secure exam browser.
-- This never changes for a session that has begun.
CREATE TABLE plan_browser_sessions (
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    ref             text NOT NULL, -- of the result
    PRIMARY KEY (organization_id, ref)
);

CREATE TABLE plans (
    id                   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id      bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    user_id              bigint NOT NULL REFERENCES accounts ON DELETE CASCADE,
    enrollment_id        bigint NOT NULL REFERENCES enrollments ON DELETE CASCADE,
    exam                 text NOT NULL,              -- the course type
    status               text NOT NULL CHECK (status IN ('active', 'paused', 'closed')),
    target_score_e4      bigint NOT NULL,
    exam_date            date,
    time_zone            text NOT NULL,
    pace                 text NOT NULL CHECK (pace IN ('auto', 'intensive', 'standard', 'light', 'custom')),
    custom_interval_days smallint NOT NULL DEFAULT 0,
    section_minimums     json NOT NULL DEFAULT '{}',
    practice_drills      boolean NOT NULL,
    staff_recipients     text[] NOT NULL,
    extra_recipients     text[] NOT NULL DEFAULT '{}',
    -- The pace that 'auto' currently results in.
    level                text NOT NULL CHECK (level IN ('intensive', 'standard', 'light')),
    at_risk              boolean NOT NULL DEFAULT false,
    counted_to           integer NOT NULL DEFAULT 0, -- the latest slot whose result was counted
    official_score_e4    bigint,
    official_sections    json,
    official_on          date,
    next_run_at          timestamptz,                -- when the schedule decides again; NULL once closed
    failures             smallint NOT NULL DEFAULT 0, -- of the schedule for this plan, in a row
    started_at           timestamptz NOT NULL,
    closed_at            timestamptz,
    updated_at           timestamptz NOT NULL
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX plans_one_an_exam ON plans (organization_id, user_id, exam) WHERE status <> 'closed';
CREATE INDEX plans_next_run ON plans (next_run_at, id) WHERE next_run_at IS NOT NULL;
CREATE INDEX plans_organization ON plans (organization_id, id);
CREATE INDEX plans_user ON plans (organization_id, user_id);
CREATE INDEX plans_enrollment ON plans (enrollment_id);

CREATE TABLE plan_tests (
    plan_id       bigint NOT NULL REFERENCES plans ON DELETE CASCADE,
    slot          integer NOT NULL,
    kind          text NOT NULL CHECK (kind IN ('baseline', 'mock', 'skills_check', 'challenge')),
    section       text NOT NULL DEFAULT '',
    state         text NOT NULL CHECK (state IN
                  ('waiting', 'unfilled', 'opened', 'started', 'held', 'finished', 'missed', 'skipped', 'withdrawn')),
    opens_on      date NOT NULL,
    due_on        date NOT NULL,
    decided_on    date NOT NULL,
    fixed         boolean NOT NULL DEFAULT false, -- staff chose its day
    item_id       bigint REFERENCES catalog_items ON DELETE SET NULL,
    assignment_id bigint,
    finished_on   date,
    score_e4      bigint,
    sections      json,
    PRIMARY KEY (plan_id, slot)
);
CREATE INDEX plan_tests_assignment ON plan_tests (assignment_id) WHERE assignment_id IS NOT NULL;

-- Section papers that are given after a counted test. Their results are not counted.
CREATE TABLE plan_drills (
    plan_id       bigint NOT NULL REFERENCES plans ON DELETE CASCADE,
    slot          integer NOT NULL, -- of the test after which it is given
    section       text NOT NULL,
    item_id       bigint REFERENCES catalog_items ON DELETE SET NULL,
    assignment_id bigint,
    due_on        date NOT NULL,
    PRIMARY KEY (plan_id, slot, section)
);

-- What people changed of a plan, and what the schedule did by itself.
CREATE TABLE plan_history (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    plan_id bigint NOT NULL REFERENCES plans ON DELETE CASCADE,
    at      timestamptz NOT NULL,
    actor   text NOT NULL, -- an API key's name, platform or schedule
    event   text NOT NULL,
    detail  json NOT NULL
);
CREATE INDEX plan_history_plan ON plan_history (plan_id, id);
