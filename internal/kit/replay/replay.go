// Package replay remembers the first answers to requests that name themselves by a key,
// in PostgreSQL.
//
// Take makes one caller the worker on a key. The worker says by Alive that it goes on,
// and ends with Keep or Release; one that falls silent is replaced by whoever asks next.
// Times are the database's: two processes' clocks need not agree.
package replay

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Limits of time.
const (
	keep    = 24 * time.Hour   // how long an answer is remembered
	silence = 20 * time.Second // after which a worker is taken for dead
)

// Beat is how often a worker calls Alive.
const Beat = 5 * time.Second

// Attempt is one request's try to be the first with its key.
type Attempt struct {
	Organization id.Organization
	Key          string
	Request      []byte // a hash of what is asked
	Holder       uuid.UUID
}

// Found is what is known of a key.
type Found struct {
	Request     []byte // of the first attempt
	Status      *int   // nil: there is no answer yet
	ContentType string
	Sealed      []byte
}

// Take makes the caller the worker when the key is new or over, or its worker has been
// silent for too long and the request is the same; mine says so. Otherwise it reads what
// is known.
func Take(ctx context.Context, q pg.Querier, a Attempt) (found Found, mine bool, err error) {
	return take(ctx, q, a)
}

// Keep stores the answer and ends the work. An attempt that was replaced stores nothing.
func Keep(ctx context.Context, q pg.Querier, a Attempt, status int, contentType string, sealed []byte) error {
	return answer(ctx, q, a, status, contentType, sealed)
}

// Alive says that the work goes on.
func Alive(ctx context.Context, q pg.Querier, a Attempt) error { return alive(ctx, q, a) }

// Release ends the work without an answer: the key is free again.
func Release(ctx context.Context, q pg.Querier, a Attempt) error { return release(ctx, q, a) }

// DropExpired deletes what is not remembered any more.
func DropExpired(ctx context.Context, q pg.Querier) (int64, error) { return deleteExpired(ctx, q) }
