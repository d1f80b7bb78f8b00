-- +goose NO TRANSACTION
-- +goose Up

-- The event's place among those of its organization, by which a student's first attempts are found in their
-- order, however late one of them was committed. 0: queued by a program of before, or not a first attempt.
ALTER TABLE webhook_queue ADD COLUMN IF NOT EXISTS sequence bigint NOT NULL DEFAULT 0;
-- The sum keeps other indexes from serving what this one is for: with the statistics of an empty queue, PostgreSQL
-- would walk all deliveries of the URL along one of them.
CREATE INDEX CONCURRENTLY IF NOT EXISTS webhook_queue_firsts ON webhook_queue (user_id, (endpoint_id + 0), sequence)
    WHERE entries = 0 AND user_id IS NOT NULL;

-- Senders look up the deliveries that they have in hand. Along the primary key it would be as quick, but with those
-- statistics PostgreSQL takes webhook_queue_due for no worse, whose last column is the id too, and walks there through
-- all deliveries of the URL. The statements hide the other columns.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS webhook_queue_id ON webhook_queue (id);
