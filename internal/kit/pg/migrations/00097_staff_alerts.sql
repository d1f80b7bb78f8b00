-- +goose Up

-- What owners and admins are mailed about, and when they were, so that they are at most once an hour about one thing. A
-- row goes once that is mended, and an hour after the mail.
CREATE TABLE staff_alerts (
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    type            text NOT NULL,
    subject         bigint NOT NULL, -- the webhook URL, or the roster source
    -- Which time of the subject it is: another one is mailed again.
    occasion        bigint NOT NULL,
    since           timestamptz NOT NULL,
    mailed          boolean NOT NULL DEFAULT false, -- about this occasion
    mailed_at       timestamptz, -- the last time about this subject
    PRIMARY KEY (organization_id, type, subject)
);

-- Mails that a member of the staff wants no more.
CREATE TABLE mail_optouts (
    organization_id bigint NOT NULL,
    user_id         bigint NOT NULL,
    type            text NOT NULL,
    created_at      timestamptz NOT NULL,
    PRIMARY KEY (organization_id, user_id, type),
    FOREIGN KEY (organization_id, user_id) REFERENCES members ON DELETE CASCADE
);
