-- +goose Up

-- Staff keep the password that they have: it was looked at when they joined.
UPDATE accounts a SET proven_password = true
WHERE a.own_password AND EXISTS (SELECT FROM members s WHERE s.user_id = a.id AND s.role <> 'member');
