// Package person hands out everything that is stored about a person, and erases it (reference:
// students#export-and-erasure), whatever organizations the person is or was in.
package person

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Export calls each with one JSON object after the other: everything that is stored about the person, as of one
// moment, and no secret. The first one is the account. The audit log says that it was read. It holds a
// connection for as long as each takes, and a row in memory. NotFound when there is no such person.
func Export(ctx context.Context, db *pg.DB, by audit.Actor, user id.User, now time.Time, each func(json.RawMessage) error) error {
	if _, err := student.Find(ctx, db, user); err != nil {
		return err
	}
	err := db.InTx(ctx, func(tx *pg.Tx) error {
		return audit.Write(ctx, tx, audit.Entry{Actor: by, Action: "exported user", Target: target(user), At: now})
	})
	if err != nil {
		return err
	}
	return inSnapshot(ctx, db, func(q pg.Querier) error {
		for _, s := range sections {
			if err := eachLine(ctx, q, s, user, each); err != nil {
				return fmt.Errorf("%s: %w", s.object, err)
			}
		}
		return nil
	})
}

// target is how the audit log calls a person without saying who it is.
func target(user id.User) string { return fmt.Sprintf("user %d", user) }
