package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/registrar-dev/registrar/hack/stack"
)

// chaos breaks one thing after the other. Each fault mends itself before the next.
type chaos struct {
	site   *site
	report *report
	rand   *rand.Rand
}

type fault struct {
	name string
	do   func(ctx context.Context) error
}

// run breaks things until breaking is over. It returns an error when a thing cannot be mended.
func (c *chaos) run(ctx, breaking context.Context) error {
	faults := c.faults()
	for {
		if pause(breaking, time.Duration(3+c.rand.IntN(12))*time.Second) != nil {
			return ctx.Err()
		}
		f := faults[c.rand.IntN(len(faults))]
		if err := f.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		c.report.fault(f.name)
		if err := c.awake(ctx); err != nil {
			return err
		}
	}
}

func (c *chaos) faults() []fault {
	s := c.site
	all := []fault{
		{"FLUSHALL of Redis", c.flush},
		{"Redis killed for a while", func(ctx context.Context) error {
			return errors.Join(s.redis.Kill(), c.rest(ctx, 15), s.redis.Start(ctx))
		}},
		{"PostgreSQL restarted", func(ctx context.Context) error {
			return errors.Join(s.postgres.Stop(), c.rest(ctx, 3), s.postgres.Start(ctx))
		}},
		{"PostgreSQL killed", func(ctx context.Context) error { return errors.Join(s.postgres.Kill(), s.postgres.Start(ctx)) }},
		{"SMTP refuses for now", c.mail(stack.Refuse(451, "try again later"))},
		{"SMTP drops the connection after the data", c.mail(stack.ErrDrop)},
	}
	for _, p := range s.programs {
		all = append(all,
			fault{p.Name + " killed", func(ctx context.Context) error { return errors.Join(p.Kill(), p.start(ctx, c.offset())) }},
			fault{p.Name + " restarted", func(ctx context.Context) error { return errors.Join(p.Stop(), p.start(ctx, c.offset())) }},
			fault{p.Name + " frozen for a while", func(ctx context.Context) error {
				return errors.Join(p.Signal(syscall.SIGSTOP), c.rest(ctx, 40), p.Signal(syscall.SIGCONT))
			}})
	}
	if s.disk != "" {
		all = append(all, fault{"disk of PostgreSQL full", c.fill})
	}
	if s.link != nil {
		all = append(all, fault{"slow network to a receiver", func(ctx context.Context) error {
			return errors.Join(s.link.slow(ctx), c.rest(ctx, 30), s.link.fast(ctx))
		}})
	}
	return all
}

// offset is how far a program's clock is moved: machines whose clocks are kept badly.
func (c *chaos) offset() time.Duration {
	return time.Duration(c.rand.IntN(181)-90) * time.Second
}

// rest waits up to so many seconds.
func (c *chaos) rest(ctx context.Context, most int) error {
	return pause(ctx, time.Second+time.Duration(c.rand.IntN(most*1000))*time.Millisecond)
}

func (c *chaos) flush(ctx context.Context) error {
	o, err := redis.ParseURL(c.site.redis.URL())
	if err != nil {
		return err
	}
	rdb := redis.NewClient(o)
	defer func() { _ = rdb.Close() }()
	return rdb.FlushAll(ctx).Err()
}

// mail makes the mail server answer like that for a while.
func (c *chaos) mail(verdict error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		c.site.mail.SetDecide(func(stack.Mail) error { return verdict })
		defer c.site.mail.SetDecide(nil)
		return c.rest(ctx, 10)
	}
}

// fill leaves PostgreSQL no byte for a while. A server that gave up is started again once there
// is room.
func (c *chaos) fill(ctx context.Context) error {
	ballast, err := os.Create(filepath.Join(c.site.disk, "ballast"))
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
	case <-c.site.postgres.Exited():
		c.report.note("PostgreSQL ended on a full disk and was started again")
		return errors.Join(err, c.site.postgres.Start(ctx))
	default:
		return err
	}
}

// awake holds that no program has ended by itself.
func (c *chaos) awake(ctx context.Context) error {
	for _, p := range c.site.programs {
		select {
		case <-p.Exited():
			c.report.find("%s ended by itself: %v; its last lines:\n%s", p.Name, p.Err(), p.LogTail(5))
			if err := p.start(ctx, 0); err != nil {
				return err
			}
		default:
		}
	}
	return nil
}
