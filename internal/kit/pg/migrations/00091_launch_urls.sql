-- +goose Up

-- Where students begin the work of an item, on the platform. '': there is no address for it.
ALTER TABLE catalog_items ADD COLUMN launch_url text NOT NULL DEFAULT '';

-- Deletes up to most rows of an organization that is being erased from a table or a partition, and returns how many
-- these were. Items of the catalog stay as numbers: to delete one, its foreign keys would read all results. With
-- blocks, it looks at that many from the block start on instead, for tables without an index. It returns NULL behind the
-- last one, and when there is no such table any more.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION erase_organization_rows(organization bigint, piece text, named text, most integer,
    start bigint DEFAULT NULL, blocks bigint DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    which   text := rows_of_organization(piece);
    deleted bigint;
BEGIN
    PERFORM check_erased(organization);
    IF to_regclass(quote_ident(piece)) IS NULL THEN
        RETURN NULL;
    ELSIF piece = 'catalog_items' THEN
        UPDATE catalog_items SET code = 'erased ' || id, title = '', launch_url = '', active = false, starter = false, updated_at = now()
        WHERE id = ANY (ARRAY(SELECT id FROM catalog_items
            WHERE organization_id = organization AND code <> 'erased ' || id LIMIT most));
    ELSIF start IS NOT NULL THEN
        IF start * current_setting('block_size')::bigint >= pg_relation_size(to_regclass(quote_ident(piece))) THEN
            RETURN NULL;
        END IF;
        EXECUTE format('DELETE FROM %I WHERE ctid >= $2::tid AND ctid < $3::tid AND %s', piece, which)
        USING organization, format('(%s,0)', start), format('(%s,0)', start + blocks);
    ELSE
        EXECUTE format('DELETE FROM %1$I WHERE ctid = ANY (ARRAY(SELECT ctid FROM %1$I WHERE %2$s LIMIT $2)) AND %2$s',
            piece, which)
        USING organization, most;
    END IF;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    PERFORM count_erased(organization, named, deleted);
    RETURN deleted;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION erase_organization_rows SECURITY DEFINER SET search_path = %I, pg_temp', current_schema());
END $$;
-- +goose StatementEnd
