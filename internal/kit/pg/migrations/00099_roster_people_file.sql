-- +goose Up

-- How the file of a run calls its section of people. Programs of the version before write none, and read their own format alone.
ALTER TABLE roster_runs ADD COLUMN people_file text NOT NULL DEFAULT 'people.csv';
