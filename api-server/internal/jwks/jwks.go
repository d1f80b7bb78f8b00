// Package jwks fetches the sets of keys with which LMSes sign, and keeps them for a while. A customer chooses their
// addresses, so all calls go through the guard of receiver URLs.
package jwks

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

const (
	timeout    = 5 * time.Second
	dialWithin = 3 * time.Second
	largest    = 256 << 10 // bytes of a set
	fresh      = time.Hour // a set is taken as it is for so long
	stale      = 24 * time.Hour
	pause      = 10 * time.Second // between two tries to fetch a set
	maxKept    = 1000             // sets
)

// away is the code of the fault when the keys of an LMS cannot be read.
const away = "lms_away"

// Sets are those of the LMSes that were met lately.
type Sets struct {
	http   *http.Client
	policy *egress.Policy
	now    clock.Clock

	mu   sync.Mutex
	kept map[where]*kept
}

// where a set is. Organizations share none: what one of them does to a set is not felt by others.
type where struct {
	organization id.Organization
	address      string
}

type kept struct {
	mu      sync.Mutex
	set     jose.JSONWebKeySet
	fetched time.Time // zero: never
	tried   time.Time
	fault   error // of the last try
}

// New makes Sets, of which there is none at hand.
func New(policy *egress.Policy, now clock.Clock) *Sets {
	transport := policy.Transport(dialWithin)
	transport.MaxIdleConnsPerHost, transport.IdleConnTimeout = 1, time.Minute
	transport.MaxResponseHeaderBytes = 16 << 10
	return &Sets{http: egress.Client(transport, timeout), policy: policy, now: now, kept: map[where]*kept{}}
}

// Read checks a token of the organization's LMS r. A set that lacks the token's key is fetched again, as the LMS may have a
// new one. Faults are those of lms.ReadMessage; Conflict (away) when there are no keys at hand and none can be fetched.
func (s *Sets) Read(ctx context.Context, org id.Organization, r lms.Registration, token string) (lms.Message, error) {
	k := s.at(where{org, r.KeysURL})
	for again := false; ; again = true {
		set, err := s.get(ctx, k, r.KeysURL, again)
		if err != nil {
			return lms.Message{}, err
		}
		m, err := lms.ReadMessage(token, set, r, s.now())
		if !errors.Is(err, lms.ErrUnknownKey) {
			return m, err
		}
		if again {
			return lms.Message{}, lms.ErrSignature
		}
	}
}

func (s *Sets) at(w where) *kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kept[w]
	if k == nil {
		if len(s.kept) >= maxKept { // any other one is fetched again when it is needed
			for other := range s.kept {
				delete(s.kept, other)
				break
			}
		}
		k = &kept{}
		s.kept[w] = k
	}
	return k
}

// get gives the set at hand, or fetches it: when there is none, it is no longer fresh, or it is wanted again, but not more often
// than pause says.
func (s *Sets) get(ctx context.Context, k *kept, address string, again bool) (jose.JSONWebKeySet, error) {
	k.mu.Lock() // those who want the same set wait for one call
	defer k.mu.Unlock()
	now := s.now()
	age := now.Sub(k.fetched)
	if age < fresh && !again || now.Sub(k.tried) < pause && !k.tried.IsZero() {
		if k.fetched.IsZero() || age > stale {
			return k.set, k.fault
		}
		return k.set, nil
	}
	set, err := s.fetch(ctx, address)
	if ctx.Err() != nil { // the visitor is gone, which is no fault of the LMS's
		return k.set, ctx.Err()
	}
	k.tried = now
	if err != nil {
		k.fault = fault.New(fault.Conflict, away, "keys_url: the keys of the LMS at %s cannot be read: %v; try again in a moment, or check the address in the registration", address, err)
		if !k.fetched.IsZero() && age <= stale {
			return k.set, nil
		}
		return k.set, k.fault
	}
	k.set, k.fetched = set, now
	return set, nil
}

func (s *Sets) fetch(ctx context.Context, address string) (set jose.JSONWebKeySet, err error) {
	if _, err := s.policy.CheckURL("keys_url", address); err != nil {
		return set, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return set, errors.New("it is no address")
	}
	r.Header.Set("Accept", "application/json")
	res, err := s.http.Do(r)
	if err != nil {
		return set, errors.New(explain(err))
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return set, errors.New("it answers " + res.Status[:min(len(res.Status), 60)])
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, largest+1))
	if err != nil {
		return set, errors.New(explain(err))
	}
	if len(text) > largest {
		return set, errors.New("it is larger than 256 KiB")
	}
	if set, err = lms.ReadKeys(text); err != nil {
		return set, errors.New("it is no JSON Web Key Set")
	}
	if len(set.Keys) == 0 {
		return set, errors.New("it has no RSA key of 2,048 to 8,192 bits to sign with")
	}
	return set, nil
}

// explain says in words why a call failed.
func explain(err error) string {
	switch egress.FailureOf(err) {
	case egress.NotPublic:
		return egress.ErrRefused.Error()
	case egress.Redirected:
		return egress.ErrRedirect.Error()
	case egress.TimedOut:
		return "it does not answer within 5 seconds"
	case egress.NoHost:
		return "there is no host of this name"
	case egress.BadCertificate:
		return "its certificate is not valid"
	case egress.Unreachable:
	}
	return "it cannot be reached"
}
