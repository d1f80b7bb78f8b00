package rest

import (
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/limit"
)

// Shares are what a replica has for requests that are worked on at once, of which no
// organization gets all, whatever the number of its keys.
type Shares struct {
	requests *limit.Shares // of all kinds but imports
	imports  *limit.Shares // minutes long: a file arrives as slowly as its sender likes, and its run takes its time
	streams  *limit.Shares // each holds a connection of the pool while its client reads
	waits    *limit.Shares // for what becomes of a mail
}

// NewShares shares out so many requests at once and connections of the pool. Requests wait for a
// place as long as patience says.
func NewShares(inFlight int, connections int32, patience time.Duration) *Shares {
	streams := max(int(connections)/4, 1)
	return &Shares{
		requests: &limit.Shares{Name: "organization", All: inFlight, Each: part(inFlight, 4, 8), Patience: patience},
		imports:  &limit.Shares{Name: "imports", All: part(inFlight, 4, 8), Each: 4, Patience: patience},
		streams:  &limit.Shares{Name: "streams", All: streams, Each: max(streams/2, 1), Patience: patience},
		waits:    &limit.Shares{Name: "waits", All: part(inFlight, 4, 8), Each: part(inFlight, 16, 4)},
	}
}

// Imports are those of files that arrive, over the API or on a page.
func (s *Shares) Imports() *limit.Shares { return s.imports }

// part is a fraction of all, but no less than least where there are so many.
func part(all, fraction, least int) int { return min(max(all/fraction, least), all) }
