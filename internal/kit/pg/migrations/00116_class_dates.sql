-- +goose Up

-- The dates of a class, as the file has those of its terms; NULL: it says none.
ALTER TABLE roster_classes ADD COLUMN start_date date;
ALTER TABLE roster_classes ADD COLUMN end_date date;
ALTER TABLE roster_class_changes ADD COLUMN start_date date;
ALTER TABLE roster_class_changes ADD COLUMN end_date date;
ALTER TABLE roster_class_changes ADD COLUMN before_start_date date;
ALTER TABLE roster_class_changes ADD COLUMN before_end_date date;
ALTER TABLE roster_class_changes DROP CONSTRAINT roster_class_changes_action_check;
ALTER TABLE roster_class_changes ADD CONSTRAINT roster_class_changes_action_check
    CHECK (action IN ('create', 'rename', 'reschedule', 'add', 'remove')) NOT VALID;
ALTER TABLE roster_runs ADD COLUMN classes_rescheduled integer NOT NULL DEFAULT 0;
