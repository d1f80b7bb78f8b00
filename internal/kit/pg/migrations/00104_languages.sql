-- +goose Up

-- The language in which students read, as BCP 47 writes it: an organization's default, and what a person chose, if anything.
-- Programs of the version before know English alone.
ALTER TABLE organizations ADD COLUMN language text NOT NULL DEFAULT 'en';
ALTER TABLE organizations ADD CONSTRAINT organizations_language
    CHECK (language ~ '^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$') NOT VALID;
ALTER TABLE accounts ADD COLUMN language text;
ALTER TABLE accounts ADD CONSTRAINT accounts_language
    CHECK (language ~ '^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$') NOT VALID;

-- As before, and the language goes with the person.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION erase_person(person bigint) RETURNS void LANGUAGE plpgsql AS $$
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
    DELETE FROM factors WHERE user_id = person;
    DELETE FROM recovery_codes WHERE user_id = person;
    DELETE FROM factor_tries WHERE user_id = person;
    DELETE FROM lms_tickets WHERE user_id = person;
    DELETE FROM lms_marks WHERE user_id = person;
    DELETE FROM lms_people WHERE user_id = person;
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
        language = NULL,
        updated_at = now()
    WHERE id = person;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION erase_organization_people(organization bigint, people bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    alone   bigint[];
    known   bigint;
    deleted bigint;
BEGIN
    PERFORM check_erased(organization);
    alone := ARRAY(
        SELECT a.id FROM accounts a
        WHERE a.id = ANY (people) AND a.email <> 'erased-' || a.id
            AND NOT EXISTS (SELECT FROM directory d WHERE d.user_id = a.id AND d.organization_id <> organization)
            AND NOT EXISTS (SELECT FROM members m WHERE m.user_id = a.id AND m.organization_id <> organization)
            AND NOT EXISTS (SELECT FROM enrollments e WHERE e.user_id = a.id AND e.organization_id <> organization));
    SELECT count(*) INTO known FROM accounts
    WHERE id = ANY (people) AND id <> ALL (alone) AND email <> 'erased-' || id;
    -- Before the memberships, whose end makes arrivals of those who are enrolled.
    DELETE FROM enrollments WHERE user_id = ANY (people) AND organization_id = organization;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    PERFORM count_erased(organization, 'enrollments', deleted);
    DELETE FROM members WHERE user_id = ANY (people) AND organization_id = organization;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    PERFORM count_erased(organization, 'members', deleted);
    DELETE FROM arrivals WHERE user_id = ANY (people) AND organization_id = organization;
    DELETE FROM directory WHERE user_id = ANY (people) AND organization_id = organization;
    DELETE FROM set_password_tokens WHERE user_id = ANY (people) AND organization_id = organization;
    DELETE FROM password_resets WHERE email IN (SELECT email FROM accounts WHERE id = ANY (alone));
    DELETE FROM set_password_tokens WHERE user_id = ANY (alone);
    DELETE FROM sessions WHERE user_id = ANY (alone);
    DELETE FROM factors WHERE user_id = ANY (alone);
    DELETE FROM recovery_codes WHERE user_id = ANY (alone);
    DELETE FROM factor_tries WHERE user_id = ANY (alone);
    DELETE FROM emails WHERE user_id = ANY (alone) AND organization_id IS NULL;
    UPDATE accounts SET
        email = 'erased-' || id,
        username = 'erased ' || id,
        first_name = '',
        last_name = '',
        password_hash = NULL,
        own_password = false,
        proven_password = false,
        must_change_password = false,
        last_login = NULL,
        language = NULL,
        updated_at = now()
    WHERE id = ANY (alone);
    PERFORM count_erased(organization, 'accounts', cardinality(alone));
    PERFORM count_erased(organization, 'shared_accounts', known);
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['erase_person', 'erase_organization_people'] LOOP
        EXECUTE format('ALTER FUNCTION %I SECURITY DEFINER SET search_path = %I, pg_temp', name, current_schema());
    END LOOP;
END $$;
-- +goose StatementEnd
