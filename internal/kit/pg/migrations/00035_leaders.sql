-- +goose Up

-- Who leads: one row for each piece of work that one process at a time does. The token grows with
-- each change of the holder. Times are the database's.
CREATE TABLE leaders (
    name    text PRIMARY KEY,
    holder  text NOT NULL,
    token   bigint NOT NULL,
    expires timestamptz NOT NULL
);

-- The processes that share the work of a job, so that each knows how much its share is.
CREATE TABLE leader_candidates (
    job     text NOT NULL,
    holder  text NOT NULL,
    since   timestamptz NOT NULL,
    expires timestamptz NOT NULL,
    PRIMARY KEY (job, holder)
);

-- Fails with RL001 unless the holder leads by this token, and keeps others from taking over until
-- the transaction has ended. So that a process which is frozen inside of it does not keep them from
-- that for long, the transaction is ended after 3 idle seconds.
-- +goose StatementBegin
CREATE FUNCTION lead_fence(piece text, by text, fencing bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('idle_in_transaction_session_timeout', '3s', true);
    PERFORM FROM leaders WHERE name = piece AND holder = by AND token = fencing FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION '% is led by another process', piece USING ERRCODE = 'RL001';
    END IF;
END $$;
-- +goose StatementEnd
