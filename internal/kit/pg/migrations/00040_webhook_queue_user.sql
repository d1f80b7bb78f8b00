-- +goose Up

-- Whom the event is about: first attempts of one student's events to one URL are made in order. NULL:
-- nobody, or queued by a program of before.
ALTER TABLE webhook_queue ADD COLUMN user_id bigint;
