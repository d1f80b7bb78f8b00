-- +goose NO TRANSACTION
-- +goose Up

-- What is asked about one person. What an audit entry is about, as its text begins; sign-ins and some
-- refusals are about nothing.
CREATE INDEX CONCURRENTLY IF NOT EXISTS audit_log_target ON audit_log (organization_id, target COLLATE "C")
    WHERE target <> '';
-- What roster runs changed of people whom they did not make. A first import, which makes everybody,
-- adds nothing to it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS roster_changes_user ON roster_changes (user_id) WHERE user_id IS NOT NULL;
-- What a run remarked about one person's row.
CREATE INDEX CONCURRENTLY IF NOT EXISTS roster_issues_person ON roster_issues (run_id, person_external_id)
    WHERE person_external_id <> '';
