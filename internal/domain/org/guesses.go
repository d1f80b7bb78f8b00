package org

import (
	"context"
	"errors"
	"sync"
	"time"
)

// TooManyGuesses refuses a key that nobody has looked up, because too many wrong ones came.
type TooManyGuesses struct{ RetryAfter time.Duration }

// Error implements error.
func (*TooManyGuesses) Error() string {
	return "too many wrong API keys came from this address, or from all; send the same request again after the time in Retry-After"
}

const (
	guessBurst = 25 // wrong keys that PostgreSQL is asked about at once, and a second on the average:
	guessRate  = 25 // never more than 50 in a second

	callerBurst = 50 // wrong keys of one client address at once
	callerRate  = 5  // and a second

	guessPatience = 5 * time.Second // how long a key waits until PostgreSQL is asked about it
	guessRoom     = 128             // how many wait
	guessMemory   = 30 * time.Second
	callersKnown  = 50_000 // that guessed in the time of guessMemory
)

// guesses bounds what wrong keys cost. A client address that sends many is refused before anything is
// looked up. What is left waits for its turn: first who has sent the fewest wrong keys, so that a right
// key that is new here passes all who guess.
type guesses struct {
	mu      sync.Mutex
	turns   bucket // of all
	callers recent[*caller]
	waiting []*guess
	timer   *time.Timer
}

// caller is a client address that has sent wrong keys.
type caller struct {
	wrong int // in the last time
	left  bucket
}

type guess struct {
	wrong int // of its caller
	turn  chan error
}

// bucket has tokens that come back with time.
type bucket struct {
	spent float64
	at    time.Time
}

// left is how many tokens of burst there are.
func (b *bucket) left(now time.Time, rate, burst float64) float64 {
	if !b.at.IsZero() {
		b.spent = max(0, b.spent-now.Sub(b.at).Seconds()*rate)
	}
	b.at = now
	return burst - b.spent
}

// wait is how long it takes until there is a token.
func (b *bucket) wait(rate, burst float64) time.Duration {
	return max(0, time.Duration((b.spent+1-burst)/rate*float64(time.Second)))
}

func newGuesses() *guesses {
	return &guesses{callers: recent[*caller]{period: guessMemory, most: callersKnown}}
}

// check refuses a client that has sent too many wrong keys.
func (g *guesses) check(client string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if c, ok := g.callers.get(client, now); ok && c.left.left(now, callerRate, callerBurst) < 1 {
		return &TooManyGuesses{c.left.wait(callerRate, callerBurst)}
	}
	return nil
}

// wrong counts a wrong key of the client.
func (g *guesses) wrong(client string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	c, ok := g.callers.get(client, now)
	if !ok {
		c = &caller{}
	}
	g.callers.put(client, c, now)
	c.wrong++
	if c.left.left(now, callerRate, callerBurst) >= 1 {
		c.left.spent++
	}
}

// right gives back the turn that a right key took.
func (g *guesses) right() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turns.spent = max(0, g.turns.spent-1)
	g.serve()
}

// await waits until PostgreSQL may be asked about a key of the client: *TooManyGuesses when others have
// sent fewer wrong ones.
func (g *guesses) await(ctx context.Context, client string) error {
	mine := g.line(client)
	if mine == nil {
		return &TooManyGuesses{time.Second}
	}
	over := time.NewTimer(guessPatience)
	defer over.Stop()
	select {
	case err := <-mine.turn:
		return err
	case <-over.C:
		return g.leave(mine, &TooManyGuesses{time.Second})
	case <-ctx.Done():
		return g.leave(mine, ctx.Err())
	}
}

// line puts a guess into the line; nil where all in it come before.
func (g *guesses) line(client string) *guess {
	g.mu.Lock()
	defer g.mu.Unlock()
	mine := &guess{turn: make(chan error, 1)}
	if c, ok := g.callers.get(client, time.Now()); ok {
		mine.wrong = c.wrong
	}
	at := len(g.waiting)
	for at > 0 && g.waiting[at-1].wrong > mine.wrong {
		at--
	}
	if len(g.waiting) == guessRoom {
		if at == guessRoom {
			return nil
		}
		last := g.waiting[guessRoom-1]
		last.turn <- &TooManyGuesses{time.Second}
		g.waiting = g.waiting[:guessRoom-1]
	}
	g.waiting = append(g.waiting, nil)
	copy(g.waiting[at+1:], g.waiting[at:])
	g.waiting[at] = mine
	g.serve()
	return mine
}

// leave takes a guess out of the line; one that has its turn by now gives it back.
func (g *guesses) leave(mine *guess, why error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, one := range g.waiting {
		if one == mine {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			return why
		}
	}
	if err := <-mine.turn; err != nil {
		return errors.Join(why, err)
	}
	g.turns.spent = max(0, g.turns.spent-1)
	g.serve()
	return why
}

// serve gives out the turns that there are, and comes back for the next one.
func (g *guesses) serve() {
	now := time.Now()
	for len(g.waiting) > 0 && g.turns.left(now, guessRate, guessBurst) >= 1 {
		g.turns.spent++
		g.waiting[0].turn <- nil
		g.waiting = g.waiting[1:]
	}
	if len(g.waiting) == 0 {
		return
	}
	wait := g.turns.wait(guessRate, guessBurst) + time.Millisecond
	if g.timer == nil {
		g.timer = time.AfterFunc(wait, g.tick)
	} else {
		g.timer.Reset(wait)
	}
}

func (g *guesses) tick() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.serve()
}
