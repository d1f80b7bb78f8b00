-- +goose Up

-- Who keeps a URL's settings, when it is not people: the operator's reference to its
-- resource. NULL: people do, over the console or the platform API.
ALTER TABLE webhook_endpoints ADD COLUMN managed_by text CONSTRAINT webhook_endpoints_managed_by UNIQUE;

-- Deliveries that somebody asked for by hand (Send test, Resend) leave ahead of the
-- backlog, whatever the allowance says, and while the URL is switched off.
ALTER TABLE webhook_deliveries ADD COLUMN asked boolean NOT NULL DEFAULT false;
CREATE INDEX webhook_deliveries_asked ON webhook_deliveries (endpoint_id) WHERE status = 'waiting' AND asked;
