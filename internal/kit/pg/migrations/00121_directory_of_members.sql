-- +goose NO TRANSACTION
-- +goose Up

-- Enters whoever is a member already, some at a time. The accounts are locked against being
-- renamed while they are read, so that no row is entered under a name that has just changed.
-- +goose StatementBegin
DO $$
DECLARE
    upto bigint := 0; most bigint;
BEGIN
    SELECT coalesce(max(id), 0) INTO most FROM accounts;
    WHILE upto < most LOOP
        INSERT INTO directory (user_id, organization_id, name, surname, email)
        SELECT a.id, m.organization_id, directory_key(a.first_name || ' ' || a.last_name), directory_key(a.last_name || ' ' || a.first_name), a.email
        FROM accounts a JOIN members m ON m.user_id = a.id
        WHERE a.id > upto AND a.id <= upto + 10000
        FOR SHARE OF a
        ON CONFLICT DO NOTHING;
        upto := upto + 10000;
        COMMIT;
    END LOOP;
END $$;
-- +goose StatementEnd
