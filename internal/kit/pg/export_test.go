package pg

// MigrateWith migrates as Migrate does, with other files.
var MigrateWith = migrate

// Migrations are the embedded files.
var Migrations = migrations
