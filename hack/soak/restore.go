package main

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
)

// restored is a time whose changes a restore has undone.
type restored struct {
	from, to time.Time
	mails    [2]int // that were received until then
}

func (r restored) has(at time.Time) bool { return !at.Before(r.from) && at.Before(r.to) }

// restore brings PostgreSQL back as it was a while before, as docs/restore.md says. Calls between the two are lost, and
// their clients begin again with what is left; the neighbours and the sandboxes wait.
func (c *chaos) restore(ctx context.Context) error {
	l, d := c.load, c.site.database
	l.still.Lock()
	defer l.still.Unlock()
	if err := c.site.mailed(ctx); err != nil {
		return err
	}
	if err := patiently(ctx, func() error { return d.pair.Backup(ctx, d.archive(), d.backup()) }); err != nil {
		return err
	}
	var moment string
	r := restored{}
	l.gate.Lock()
	err := c.site.db.QueryRow(ctx, `SELECT clock_timestamp()::text FROM pg_sleep(1)`).Scan(&moment)
	if err == nil {
		r.from, r.mails[0] = time.Now(), len(c.site.mail.All())
		err = errors.Join(l.journal.add(op{Kind: opMoment, At: r.from}), pause(ctx, time.Second))
	}
	l.gate.Unlock()
	if err == nil {
		err = c.rest(ctx, 20)
	}
	if err != nil {
		return err
	}
	l.gate.Lock()
	defer l.gate.Unlock()
	for _, p := range c.site.programs {
		if err := p.Stop(); err != nil {
			return err
		}
	}
	c.site.db.Reset()
	if err := d.pair.Restore(ctx, d.archive(), d.backup(), moment); err != nil {
		return err
	}
	command := c.site.owner(c.site.programs[0].bin()).APIServer()
	command.Args, command.LogFile = []string{"after-restore"}, filepath.Join(c.site.dir, "logs", "after-restore.log")
	command.Env = append(command.Env, "DATABASE_URL="+d.direct)
	if err := patiently(ctx, func() error { return stack.Run(ctx, command) }); err != nil {
		return err
	}
	r.to, r.mails[1] = time.Now(), len(c.site.mail.All())
	for _, p := range c.site.programs {
		if err := p.start(ctx, c.offset()); err != nil {
			return err
		}
	}
	c.report.locked(func() { c.report.restores = append(c.report.restores, r) })
	if err := l.journal.add(op{Kind: opRestored, At: r.to}); err != nil {
		return err
	}
	return l.rewind()
}

// mailed waits until no mail to the neighbours is on its way: a link in one that a restore sends again is another link.
func (s *site) mailed(ctx context.Context) error {
	for range 300 {
		var queued int
		err := s.db.QueryRow(ctx, `SELECT count(*) FROM emails WHERE status = 'queued' AND recipient LIKE '%@neighbours.org'`).Scan(&queued)
		if err != nil || queued == 0 {
			return err
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
	return errors.New("mails to the neighbours are not sent")
}

// rewind has all clients know what is left.
func (l *load) rewind() error {
	models := map[int]*model{}
	of := func(client int) *model {
		if models[client] == nil {
			models[client] = newModel()
		}
		return models[client]
	}
	err := readJournal(l.journal.file.Name(), func(o op) { of(o.Client).apply(o) }, func(o op) { of(o.Client).lose(o) })
	if err != nil {
		return err
	}
	for _, p := range l.clients {
		p.rewind(of(p.number))
	}
	l.files.model = of(filesClient)
	return nil
}

// readJournal tells kept what was accepted and is still so, and lost what a restore has undone.
func readJournal(name string, kept, lost func(op)) error {
	var since []op
	open := false
	err := readLines(name, func(o op) error {
		switch {
		case o.Kind == opMoment:
			open = true
		case o.Kind == opRestored:
			for _, o := range since {
				lost(o)
			}
			since, open = nil, false
		case open:
			since = append(since, o)
		default:
			kept(o)
		}
		return nil
	})
	for _, o := range since { // the restore never came
		kept(o)
	}
	return err
}
