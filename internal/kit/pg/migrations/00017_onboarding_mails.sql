-- +goose NO TRANSACTION
-- +goose Up

-- How many onboarding mails an address has had lately, of all organizations together.
CREATE INDEX CONCURRENTLY IF NOT EXISTS emails_onboarding ON emails (recipient, created_at)
    WHERE type IN ('welcome', 'credentials', 'access_update');
