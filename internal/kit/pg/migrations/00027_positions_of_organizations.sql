-- +goose NO TRANSACTION
-- +goose Up

-- The sequences of the organizations that were made before the last migration, a few at a time: each
-- keeps a lock until the commit.
-- +goose StatementBegin
DO $$
DECLARE
    ids bigint[] := ARRAY(SELECT id FROM organizations);
BEGIN
    FOR i IN 1 .. cardinality(ids) LOOP
        PERFORM make_positions(ids[i]);
        IF i % 100 = 0 THEN
            COMMIT;
        END IF;
    END LOOP;
END $$;
-- +goose StatementEnd
