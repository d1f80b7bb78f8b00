-- +goose Up

-- The Kubernetes resource that keeps a source, what a person has to approve of its snapshots, and the share of people, or of places, above
-- which losing them is not plausible (null: the usual rule).
ALTER TABLE roster_sources ADD COLUMN managed_by text;
ALTER TABLE roster_sources ADD COLUMN approval text NOT NULL DEFAULT 'guarded' CHECK (approval IN ('guarded', 'always'));
ALTER TABLE roster_sources ADD COLUMN guard_percent smallint CHECK (guard_percent BETWEEN 0 AND 100);
CREATE UNIQUE INDEX roster_sources_managed_by ON roster_sources (managed_by);
