-- +goose Up

-- What receivers of webhooks know of an enrollment, so that what happens by the calendar
-- is told once. NULL: nothing is known to have been told, and it is not made up for.
ALTER TABLE enrollments
    ADD COLUMN notified_status text CHECK (notified_status IN
        ('active', 'grace_period', 'pending', 'expired', 'suspended', 'dropped', 'completed')),
    -- The end dates whose approach was told.
    ADD COLUMN notified_end_dates date[] NOT NULL DEFAULT '{}',
    -- The day on which the calendar changes something next; NULL: never. Rows written by a
    -- program that does not know the column are looked at once.
    ADD COLUMN next_day date DEFAULT '1970-01-01';
