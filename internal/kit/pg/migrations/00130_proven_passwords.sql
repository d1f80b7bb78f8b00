-- +goose Up

-- No partner can know the password: it was set over a link that went to the mailbox alone, or
-- by the platform. Only such a password is kept by who joins a staff.
ALTER TABLE accounts ADD COLUMN proven_password boolean NOT NULL DEFAULT false;
