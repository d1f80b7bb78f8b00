-- +goose Up

-- The last position that an organization's arrivals were given. As with assignments and results,
-- the row stays locked until the commit, so positions become visible in their order.
CREATE TABLE arrival_positions (
    organization_id bigint PRIMARY KEY,
    last            bigint NOT NULL
) WITH (fillfactor = 50);

-- When everybody came into the list of an organization's students, as a position. Somebody who
-- leaves the list and comes back gets a new one. Rows of people who became staff, which are not
-- listed, may stay. Triggers write it, because several areas write members. There are no foreign
-- keys: see forget_accounts.
CREATE TABLE arrivals (
    user_id         bigint NOT NULL,
    organization_id bigint NOT NULL,
    position        bigint NOT NULL,
    PRIMARY KEY (user_id, organization_id)
);
CREATE UNIQUE INDEX arrivals_position ON arrivals (organization_id, position) INCLUDE (user_id);

CREATE FUNCTION next_arrival(organization bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    INSERT INTO arrival_positions AS p (organization_id, last) VALUES (organization, 1)
    ON CONFLICT (organization_id) DO UPDATE SET last = p.last + 1
    RETURNING p.last
$$;

-- New members come in the order of their accounts. Who has a row was enrolled without being a
-- member, is on the list already and keeps the position; the new one stays unused.
-- +goose StatementBegin
CREATE FUNCTION arrivals_enter() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WITH counter AS (
        INSERT INTO arrival_positions AS p (organization_id, last)
        SELECT n.organization_id, count(*) FROM entered n WHERE n.role = 'member'
        GROUP BY n.organization_id ORDER BY n.organization_id
        ON CONFLICT (organization_id) DO UPDATE SET last = p.last + excluded.last
        RETURNING p.organization_id, p.last)
    INSERT INTO arrivals (user_id, organization_id, position)
    SELECT
        n.user_id,
        n.organization_id,
        c.last + 1 - row_number() OVER (PARTITION BY n.organization_id ORDER BY n.user_id DESC)
    FROM entered n
    JOIN counter c ON c.organization_id = n.organization_id
    WHERE n.role = 'member'
    ON CONFLICT (user_id, organization_id) DO NOTHING;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER members_enter AFTER INSERT ON members
    REFERENCING NEW TABLE AS entered FOR EACH STATEMENT
    EXECUTE FUNCTION arrivals_enter();

-- Staff who become students come into the list.
-- +goose StatementBegin
CREATE FUNCTION arrivals_turn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO arrivals (user_id, organization_id, position)
    VALUES (NEW.user_id, NEW.organization_id, next_arrival(NEW.organization_id))
    ON CONFLICT (user_id, organization_id) DO UPDATE SET position = excluded.position;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER members_turn AFTER UPDATE OF role ON members FOR EACH ROW
    WHEN (OLD.role <> 'member' AND NEW.role = 'member')
    EXECUTE FUNCTION arrivals_turn();

-- A student whose membership is removed stays on the list while there is an enrollment, and
-- staff who have one come into it.
-- +goose StatementBegin
CREATE FUNCTION arrivals_leave() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM arrivals a USING gone g
    WHERE a.user_id = g.user_id AND a.organization_id = g.organization_id AND (g.role <> 'member'
        OR NOT EXISTS (SELECT FROM enrollments e
            WHERE e.organization_id = g.organization_id AND e.user_id = g.user_id));
    INSERT INTO arrivals (user_id, organization_id, position)
    SELECT g.user_id, g.organization_id, next_arrival(g.organization_id)
    FROM gone g
    WHERE g.role <> 'member'
        AND EXISTS (SELECT FROM enrollments e WHERE e.organization_id = g.organization_id AND e.user_id = g.user_id);
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER members_leave AFTER DELETE ON members REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION arrivals_leave();

-- +goose StatementBegin
CREATE FUNCTION forget_arrivals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'accounts' THEN
        DELETE FROM arrivals a USING gone WHERE a.user_id = gone.id;
    ELSE
        DELETE FROM arrivals a USING gone WHERE a.organization_id = gone.id;
        DELETE FROM arrival_positions p USING gone WHERE p.organization_id = gone.id;
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- Triggers fire in the order of their names: these after forget, which deletes members.
CREATE TRIGGER forget_arrivals AFTER DELETE ON accounts REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION forget_arrivals();
CREATE TRIGGER forget_arrivals AFTER DELETE ON organizations REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION forget_arrivals();

-- The positions that the next migration gives to everybody who is there now. The triggers keep
-- others from becoming a member until this is committed.
INSERT INTO arrival_positions (organization_id, last)
SELECT organization_id, sum(n)
FROM (SELECT organization_id, count(*) AS n FROM members GROUP BY organization_id
    UNION ALL
    SELECT organization_id, count(*) FROM enrollments GROUP BY organization_id) AS there
GROUP BY organization_id;

-- The position that an assignment was made with, which follows assigned_at; NULL: its position.
-- All work of a student who comes back gets new positions.
ALTER TABLE assignments ADD COLUMN made bigint;

-- Students may do the work again from an LMS, after it was completed.
ALTER TABLE catalog_items ADD COLUMN retake boolean NOT NULL DEFAULT false;
