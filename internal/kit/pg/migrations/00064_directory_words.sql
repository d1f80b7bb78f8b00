-- +goose Up

-- How names are compared: small letters without accents, in single words. Letters that do not consist
-- of one and an accent are written as people type them.
CREATE FUNCTION directory_plain(typed text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT left(btrim(regexp_replace(regexp_replace(
        replace(replace(replace(
            translate(lower(normalize(typed, NFKD)), 'ØøĐđŁłĦħŦŧÐðıÞ', 'ooddllhhttddiþ'),
            'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'),
        '[\u0300-\u036f''’ʼ`]', '', 'g'),
        '[\s,.\u2010-\u2015-]+', ' ', 'g')), 200)
$$;

-- A name once for each of its words: "de la cruz elodie" for "Élodie de la Cruz" by its second word.
CREATE FUNCTION directory_rotations(name text) RETURNS SETOF text LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 3 AS $$
    SELECT DISTINCT array_to_string(words[i:] || words[:i - 1], ' ')
    FROM (SELECT string_to_array(directory_plain(name), ' ') AS words) AS plain, generate_series(1, cardinality(words)) AS i
$$;

-- Where the search for students finds any word of a name, as a stretch of the key. Triggers keep it with
-- directory.
CREATE TABLE directory_words (
    organization_id bigint NOT NULL,
    words           text COLLATE "C" NOT NULL, -- one of directory_rotations
    user_id         bigint NOT NULL,
    PRIMARY KEY (organization_id, words, user_id)
);

-- +goose StatementBegin
CREATE FUNCTION directory_words_enter() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO directory_words (organization_id, words, user_id)
    SELECT n.organization_id, r.words, n.user_id
    FROM entered n CROSS JOIN LATERAL directory_rotations(n.name) AS r (words)
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER directory_words_enter AFTER INSERT ON directory
    REFERENCING NEW TABLE AS entered FOR EACH STATEMENT
    EXECUTE FUNCTION directory_words_enter();

-- +goose StatementBegin
CREATE FUNCTION directory_words_rename() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM directory_words
    WHERE organization_id = OLD.organization_id AND user_id = OLD.user_id
      AND words = ANY (ARRAY(SELECT directory_rotations(OLD.name)));
    INSERT INTO directory_words (organization_id, words, user_id)
    SELECT NEW.organization_id, directory_rotations(NEW.name), NEW.user_id
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER directory_words_rename AFTER UPDATE OF name ON directory FOR EACH ROW
    WHEN (OLD.name <> NEW.name)
    EXECUTE FUNCTION directory_words_rename();

-- The key is the way to each row, also while the statistics know nothing of the table.
-- +goose StatementBegin
CREATE FUNCTION directory_words_leave() RETURNS trigger LANGUAGE plpgsql
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
AS $$
BEGIN
    DELETE FROM directory_words w
    USING gone g CROSS JOIN LATERAL directory_rotations(g.name) AS r (words)
    WHERE w.organization_id = g.organization_id AND w.words = r.words AND w.user_id = g.user_id;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER directory_words_leave AFTER DELETE ON directory
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
    EXECUTE FUNCTION directory_words_leave();

-- See 00041_definers.sql.
-- +goose StatementBegin
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['directory_words_enter', 'directory_words_rename', 'directory_words_leave']
    LOOP
        EXECUTE format('ALTER FUNCTION %I SECURITY DEFINER SET search_path = %I, pg_temp', name, current_schema());
    END LOOP;
END $$;
-- +goose StatementEnd
