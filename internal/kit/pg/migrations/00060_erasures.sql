-- +goose Up

-- People who were erased. It is about people and not about an organization's, like accounts.
CREATE TABLE erasures (
    user_id     bigint PRIMARY KEY,
    erased_at   timestamptz NOT NULL,
    -- What the person was called, encrypted, for as long as the worker looks for it. NULL: it is found nowhere.
    sealed      bytea,
    searched_at timestamptz, -- when the worker has looked for the first time
    finished_at timestamptz
);
CREATE INDEX erasures_unfinished ON erasures (erased_at) WHERE sealed IS NOT NULL;

-- Whom a row that was remarked on is about, where an import left the person as it was: nothing else then keeps what
-- the source calls the person.
ALTER TABLE roster_issues ADD COLUMN user_id bigint;

-- Deletes what leads to a person who is being erased, and leaves the account as a number: assignments, results and
-- attendance still count. Neither an address nor a username can be what is left in their places.
-- +goose StatementBegin
CREATE FUNCTION erase_person(person bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM erasures WHERE user_id = person AND sealed IS NOT NULL) THEN
        RAISE EXCEPTION 'user % is not being erased', person;
    END IF;
    -- Before the memberships, whose end makes arrivals of those who are enrolled.
    DELETE FROM enrollments WHERE user_id = person;
    DELETE FROM members WHERE user_id = person;
    DELETE FROM arrivals WHERE user_id = person;
    DELETE FROM directory WHERE user_id = person;
    DELETE FROM roster_class_members m
    USING roster_identities i JOIN roster_classes c ON c.source_id = i.source_id
    WHERE i.user_id = person AND m.class_id = c.id AND m.user_id = person;
    DELETE FROM roster_identities WHERE user_id = person;
    DELETE FROM plan_browsers WHERE user_id = person;
    DELETE FROM result_returns WHERE user_id = person;
    DELETE FROM sessions WHERE user_id = person;
    DELETE FROM set_password_tokens WHERE user_id = person;
    UPDATE accounts SET
        email = 'erased-' || person,
        username = 'erased ' || person,
        first_name = '',
        last_name = '',
        password_hash = NULL,
        own_password = false,
        proven_password = false,
        must_change_password = false,
        last_login = NULL,
        updated_at = now()
    WHERE id = person;
END $$;
-- +goose StatementEnd

-- Nobody changes the audit log but this: in up to most entries behind one it writes the number of a person who is
-- being erased for the person's addresses and, where the person was the actor, for the name, and takes away from
-- where the person signed in. An address that has an account again is that of somebody new since the erasure. It
-- returns the last entry that it looked at, NULL for none.
-- +goose StatementBegin
CREATE FUNCTION erase_from_audit(person bigint, addresses text[], behind bigint, most integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    number text := 'user ' || person;
    since  timestamptz := (SELECT erased_at FROM erasures WHERE user_id = person AND sealed IS NOT NULL);
    again  text[] := ARRAY(SELECT email FROM accounts WHERE email = ANY (addresses));
    last   bigint;
BEGIN
    IF since IS NULL THEN
        RAISE EXCEPTION 'user % is not being erased', person;
    END IF;
    SELECT max(id) INTO last FROM (SELECT id FROM audit_log WHERE id > behind ORDER BY id LIMIT most) AS entries;
    UPDATE audit_log SET
        actor_name = CASE WHEN actor_id = person AND actor_kind IN ('staff', 'student') THEN number ELSE actor_name END,
        address = CASE WHEN actor_id = person AND actor_kind IN ('staff', 'student') OR target = number THEN '' ELSE address END,
        target = array_to_string(ARRAY(
            SELECT CASE WHEN word = ANY (addresses) THEN number ELSE word END
            FROM unnest(string_to_array(target, ' ')) WITH ORDINALITY AS words (word, n)
            ORDER BY n), ' ')
    WHERE id > behind AND id <= last
        AND (actor_id = person AND actor_kind IN ('staff', 'student') AND (actor_name, address) <> (number, '')
            OR target = number AND address <> ''
            OR string_to_array(target, ' ') && addresses
                AND (created_at <= since OR NOT string_to_array(target, ' ') && again));
    RETURN last;
END $$;
-- +goose StatementEnd

-- They run as their owner, and look for names in the schema alone.
-- +goose StatementBegin
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['erase_person', 'erase_from_audit'] LOOP
        EXECUTE format('ALTER FUNCTION %I SECURITY DEFINER SET search_path = %I, pg_temp', name, current_schema());
    END LOOP;
END $$;
-- +goose StatementEnd
