-- +goose NO TRANSACTION
-- +goose Up

-- The names that were there before the last migration, some at a time: each is locked until the commit, so
-- that nobody renames it meanwhile.
-- +goose StatementBegin
DO $$
DECLARE
    last_user bigint := 0;
    last_organization bigint := 0;
BEGIN
    LOOP
        WITH batch AS MATERIALIZED (
            SELECT user_id, organization_id, name FROM directory
            WHERE (user_id, organization_id) > (last_user, last_organization)
            ORDER BY user_id, organization_id LIMIT 2000 FOR SHARE
        ), filled AS (
            INSERT INTO directory_words (organization_id, words, user_id)
            SELECT b.organization_id, r.words, b.user_id FROM batch b CROSS JOIN LATERAL directory_rotations(b.name) AS r (words)
            ON CONFLICT DO NOTHING
        )
        SELECT user_id, organization_id INTO last_user, last_organization FROM batch
        ORDER BY user_id DESC, organization_id DESC LIMIT 1;
        EXIT WHEN NOT FOUND;
        COMMIT;
    END LOOP;
END $$;
-- +goose StatementEnd

-- A last name is a word like any other.
DROP INDEX CONCURRENTLY IF EXISTS directory_surname;
