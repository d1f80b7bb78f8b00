-- +goose Up

-- Sign-ins, of students too, and what was refused: from where, and how often within the minute before.
ALTER TABLE audit_log ADD COLUMN address text NOT NULL DEFAULT '';
ALTER TABLE audit_log ADD COLUMN times integer NOT NULL DEFAULT 1;
ALTER TABLE audit_log DROP CONSTRAINT audit_log_actor_kind_check;
ALTER TABLE audit_log ADD CONSTRAINT audit_log_actor_kind_check
    CHECK (actor_kind IN ('partner_key', 'platform_key', 'staff', 'student', 'operator', 'schedule', 'unknown')) NOT VALID;
