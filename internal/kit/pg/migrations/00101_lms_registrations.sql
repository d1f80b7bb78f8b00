-- +goose Up

-- LMSes that open work here by LTI 1.3, as their organization has registered them. Several organizations may name one
-- issuer and client: the addresses of a launch name the organization, so nobody takes another's by being first.
CREATE TABLE lms_registrations (
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    id              bigint GENERATED ALWAYS AS IDENTITY,
    name            text NOT NULL,
    issuer          text NOT NULL,
    client_id       text NOT NULL,
    authorize_url   text NOT NULL,
    token_url       text NOT NULL,
    keys_url        text NOT NULL,
    deployments     text[] NOT NULL, -- a launch of another one is refused
    launched_at     timestamptz, -- the last one that was taken
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    PRIMARY KEY (organization_id, id),
    CONSTRAINT lms_registrations_client UNIQUE (organization_id, issuer, client_id)
);

-- Launches under way, from the LMS's first request to its answer: some minutes at most. Each is taken once, by whichever replica. All
-- but numbers and the frame are hashes.
CREATE TABLE lms_logins (
    organization_id bigint NOT NULL,
    state           bytea NOT NULL, -- what the LMS brings back
    registration_id bigint NOT NULL,
    nonce           bytea NOT NULL, -- what its token has to say
    browser         bytea NOT NULL, -- what the browser shows, by its cookie or the LMS's storage
    storage         text NOT NULL, -- the frame in which the LMS keeps values for tools; '': none
    expires_at      timestamptz NOT NULL,
    PRIMARY KEY (organization_id, state),
    FOREIGN KEY (organization_id, registration_id) REFERENCES lms_registrations ON DELETE CASCADE
);
CREATE INDEX lms_logins_registration ON lms_logins (organization_id, registration_id);
CREATE INDEX lms_logins_expired ON lms_logins (expires_at);

-- Launches that were taken within another site's page, where no session can begin: a window of their own opens each once.
CREATE TABLE lms_tickets (
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    hash            bytea NOT NULL,
    user_id         bigint NOT NULL REFERENCES accounts ON DELETE CASCADE,
    leads_to        text NOT NULL, -- a path of the site
    note            text NOT NULL,
    expires_at      timestamptz NOT NULL,
    PRIMARY KEY (organization_id, hash)
);
CREATE INDEX lms_tickets_user ON lms_tickets (user_id);
CREATE INDEX lms_tickets_expired ON lms_tickets (expires_at);

-- Who an LMS's people are. It names each of its organization's people by one subject alone, so none of its users becomes another
-- student by a changed address.
CREATE TABLE lms_people (
    organization_id bigint NOT NULL,
    registration_id bigint NOT NULL,
    subject         text NOT NULL,
    user_id         bigint NOT NULL REFERENCES accounts ON DELETE CASCADE,
    created_at      timestamptz NOT NULL,
    PRIMARY KEY (organization_id, registration_id, subject),
    CONSTRAINT lms_people_user UNIQUE (organization_id, registration_id, user_id),
    FOREIGN KEY (organization_id, registration_id) REFERENCES lms_registrations ON DELETE CASCADE
);
CREATE INDEX lms_people_of_user ON lms_people (user_id);

-- The installation's own keys, of which one set is published for all LMSes: each is published before it signs, and stays published for a
-- time after the next one does.
CREATE TABLE lms_keys (
    kid        text PRIMARY KEY,
    sealed     bytea NOT NULL, -- PKCS #8
    public     jsonb NOT NULL, -- the JSON Web Key
    created_at timestamptz NOT NULL,
    signs_from timestamptz NOT NULL
);

-- As before, with the new tables.
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
