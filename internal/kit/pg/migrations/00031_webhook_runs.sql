-- +goose Up

-- How many runs of failures the endpoint has had, and how many failures of the present one are of
-- attempts that were handed out before its first failure was recorded.
ALTER TABLE webhook_health ADD COLUMN runs integer NOT NULL DEFAULT 0;
ALTER TABLE webhook_health ADD COLUMN early integer NOT NULL DEFAULT 0;
