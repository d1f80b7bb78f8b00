package person

import (
	"regexp"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// notExported are the tables that know a person and nothing about the person: what is under way,
// positions in lists, and words to search for by which the name is in directory. Who is being erased has no export, and sandboxes are databases of their own.
var notExported = map[string]bool{"arrivals": true, "directory_words": true, "erasures": true, "factor_tries": true, "lms_tickets": true, "recovery_codes": true, "result_returns": true, "sandbox_mails": true, "webhook_queue": true}

// Whoever adds a table about people says here, or in an export, what becomes of it.
func TestEveryTableThatKnowsPeopleIsExported(t *testing.T) {
	t.Parallel()
	tables, err := pg.Column[string](t.Context(), pgtest.New(t), `
		SELECT c.relname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
			AND a.attname IN ('user_id', 'email', 'recipient', 'person_external_id', 'actor_id') AND NOT a.attisdropped
		GROUP BY c.relname`)
	check.NoError(check.Now(t), err, "the tables")
	check.True(t, "there are tables", len(tables) > 20, "%v", tables)
	for _, table := range tables {
		read := false
		for _, s := range sections {
			read = read || regexp.MustCompile(`\b(FROM|JOIN) `+table+`\b`).MatchString(s.query)
		}
		if read == notExported[table] {
			t.Errorf("%s: exported %v, and listed as not exported %v", table, read, notExported[table])
		}
	}
}
