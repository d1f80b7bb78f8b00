-- +goose Up

-- Each process that begins to move a sandbox's clock takes the next number; those with an older one are refused.
ALTER TABLE sandbox_clock ADD COLUMN mover bigint NOT NULL DEFAULT 0;
