package pg

import (
	"net"
	"time"

	"github.com/jackc/pgx/v5"
)

// MigrateWith migrates as Migrate does, with other files.
var MigrateWith = migrate

// Migrations are the embedded files.
var Migrations = migrations

// What Secure works with.
var (
	ParseRights   = parseRights
	RightsText    = rightsText
	GrantedRights = grantedRights
)

// Right is one right of a program.
type Right = right

// BehindPooler makes the DB work as behind a pooler, whatever it leads to.
func (db *DB) BehindPooler(settings map[string]string) {
	db.pooled, db.setting = true, setLocally(settings)
}

// Socket is the connection below one of a DB.
func Socket(conn *pgx.Conn) net.Conn {
	if l, ok := conn.PgConn().Conn().(*link); ok {
		return l.Conn
	}
	return nil
}

// CommitsWait is what Probe.Watch does when commits wait, or no longer do.
func (db *DB) CommitsWait(waiting bool, now time.Time) { db.commits.set(waiting, now) }

// Links counts the open connections that are known.
func (db *DB) Links() int {
	db.commits.mu.Lock()
	defer db.commits.mu.Unlock()
	return len(db.commits.links)
}
