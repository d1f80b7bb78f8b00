package simulate

import (
	"context"
	"sync"

	"github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Opened keeps the databases open that a process works on again and again. One that is not used for a minute has no
// connection.
type Opened struct {
	Service *Service

	mu  sync.Mutex
	all map[id.Organization]*opened
}

// mostOpened is how many are kept.
const mostOpened = 50

type opened struct {
	sandbox.Sandbox
	db    *pg.DB
	users int  // of Opened.mu
	gone  bool // the last user closes it
}

// Use calls do with the database of the sandbox. After an error the next call opens it again.
func (o *Opened) Use(ctx context.Context, of sandbox.Sandbox, do func(*pg.DB) error) error {
	d := o.enter(of)
	if d == nil {
		db, err := o.Service.Open(ctx, of)
		if err != nil {
			return err
		}
		d = o.add(&opened{Sandbox: of, db: db, users: 1})
	}
	failed := true // also by a panic
	defer func() { o.leave(d, failed) }()
	err := do(d.db)
	failed = err != nil
	return err
}

func (o *Opened) enter(of sandbox.Sandbox) *opened {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := o.all[of.Organization]
	if d == nil || d.Database() != of.Database() {
		return nil
	}
	d.users++
	return d
}

// add takes the place of the sandbox's earlier database.
func (o *Opened) add(d *opened) *opened {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[id.Organization]*opened{}
	}
	for org, other := range o.all {
		if org == d.Organization || len(o.all) >= mostOpened && other.users == 0 {
			o.forget(other)
		}
	}
	o.all[d.Organization] = d
	return d
}

func (o *Opened) leave(d *opened, failed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d.users--
	if failed || d.gone {
		o.forget(d)
	}
}

// forget closes the database once nobody uses it. o.mu is locked.
func (o *Opened) forget(d *opened) {
	if o.all[d.Organization] == d {
		delete(o.all, d.Organization)
	}
	d.gone = true
	if d.users == 0 {
		go d.db.Close()
	}
}

// Close closes what nobody uses.
func (o *Opened) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range o.all {
		o.forget(d)
	}
}
