-- +goose Up

-- The event's place among those of its organization (see 00026). NULL: recorded by a program of before.
ALTER TABLE webhook_events ADD COLUMN sequence bigint;
