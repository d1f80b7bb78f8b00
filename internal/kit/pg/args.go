package pg

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Args are the arguments of a statement by name: `@name` in the SQL. They are
// pgx.StrictNamedArgs, to which each name belongs that the SQL has, and no other. pgx reads a
// statement's text again for each call, which was a tenth of api-server's CPU time for a new
// student; here it is read once.
type Args map[string]any

// positional is a statement as PostgreSQL takes it, with the names of $1, $2 and so on.
type positional struct {
	sql   string
	names []string
}

// statements holds each SQL text of the program that has names: a few hundred.
var statements sync.Map // string → positional

// RewriteQuery implements pgx.QueryRewriter.
func (a Args) RewriteQuery(ctx context.Context, conn *pgx.Conn, sql string, _ []any) (string, []any, error) {
	s, known := statements.Load(sql)
	if !known {
		read, err := a.read(ctx, conn, sql)
		if err != nil {
			return "", nil, err
		}
		s, _ = statements.LoadOrStore(sql, read)
	}
	p := s.(positional)
	args := make([]any, len(p.names))
	missing := len(p.names) != len(a)
	for i, name := range p.names {
		value, given := a[name]
		args[i] = value
		missing = missing || !given
	}
	if missing {
		return pgx.StrictNamedArgs(a).RewriteQuery(ctx, conn, sql, nil) // says which
	}
	return p.sql, args, nil
}

// read has pgx put each name's own text in the place of its value.
func (a Args) read(ctx context.Context, conn *pgx.Conn, sql string) (positional, error) {
	names := make(pgx.StrictNamedArgs, len(a))
	for name := range a {
		names[name] = name
	}
	text, values, err := names.RewriteQuery(ctx, conn, sql, nil)
	if err != nil {
		return positional{}, err
	}
	p := positional{sql: text, names: make([]string, len(values))}
	for i, value := range values {
		p.names[i] = value.(string)
	}
	return p, nil
}
