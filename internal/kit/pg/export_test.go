package pg

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
