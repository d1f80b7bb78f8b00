package pg

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ofStandby says whether an error is that of a server that takes no writes: a standby, or one that was
// set to read-only. Unlogged tables cannot be read on a standby, and have no code of their own.
func ofStandby(e *pgconn.PgError) bool {
	return e.Code == "25006" || e.Code == "0A000" && e.Routine == "get_relation_info"
}

// leaveStandbys has a connection closed as soon as it turns out to lead to a standby, which a pooler or
// a setting can bring about later.
func leaveStandbys(c *pgx.ConnConfig) {
	keep := c.OnPgError
	c.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool { return keep(conn, err) && !ofStandby(err) }
}
