-- +goose Up

ALTER TABLE lms_registrations ADD COLUMN token_audience text NOT NULL DEFAULT ''; -- '': token_url

-- The last mark of a student for a link in an LMS, and how far it is on its way there. The row is the pending work: it is written
-- with the result, and is due until the mark's version was sent.
CREATE TABLE lms_marks (
    organization_id bigint NOT NULL,
    registration_id bigint NOT NULL,
    line            bytea NOT NULL, -- the hash of line_item
    user_id         bigint NOT NULL REFERENCES accounts ON DELETE CASCADE,
    line_item       text NOT NULL,  -- the LMS's address of the column of marks
    item_id         bigint NOT NULL,
    score_e4        bigint,
    max_score_e4    bigint,
    scored_at       timestamptz,    -- what the LMS goes by: later than of each version before
    version         bigint NOT NULL DEFAULT 0, -- 0: there is no mark yet
    sent_version    bigint NOT NULL DEFAULT 0,
    sent_at         timestamptz,
    tries           integer NOT NULL DEFAULT 0, -- of this version, that failed
    claim           bigint NOT NULL DEFAULT 0,  -- fences: who was given the mark before may not settle it
    in_hand         boolean NOT NULL DEFAULT false, -- of a sender, until due_at
    due_at          timestamptz,                -- NULL: sent, given up, or there is none
    attempts        jsonb NOT NULL DEFAULT '[]', -- the last 20
    updated_at      timestamptz NOT NULL,
    PRIMARY KEY (organization_id, registration_id, line, user_id),
    FOREIGN KEY (organization_id, registration_id) REFERENCES lms_registrations ON DELETE CASCADE
);
CREATE INDEX lms_marks_user ON lms_marks (organization_id, user_id, item_id);
CREATE INDEX lms_marks_of_user ON lms_marks (user_id);
CREATE INDEX lms_marks_due ON lms_marks (organization_id, registration_id, due_at) WHERE due_at IS NOT NULL;

-- As before, with the new table.
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
        updated_at = now()
    WHERE id = person;
END $$;
-- +goose StatementEnd

-- See 00041_definers.sql.
-- +goose StatementBegin
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION erase_person SECURITY DEFINER SET search_path = %I, pg_temp', current_schema());
END $$;
-- +goose StatementEnd
