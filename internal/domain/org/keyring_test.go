package org

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ring is a running keyring whose time the test moves, and which tells of each
// notification that it has applied.
type ring struct {
	*Keyring
	mu       sync.Mutex
	ahead    time.Duration
	notified chan struct{}
	stop     func()
}

func startRing(t *testing.T, db *pg.DB) *ring {
	t.Helper()
	r := &ring{Keyring: NewKeyring(db), notified: make(chan struct{}, 100)}
	r.now = func() time.Time {
		r.mu.Lock()
		defer r.mu.Unlock()
		return time.Now().Add(r.ahead)
	}
	r.changed = func() { r.notified <- struct{}{} }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(r.stop)
	r.await(t)
	return r
}

func (r *ring) await(t *testing.T) {
	t.Helper()
	select {
	case <-r.notified:
	case <-time.After(time.Minute):
		t.Fatal("nothing is heard")
	}
}

func (r *ring) advance(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ahead += d
}

func newKey(t *testing.T, db *pg.DB, slug string) (Organization, Key, string) {
	t.Helper()
	o, _, err := Put(t.Context(), db, audit.Platform, slug, Patch{Name: &slug}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	k, text, err := CreateKey(t.Context(), db, audit.Platform, o.ID, Key{Name: "key", Access: Full}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return o, k, text
}

// revokeSilently is a revocation whose notification got lost.
func revokeSilently(t *testing.T, db *pg.DB, key id.APIKey) {
	t.Helper()
	if _, err := db.Exec(t.Context(), `UPDATE api_keys SET revoked_at = now() WHERE id = $1`, key); err != nil {
		t.Fatal(err)
	}
}

func works(t *testing.T, k *Keyring, text string) bool {
	t.Helper()
	p, err := k.Principal(t.Context(), text, "192.0.2.1")
	if err != nil {
		check.Equal(check.Now(t), "kind of the fault", fault.KindOf(err), fault.Unauthenticated, "%v", err)
	}
	return err == nil && p.Key.ID != 0
}

func TestARevocationHoldsAtOnceInEveryProcess(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	o, key, text := newKey(t, db, "north")
	near, far := startRing(t, db), startRing(t, db)
	check.True(check.Now(t), "the key works in this process", works(t, near.Keyring, text), "the key does not work")
	check.True(check.Now(t), "the key works in the other process", works(t, far.Keyring, text), "the key does not work")
	if _, err := RevokeKey(t.Context(), db, audit.Platform, o.ID, key.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	near.Forget(o.ID)
	if works(t, near.Keyring, text) {
		t.Error("the revoking process still takes the key")
	}
	for works(t, far.Keyring, text) { // what is heard first may be that the key was made
		far.await(t)
	}
}

func TestChangedSettingsAreSeenInEveryProcess(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, _, text := newKey(t, db, "north")
	r := startRing(t, db)
	works(t, r.Keyring, text)
	name := "New Name"
	if _, _, err := Put(t.Context(), db, audit.Platform, "north", Patch{Name: &name}, time.Now()); err != nil {
		t.Fatal(err)
	}
	for {
		p, err := r.Principal(t.Context(), text, "192.0.2.1")
		check.NoError(check.Now(t), err, "%+v", p)
		if p.Organization.Name == name {
			break
		}
		r.await(t) // what is heard first may be that the key was made
	}
}

func TestTheCacheLivesNoLongerThanItsTime(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	r := startRing(t, db)
	_, key, text := newKey(t, db, "north")
	r.await(t) // or the wake-up for the new organization comes between
	works(t, r.Keyring, text)
	revokeSilently(t, db, key.ID)
	if !works(t, r.Keyring, text) {
		t.Fatal("the cache is not used: the test shows nothing")
	}
	r.advance(keyTTL)
	if works(t, r.Keyring, text) {
		t.Fatal("an old entry is used")
	}
}

func TestADeafKeyringAsksTheDatabase(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, key, text := newKey(t, db, "north")
	r := startRing(t, db)
	check.True(check.Now(t), "the key works", works(t, r.Keyring, text), "while wake-ups arrive")
	r.stop()
	if !works(t, r.Keyring, text) {
		t.Fatal("the key does not work without the subscription")
	}
	revokeSilently(t, db, key.ID)
	if works(t, r.Keyring, text) {
		t.Fatal("the cache is used though nothing is heard")
	}
}

func TestALoadThatAnInvalidationOvertookIsNotKept(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	o, _, text := newKey(t, db, "north")
	r := startRing(t, db)
	hash := string(seal.Hash(text))
	_, s, before := r.lookUp(hash)
	r.Forget(o.ID)
	if _, err := r.load(t.Context(), hash, false, before, s, "192.0.2.1"); err != nil {
		t.Fatal(err)
	}
	if _, s, _ := r.lookUp(hash); s != stale {
		t.Fatal("the overtaken load is used")
	}
}

func TestWrongKeysAreRefusedAndRemembered(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	r := startRing(t, db)
	for _, text := range []string{"", "reg_", "reg_short", "x", keyStart + seal.Token() + "x"} {
		if check.False(t, "the key works", works(t, r.Keyring, text), "%q: works, or took a place", text) {
			check.Equal(t, "number of refusals", r.refused.size(), 0, "%q: works, or took a place", text)
		}
	}
	guess := keyStart + seal.Token()
	check.False(check.Now(t), "the guess works", works(t, r.Keyring, guess), "the guess works or is not remembered")
	check.Equal(check.Now(t), "number of refusals", r.refused.size(), 1, "the guess works or is not remembered")
	check.True(check.Now(t), "the guess is remembered", r.wasRefused(string(seal.Hash(guess))), "the next answer does not come from memory")
}

// A key that has worked is read again whatever others guess, and one that is new here passes those
// who guess.
func TestARightKeyGetsInBesideGuesses(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, _, text := newKey(t, db, "north")
	_, _, fresh := newKey(t, db, "south")
	r := startRing(t, db)
	check.True(check.Now(t), "the key works", works(t, r.Keyring, text), "before anybody guesses")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var guessing sync.WaitGroup
	var refused, limited atomic.Int64
	for i := range 200 {
		guessing.Go(func() {
			for ctx.Err() == nil {
				_, err := r.Principal(ctx, keyStart+seal.Token(), fmt.Sprintf("198.51.100.%d", i))
				var often *TooManyGuesses
				switch {
				case errors.As(err, &often):
					limited.Add(1)
				case errors.Is(err, errKey):
					refused.Add(1)
				}
			}
		})
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for limited.Load() < 200 || refused.Load() < 60 {
		<-tick.C
	}
	r.advance(keyTTL)
	check.True(t, "the key works", works(t, r.Keyring, text), "one that was read before")
	for { // until each of the others has guessed once, it may have to come again
		_, err := r.Principal(t.Context(), fresh, "192.0.2.1")
		var often *TooManyGuesses
		if !errors.As(err, &often) {
			check.NoError(t, err, "one that is new here")
			break
		}
		<-time.After(often.RetryAfter)
	}
	cancel()
	guessing.Wait()
	for waiting := 1; waiting > 0; <-tick.C { // who has left still has its turn
		r.guesses.mu.Lock()
		waiting = len(r.guesses.waiting)
		r.guesses.mu.Unlock()
	}
}

func TestWrongKeysAreLimitedByAddressAndInAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGuesses()
		sent := 0
		for ; g.check("a") == nil; sent++ {
			g.wrong("a")
		}
		check.Equal(t, "wrong keys of one address", sent, callerBurst, "at once")
		check.NoError(t, g.check("b"), "another address")
		var often *TooManyGuesses
		if err := g.check("a"); check.True(t, "too many", errors.As(err, &often), "%v", err) {
			<-time.After(often.RetryAfter)
			check.NoError(t, g.check("a"), "after the time in RetryAfter")
		}

		asked, most := 0, 0
		for second := range 60 {
			before := asked
			began := time.Now()
			for i := 0; time.Since(began) < time.Second; i++ {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				if g.await(ctx, fmt.Sprint("c", second, i)) == nil {
					asked++
				}
				cancel()
			}
			most = max(most, asked-before)
		}
		check.True(t, "at most 50 in a second", most <= 50, "%d", most)
		check.True(t, "most turns are used", asked >= 60*guessRate*8/10, "%d in a minute", asked)
	})
}

func TestWhoHasGuessedLessIsServedFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGuesses()
		g.turns = bucket{spent: guessBurst, at: time.Now()}
		for range 3 {
			g.wrong("guesser")
		}
		var guessers sync.WaitGroup
		got := make(chan string, guessRoom+1)
		for range guessRoom {
			guessers.Go(func() {
				if g.await(t.Context(), "guesser") == nil {
					got <- "guesser"
				}
			})
		}
		synctest.Wait()
		check.True(t, "too many", g.await(t.Context(), "guesser") != nil, "the line is full")
		guessers.Go(func() {
			if g.await(t.Context(), "new") == nil {
				got <- "new"
			}
		})
		synctest.Wait()
		check.Equal(t, "who is served first", <-got, "new", "it has guessed least")
		guessers.Wait()
		check.Equal(t, "how many wait", len(g.waiting), 0, "all have left")
	})
}

func TestWhatIsRecentIsForgotten(t *testing.T) {
	t.Parallel()
	r, now := recent[int]{period: time.Minute, most: 10}, time.Now()
	for i := range 100 {
		r.put(strconv.Itoa(i), i, now)
	}
	check.True(t, "it is bounded", r.size() <= 20, "%d", r.size())
	v, ok := r.get("99", now.Add(time.Minute))
	check.True(t, "it is there", ok && v == 99, "%d", v)
	_, ok = r.get("99", now.Add(3*time.Minute))
	check.False(t, "it is there", ok, "after three periods")
}

func TestTheCacheIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	answers := map[string]*answer{}
	for i := range maxKeys {
		answers[strconv.Itoa(i)] = &answer{until: now.Add(time.Second)}
	}
	if evict(answers, now); len(answers) != maxKeys*9/10 {
		t.Fatalf("%d are left of %d", len(answers), maxKeys)
	}
	if evict(answers, now.Add(time.Second)); len(answers) != 0 {
		t.Fatalf("%d expired ones are left", len(answers))
	}
}

// A wrong key costs the same however many are remembered.
func BenchmarkWrongKeys(b *testing.B) {
	for _, n := range []int{100, maxRefused - 1} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			k := NewKeyring(nil)
			for i := range n {
				k.forgetKey(strconv.Itoa(i))
			}
			for i := 0; b.Loop(); i++ {
				k.forgetKey(strconv.Itoa(n + i))
				_, _ = k.refuse("198.51.100.1")
			}
		})
	}
}

// Whatever is sent as a key is refused or waits for its turn, and never panics.
func FuzzKey(f *testing.F) {
	for _, s := range []string{"", "reg_", keyStart + seal.Token(), keyStart + strings.Repeat("\x00", 43), strings.Repeat("ä", 47), "Bearer " + keyStart} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		synctest.Test(t, func(t *testing.T) {
			k := NewKeyring(nil)
			k.guesses.turns = bucket{spent: 1e9, at: time.Now()}
			p, err := k.Principal(t.Context(), text, "192.0.2.1")
			check.True(t, "it is refused", err != nil && p.Key.ID == 0, "%q: %v", text, err)
		})
	})
}

func (r *recent[V]) size() int { return len(r.young) + len(r.old) }

func TestPostgreSQLThatDoesNotAnswerIsNotTheKeysFault(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, _, text := newKey(t, db, "north")
	k := NewKeyring(db)
	k.patience = 100 * time.Millisecond
	tx, err := db.Begin(t.Context())
	check.NoError(check.Now(t), err, "%v", err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE`)
	check.NoError(check.Now(t), err, "%v", err)
	_, err = k.Principal(t.Context(), text, "192.0.2.1")
	check.Equal(t, "kind of the fault", fault.KindOf(err), fault.Unavailable, "%v", err)
	err = tx.Rollback(t.Context())
	check.NoError(check.Now(t), err, "%v", err)
	k.patience = time.Minute
	check.True(t, "the key works", works(t, k, text), "the key does not work")
}
