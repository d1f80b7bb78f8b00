-- +goose Up

-- Arrivals draw their positions (see 00026) instead of locking a counter. Who writes a list meanwhile
-- has either taken its position from the counter or takes it from the sequence.
LOCK TABLE organizations IN SHARE ROW EXCLUSIVE MODE;
LOCK TABLE members IN SHARE ROW EXCLUSIVE MODE;
SELECT setval('positions_' || p.organization_id, p.last)
FROM arrival_positions p
WHERE p.last > pg_sequence_last_value(to_regclass('positions_' || p.organization_id));

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION arrivals_enter() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- New members come in the order of their accounts. Who has a row was enrolled without being a
    -- member, is on the list already and keeps the position; the new one stays unused.
    INSERT INTO arrivals (user_id, organization_id, position)
    SELECT n.user_id, n.organization_id, next_position(n.organization_id)
    FROM (SELECT user_id, organization_id FROM entered WHERE role = 'member'
        ORDER BY organization_id, user_id OFFSET 0) AS n
    ON CONFLICT (user_id, organization_id) DO NOTHING;
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION arrivals_turn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO arrivals (user_id, organization_id, position)
    VALUES (NEW.user_id, NEW.organization_id, next_position(NEW.organization_id))
    ON CONFLICT (user_id, organization_id) DO UPDATE SET position = excluded.position;
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION arrivals_leave() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM arrivals a USING gone g
    WHERE a.user_id = g.user_id AND a.organization_id = g.organization_id AND (g.role <> 'member'
        OR NOT EXISTS (SELECT FROM enrollments e
            WHERE e.organization_id = g.organization_id AND e.user_id = g.user_id));
    INSERT INTO arrivals (user_id, organization_id, position)
    SELECT g.user_id, g.organization_id, next_position(g.organization_id)
    FROM gone g
    WHERE g.role <> 'member'
        AND EXISTS (SELECT FROM enrollments e WHERE e.organization_id = g.organization_id AND e.user_id = g.user_id);
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION forget_arrivals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'accounts' THEN
        DELETE FROM arrivals a USING gone WHERE a.user_id = gone.id;
    ELSE
        DELETE FROM arrivals a USING gone WHERE a.organization_id = gone.id;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
DROP FUNCTION next_arrival(bigint);
DROP TABLE arrival_positions;

-- Programs of before this migration ask it whether a list goes on behind a position.
CREATE VIEW arrival_positions AS
SELECT id AS organization_id, 9223372036854775807 AS last FROM organizations;
