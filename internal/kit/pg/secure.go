package pg

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Programs are those that have a database role.
var Programs = []string{"api-server", "worker", "webhook-sender", "operator"}

// RoleOf is the name of a program's database role: "registrar" and "api-server" give
// registrar_api_server.
func RoleOf(prefix, program string) string {
	return prefix + "_" + strings.ReplaceAll(program, "-", "_")
}

//go:embed rights.txt
var rightsText string

// right is one that a role has on a table or sequence, or on a function, whose name ends with ().
type right struct {
	Object    string
	Program   string
	Privilege string
	Column    string // "": the whole object
}

// parseRights reads rights.txt.
func parseRights(text string) (objects []string, rights []right, err error) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		object := fields[0]
		if slices.Contains(objects, object) {
			return nil, nil, fmt.Errorf("rights.txt:%d: %s has a line already", number, object)
		}
		objects = append(objects, object)
		for _, cell := range fields[1:] {
			program, list, _ := strings.Cut(cell, "=")
			if !slices.Contains(Programs, program) {
				return nil, nil, fmt.Errorf("rights.txt:%d: %q is no program", number, program)
			}
			for privilege := range strings.SplitSeq(list, ",") {
				privilege, columns, _ := strings.Cut(strings.TrimSuffix(privilege, ")"), "(")
				if !slices.Contains([]string{"select", "insert", "update", "delete", "usage", "execute"}, privilege) {
					return nil, nil, fmt.Errorf("rights.txt:%d: %q is no right", number, privilege)
				}
				for column := range strings.SplitSeq(columns, "+") {
					rights = append(rights, right{object, program, privilege, column})
				}
			}
		}
	}
	return objects, rights, nil
}

// grantedRights reads from the catalog what the programs' roles may do in the schema. PUBLIC, for a
// function that everybody may execute, is a program, too.
func grantedRights(ctx context.Context, q Querier, prefix string) ([]right, error) {
	roles := make([]string, len(Programs))
	for i, program := range Programs {
		roles[i] = RoleOf(prefix, program)
	}
	return List[right](ctx, q, `
		WITH grantees AS (
			SELECT r.oid, p.program
			FROM unnest($1::text[], $2::text[]) AS p (program, role)
			JOIN pg_roles r ON r.rolname = p.role)
		SELECT c.relname::text AS object, g.program, lower(a.privilege_type) AS privilege, '' AS "column"
		FROM pg_class c
		CROSS JOIN LATERAL aclexplode(c.relacl) AS a
		JOIN grantees g ON g.oid = a.grantee
		WHERE c.relnamespace = current_schema()::regnamespace
		UNION ALL
		SELECT c.relname, g.program, lower(a.privilege_type), t.attname
		FROM pg_class c
		JOIN pg_attribute t ON t.attrelid = c.oid AND NOT t.attisdropped
		CROSS JOIN LATERAL aclexplode(t.attacl) AS a
		JOIN grantees g ON g.oid = a.grantee
		WHERE c.relnamespace = current_schema()::regnamespace
		UNION ALL
		SELECT f.proname || '()', coalesce(g.program, 'PUBLIC'), lower(a.privilege_type), ''
		FROM pg_proc f
		CROSS JOIN LATERAL aclexplode(coalesce(f.proacl, acldefault('f', f.proowner))) AS a
		LEFT JOIN grantees g ON g.oid = a.grantee
		WHERE f.pronamespace = current_schema()::regnamespace
			AND (g.oid IS NOT NULL OR a.grantee = 0 AND f.prosecdef AND f.prorettype <> 'trigger'::regtype)
		ORDER BY 1, 2, 3, 4`, Programs, roles)
}

// Secure gives each program a database role, which begins with the prefix, and the rights that it
// needs in a migrated database. It makes roles that do not exist, without LOGIN, if the user of url
// may; url is that of the schema's owner. What is as it should be is left alone, and nothing else is
// changed in roles that exist.
func Secure(ctx context.Context, url, prefix string, log *slog.Logger) error {
	cfg, err := parse("DATABASE_URL", url)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return fmt.Errorf("database roles: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	changes := 0
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) (err error) {
		changes, err = secure(ctx, tx, prefix)
		return err
	})
	if err != nil {
		return fmt.Errorf("database roles: %w", err)
	}
	log.InfoContext(ctx, "database roles are current", "prefix", prefix, "changes", changes)
	return nil
}

func secure(ctx context.Context, tx pgx.Tx, prefix string) (changes int, err error) {
	objects, wanted, err := parseRights(rightsText)
	if err != nil {
		return 0, err
	}
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, 0)`, int32(LockRights)); err != nil {
		return 0, err
	}
	if err := makeRoles(ctx, tx, prefix); err != nil {
		return 0, err
	}
	has, err := grantedRights(ctx, tx, prefix)
	if err != nil {
		return 0, err
	}
	kinds, err := kindsOf(ctx, tx, objects)
	if err != nil {
		return 0, err
	}
	name := func(r right) string {
		if r.Program == "PUBLIC" {
			return r.Program
		}
		return pgx.Identifier{RoleOf(prefix, r.Program)}.Sanitize()
	}
	var statements []string
	for _, r := range has {
		if r.Program == "PUBLIC" && !slices.Contains(objects, r.Object) || slices.Contains(wanted, r) {
			continue
		}
		statements = append(statements, "REVOKE "+r.privilege()+" ON "+r.object(kinds)+" FROM "+name(r))
	}
	for _, r := range wanted {
		if !slices.Contains(has, r) {
			statements = append(statements, "GRANT "+r.privilege()+" ON "+r.object(kinds)+" TO "+name(r))
		}
	}
	for _, s := range statements {
		if _, err := tx.Exec(ctx, s); err != nil {
			return 0, fmt.Errorf("%s: %w", s, err)
		}
	}
	return len(statements), nil
}

// makeRoles makes the roles that do not exist, and lets each use the schema.
func makeRoles(ctx context.Context, tx pgx.Tx, prefix string) error {
	var lacking []string
	for _, program := range Programs {
		role := RoleOf(prefix, program)
		quoted := pgx.Identifier{role}.Sanitize()
		var schema string
		var exists, enters, makes bool
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)`, role).Scan(&exists)
		if err != nil {
			return err
		}
		if !exists {
			err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, "CREATE ROLE "+quoted)
				return err
			})
			var e *pgconn.PgError
			if errors.As(err, &e) && e.Code == "42501" {
				lacking = append(lacking, "CREATE ROLE "+quoted+";")
				continue
			}
			if err != nil && !Duplicate(err) && (e == nil || e.Code != "42710") { // another database's migration was faster
				return err
			}
		}
		err = tx.QueryRow(ctx, `
			SELECT
				current_schema(),
				has_schema_privilege($1, current_schema(), 'USAGE'),
				has_schema_privilege($1, current_schema(), 'CREATE')`, role).
			Scan(&schema, &enters, &makes)
		if err != nil {
			return err
		}
		if makes { // the default of databases that were made before PostgreSQL 15
			return fmt.Errorf("%s may make tables in the schema; let its owner run: REVOKE CREATE ON SCHEMA public FROM PUBLIC", role)
		}
		if !enters {
			if _, err := tx.Exec(ctx, "GRANT USAGE ON SCHEMA "+pgx.Identifier{schema}.Sanitize()+" TO "+quoted); err != nil {
				return err
			}
		}
	}
	if lacking != nil {
		return fmt.Errorf("the user of DATABASE_URL may not make roles; let an administrator run: %s", strings.Join(lacking, " "))
	}
	return nil
}

// kindsOf says for each relation whether it is a TABLE or a SEQUENCE, as GRANT calls them.
func kindsOf(ctx context.Context, tx pgx.Tx, objects []string) (map[string]string, error) {
	rows, err := tx.Query(ctx, `
		SELECT relname::text, CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END
		FROM pg_class
		WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'S')`)
	if err != nil {
		return nil, err
	}
	kinds := map[string]string{}
	var name, kind string
	if _, err := pgx.ForEachRow(rows, []any{&name, &kind}, func() error { kinds[name] = kind; return nil }); err != nil {
		return nil, err
	}
	for _, object := range objects {
		if kinds[object] == "" && !strings.HasSuffix(object, "()") {
			return nil, fmt.Errorf("rights.txt names %s, which does not exist", object)
		}
	}
	return kinds, nil
}

func (r right) privilege() string {
	if r.Column == "" {
		return r.Privilege
	}
	return r.Privilege + " (" + pgx.Identifier{r.Column}.Sanitize() + ")"
}

func (r right) object(kinds map[string]string) string {
	if name, function := strings.CutSuffix(r.Object, "()"); function {
		return "FUNCTION " + pgx.Identifier{name}.Sanitize()
	}
	return kinds[r.Object] + " " + pgx.Identifier{r.Object}.Sanitize()
}
