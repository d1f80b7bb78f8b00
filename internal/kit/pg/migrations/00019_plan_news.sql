-- +goose Up

-- Work that was finished after its due day and counts all the same.
ALTER TABLE plan_tests ADD COLUMN late boolean NOT NULL DEFAULT false;

-- What the student is still to be told, and the day, in the plan's zone, of the last mail with such news.
ALTER TABLE plans
    ADD COLUMN news    json NOT NULL DEFAULT '[]',
    ADD COLUMN news_on date;
