-- +goose Up

-- The link by which an organization's LMS may register itself (LTI Dynamic Registration): one at a time, good once.
CREATE TABLE lms_invitations (
    organization_id bigint PRIMARY KEY REFERENCES organizations ON DELETE CASCADE,
    hash            bytea NOT NULL,
    expires_at      timestamptz NOT NULL
);

-- A registration that an LMS has made itself opens nothing until the organization has looked at it.
ALTER TABLE lms_registrations ADD COLUMN waiting boolean NOT NULL DEFAULT false;
