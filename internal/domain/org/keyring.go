package org

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

// Channel carries the ids of organizations whose keys or settings changed.
const Channel = "keys"

const (
	keyTTL     = 15 * time.Second // the longest that a lost wake-up can matter
	maxKeys    = 20_000           // that are known
	maxRefused = 10_000           // that are remembered as wrong, in keyTTL

	patience = 5*time.Second + guessPatience // with PostgreSQL, for a key
)

var errSilent = fault.New(fault.Unavailable, "unavailable", "the service's database does not answer; send the same request again later")

// Keyring finds the organization of an API key, from the process's memory when it can. After every
// change of an organization and every revoked key, all keyrings are woken.
//
// It uses cached answers only while wake-ups arrive, as its subscription notices, and for keyTTL.
// Without Run, each call reads the database.
//
// Keys that it has seen work are read again whenever that is needed. Others wait for their turn, and
// wrong ones never reach PostgreSQL more than 50 times a second: see guesses.
type Keyring struct {
	db       *pg.DB
	now      func() time.Time // monotonic; not the calendar's clock
	changed  func()           // called after each wake-up was applied; for tests
	patience time.Duration

	loads   singleflight.Group
	guesses *guesses

	mu         sync.RWMutex
	known      map[string]*answer // by hash; those that are out of date worked, and are read again
	generation uint64             // counts invalidations; a load that saw another one is not kept
	subscribed bool               // wake-ups arrive

	refusing sync.Mutex
	refused  recent[struct{}] // by hash; apart, so that guessing does not push keys out
}

type answer struct {
	principal Principal
	until     time.Time
}

// NewKeyring makes an empty keyring.
func NewKeyring(db *pg.DB) *Keyring {
	return &Keyring{db: db, now: time.Now, changed: func() {}, patience: patience,
		guesses: newGuesses(), known: map[string]*answer{}, refused: recent[struct{}]{period: keyTTL, most: maxRefused}}
}

// Run is subscribed until ctx ends.
func (k *Keyring) Run(ctx context.Context) error {
	k.db.Wakes.Subscribe(ctx, k.onNotification, Channel)
	return nil
}

// wakeKeyrings has every process forget what it remembers of the organization and its keys.
func wakeKeyrings(tx *pg.Tx, org id.Organization) {
	tx.Wake(Channel, strconv.FormatInt(int64(org), 10))
}

func (k *Keyring) onNotification(n wake.Notification) {
	k.mu.Lock()
	switch org, err := strconv.ParseInt(n.Payload, 10, 64); {
	case n.Lost:
		k.subscribed = false
	case n.Reset:
		k.subscribed = true
		k.generation++
		for _, a := range k.known {
			a.until = time.Time{}
		}
	case err == nil:
		k.forget(id.Organization(org))
	}
	k.mu.Unlock()
	k.changed()
}

// Forget drops what is cached of the organization. The process that changed it calls this, so
// that its next request does not depend on when the wake-up arrives.
func (k *Keyring) Forget(org id.Organization) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget(org)
}

func (k *Keyring) forget(org id.Organization) {
	k.generation++
	for _, a := range k.known {
		if a.principal.Organization.ID == org {
			a.until = time.Time{}
		}
	}
}

// errKey is the same for all keys that do not work, so that it reveals nothing about them.
var errKey = fault.New(fault.Unauthenticated, "invalid_api_key",
	"the API key is wrong or revoked; send a working key of the organization in the header X-API-Key")

// Principal finds the organization of the key, which came from the client address. Unauthenticated
// when the key does not work; *TooManyGuesses when it is not known and too many wrong ones came.
func (k *Keyring) Principal(ctx context.Context, key, client string) (Principal, error) {
	start := startOf(key)
	if start == "" {
		return k.refuse(client)
	}
	hash := string(seal.Hash(key))
	p, state, generation := k.lookUp(hash)
	switch {
	case state == current:
		return p, nil
	case state == unknown && k.wasRefused(hash):
		return k.refuse(client)
	case state == unknown:
		if err := k.guesses.check(client); err != nil {
			return Principal{}, err
		}
	}
	p, err := k.load(ctx, hash, start == testStart, generation, state, client)
	if errors.Is(err, errKey) {
		return k.refuse(client)
	}
	return p, err
}

// refuse answers a wrong key and counts it.
func (k *Keyring) refuse(client string) (Principal, error) {
	if err := k.guesses.check(client); err != nil {
		return Principal{}, err
	}
	k.guesses.wrong(client)
	return Principal{}, errKey
}

// state is what is known of a key.
type state int

const (
	unknown state = iota
	stale         // it worked
	current
)

func (k *Keyring) lookUp(hash string) (Principal, state, uint64) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	now, a := k.now(), k.known[hash]
	switch {
	case a == nil:
		return Principal{}, unknown, k.generation
	case !k.subscribed || !now.Before(a.until):
		return Principal{}, stale, k.generation
	}
	return a.principal, current, k.generation
}

// wasRefused says whether the key is remembered as wrong. No key that was wrong ever works: its text is
// random, and one that is revoked stays so.
func (k *Keyring) wasRefused(hash string) bool {
	k.refusing.Lock()
	defer k.refusing.Unlock()
	_, ok := k.refused.get(hash, k.now())
	return ok
}

// load reads the key once for all concurrent callers. A caller after an invalidation never joins
// a reading that began before it.
func (k *Keyring) load(ctx context.Context, hash string, sandbox bool, generation uint64, s state, client string) (Principal, error) {
	flight := strconv.FormatUint(generation, 36) + "/" + hash
	result := k.loads.DoChan(flight, func() (any, error) {
		// The first caller may be cancelled while others still wait for the answer.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), k.patience)
		defer cancel()
		if s == unknown {
			if err := k.guesses.await(ctx, client); err != nil {
				return nil, err
			}
		}
		until := k.now().Add(keyTTL)
		p, err := selectPrincipal(ctx, k.db, []byte(hash), sandbox)
		if pg.None(err) {
			k.forgetKey(hash)
			return nil, errKey
		}
		if s == unknown {
			k.guesses.right() // or PostgreSQL is away
		}
		switch {
		case err == nil:
			k.keep(hash, generation, &answer{principal: p, until: until})
		case ctx.Err() != nil:
			err = errSilent.Because(err)
		}
		return p, err
	})
	select {
	case r := <-result:
		p, _ := r.Val.(Principal)
		return p, r.Err
	case <-ctx.Done():
		return Principal{}, ctx.Err()
	}
}

// forgetKey remembers that the key is wrong.
func (k *Keyring) forgetKey(hash string) {
	k.mu.Lock()
	delete(k.known, hash)
	k.mu.Unlock()
	k.refusing.Lock()
	defer k.refusing.Unlock()
	k.refused.put(hash, struct{}{}, k.now())
}

func (k *Keyring) keep(hash string, generation uint64, a *answer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.generation != generation {
		a.until = time.Time{} // it worked; more is not known
	}
	if _, ok := k.known[hash]; !ok && len(k.known) >= maxKeys {
		evict(k.known, k.now())
	}
	k.known[hash] = a
}

// evict deletes answers that are out of date and then others at random, until there is room for many.
func evict(answers map[string]*answer, now time.Time) {
	maps.DeleteFunc(answers, func(_ string, a *answer) bool { return !now.Before(a.until) })
	for hash := range answers {
		if len(answers) <= maxKeys*9/10 {
			return
		}
		delete(answers, hash)
	}
}
