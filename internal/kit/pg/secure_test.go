package pg_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

var update = flag.Bool("update", false, "write docs/database-roles.md")

// Whoever adds a table, a sequence or a function that runs as its owner says who may use it.
func TestEveryObjectHasALineOfRights(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	objects, _, err := pg.ParseRights(pg.RightsText)
	if err != nil {
		t.Fatal(err)
	}
	there, err := pg.Column[string](t.Context(), db, `
		SELECT relname::text FROM pg_class c
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'S') AND NOT relispartition
			AND NOT (relkind = 'S' AND EXISTS (SELECT FROM pg_depend d
				WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'i')) -- of an identity column
		UNION ALL
		SELECT proname || '()' FROM pg_proc
		WHERE pronamespace = 'public'::regnamespace AND prosecdef AND prorettype <> 'trigger'::regtype`)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range there {
		if !slices.Contains(objects, object) {
			t.Errorf("%s has no line in rights.txt: add one that says what each program's role may do with it, such as\n%[1]s api-server=select,insert worker=select", object)
		}
	}
	for _, object := range objects {
		if optional := strings.HasSuffix(object, "_default") || strings.HasSuffix(object, "_id_seq"); !slices.Contains(there, object) && !optional {
			t.Errorf("%s has a line in rights.txt and does not exist, or is a function that does not run as its owner", object)
		}
	}
}

// A trigger writes tables that whoever changes its own table may not write, and nobody can slip
// another table under it.
func TestTriggersRunAsTheirOwner(t *testing.T) {
	t.Parallel()
	loose, err := pg.Column[string](t.Context(), pgtest.New(t), `
		SELECT proname::text FROM pg_proc
		WHERE pronamespace = 'public'::regnamespace AND (prosecdef OR prorettype = 'trigger'::regtype)
			AND NOT (prosecdef AND 'search_path=public, pg_temp' = ANY (coalesce(proconfig, '{}')))`)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range loose {
		t.Errorf("the function %s needs SECURITY DEFINER and SET search_path = <the schema>, pg_temp; see 00041_definers.sql", name)
	}
}

// The catalog says what rights.txt says, and docs/database-roles.md shows it.
func TestRolesMayDoWhatIsWrittenAndNoMore(t *testing.T) {
	t.Parallel()
	_, wanted, err := pg.ParseRights(pg.RightsText)
	if err != nil {
		t.Fatal(err)
	}
	granted, err := pg.GrantedRights(t.Context(), pgtest.New(t), pgtest.RolePrefix)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range wanted {
		if !slices.Contains(granted, r) {
			t.Errorf("%v is not granted", r)
		}
	}
	for _, r := range granted {
		if !slices.Contains(wanted, r) {
			t.Errorf("%v is granted", r)
		}
	}
	file := filepath.Join("..", "..", "..", "docs", "database-roles.md")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- rights -->\n", "<!-- end of rights -->\n"
	before, rest, found := bytes.Cut(page, []byte(begin))
	_, after, ended := bytes.Cut(rest, []byte(end))
	if !found || !ended {
		t.Fatalf("%s has no place for the table", file)
	}
	want := slices.Concat(before, []byte(begin), []byte(tableOf(granted)), []byte(end), after)
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(page, want) {
		t.Errorf("%s is not what the catalog says: go test ./internal/kit/pg -run %s -update", file, t.Name())
	}
}

// tableOf writes rights as a table in Markdown, a line an object.
func tableOf(rights []pg.Right) string {
	cells, columns := map[[2]string][]string{}, map[[3]string][]string{}
	var objects []string
	for _, r := range rights {
		if !slices.Contains(objects, r.Object) {
			objects = append(objects, r.Object)
		}
		cell, of := [2]string{r.Object, r.Program}, [3]string{r.Object, r.Program, r.Privilege}
		if r.Column != "" {
			columns[of] = append(columns[of], "`"+r.Column+"`")
		}
		if !slices.Contains(cells[cell], r.Privilege) {
			cells[cell] = append(cells[cell], r.Privilege)
		}
	}
	slices.Sort(objects)
	order := []string{"select", "insert", "update", "delete", "usage", "execute"}
	var text strings.Builder
	fmt.Fprintf(&text, "| | %s |\n|---|---|---|---|---|\n", strings.Join(pg.Programs, " | "))
	for _, object := range objects {
		fmt.Fprintf(&text, "| `%s` |", object)
		for _, program := range pg.Programs {
			privileges := cells[[2]string{object, program}]
			slices.SortFunc(privileges, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
			for i, privilege := range privileges {
				if of := columns[[3]string{object, program, privilege}]; of != nil {
					privileges[i] += " of " + strings.Join(of, ", ")
				}
			}
			text.WriteString(" " + strings.TrimPrefix(strings.Join(privileges, ", ")+" |", " "))
		}
		text.WriteString("\n")
	}
	return text.String()
}

// refused reports whether PostgreSQL refused a statement because the role may not give it.
func refused(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "42501"
}

func TestNoRoleDeletesAuditRowsTruncatesOrAlters(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	tables, err := pg.Column[string](t.Context(), opened(t, address), `
		SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')`)
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range pg.Programs {
		db := opened(t, pgtest.As(t, address, program))
		statements := []string{
			`DELETE FROM audit_log`, `UPDATE audit_log SET action = ''`,
			`CREATE TABLE mine (n integer)`, `CREATE FUNCTION mine() RETURNS integer LANGUAGE sql RETURN 1`,
			`ALTER FUNCTION directory_enter() SECURITY INVOKER`, `DROP FUNCTION directory_enter() CASCADE`,
			`CREATE ROLE mine`, `SET ROLE postgres`,
		}
		for _, table := range tables {
			statements = append(statements, "TRUNCATE "+table, "ALTER TABLE "+table+" ADD COLUMN mine integer",
				"ALTER TABLE "+table+" DISABLE TRIGGER USER", "DROP TABLE "+table, "CREATE INDEX ON "+table+" ((1))")
		}
		for _, sql := range statements {
			if _, err := db.Exec(t.Context(), sql); !refused(err) {
				t.Errorf("%s: %s: %v, want a refusal", program, sql, err)
			}
		}
	}
}

func TestTheSenderSeesNoStudents(t *testing.T) {
	t.Parallel()
	db := opened(t, pgtest.As(t, pgtest.URL(t), "webhook-sender"))
	for _, table := range []string{"accounts", "members", "directory", "arrivals", "enrollments", "assignments", "results",
		"plans", "activity_days", "roster_identities", "emails", "sessions", "set_password_tokens", "api_keys", "audit_log"} {
		if _, err := db.Exec(t.Context(), "SELECT FROM "+table); !refused(err) {
			t.Errorf("%s: %v, want a refusal", table, err)
		}
	}
}

// The worker makes and drops partitions, which it cannot alter, and everybody's rights hold in them.
func TestRightsHoldInNewPartitions(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	worker := opened(t, pgtest.As(t, address, "worker"))
	exec(t, worker, `SELECT make_partitions('webhook_journal', 'UTC', date '2030-01-01', 1, true)`)
	for _, sql := range []string{`DROP TABLE webhook_journal_20300101`, `SELECT FROM webhook_journal_20300101`} {
		if _, err := worker.Exec(t.Context(), sql); !refused(err) {
			t.Errorf("%s: %v, want a refusal", sql, err)
		}
	}
	exec(t, opened(t, pgtest.As(t, address, "webhook-sender")), `
		INSERT INTO webhook_journal (organization_id, endpoint_id, delivery_id, number, event_id, started_at)
		VALUES (1, 1, uuid7_floor('2030-01-01 12:00:00Z'), 1, uuid7(), now())`)
	var rows int
	err := opened(t, address).QueryRow(t.Context(), `SELECT count(*) FROM webhook_journal_20300101`).Scan(&rows)
	if check.NoError(t, err, "%v", err) {
		check.Equal(t, "rows in the new partition", rows, 1, "%d", rows)
	}
	for _, program := range []string{"api-server", "webhook-sender", "operator"} {
		for _, call := range []string{`make_partitions('webhook_events', 'UTC', date '2030-01-01', 1, true)`,
			`webhook_drop_partitions('2030-01-01')`, `activity_drop_partitions('2030-01-01')`} {
			if _, err := opened(t, pgtest.As(t, address, program)).Exec(t.Context(), "SELECT "+call); !refused(err) {
				t.Errorf("%s: %s: %v, want a refusal", program, call, err)
			}
		}
	}
	exec(t, worker, `SELECT activity_drop_partitions('2020-01-01'), webhook_drop_partitions('2020-01-01')`)
}

// Secure makes right what somebody changed, and leaves everything else alone.
func TestSecureMakesRightsAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	db := opened(t, address)
	exec(t, db, `GRANT DELETE ON audit_log TO registrar_worker; GRANT UPDATE (name) ON organizations TO registrar_operator;
		REVOKE INSERT ON accounts FROM registrar_api_server; GRANT EXECUTE ON FUNCTION make_partitions TO PUBLIC`)
	_, wanted, err := pg.ParseRights(pg.RightsText)
	if err != nil {
		t.Fatal(err)
	}
	for _, changes := range []string{"changes=4", "changes=0"} {
		var log bytes.Buffer
		if err := pg.Secure(t.Context(), address, pgtest.RolePrefix, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
			t.Fatal(err)
		}
		check.Contains(t, "the log", log.String(), changes, "%s", &log)
		granted, err := pg.GrantedRights(t.Context(), db, pgtest.RolePrefix)
		if check.NoError(t, err, "%v", err) {
			check.Equal(t, "rights", len(granted), len(wanted), "%v", granted)
		}
	}
}

// An owner who may not make roles is told what an administrator has to run, and needs no more than that.
func TestWhoMayNotMakeRolesIsToldWhatToRun(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	db := opened(t, address)
	prefix := "t_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	owner := pgx.Identifier{prefix + "_owner"}.Sanitize()
	exec(t, db, `CREATE ROLE `+owner+` LOGIN; DROP SCHEMA public CASCADE; CREATE SCHEMA public AUTHORIZATION `+owner)
	t.Cleanup(func() { // roles are the server's, not the database's
		statements := []string{`DROP SCHEMA public CASCADE`, `DROP ROLE ` + owner}
		for _, program := range pg.Programs {
			statements = append(statements, `DROP ROLE IF EXISTS `+pg.RoleOf(prefix, program))
		}
		for _, sql := range statements {
			if _, err := db.Exec(context.WithoutCancel(t.Context()), sql); err != nil {
				t.Error(err)
			}
		}
	})
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(prefix + "_owner")
	quiet := slog.New(slog.DiscardHandler)
	if err := pg.Migrate(t.Context(), u.String(), quiet); err != nil {
		t.Fatal(err)
	}
	err = pg.Secure(t.Context(), u.String(), prefix, quiet)
	if err == nil {
		t.Fatal("it made roles")
	}
	_, statements, _ := strings.Cut(err.Error(), "run: ")
	check.Equal(t, "statements", strings.Count(statements, "CREATE ROLE"), 4, "%v", err)
	exec(t, db, statements)
	if err := pg.Secure(t.Context(), u.String(), prefix, quiet); err != nil {
		t.Fatal(err)
	}
	exec(t, db, `SET ROLE `+pg.RoleOf(prefix, "worker")+`; SELECT FROM accounts; RESET ROLE`)
}

// Who may make functions in the schema could slip one under those that run as their owner.
func TestRolesThatMayMakeTablesAreRefused(t *testing.T) {
	t.Parallel()
	address := pgtest.URL(t)
	exec(t, opened(t, address), `GRANT CREATE ON SCHEMA public TO PUBLIC`)
	err := pg.Secure(t.Context(), address, pgtest.RolePrefix, slog.New(slog.DiscardHandler))
	if check.True(t, "there is an error", err != nil, "roles that may make tables are fine") {
		check.Contains(t, "the error", err.Error(), "REVOKE CREATE", "%v", err)
	}
}

func TestRightsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"accounts mailer=select":                           `"mailer" is no program`,
		"accounts worker=truncate":                         `"truncate" is no right`,
		"accounts worker=select\n\naccounts worker=select": "rights.txt:3: accounts has a line already",
	} {
		_, _, err := pg.ParseRights(text)
		if check.True(t, "there is an error", err != nil, "%s", text) {
			check.Contains(t, "the error", err.Error(), says, "%s", text)
		}
	}
}
