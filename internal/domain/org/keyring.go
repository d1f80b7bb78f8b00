package org

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Channel carries the ids of organizations whose keys or settings changed, and heartbeats (an
// empty payload), which show a keyring that its connection works.
const Channel = "registrar_keys"

const (
	keyTTL       = 15 * time.Second // the longest that a missed notification can matter
	beatInterval = 4 * time.Second
	maxKeys      = 20_000 // of each, known and refused ones
)

// Keyring finds the organization of an API key, from the process's memory when it can. Every
// change of an organization and every revoked key is sent to all keyrings with NOTIFY.
//
// It uses cached answers only while notifications arrive: it sends itself heartbeats through
// PostgreSQL, so that it notices a connection that broke without an error. Without Run, each
// call reads the database.
type Keyring struct {
	db      *pg.DB
	now     func() time.Time // monotonic; not the calendar's clock
	changed func()           // called after each notification was applied; for tests

	loads singleflight.Group

	mu         sync.RWMutex
	known      map[string]*answer // by hash
	refused    map[string]*answer // by hash; apart, so that guessing does not push keys out
	generation uint64             // counts invalidations; a load that saw another one is not kept
	notified   time.Time
}

type answer struct {
	principal Principal
	err       error
	until     time.Time
}

// NewKeyring makes an empty keyring.
func NewKeyring(db *pg.DB) *Keyring {
	return &Keyring{db: db, now: time.Now, changed: func() {},
		known: map[string]*answer{}, refused: map[string]*answer{}}
}

// Run listens until ctx ends.
func (k *Keyring) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { k.beat(ctx) })
	pg.Listen(ctx, k.db, k.onNotification, Channel)
	return nil
}

func (k *Keyring) beat(ctx context.Context) {
	tick := time.NewTicker(beatInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			k.db.Wake(Channel, "")
		}
	}
}

func (k *Keyring) onNotification(n pg.Notification) {
	k.mu.Lock()
	k.notified = k.now()
	switch org, err := strconv.ParseInt(n.Payload, 10, 64); {
	case n.Reset:
		k.generation++
		clear(k.known)
		clear(k.refused)
	case err == nil:
		k.forget(id.Organization(org))
	}
	k.mu.Unlock()
	k.changed()
}

// Forget drops what is cached of the organization. The process that changed it calls this, so
// that its next request does not depend on when the notification arrives.
func (k *Keyring) Forget(org id.Organization) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget(org)
}

func (k *Keyring) forget(org id.Organization) {
	k.generation++
	maps.DeleteFunc(k.known, func(_ string, a *answer) bool { return a.principal.Organization.ID == org })
}

// errKey is the same for all keys that do not work, so that it reveals nothing about them.
var errKey = fault.New(fault.Unauthenticated, "invalid_api_key",
	"the API key is wrong or revoked; send a working key of the organization in the header X-API-Key")

// Principal finds the organization of the key. Unauthenticated when the key does not work.
func (k *Keyring) Principal(ctx context.Context, key string) (Principal, error) {
	if len(key) != keyLength || !strings.HasPrefix(key, keyStart) {
		return Principal{}, errKey
	}
	hash := string(seal.Hash(key))
	answer, generation := k.lookUp(hash)
	if answer == nil {
		return k.load(ctx, hash, generation)
	}
	return answer.principal, answer.err
}

// lookUp returns nil when the answer is not in memory or may be out of date.
func (k *Keyring) lookUp(hash string) (*answer, uint64) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	now := k.now()
	if k.notified.IsZero() || now.Sub(k.notified) >= keyTTL {
		return nil, k.generation
	}
	for _, answers := range []map[string]*answer{k.known, k.refused} {
		if a := answers[hash]; a != nil && now.Before(a.until) {
			return a, k.generation
		}
	}
	return nil, k.generation
}

// load reads the key once for all concurrent callers. A caller after an invalidation never joins
// a reading that began before it.
func (k *Keyring) load(ctx context.Context, hash string, generation uint64) (Principal, error) {
	flight := strconv.FormatUint(generation, 36) + "/" + hash
	result := k.loads.DoChan(flight, func() (any, error) {
		// The first caller may be cancelled while others still wait for the answer.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		until := k.now().Add(keyTTL)
		p, err := selectPrincipal(ctx, k.db, []byte(hash))
		if pg.None(err) {
			k.keep(k.refused, hash, generation, &answer{err: errKey, until: until})
			return nil, errKey
		}
		if err == nil {
			k.keep(k.known, hash, generation, &answer{principal: p, until: until})
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

func (k *Keyring) keep(answers map[string]*answer, hash string, generation uint64, a *answer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.generation != generation {
		return
	}
	if len(answers) >= maxKeys {
		evict(answers, k.now())
	}
	answers[hash] = a
}

// evict deletes expired answers and then, until there is room, others at random.
func evict(answers map[string]*answer, now time.Time) {
	maps.DeleteFunc(answers, func(_ string, a *answer) bool { return !now.Before(a.until) })
	for hash := range answers {
		if len(answers) < maxKeys {
			return
		}
		delete(answers, hash)
	}
}
