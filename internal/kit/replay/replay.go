// Package replay stores the first response to each idempotency key in PostgreSQL.
//
// Take makes one caller the worker on a key. The worker calls Alive regularly while it works,
// and ends with Keep or Release. A worker that stops calling is replaced by the next caller; that
// goes by the database's time, so that processes with different clocks agree.
package replay

import (
	"time"

	"github.com/google/uuid"

	"github.com/registrar-dev/registrar/internal/kit/id"
)

const (
	keep    = 24 * time.Hour   // how long a response is stored, by the callers' clock
	silence = 20 * time.Second // after which a worker counts as dead
)

// Beat is how often a worker calls Alive.
const Beat = 5 * time.Second

// Attempt is a request that tries to be the first with its key.
type Attempt struct {
	Organization id.Organization
	Key          string
	Request      []byte // a hash of the request
	Holder       uuid.UUID
}

// Found is what is stored for a key.
type Found struct {
	Request     []byte // of the first attempt
	Status      *int   // nil: there is no response yet
	ContentType string
	Sealed      []byte
}

// Bounds limit what is stored for one organization.
type Bounds struct {
	Answers int // responses
	Bytes   int // of all of them
}

// Share is the part of a hundredth of the bounds that one more response of so many bytes takes, at most
// 1. Whoever trims with this probability after each response keeps the excess near one percent.
func (b Bounds) Share(bytes int) float64 {
	return min(1, 100/float64(b.Answers)+100*float64(bytes)/float64(b.Bytes))
}
