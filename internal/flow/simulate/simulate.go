// Package simulate makes, wipes and drops the sandboxes of organizations, and tells what happens next in one.
package simulate

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/activity"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Service makes, wipes and drops sandboxes.
type Service struct {
	DB        *pg.DB        // the installation's own
	Databases *pg.Databases // of the sandboxes
	Clock     clock.Clock   // the real one
	Log       *slog.Logger
	MaxSize   int64 // how many bytes the database of a sandbox may have on disk

	turn chan struct{} // of making and dropping databases
}

const maxSize = 512 << 20

// New makes the Service of the sandboxes beside the database at address; none, and no Service, where it is empty.
func New(address string, db *pg.DB, now clock.Clock, log *slog.Logger) (*Service, error) {
	if address == "" {
		return nil, nil //nolint:nilnil // there are no sandboxes
	}
	databases, err := pg.NewDatabases(address)
	if err != nil {
		return nil, err
	}
	return &Service{DB: db, Databases: databases, Clock: now, Log: log, MaxSize: maxSize, turn: make(chan struct{}, 1)}, nil
}

// patience bounds the making of a database, also of the first one of a version, whose schema is migrated. It goes
// on when its caller hangs up, so that the next one finds it.
const patience = 45 * time.Second

var errBusy = fault.New(fault.Unavailable, "overloaded", "too many sandboxes are made at this moment; send the same request again later")

// Make makes the organization's sandbox. It begins with the organization's settings, courses, catalog and
// roster sources, and with nobody in it. created is false when there is one already, which stays as it is. Conflict as
// org.MayChange has it.
func (s *Service) Make(ctx context.Context, by audit.Actor, of id.Organization) (found sandbox.Sandbox, created bool, err error) {
	err = s.alone(ctx, of, func(ctx context.Context, tx *pg.Tx) error {
		found, err = sandbox.Find(ctx, tx, of)
		if !errors.Is(err, sandbox.ErrNone) {
			return err
		}
		if err := org.MayChange(ctx, tx, by, of, org.FieldSandbox); err != nil {
			return err
		}
		now := s.Clock()
		created, found = true, sandbox.Sandbox{Organization: of, Generation: 1, CreatedAt: now, FilledAt: now}
		return s.move(ctx, tx, found, by, "created sandbox")
	})
	return found, created, err
}

// Wipe gives the organization's sandbox a new database, which begins as after Make. ErrNone when there is no
// sandbox.
func (s *Service) Wipe(ctx context.Context, by audit.Actor, org id.Organization) (found sandbox.Sandbox, err error) {
	var before string
	err = s.alone(ctx, org, func(ctx context.Context, tx *pg.Tx) error {
		if found, err = sandbox.Find(ctx, tx, org); err != nil {
			return err
		}
		before = found.Database()
		found.Generation++
		found.FilledAt = s.Clock()
		return s.move(ctx, tx, found, by, "wiped sandbox")
	})
	if err == nil {
		s.drop(ctx, before)
	}
	return found, err
}

// Drop drops the organization's sandbox. ErrNone when there is no sandbox.
func (s *Service) Drop(ctx context.Context, by audit.Actor, of id.Organization) error {
	var before string
	err := s.alone(ctx, of, func(ctx context.Context, tx *pg.Tx) error {
		found, err := sandbox.Find(ctx, tx, of)
		if err != nil {
			return err
		}
		before = found.Database()
		if err := sandbox.Delete(ctx, tx, of); err != nil {
			return err
		}
		org.Notify(tx, of)
		return audit.Write(ctx, tx, audit.Entry{Organization: of, Actor: by, Action: "deleted sandbox", At: s.Clock()})
	})
	if err == nil {
		s.drop(ctx, before)
	}
	return err
}

// alone runs do in one process at a time for the organization, and once at a time in this process: who waits has
// no connection of real organizations.
func (s *Service) alone(ctx context.Context, org id.Organization, do func(context.Context, *pg.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return errBusy
	}
	return s.DB.InTx(ctx, func(tx *pg.Tx) error {
		if err := pg.Lock(ctx, tx, pg.LockSandbox, strconv.FormatInt(int64(org), 10)); err != nil {
			return err
		}
		return do(ctx, tx)
	})
}

// move makes the database of the sandbox and makes it the one that is used. What an earlier attempt left of it is
// dropped first.
func (s *Service) move(ctx context.Context, tx *pg.Tx, to sandbox.Sandbox, by audit.Actor, action string) error {
	if err := s.Databases.Drop(ctx, to.Database()); err != nil {
		return err
	}
	if err := s.Databases.Make(ctx, to.Database(), s.Log); err != nil {
		return err
	}
	db, err := s.Databases.Open(ctx, to.Database(), s.Log)
	if err != nil {
		return err
	}
	defer db.Close()
	err = db.InTx(ctx, func(inside *pg.Tx) error {
		if err := copyRows(ctx, tx, inside, to.Organization); err != nil {
			return err
		}
		now := to.FilledAt.Truncate(time.Second)
		return sandbox.Start(ctx, inside, to.Organization, now, clock.DateIn(now, activity.Zone))
	})
	if err != nil {
		return err
	}
	if err := sandbox.Put(ctx, tx, to); err != nil {
		return err
	}
	org.Notify(tx, to.Organization)
	return audit.Write(ctx, tx, audit.Entry{Organization: to.Organization, Actor: by, Action: action, At: to.FilledAt})
}

// drop drops a database that is not used any more; Sweep drops what stays here.
func (s *Service) drop(ctx context.Context, database string) {
	if err := s.Databases.Drop(context.WithoutCancel(ctx), database); err != nil {
		s.Log.WarnContext(ctx, "the old database of a sandbox is not dropped; it is tried again within the hour", "database", database, "error", err)
	}
}

// Sweep drops databases that no sandbox uses: of processes that ended in the middle, and of organizations that
// are gone.
func (s *Service) Sweep(ctx context.Context) error {
	names, err := s.Databases.Names(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		of, ok := sandbox.Parse(name)
		if !ok {
			continue
		}
		err := s.alone(ctx, of.Organization, func(ctx context.Context, tx *pg.Tx) error {
			found, err := sandbox.Find(ctx, tx, of.Organization)
			if errors.Is(err, sandbox.ErrNone) || err == nil && found.Generation != of.Generation {
				return s.Databases.Drop(ctx, name)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Open opens the database of the sandbox. It is closed by the caller.
func (s *Service) Open(ctx context.Context, of sandbox.Sandbox) (*pg.DB, error) {
	db, err := s.Databases.Open(ctx, of.Database(), s.Log)
	if err != nil {
		return nil, err
	}
	// No other database has the clock of this organization.
	if _, err := sandbox.Read(ctx, db, of.Organization); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}
