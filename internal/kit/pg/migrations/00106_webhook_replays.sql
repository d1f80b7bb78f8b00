-- +goose Up

-- The events that a recovery is limited to (null: all), and the Kubernetes resource that began it, which begins one for each URL.
ALTER TABLE webhook_recoveries ADD COLUMN events text[];
ALTER TABLE webhook_recoveries ADD COLUMN managed_by text;
CREATE UNIQUE INDEX webhook_recoveries_managed_by ON webhook_recoveries (managed_by, endpoint_id);
