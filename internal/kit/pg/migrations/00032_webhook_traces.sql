-- +goose Up

-- Where in its trace (W3C traceparent) an event was recorded; NULL when nothing was traced.
ALTER TABLE webhook_events ADD COLUMN traceparent text;
