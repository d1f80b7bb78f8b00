package pg_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/registrar-dev/registrar/internal/kit/pg"
)

func TestAwayIsAServerThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	_, refused := pgx.Connect(t.Context(), "postgres://x@"+addr+"/x?sslmode=disable")
	for name, c := range map[string]struct {
		err  error
		away bool
	}{
		"refused":              {fmt.Errorf("begin: %w", refused), true},
		"shutting down":        {&pgconn.PgError{Code: "57P01"}, true},
		"too many connections": {&pgconn.PgError{Code: "53300"}, true},
		"stood still":          {&pgconn.PgError{Code: "25P03"}, true},
		"a standby":            {&pgconn.PgError{Code: "25006"}, true},
		"unlogged, a standby":  {&pgconn.PgError{Code: "0A000", Routine: "get_relation_info"}, true},
		"unsupported":          {&pgconn.PgError{Code: "0A000", Routine: "transformStmt"}, false},
		"the disk is full":     {&pgconn.PgError{Code: "53100"}, true},
		"the disk fails":       {&pgconn.PgError{Code: "58030"}, true},
		"another connection":   {&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}, false},
		"unique violation":     {&pgconn.PgError{Code: "23505"}, false},
		"no rows":              {pgx.ErrNoRows, false},
		"the caller left":      {context.Canceled, false},
		"something else":       {errors.New("boom"), false},
		"nothing":              {nil, false},
	} {
		if got := pg.Away(c.err); got != c.away {
			t.Errorf("%s: %v (%v)", name, got, c.err)
		}
	}
}

func TestRefusedIsOneStatement(t *testing.T) {
	t.Parallel()
	for code, refused := range map[string]bool{"55P03": true, "22021": true, "23503": true, "40P01": true,
		"57P01": false, "08006": false, "25006": false, "53100": false, "58030": false} {
		if got := pg.Refused(fmt.Errorf("a statement: %w", &pgconn.PgError{Code: code})); got != refused {
			t.Errorf("%s: %v", code, got)
		}
	}
	if pg.Refused(context.DeadlineExceeded) || pg.Refused(nil) {
		t.Error("an error that is not PostgreSQL's")
	}
}
