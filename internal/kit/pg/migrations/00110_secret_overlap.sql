-- +goose Up

-- While a signing secret replaces another, the one before signs, too, until the time given here. Programs of the version
-- before sign with the current one alone, and delete the other when they replace it: nothing refers to it but this number.
ALTER TABLE webhook_endpoints ADD COLUMN previous_version integer;
ALTER TABLE webhook_endpoints ADD COLUMN previous_until timestamptz;
ALTER TABLE webhook_endpoints ADD CONSTRAINT webhook_endpoints_previous
    CHECK ((previous_version IS NULL) = (previous_until IS NULL)) NOT VALID;
