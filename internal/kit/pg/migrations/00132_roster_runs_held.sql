-- +goose Up

-- What waits for somebody's decision is looked up however many runs came after it.
CREATE INDEX roster_runs_held ON roster_runs (organization_id, id DESC) WHERE state = 'held';
