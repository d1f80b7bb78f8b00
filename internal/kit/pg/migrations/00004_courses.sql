-- +goose Up

CREATE TABLE course_types (
    name                  text PRIMARY KEY,
    display_name          text NOT NULL,
    position              integer NOT NULL CONSTRAINT course_types_position UNIQUE,
    active                boolean NOT NULL DEFAULT true,
    default_access_months integer CHECK (default_access_months BETWEEN 1 AND 120),
    test_plan_available   boolean NOT NULL DEFAULT false,
    target_score_min      numeric(6, 1) NOT NULL,
    target_score_max      numeric(6, 1) NOT NULL
);

INSERT INTO course_types (position, name, display_name, test_plan_available, target_score_min, target_score_max) VALUES
    ( 1, 'ielts',             'IELTS Academic',                true,    0,    9),
    ( 2, 'ielts_general',     'IELTS General Training',        true,    0,    9),
    ( 3, 'toefl',             'TOEFL',                         false,   0,  120),
    ( 4, 'pte_academic',      'PTE Academic',                  false,  10,   90),
    ( 5, 'pte_core',          'PTE Core',                      false,  10,   90),
    ( 6, 'oet',               'OET',                           false,   0,  500),
    ( 7, 'gre',               'GRE',                           false, 260,  340),
    ( 8, 'gmat',              'GMAT',                          false, 205,  805),
    ( 9, 'sat',               'SAT',                           true,  400, 1600),
    (10, 'duolingo',          'Duolingo English Test',         false,  10,  160),
    (11, 'celpip',            'CELPIP',                        false,   1,   12),
    (12, 'adaptive_language', 'Adaptive Language Proficiency', false,   0,  100),
    (13, 'dmat',              'dMAT',                          false,   0,  400),
    (14, 'custom',            'Custom Language Test',          false,   0,  100);

CREATE TABLE courses (
    id                    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id       bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    name                  text NOT NULL,
    course_type           text NOT NULL REFERENCES course_types,
    is_default            boolean NOT NULL DEFAULT false,
    status                text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'completed', 'cancelled')),
    open_for_enrollment   boolean NOT NULL DEFAULT true,
    is_perpetual          boolean NOT NULL DEFAULT false,
    start_date            date NOT NULL,
    end_date              date,
    default_access_months integer CHECK (default_access_months BETWEEN 1 AND 120),
    default_access_weeks  integer CHECK (default_access_weeks BETWEEN 1 AND 520),
    created_at            timestamptz NOT NULL,
    updated_at            timestamptz NOT NULL,
    CONSTRAINT courses_ends_after_start CHECK (end_date IS NULL OR end_date >= start_date),
    CONSTRAINT courses_in_organization UNIQUE (organization_id, id)
);
-- The first call that grants a course type makes its default course.
CREATE UNIQUE INDEX courses_one_default ON courses (organization_id, course_type) WHERE is_default;

CREATE TABLE enrollments (
    id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id    bigint NOT NULL,
    user_id            bigint NOT NULL REFERENCES accounts ON DELETE CASCADE,
    course_id          bigint NOT NULL,
    -- What a person decided. The status that is shown follows from it and from the dates.
    state              text NOT NULL DEFAULT 'running'
                       CHECK (state IN ('running', 'suspended', 'dropped', 'completed')),
    start_date         date NOT NULL,
    end_date           date NOT NULL,
    grace_period_end   date NOT NULL,
    -- The status that webhooks last reported, so that a change by the calendar is reported once.
    -- NULL: none was reported, and none is reported later for what has passed.
    notified_status    text CHECK (notified_status IN
                       ('active', 'grace_period', 'pending', 'expired', 'suspended', 'dropped', 'completed')),
    -- The end dates whose approach was reported.
    notified_end_dates date[] NOT NULL DEFAULT '{}',
    -- The next day on which the calendar changes something; NULL: never. A row that is inserted
    -- without a day is examined by the next sweep.
    next_day           date DEFAULT '1970-01-01',
    created_at         timestamptz NOT NULL,
    updated_at         timestamptz NOT NULL,
    CONSTRAINT enrollments_one_a_course UNIQUE (user_id, course_id),
    CONSTRAINT enrollments_dates CHECK (end_date >= start_date AND grace_period_end >= end_date),
    FOREIGN KEY (organization_id, course_id) REFERENCES courses (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX enrollments_organization_user ON enrollments (organization_id, user_id);
CREATE INDEX enrollments_course ON enrollments (course_id, grace_period_end) WHERE state = 'running';
-- For lists of one course, which begin with its people.
CREATE INDEX enrollments_course_user ON enrollments (course_id, user_id);
-- Counts the people who have access from the index alone.
CREATE INDEX enrollments_access ON enrollments (organization_id, grace_period_end, course_id, user_id)
    WHERE state = 'running';
CREATE INDEX enrollments_next_day ON enrollments (next_day) WHERE next_day IS NOT NULL;

-- The references of extensions and grants that were made. A repeat with the same reference
-- changes nothing.
CREATE TABLE enrollment_refs (
    enrollment_id bigint NOT NULL REFERENCES enrollments ON DELETE CASCADE,
    ref           text NOT NULL,
    created_at    timestamptz NOT NULL,
    PRIMARY KEY (enrollment_id, ref)
);
