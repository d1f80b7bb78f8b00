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
    open_for_enrollment    boolean NOT NULL DEFAULT true,
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
-- The default course of a type is created by whichever call grants the type first.
CREATE UNIQUE INDEX courses_one_default ON courses (organization_id, course_type) WHERE is_default;
