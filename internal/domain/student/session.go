package student

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Sessions stores the sessions of signed-in browsers, as scs wants it: data is a JSON
// object whose values.user names the account. Tokens arrive hashed.
type Sessions struct{ DB *pg.DB }

// FindCtx reads a session that has not expired.
func (s Sessions) FindCtx(ctx context.Context, hash string) (data []byte, found bool, err error) {
	data, err = selectSession(ctx, s.DB, hash)
	if pg.None(err) {
		return nil, false, nil
	}
	return data, err == nil, err
}

// CommitCtx stores a session.
func (s Sessions) CommitCtx(ctx context.Context, hash string, data []byte, expires time.Time) error {
	return upsertSession(ctx, s.DB, hash, data, expires)
}

// DeleteCtx ends a session; one that is not there is no fault.
func (s Sessions) DeleteCtx(ctx context.Context, hash string) error {
	return deleteSession(ctx, s.DB, hash)
}

// Find is FindCtx without a context.
func (s Sessions) Find(hash string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), hash)
}

// Commit is CommitCtx without a context.
func (s Sessions) Commit(hash string, data []byte, expires time.Time) error {
	return s.CommitCtx(context.Background(), hash, data, expires)
}

// Delete is DeleteCtx without a context.
func (s Sessions) Delete(hash string) error { return s.DeleteCtx(context.Background(), hash) }

// DropExpiredSessions deletes what nobody can use any more.
func DropExpiredSessions(ctx context.Context, q pg.Querier) (int64, error) {
	return deleteExpiredSessions(ctx, q)
}
