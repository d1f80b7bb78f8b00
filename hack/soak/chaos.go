package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
)

// chaos breaks one thing after the other. Each fault mends itself before the next.
type chaos struct {
	site   *site
	load   *load
	report *report
	rand   *rand.Rand
}

const rollOut = "roll-out"

type fault struct {
	kind string // the row of the picture
	name string
	do   func(ctx context.Context) error
}

// run breaks things until breaking is over: each of them once, in an order that is drawn, and again; the first is the
// roll-out. It returns an error when a thing cannot be mended.
func (c *chaos) run(ctx, breaking context.Context) error {
	faults := c.faults()
	if len(faults) == 0 {
		return fmt.Errorf("-only %s: no fault has such a name", c.load.options.only)
	}
	for round := 0; ; round++ {
		c.rand.Shuffle(len(faults), func(i, k int) { faults[i], faults[k] = faults[k], faults[i] })
		if rolls := slices.IndexFunc(faults, func(f fault) bool { return f.kind == rollOut }); round == 0 && rolls > 0 {
			faults[0], faults[rolls] = faults[rolls], faults[0]
		}
		for _, f := range faults {
			if pause(breaking, time.Duration(3+c.rand.IntN(12))*time.Second) != nil {
				return ctx.Err()
			}
			began := time.Now()
			if err := f.do(ctx); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
			c.report.fault(f, began)
			if err := c.awake(ctx); err != nil {
				return err
			}
		}
	}
}

func (c *chaos) faults() []fault {
	s := c.site
	all := []fault{
		{kind: "mail", name: "SMTP refuses for now", do: c.mail(stack.Refuse(451, "try again later"))},
		{kind: "mail", name: "SMTP drops the connection after the data", do: c.mail(stack.ErrDrop)},
		{kind: "LMS", name: "the LMS is away", do: func(ctx context.Context) error {
			c.load.lms.away.Store(true)
			defer c.load.lms.away.Store(false)
			return c.rest(ctx, 20)
		}},
		{kind: "LMS", name: "the LMS answers late", do: func(ctx context.Context) error {
			c.load.lms.late.Store(true)
			defer c.load.lms.late.Store(false)
			return c.rest(ctx, 20)
		}},
		{kind: "network", name: "slow network to the database", do: func(ctx context.Context) error {
			s.database.network.Slow(30 * time.Millisecond)
			defer s.database.network.Slow(0)
			return c.rest(ctx, 20)
		}},
		{kind: "network", name: "no network to the database", do: func(ctx context.Context) error {
			s.database.network.Cut()
			defer s.database.network.Heal()
			return c.rest(ctx, 12)
		}},
	}
	all = append(all, c.ofRedis()...)
	all = append(all, c.ofPostgres()...)
	for _, p := range s.programs {
		all = append(all,
			fault{kind: p.Name, name: p.Name + " killed", do: func(ctx context.Context) error { return errors.Join(p.Kill(), p.start(ctx, c.offset())) }},
			fault{kind: p.Name, name: p.Name + " restarted", do: func(ctx context.Context) error { return errors.Join(p.Stop(), p.start(ctx, c.offset())) }},
			fault{kind: p.Name, name: p.Name + " frozen for a while", do: func(ctx context.Context) error {
				return errors.Join(p.Signal(syscall.SIGSTOP), c.rest(ctx, 40), p.Signal(syscall.SIGCONT))
			}})
	}
	all = append(all, fault{kind: "clocks", name: "clock of a program jumps", do: c.jump})
	if s.link != nil {
		all = append(all, fault{kind: "network", name: "slow network to a receiver", do: func(ctx context.Context) error {
			return errors.Join(s.link.slow(ctx), c.rest(ctx, 30), s.link.fast(ctx))
		}})
	}
	if s.database.own != nil {
		own := s.database.own
		all = append(all, fault{kind: "PostgreSQL", name: "PostgreSQL of the sandboxes killed", do: func(ctx context.Context) error {
			return errors.Join(own.Kill(), patiently(ctx, func() error { return own.Start(ctx) }))
		}})
	}
	if s.versions.before != "" {
		all = append(all, fault{kind: rollOut, name: "programs rolled out from the commit before", do: c.roll})
	}
	var chosen []fault
	for _, f := range all {
		if strings.Contains(f.name, c.load.options.only) {
			chosen = append(chosen, f)
		}
	}
	return chosen
}

// offset is how far a program's clock is moved: machines whose clocks are kept badly.
func (c *chaos) offset() time.Duration {
	const most = 90
	return time.Duration(c.rand.IntN(2*most+1)-most) * time.Second
}

// jump has a program go on with a clock that is minutes away from what it was.
func (c *chaos) jump(ctx context.Context) error {
	p := c.site.programs[c.rand.IntN(len(c.site.programs))]
	by := time.Duration(120+c.rand.IntN(60)) * time.Second // receivers allow signatures five minutes
	if c.rand.IntN(2) == 0 {
		by = -by
	}
	return errors.Join(p.Stop(), p.start(ctx, by), c.rest(ctx, 20), p.Stop(), p.start(ctx, c.offset()))
}

// rest waits up to so many seconds.
func (c *chaos) rest(ctx context.Context, most int) error {
	return pause(ctx, time.Second+time.Duration(c.rand.IntN(most*1000))*time.Millisecond)
}

// mail makes the mail server answer like that for a while.
func (c *chaos) mail(verdict error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		c.site.mail.SetDecide(func(stack.Mail) error { return verdict })
		defer c.site.mail.SetDecide(nil)
		return c.rest(ctx, 10)
	}
}

// awake holds that no program has ended by itself.
func (c *chaos) awake(ctx context.Context) error {
	for _, p := range c.site.programs {
		select {
		case <-p.Exited():
			c.report.find("%s ended by itself: %v; its last lines:\n%s", p.title, p.Err(), p.LogTail(5))
			if err := p.start(ctx, 0); err != nil {
				return err
			}
		default:
		}
	}
	return nil
}
