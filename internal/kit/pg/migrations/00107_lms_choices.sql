-- +goose Up

-- People of an LMS who are choosing what their course links to (LTI Deep Linking): from the LMS's question to the answer, or some
-- hours. Each is answered once, by whichever replica.
CREATE TABLE lms_choices (
    organization_id bigint NOT NULL,
    hash            bytea NOT NULL, -- of what the page shows
    registration_id bigint NOT NULL,
    request         jsonb NOT NULL, -- what the LMS asks for
    expires_at      timestamptz NOT NULL,
    PRIMARY KEY (organization_id, hash),
    FOREIGN KEY (organization_id, registration_id) REFERENCES lms_registrations ON DELETE CASCADE
);
CREATE INDEX lms_choices_registration ON lms_choices (organization_id, registration_id);
CREATE INDEX lms_choices_expired ON lms_choices (expires_at);
