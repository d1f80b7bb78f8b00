-- +goose NO TRANSACTION
-- +goose Up

-- How many epochs began lately is counted with each scrape.
CREATE INDEX CONCURRENTLY IF NOT EXISTS list_epochs_began ON list_epochs (began_at) WHERE begins > 0;
