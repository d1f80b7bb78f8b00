-- +goose Up

-- What becomes of a URL whose Kubernetes resource is gone: it is removed, or left to the organization's staff.
ALTER TABLE webhook_endpoints ADD COLUMN retained boolean NOT NULL DEFAULT false;
