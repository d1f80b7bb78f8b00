-- +goose Up

-- Students who came into an organization's scope and whose final results are to take new
-- positions, for readers who passed them by. A row lives for a minute. There are no foreign
-- keys: whoever is deleted meanwhile has no results left to be placed.
CREATE TABLE result_returns (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    organization_id bigint NOT NULL,
    user_id         bigint NOT NULL,
    due_at          timestamptz NOT NULL
);
