-- +goose Up

-- What a link proves. One that was mailed to the account's own address, and that no organization was
-- given, proves the mailbox. Links from before went both into a mail and into an answer.
ALTER TABLE set_password_tokens ADD COLUMN mailed boolean NOT NULL DEFAULT false;

-- What a session proves is in its values, where a program without this column keeps it. A password
-- opened each of them, or else the launch of an LMS; both ended when another password was set. For a
-- password, proven_password says that it proves the mailbox; any other proves the organization that
-- made the account.
UPDATE sessions s
SET data = jsonb_set(s.data, '{values,proof}',
    to_jsonb(CASE WHEN a.proven_password THEN 'mailbox' ELSE 'organization ' || coalesce(a.created_by_organization, 0) END))
FROM accounts a
WHERE a.id = s.user_id;
