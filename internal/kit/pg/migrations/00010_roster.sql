-- +goose Up

-- Where rosters come from: an organization's label for a system that sends them.
CREATE TABLE roster_sources (
    id                    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id       bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    name                  text NOT NULL,
    authoritative_enabled boolean NOT NULL DEFAULT false,
    had_enrollments       boolean NOT NULL DEFAULT false, -- an applied run brought enrollments.csv
    created_at            timestamptz NOT NULL,
    updated_at            timestamptz NOT NULL,
    CONSTRAINT roster_sources_name UNIQUE (organization_id, name)
);

CREATE TABLE roster_runs (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id  bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    source_id        bigint REFERENCES roster_sources ON DELETE CASCADE, -- NULL while it is being uploaded
    undoes           bigint REFERENCES roster_runs ON DELETE CASCADE,    -- the run that this one takes back
    mode             text NOT NULL DEFAULT 'additive_only' CHECK (mode IN ('additive_only', 'authoritative_snapshot')),
    dry_run          boolean NOT NULL DEFAULT false,
    zip_only         boolean NOT NULL DEFAULT false, -- the sender said that it is an archive
    state            text NOT NULL CHECK (state IN
                     ('uploading', 'queued', 'applying', 'applied', 'previewed',
                      'held', 'discarded', 'refused', 'undone')),
    requested_by     text NOT NULL,
    size             bigint NOT NULL DEFAULT 0,      -- of the upload, in bytes
    created          integer NOT NULL DEFAULT 0,
    updated          integer NOT NULL DEFAULT 0,     -- deactivations included
    skipped          integer NOT NULL DEFAULT 0,
    deactivated      integer NOT NULL DEFAULT 0,
    classes_created  integer NOT NULL DEFAULT 0,
    classes_renamed  integer NOT NULL DEFAULT 0,
    seats_added      integer NOT NULL DEFAULT 0,
    seats_removed    integer NOT NULL DEFAULT 0,
    issues           integer NOT NULL DEFAULT 0,
    has_enrollments  boolean NOT NULL DEFAULT false,
    reasons          jsonb NOT NULL DEFAULT '[]',
    fault_code       text NOT NULL DEFAULT '',       -- of a refused run
    fault            text NOT NULL DEFAULT '',
    -- The updated_at of every row that the run writes. Another value in such a row means that it
    -- has changed since.
    stamp            timestamptz,
    people_done      bigint NOT NULL DEFAULT 0,      -- the last change that was carried out
    classes_done     bigint NOT NULL DEFAULT 0,
    decided_by       text NOT NULL DEFAULT '',       -- who approved, discarded or undid it
    approved_leavers integer,                        -- the deactivations shown at the approval
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    finished_at      timestamptz
);
CREATE INDEX roster_runs_organization ON roster_runs (organization_id, id DESC);
CREATE INDEX roster_runs_unfinished ON roster_runs (organization_id, id) WHERE state IN ('queued', 'applying');
CREATE INDEX roster_runs_uploading ON roster_runs (created_at) WHERE state = 'uploading';
-- Finds the run that waits for a decision, however many runs came after it.
CREATE INDEX roster_runs_held ON roster_runs (organization_id, id DESC) WHERE state = 'held';

-- The upload, until the run is over.
CREATE TABLE roster_chunks (
    run_id bigint NOT NULL REFERENCES roster_runs ON DELETE CASCADE,
    n      integer NOT NULL,
    data   bytea NOT NULL,
    PRIMARY KEY (run_id, n)
);
ALTER TABLE roster_chunks ALTER COLUMN data SET STORAGE EXTERNAL; -- archives do not shrink further

-- The person whom a source means by an external id. There are no foreign keys to sources and
-- accounts: see forget_accounts.
CREATE TABLE roster_identities (
    source_id       bigint NOT NULL,
    organization_id bigint NOT NULL,
    external_id     text NOT NULL,
    user_id         bigint NOT NULL,
    present         boolean NOT NULL, -- in the source, as of its last run
    left_at         timestamptz,      -- when an import ended the membership: its updated_at then
    PRIMARY KEY (source_id, external_id),
    CONSTRAINT roster_identities_user UNIQUE (user_id, source_id)
);

CREATE TABLE roster_classes (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    source_id       bigint NOT NULL REFERENCES roster_sources ON DELETE CASCADE,
    external_id     text NOT NULL,
    name            text NOT NULL,
    updated_at      timestamptz NOT NULL,
    CONSTRAINT roster_classes_external UNIQUE (source_id, external_id)
);

CREATE TABLE roster_class_members (
    class_id   bigint NOT NULL,
    user_id    bigint NOT NULL,
    active     boolean NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (class_id, user_id)
);

-- What a run changes, one row a person: decided before anything is carried out, so that it can be
-- shown, carried out in parts, and undone. There is no foreign key, as a run has hundreds of
-- thousands; the worker deletes the rows of runs that are gone.
CREATE TABLE roster_changes (
    run_id             bigint NOT NULL,
    n                  bigint NOT NULL,
    line               integer NOT NULL,
    action             text NOT NULL,
    effects            smallint NOT NULL,
    user_id            bigint, -- NULL: made by the run
    external_id        text NOT NULL,
    email              text NOT NULL,
    first_name         text NOT NULL,
    last_name          text NOT NULL,
    before_external_id text,
    before_email       text,
    before_first_name  text,
    before_last_name   text,
    PRIMARY KEY (run_id, n)
);
-- A review shows leavers and changes first, which may be at the end of a long run. Creations, the
-- largest part of most runs, are not in the index.
CREATE INDEX roster_changes_action ON roster_changes (run_id, action, n) WHERE action <> 'create';

CREATE TABLE roster_class_changes (
    run_id             bigint NOT NULL,
    n                  bigint NOT NULL,
    action             text NOT NULL CHECK (action IN ('create', 'rename', 'add', 'remove')),
    class_external_id  text NOT NULL,
    name               text NOT NULL DEFAULT '',
    before_name        text NOT NULL DEFAULT '',
    person_external_id text NOT NULL DEFAULT '',
    PRIMARY KEY (run_id, n)
);

CREATE TABLE roster_issues (
    run_id             bigint NOT NULL,
    n                  bigint NOT NULL,
    file               text NOT NULL,
    line               integer NOT NULL,
    person_external_id text NOT NULL,
    code               text NOT NULL,
    severity           text NOT NULL,
    message            text NOT NULL,
    PRIMARY KEY (run_id, n)
);
