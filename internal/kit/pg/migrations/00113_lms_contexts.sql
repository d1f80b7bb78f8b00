-- +goose Up

-- Courses of LMSes, in the words of LTI: contexts, as launches name them, and the pulls of their people as rosters (Names and Role
-- Provisioning Services). A pull that is due is the row itself, until an attempt was recorded.
CREATE TABLE lms_contexts (
    organization_id bigint NOT NULL,
    id              bigint GENERATED ALWAYS AS IDENTITY,
    registration_id bigint NOT NULL,
    deployment      text NOT NULL,
    context         text NOT NULL, -- as the LMS calls it
    title           text NOT NULL,
    memberships_url text NOT NULL,
    seen_at         timestamptz NOT NULL, -- the last launch, to the hour
    pulled          boolean NOT NULL DEFAULT false, -- somebody has turned the pull on
    asked_at        timestamptz, -- when a pull was last made due, by hand or by the schedule
    asked_by        jsonb,       -- by whom, while it is pending; NULL: the schedule
    due_at          timestamptz, -- NULL: none is pending
    in_hand         boolean NOT NULL DEFAULT false, -- of a process, until due_at
    claim           bigint NOT NULL DEFAULT 0, -- fences: who was given the pull before may not settle it
    tries           integer NOT NULL DEFAULT 0, -- that were begun since asked_at
    pulled_at       timestamptz, -- the last pull that was handed over as a roster
    attempts        jsonb NOT NULL DEFAULT '[]', -- the last 20
    PRIMARY KEY (organization_id, id),
    CONSTRAINT lms_contexts_context UNIQUE (organization_id, registration_id, deployment, context),
    FOREIGN KEY (organization_id, registration_id) REFERENCES lms_registrations ON DELETE CASCADE
);
CREATE INDEX lms_contexts_due ON lms_contexts (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX lms_contexts_pulled ON lms_contexts (asked_at) WHERE pulled;
