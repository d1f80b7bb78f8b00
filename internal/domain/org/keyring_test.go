package org

import (
	"context"
	"strconv"
	"sync"
	"testing"
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
	p, err := k.Principal(t.Context(), text)
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
	far.await(t)
	if works(t, far.Keyring, text) {
		t.Error("the other process still takes the key")
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
	r.await(t)
	if p, err := r.Principal(t.Context(), text); check.NoError(check.Now(t), err, "%+v, %v", p, err) {
		check.Equal(check.Now(t), "p.Organization.Name", p.Organization.Name, name, "%+v, %v", p, err)
	}
}

func TestTheCacheLivesNoLongerThanItsTime(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, key, text := newKey(t, db, "north")
	r := startRing(t, db)
	works(t, r.Keyring, text)
	revokeSilently(t, db, key.ID)
	if !works(t, r.Keyring, text) {
		t.Fatal("the cache is not used: the test shows nothing")
	}
	r.advance(keyTTL)
	r.onNotification(pg.Notification{}) // a beat: notifications arrive, so only the entry's age counts
	if works(t, r.Keyring, text) {
		t.Fatal("an old entry is used")
	}
}

func TestADeafKeyringAsksTheDatabase(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, key, text := newKey(t, db, "north")
	r := startRing(t, db)
	r.stop()
	r.advance(keyTTL)
	if !works(t, r.Keyring, text) {
		t.Fatal("the key does not work without the listening connection")
	}
	revokeSilently(t, db, key.ID)
	if works(t, r.Keyring, text) {
		t.Fatal("the cache is used though nothing is heard")
	}
}

func TestABeatIsHeard(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	r := startRing(t, db)
	r.advance(keyTTL)
	db.Wake(Channel, "")
	r.await(t)
	_, key, text := newKey(t, db, "north")
	r.await(t)
	works(t, r.Keyring, text)
	revokeSilently(t, db, key.ID)
	if !works(t, r.Keyring, text) {
		t.Fatal("the cache is not used though the beat was heard")
	}
}

func TestALoadThatAnInvalidationOvertookIsNotKept(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	o, _, text := newKey(t, db, "north")
	r := startRing(t, db)
	hash := string(seal.Hash(text))
	_, before := r.lookUp(hash)
	r.Forget(o.ID)
	if _, err := r.load(t.Context(), hash, before); err != nil {
		t.Fatal(err)
	}
	if kept, _ := r.lookUp(hash); kept != nil {
		t.Fatal("the overtaken load was kept")
	}
}

func TestWrongKeysAreRefusedAndRemembered(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	r := startRing(t, db)
	for _, text := range []string{"", "reg_", "reg_short", "x", keyStart + seal.Token() + "x"} {
		if check.False(t, "the key works", works(t, r.Keyring, text), "%q: works, or took a place", text) {
			check.Equal(t, "number of refusals", len(r.refused), 0, "%q: works, or took a place", text)
		}
	}
	guess := keyStart + seal.Token()
	check.False(check.Now(t), "the guess works", works(t, r.Keyring, guess), "the guess works or is not remembered")
	check.Equal(check.Now(t), "number of refusals", len(r.refused), 1, "the guess works or is not remembered")
	if a, _ := r.lookUp(string(seal.Hash(guess))); check.True(check.Now(t), "there is a remembered answer", a != nil, "the next answer does not come from memory: %+v", a) {
		check.Equal(check.Now(t), "kind of the fault", fault.KindOf(a.err), fault.Unauthenticated, "the next answer does not come from memory: %+v", a)
	}
}

func TestTheCacheIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	answers := map[string]*answer{}
	for i := range maxKeys {
		answers[strconv.Itoa(i)] = &answer{until: now.Add(time.Second)}
	}
	if evict(answers, now); len(answers) != maxKeys-1 {
		t.Fatalf("%d are left of %d", len(answers), maxKeys)
	}
	if evict(answers, now.Add(time.Second)); len(answers) != 0 {
		t.Fatalf("%d expired ones are left", len(answers))
	}
}
