package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
)

// ofRedis are the faults of Redis.
func (c *chaos) ofRedis() []fault {
	s := c.site
	if s.redis != nil {
		return []fault{
			{kind: "Redis", name: "Redis emptied", do: s.redis.Empty},
			{kind: "Redis", name: "Redis killed for a while", do: func(ctx context.Context) error {
				return errors.Join(s.redis.Kill(), c.rest(ctx, 15), s.redis.Start(ctx))
			}},
		}
	}
	return []fault{
		{kind: "Redis", name: "Redis emptied", do: func(ctx context.Context) error {
			primary, err := s.sentinels.Primary(ctx)
			if err != nil {
				return err
			}
			return primary.Empty(ctx)
		}},
		{kind: "Redis", name: "Redis' primary killed, Sentinels fail over", do: c.loseRedis},
		{kind: "Redis", name: "all of Redis killed for a while", do: func(ctx context.Context) error {
			for _, server := range s.sentinels.Servers {
				if err := server.Kill(); err != nil {
					return err
				}
			}
			if err := c.rest(ctx, 12); err != nil {
				return err
			}
			for _, server := range s.sentinels.Servers {
				if err := patiently(ctx, func() error { return server.Start(ctx) }); err != nil {
					return err
				}
			}
			return s.sentinels.AwaitReplica(ctx)
		}},
	}
}

// loseRedis kills the primary for good, and brings the server back as a replica.
func (c *chaos) loseRedis(ctx context.Context) error {
	set := c.site.sentinels
	before, err := set.Primary(ctx)
	if err != nil {
		return err
	}
	if err := before.Kill(); err != nil {
		return err
	}
	err = until(ctx, "there is a new primary of Redis", func(ctx context.Context) bool {
		now, err := set.Primary(ctx)
		return err == nil && now != before
	})
	return errors.Join(err, c.rest(ctx, 5), patiently(ctx, func() error { return before.Start(ctx) }), set.AwaitReplica(ctx))
}

// until asks each 100 ms for as long as three minutes.
func until(ctx context.Context, what string, yes func(ctx context.Context) bool) error {
	const patience = 3 * time.Minute
	for began := time.Now(); !yes(ctx); {
		if time.Since(began) > patience {
			return fmt.Errorf("not within %s: %s", patience, what)
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// ofPostgres are the faults of the installation's PostgreSQL.
func (c *chaos) ofPostgres() []fault {
	d := c.site.database
	var all []fault
	if pooler := d.pooler; pooler != nil {
		all = append(all, fault{kind: "PostgreSQL", name: "PgBouncer killed", do: func(ctx context.Context) error {
			return errors.Join(pooler.Kill(), patiently(ctx, func() error { return pooler.Start(ctx) }))
		}})
	}
	if d.pair != nil {
		all = append(all,
			fault{kind: "PostgreSQL", name: "primary killed, Patroni fails over", do: c.failOver((*stack.PatroniNode).KillPostgres, nil)},
			fault{kind: "PostgreSQL", name: "primary cut off, Patroni fails over", do: c.failOver(
				func(n *stack.PatroniNode) error { n.CutNetwork(); return nil },
				func(n *stack.PatroniNode) error { n.HealNetwork(); return nil })},
			fault{kind: "PostgreSQL", name: "standby cut off for a while", do: c.loseStandby},
			fault{kind: "restore", name: "PostgreSQL restored to an earlier moment", do: c.restore})
		if d.pair.HasDisks() {
			all = append(all, fault{kind: "disk", name: "disk of the primary full, Patroni fails over", do: c.failOver(
				(*stack.PatroniNode).FillDisk, (*stack.PatroniNode).FreeDisk)})
		}
		return all
	}
	all = append(all,
		fault{kind: "PostgreSQL", name: "PostgreSQL restarted", do: func(ctx context.Context) error {
			return errors.Join(d.plain.Stop(), c.rest(ctx, 3), patiently(ctx, func() error { return d.plain.Start(ctx) }))
		}},
		fault{kind: "PostgreSQL", name: "PostgreSQL killed", do: func(ctx context.Context) error {
			return errors.Join(d.plain.Kill(), patiently(ctx, func() error { return d.plain.Start(ctx) }))
		}})
	if d.disk != "" {
		all = append(all, fault{kind: "disk", name: "disk of PostgreSQL full", do: c.fill})
	}
	return all
}

// failOver loses the primary, and mends it once there is another one.
func (c *chaos) failOver(lose, mend func(*stack.PatroniNode) error) func(context.Context) error {
	return func(ctx context.Context) error {
		pair := c.site.database.pair
		before, err := c.primary(ctx)
		if err != nil {
			return err
		}
		if err := lose(before); err != nil {
			return err
		}
		err = until(ctx, "there is a new primary of PostgreSQL", func(ctx context.Context) bool {
			now, err := pair.Primary(ctx)
			return err == nil && now != before
		})
		err = errors.Join(err, c.rest(ctx, 10))
		if mend != nil {
			err = errors.Join(err, mend(before))
		}
		if err != nil {
			return err
		}
		return patiently(ctx, func() error { return pair.AwaitStandby(ctx) })
	}
}

// primary is the one that Patroni calls so, which a busy machine may be slow to say.
func (c *chaos) primary(ctx context.Context) (n *stack.PatroniNode, err error) {
	err = until(ctx, "Patroni names a primary", func(ctx context.Context) bool {
		n, err = c.site.database.pair.Primary(ctx)
		return err == nil
	})
	return n, err
}

func (c *chaos) loseStandby(ctx context.Context) error {
	pair := c.site.database.pair
	primary, err := c.primary(ctx)
	if err != nil {
		return err
	}
	for _, n := range pair.Nodes {
		if n != primary {
			n.CutNetwork()
			defer n.HealNetwork()
		}
	}
	if err := c.rest(ctx, 20); err != nil {
		return err
	}
	for _, n := range pair.Nodes {
		n.HealNetwork()
	}
	return patiently(ctx, func() error { return pair.AwaitStandby(ctx) })
}

// fill leaves PostgreSQL no byte for a while. A server that gave up is started again once there
// is room.
func (c *chaos) fill(ctx context.Context) error {
	d := c.site.database
	ballast, err := os.Create(filepath.Join(d.disk, "ballast"))
	if err != nil {
		return err
	}
	chunk := make([]byte, 1<<20)
	for err == nil {
		_, err = ballast.Write(chunk)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return errors.Join(err, ballast.Close())
	}
	err = errors.Join(c.rest(ctx, 8), ballast.Close(), os.Remove(ballast.Name()))
	select {
	case <-d.plain.Exited():
		c.report.note("PostgreSQL ended on a full disk and was started again")
		return errors.Join(err, d.plain.Start(ctx))
	default:
		return err
	}
}

// bin is the folder of the program that runs.
func (p *replica) bin() string { return filepath.Dir(p.Path) }

// roll rolls this commit's programs out: the first time over those of the commit before, later after these were rolled back
// for a while. The schema is brought up to date before the first program of this commit, and stays so.
func (c *chaos) roll(ctx context.Context) error {
	v := c.site.versions
	if c.site.programs[0].bin() == v.now {
		if err := errors.Join(c.replace(ctx, v.before), c.rest(ctx, 60)); err != nil {
			return err
		}
	} else if err := patiently(ctx, func() error { return c.site.migrate(ctx, v.now) }); err != nil {
		return err
	}
	return c.replace(ctx, v.now)
}

// replace puts the programs of a folder in the place of those that run, one after the other.
func (c *chaos) replace(ctx context.Context, bin string) error {
	for _, p := range c.site.programs {
		if err := p.Stop(); err != nil {
			return err
		}
		p.Path = filepath.Join(bin, filepath.Base(p.Path))
		if err := p.start(ctx, c.offset()); err != nil {
			return err
		}
		if err := c.rest(ctx, 2); err != nil {
			return err
		}
	}
	return nil
}
