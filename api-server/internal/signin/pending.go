package signin

import (
	"context"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/factor"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// What a session holds between the password and the second factor, in which nobody is signed in: the account,
// a mark of its password, since when, where the sign-in leads, and the
// organization at whose provider it was instead of a password. And the state of a question to the browser's
// passkeys (factor.Ceremony), which each answer takes out.
const (
	pendingKey      = "pending_user"
	pendingMarkKey  = "pending_mark"
	pendingSinceKey = "pending_since"
	pendingNextKey  = "pending_next"
	pendingWithKey  = "pending_provider"
	ceremonyKey     = "ceremony"
)

// pendingFor is how long a person may take for the second factor.
const pendingFor = 10 * time.Minute

// Await keeps in a new session that the password of a was given, or with is not 0 that a has signed in at the
// organization's provider, until the second factor is given.
func (s *Sessions) Await(ctx context.Context, a student.Account, next string, with id.Organization) error {
	if err := s.manager.Clear(ctx); err != nil {
		return err
	}
	if err := s.manager.RenewToken(ctx); err != nil {
		return err
	}
	s.manager.Put(ctx, pendingKey, strconv.FormatInt(int64(a.ID), 10))
	s.manager.Put(ctx, pendingMarkKey, a.PasswordMark())
	s.manager.Put(ctx, pendingSinceKey, s.now().UTC().Format(time.RFC3339))
	s.manager.Put(ctx, pendingNextKey, next)
	s.manager.Put(ctx, pendingWithKey, strconv.FormatInt(int64(with), 10))
	return nil
}

// Awaited is the account whose second factor is still to come, and where its sign-in leads; the zero account for
// none, also when the password has changed or it took too long.
func (s *Sessions) Awaited(ctx context.Context) (a student.Account, next string, err error) {
	n, _ := strconv.ParseInt(s.manager.GetString(ctx, pendingKey), 10, 64)          // 0 for none
	since, _ := time.Parse(time.RFC3339, s.manager.GetString(ctx, pendingSinceKey)) // long ago for none
	if n < 1 || s.now().Sub(since) >= pendingFor {
		return a, "", nil
	}
	a, err = student.Find(ctx, s.db, id.User(n))
	if fault.KindOf(err) == fault.NotFound || err == nil && a.PasswordMark() != s.manager.GetString(ctx, pendingMarkKey) {
		return student.Account{}, "", nil
	}
	return a, s.manager.GetString(ctx, pendingNextKey), err
}

// AwaitedWith is the organization at whose provider whoever is awaited has signed in; 0 for the password.
func (s *Sessions) AwaitedWith(ctx context.Context) id.Organization {
	with, _ := strconv.ParseInt(s.manager.GetString(ctx, pendingWithKey), 10, 64) // 0 for none
	return id.Organization(with)
}

// Ask keeps the state of a question to the browser's passkeys.
func (s *Sessions) Ask(ctx context.Context, c factor.Ceremony) {
	s.manager.Put(ctx, ceremonyKey, c.State)
}

// Asked is the state that Ask kept, once.
func (s *Sessions) Asked(ctx context.Context) string { return s.manager.PopString(ctx, ceremonyKey) }

// Keep keeps a text in the session under the name; Kept reads it.
func (s *Sessions) Keep(ctx context.Context, name, text string) {
	s.manager.Put(ctx, "kept_"+name, text)
}

// Taken is what Keep kept, once.
func (s *Sessions) Taken(ctx context.Context, name string) string {
	return s.manager.PopString(ctx, "kept_"+name)
}

// Kept is what Keep kept, "" for nothing.
func (s *Sessions) Kept(ctx context.Context, name string) string {
	return s.manager.GetString(ctx, "kept_"+name)
}
