// Package organization erases organizations (reference: organization#erasure).
package organization

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/lti"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Eraser erases organizations: Erase, in the call, the name, the keys, the LMS and the webhook URLs; Sweep, in the
// worker, everything else, in small transactions, once at once and once more when everything has ended that was under
// way. What is left is a number, which the items of its catalog and the accounts of its people still have.
type Eraser struct {
	DB    *pg.DB
	Clock clock.Clock
	Log   *slog.Logger
	Batch func() // called after each transaction of Sweep; for tests
}

// settled is more than a call, a delivery or a step of the worker's may take.
const settled = 10 * time.Minute

// State says how far an erasure is.
type State string

// The states.
const (
	Erasing State = "erasing"
	Erased  State = "erased"
)

// Erasure is that of one organization.
type Erasure struct {
	Organization id.Organization
	At           time.Time
	Finished     time.Time        // zero: it is not
	Deleted      map[string]int64 // by what the rows were
	Left         map[string]int64 // that are still to be deleted, up to mostLeft of each kind
}

// State says how far it is.
func (e Erasure) State() State {
	if e.Finished.IsZero() {
		return Erasing
	}
	return Erased
}

// mostLeft is where Left stops counting.
const mostLeft = 10_000

// What Deleted counts besides rows that are gone.
const (
	Accounts       = "accounts"        // of people whom no other organization knows: they are numbers now
	SharedAccounts = "shared_accounts" // of people whom another one knows: they are as they were
	CatalogItems   = "catalog_items"   // numbers, too
)

// Erase makes the organization of the slug unknown: nobody finds it by its slug, its keys open nothing, and nothing is
// sent to its webhook URLs. A repeat says how far the erasure is until it has ended. NotFound when there is no such
// organization. The keyrings of all processes are woken.
func (o *Eraser) Erase(ctx context.Context, by audit.Actor, slug string) (Erasure, error) {
	which, err := o.Begin(ctx, by, slug)
	if err != nil {
		return Erasure{}, err
	}
	return o.Find(ctx, which)
}

// Begin is Erase without a word on how far it is.
func (o *Eraser) Begin(ctx context.Context, by audit.Actor, slug string) (which id.Organization, err error) {
	err = o.DB.InTx(ctx, func(tx *pg.Tx) error {
		if err := pg.Lock(ctx, tx, pg.LockOrganization, slug); err != nil {
			return err
		}
		found, err := org.Find(ctx, tx, slug)
		if fault.KindOf(err) == fault.NotFound {
			var known bool
			if which, known, err = selectBySlug(ctx, tx, slug); err != nil || known {
				return err
			}
			_, err = org.Find(ctx, tx, slug) // the fault
			return err
		}
		if err != nil {
			return err
		}
		which = found.ID
		now := o.Clock()
		if err := insertErasure(ctx, tx, which, slug, now); err != nil {
			return err
		}
		if err := org.Erase(ctx, tx, which, now); err != nil {
			return err
		}
		if err := lti.RemoveConsumer(ctx, tx, which); err != nil {
			return err
		}
		if err := webhook.RemoveAll(ctx, tx, which); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Actor: by, Action: "erased organization", Target: target(which), At: now})
	})
	return which, err
}

// target is how the audit log calls an organization that nobody can look up by its name any more.
func target(which id.Organization) string { return fmt.Sprintf("organization %d", which) }

// Find says how far the erasure of the organization is. NotFound when nobody has erased it.
func (o *Eraser) Find(ctx context.Context, which id.Organization) (Erasure, error) {
	e, err := selectErasure(ctx, o.DB, which)
	if pg.None(err) {
		return e, fault.New(fault.NotFound, "not_found", "no organization %d was erased", which)
	}
	if err != nil || !e.Finished.IsZero() {
		return e, err
	}
	e.Left, err = selectLeft(ctx, o.DB, which)
	return e, err
}

// Sweep goes on with erasures. A pass that breaks off begins again, and finds less.
func (o *Eraser) Sweep(ctx context.Context) error {
	now := o.Clock()
	due, err := selectDue(ctx, o.DB, now.Add(-settled))
	if err != nil {
		return err
	}
	for _, d := range due {
		if err := o.empty(ctx, d.Organization); err != nil {
			return fmt.Errorf("erasing organization %d: %w", d.Organization, err)
		}
		if !d.Emptied {
			if err := setEmptied(ctx, o.DB, d.Organization, now); err != nil {
				return err
			}
			continue
		}
		if err := setFinished(ctx, o.DB, d.Organization, now); err != nil {
			return err
		}
		o.Log.InfoContext(ctx, "an organization is erased", "organization", int64(d.Organization))
	}
	return nil
}

func (o *Eraser) empty(ctx context.Context, which id.Organization) error {
	if err := journal.Adopt(ctx, o.DB); err != nil {
		return err
	}
	for _, p := range pieces {
		if err := o.erase(ctx, which, p); err != nil {
			return fmt.Errorf("%s: %w", p.table, err)
		}
	}
	return o.auditEntries(ctx, which)
}

// erase deletes a piece.
func (o *Eraser) erase(ctx context.Context, which id.Organization, p piece) error {
	switch {
	case p.table == people:
		return o.people(ctx, which)
	case !p.partitioned:
		return o.eraseTable(ctx, which, p, p.table)
	}
	parts, err := selectPartitions(ctx, o.DB, p.table)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if err := o.eraseTable(ctx, which, p, part); err != nil {
			return err
		}
	}
	return nil
}

// someBlocks is how much of a table without an index one transaction looks at.
const someBlocks = 500

// eraseTable erases a table or partition. An old partition may be dropped meanwhile.
func (o *Eraser) eraseTable(ctx context.Context, which id.Organization, p piece, table string) error {
	for start := int64(0); ; start += someBlocks {
		var n *int64
		err := o.DB.InTx(ctx, func(tx *pg.Tx) (err error) {
			if p.unindexed {
				n, err = eraseBlocks(ctx, tx, which, table, start, someBlocks)
			} else {
				n, err = eraseRows(ctx, tx, which, table, p.some())
			}
			return err
		})
		if err != nil {
			return err
		}
		o.after()
		if n == nil || !p.unindexed && *n < int64(p.some()) {
			return nil
		}
	}
}

func (o *Eraser) after() {
	if o.Batch != nil {
		o.Batch()
	}
}

// somePeople is how many addresses one transaction locks: as few as a call's batch may.
const somePeople = 50

func (o *Eraser) people(ctx context.Context, which id.Organization) error {
	for {
		n := 0
		err := o.DB.InTx(ctx, func(tx *pg.Tx) error {
			some, err := selectPeople(ctx, tx, which, somePeople)
			if n = len(some); err != nil || n == 0 {
				return err
			}
			users, addresses := make([]id.User, n), make([]string, n)
			for i, p := range some {
				users[i], addresses[i] = p.User, p.Email
			}
			if err := pg.LockAll(ctx, tx, pg.LockEmail, addresses); err != nil {
				return err
			}
			return erasePeople(ctx, tx, which, users)
		})
		if err != nil || n == 0 {
			return err
		}
		o.after()
	}
}

// someEntries is how many entries of the audit log one transaction looks at.
const someEntries = 10_000

func (o *Eraser) auditEntries(ctx context.Context, which id.Organization) error {
	for behind := int64(0); ; {
		last, err := eraseAccountsFromAudit(ctx, o.DB, which, behind, someEntries)
		if err != nil || last == nil {
			return err
		}
		behind = *last
		o.after()
	}
}
