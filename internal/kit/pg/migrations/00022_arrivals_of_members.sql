-- +goose Up

-- Everybody who was a student before positions were given: in the order in which they joined.
-- The positions are below those of who came since (see 00021).
INSERT INTO arrivals (user_id, organization_id, position)
SELECT user_id, organization_id, row_number() OVER (PARTITION BY organization_id ORDER BY min(came_at), user_id)
FROM (SELECT m.user_id, m.organization_id, m.joined_at AS came_at FROM members m WHERE m.role = 'member'
    UNION ALL
    SELECT e.user_id, e.organization_id, e.created_at FROM enrollments e
    WHERE NOT EXISTS (SELECT FROM members m WHERE m.organization_id = e.organization_id AND m.user_id = e.user_id)
    ) AS there
WHERE NOT EXISTS (SELECT FROM arrivals a
    WHERE a.user_id = there.user_id AND a.organization_id = there.organization_id)
GROUP BY organization_id, user_id
ON CONFLICT DO NOTHING;
