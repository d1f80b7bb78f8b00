package student

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Sessions stores the sessions of signed-in browsers: data is a JSON object whose
// values.user names the account, if anybody is signed in. Tokens arrive hashed.
type Sessions struct{ DB *pg.DB }

// Find reads a session that has not expired.
func (s Sessions) Find(ctx context.Context, hash string) (data []byte, found bool, err error) {
	data, err = selectSession(ctx, s.DB, hash)
	if pg.None(err) {
		return nil, false, nil
	}
	return data, err == nil, err
}

// Begin stores the new session of who signed in as a. Nothing is stored when the password is
// not a's any more: what ended a's sessions has ended this one, too.
func (s Sessions) Begin(ctx context.Context, hash string, data []byte, expires time.Time, a Account) error {
	return insertSession(ctx, s.DB, hash, data, expires, a)
}

// Keep stores a new session of nobody.
func (s Sessions) Keep(ctx context.Context, hash string, data []byte, expires time.Time) error {
	return insertNobodysSession(ctx, s.DB, hash, data, expires)
}

// Update stores a session that was found before; one that was deleted since stays so.
func (s Sessions) Update(ctx context.Context, hash string, data []byte, expires time.Time) error {
	return updateSession(ctx, s.DB, hash, data, expires)
}

// Delete ends a session; one that is not there is no fault.
func (s Sessions) Delete(ctx context.Context, hash string) error {
	return deleteSession(ctx, s.DB, hash)
}

// DropExpiredSessions deletes what nobody can use any more.
func DropExpiredSessions(ctx context.Context, q pg.Querier) (int64, error) {
	return deleteExpiredSessions(ctx, q)
}
