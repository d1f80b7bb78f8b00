package main

import (
	"context"
	"slices"
)

// logSettings are what docs/operations.md asks of a server in use: it keeps as many files of
// its log to write over as a large import fills, and no such import ends in a checkpoint.
var logSettings = []string{"min_wal_size=1GB", "max_wal_size=4GB"}

const keptFiles = 64 // of 16 MiB

// fillLog makes a new server one that has been in use: it has files of its log to write over.
// To make one, a server fills it with zeros first, and every commit waits for that.
func (h *house) fillLog(ctx context.Context) error {
	statements := slices.Repeat([]string{`SELECT pg_create_restore_point('next'), pg_switch_wal()`}, keptFiles)
	return h.superuser(ctx, "postgres", append(statements, `CHECKPOINT`)...)
}
