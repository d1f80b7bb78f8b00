-- +goose Up

-- Triggers write what their statement's role may not, and the worker makes and drops partitions of
-- tables that it does not own: these functions run with the rights of their owner. Their search path
-- is fixed, so that nobody puts another table in the place of one that they name.
-- +goose StatementBegin
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'make_partitions', 'webhook_drop_partitions', 'activity_drop_partitions',
        'directory_enter', 'directory_rename',
        'forget_accounts', 'forget_organizations', 'roster_forget_classes', 'roster_forget_sources',
        'arrivals_enter', 'arrivals_turn', 'arrivals_leave', 'forget_arrivals',
        'webhook_deliveries_to_queue']
    LOOP
        EXECUTE format('ALTER FUNCTION %I SECURITY DEFINER SET search_path = %I, pg_temp', name, current_schema());
    END LOOP;
END $$;
-- +goose StatementEnd
