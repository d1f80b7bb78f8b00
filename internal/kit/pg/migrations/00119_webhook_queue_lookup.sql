-- +goose NO TRANSACTION
-- +goose Up

-- Senders look up the deliveries that they have in hand. By the id alone PostgreSQL may walk along webhook_queue_due,
-- whose last column it is: when webhook_queue_id has grown by a level that it keeps, and the statistics are those of an
-- empty queue, that seems cheaper. No other index has this expression.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS webhook_queue_lookup ON webhook_queue (uuid_send(id));
DROP INDEX CONCURRENTLY IF EXISTS webhook_queue_id;
