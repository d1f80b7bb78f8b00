-- +goose Up

-- How the attempts of an hour ended, without tests: for charts, which cannot count the journal. The
-- transaction that records attempts holds the lock of their endpoint's health, so nobody waits for a row
-- here. There is no foreign key: what is recorded for an endpoint must not wait for its deletion. Rows
-- are deleted by age.
CREATE TABLE webhook_hours (
    organization_id bigint NOT NULL,
    endpoint_id     bigint NOT NULL,
    hour            timestamptz NOT NULL, -- its beginning
    delivered       integer NOT NULL,
    failed          integer NOT NULL,
    PRIMARY KEY (organization_id, endpoint_id, hour)
) WITH (fillfactor = 50);
