package signin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/student"
)

// store is what scs wants of a store. scs saves the session that a request came with
// whenever the request is answered. Whatever deleted it in the meantime, as a new password or
// signing out, must not be undone by that: a session that was found is only ever updated, and
// a new one belongs to an account whose password is still the one that opened it.
type store struct{ sessions student.Sessions }

// sessionState is what is known of a request's session.
type sessionState struct {
	found string          // the hash by which it was found, or stored, in this request
	as    student.Account // who has signed in in this request; zero: nobody
	// Whether they gave a second factor in it, or in the session that this one follows.
	factor bool

	agent, from string // the browser, as it calls itself, and where it is
}

type sessionStateKey struct{}

// withSessionState lets the store know requests.
func (s *Sessions) withSessionState(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if visitOf(r.Context()) == nil {
			r = r.WithContext(context.WithValue(r.Context(), sessionStateKey{}, &sessionState{agent: r.UserAgent(), from: s.proxies.Client(r)}))
		}
		next.ServeHTTP(w, r)
	})
}

func visitOf(ctx context.Context) *sessionState {
	v, _ := ctx.Value(sessionStateKey{}).(*sessionState)
	return v
}

// FindCtx implements scs.CtxStore.
func (s store) FindCtx(ctx context.Context, hash string) (data []byte, found bool, err error) {
	data, found, err = s.sessions.Find(ctx, hash)
	if found {
		visitOf(ctx).found = hash
	}
	return data, found, err
}

// CommitCtx implements scs.CtxStore.
func (s store) CommitCtx(ctx context.Context, hash string, data []byte, expires time.Time) (err error) {
	v := visitOf(ctx)
	switch {
	case v.found == hash:
		return s.sessions.Update(ctx, hash, data, expires)
	case v.as.ID != 0:
		err = s.sessions.Begin(ctx, hash, data, expires, v.as, v.factor)
	default:
		err = s.sessions.Keep(ctx, hash, data, expires)
	}
	if err == nil {
		v.found = hash
	}
	return err
}

// DeleteCtx implements scs.CtxStore.
func (s store) DeleteCtx(ctx context.Context, hash string) error { return s.sessions.Delete(ctx, hash) }

// errNoRequest is of what scs asks of stores that know no requests, and never of this one.
var errNoRequest = errors.New("sessions are stored for requests alone")

// Find implements scs.Store.
func (store) Find(string) ([]byte, bool, error) { return nil, false, errNoRequest }

// Commit implements scs.Store.
func (store) Commit(string, []byte, time.Time) error { return errNoRequest }

// Delete implements scs.Store.
func (store) Delete(string) error { return errNoRequest }
