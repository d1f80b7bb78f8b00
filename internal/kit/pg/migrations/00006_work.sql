-- +goose Up

-- The last position that an organization's assignments were given. A transaction locks the row
-- last and until it commits. So positions become visible in their order, and a reader who has
-- read up to one has missed nothing before it.
CREATE TABLE assignment_positions (
    organization_id bigint PRIMARY KEY REFERENCES organizations ON DELETE CASCADE,
    last            bigint NOT NULL,
    last_at         timestamptz NOT NULL -- the latest assigned_at
) WITH (fillfactor = 50);

-- The same for results.
CREATE TABLE result_positions (
    organization_id bigint PRIMARY KEY REFERENCES organizations ON DELETE CASCADE,
    last            bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE assignments (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    user_id         bigint NOT NULL REFERENCES accounts ON DELETE CASCADE,
    item_id         bigint NOT NULL REFERENCES catalog_items ON DELETE CASCADE,
    kind            text NOT NULL,
    status          text NOT NULL CHECK (status IN ('pending', 'in_progress', 'submitted', 'completed', 'expired')),
    source          text NOT NULL CHECK (source IN ('api', 'lti', 'plan', 'app')),
    notify          boolean NOT NULL,     -- the app notifies the student
    assigned_at     timestamptz NOT NULL, -- never before that of a lower position
    due_at          timestamptz,
    completed_at    timestamptz,
    overdue_at      timestamptz,          -- when webhooks reported that the due date has passed
    result_ref      text,
    position        bigint NOT NULL,
    updated_at      timestamptz NOT NULL
);
-- The same work is never open twice for a student.
CREATE UNIQUE INDEX assignments_one_open ON assignments (organization_id, user_id, item_id)
    WHERE status IN ('pending', 'in_progress', 'submitted');
CREATE UNIQUE INDEX assignments_position ON assignments (organization_id, position);
CREATE INDEX assignments_user ON assignments (organization_id, user_id, position);
CREATE INDEX assignments_kind ON assignments (organization_id, kind, position);
CREATE INDEX assignments_open ON assignments (organization_id, position)
    WHERE status IN ('pending', 'in_progress', 'submitted');
CREATE INDEX assignments_completed ON assignments (organization_id, position) WHERE status = 'completed';
CREATE INDEX assignments_since ON assignments (organization_id, assigned_at, position);
CREATE INDEX assignments_due ON assignments (due_at)
    WHERE status IN ('pending', 'in_progress') AND overdue_at IS NULL;
CREATE INDEX assignments_expiry ON assignments (due_at)
    WHERE status IN ('pending', 'in_progress') AND overdue_at IS NOT NULL;

-- What students did, one row for a test session, quiz or assessment. A final result has a
-- position, and gets another one each time it becomes final again. There is no foreign key to
-- organizations, as every row of a batch would lock the same row there.
CREATE TABLE results (
    organization_id bigint NOT NULL,
    ref             text NOT NULL, -- its id on the wire: test:…, quiz:…, assessment:…:…
    kind            text NOT NULL CHECK (kind IN ('test', 'quiz', 'assessment')),
    type            text NOT NULL, -- of the item when it was scored
    user_id         bigint NOT NULL REFERENCES accounts ON DELETE CASCADE,
    item_id         bigint NOT NULL REFERENCES catalog_items ON DELETE CASCADE,
    assignment_id   bigint,
    attempt         text NOT NULL CHECK (attempt IN ('practice', 'assigned', 'testing_center', 'section_practice')),
    section         text,          -- of a section that was practised alone
    state           text NOT NULL CHECK (state IN ('started', 'held', 'finished', 'released')),
    started_at      timestamptz,
    completed_at    timestamptz,
    released_at     timestamptz,
    score_e4        bigint,
    max_score_e4    bigint,
    sections        json,          -- the score of each section, as it is shown
    final_at        timestamptz,
    position        bigint,        -- NULL: not final
    updated_at      timestamptz NOT NULL,
    PRIMARY KEY (organization_id, ref),
    CONSTRAINT results_final CHECK (position IS NULL OR final_at IS NOT NULL AND completed_at IS NOT NULL
        AND score_e4 IS NOT NULL AND max_score_e4 > 0)
);
CREATE UNIQUE INDEX results_position ON results (organization_id, position) WHERE position IS NOT NULL;
CREATE INDEX results_type ON results (organization_id, type, position) WHERE position IS NOT NULL;
CREATE INDEX results_user ON results (organization_id, user_id, position) WHERE position IS NOT NULL;
CREATE INDEX results_completed ON results (organization_id, completed_at) WHERE position IS NOT NULL;
-- Work that students have begun, or whose result is under review.
CREATE INDEX results_unfinished ON results (organization_id, user_id) WHERE position IS NULL;

-- The final times within each 1,024 positions, or a wider range. Positions follow time only
-- roughly, so the results of a window of time are found by the spans that overlap it.
CREATE TABLE result_spans (
    organization_id bigint NOT NULL,
    span            bigint NOT NULL, -- position / 1024
    first_final     timestamptz NOT NULL,
    last_final      timestamptz NOT NULL,
    PRIMARY KEY (organization_id, span)
) WITH (fillfactor = 50);

-- Students who came back into an organization's scope. Their final results get new positions at
-- due_at, for readers who have passed the old ones. A row exists for about a minute. There are no
-- foreign keys: a student who is deleted meanwhile has no results left.
CREATE TABLE result_returns (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id bigint NOT NULL,
    user_id         bigint NOT NULL,
    due_at          timestamptz NOT NULL
);
