-- +goose Up

-- The Kubernetes resource that keeps a key. Staff cannot revoke such a key.
ALTER TABLE api_keys ADD COLUMN managed_by text;
CREATE INDEX api_keys_managed_by ON api_keys (managed_by) WHERE managed_by IS NOT NULL AND revoked_at IS NULL;
