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
