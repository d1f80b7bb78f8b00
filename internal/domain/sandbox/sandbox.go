// Package sandbox keeps the sandboxes of organizations, their clocks, and the mails that they caught.
//
// A sandbox is an organization in a database of its own, where nobody else is. Its clock stands still until it
// is moved, and it never goes back. All that the product does in such a database it does by this clock. The
// installation's own database knows which sandboxes there are, and which of them have work for a worker.
package sandbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Sandbox is what the installation's own database has of a sandbox.
type Sandbox struct {
	Organization id.Organization
	Generation   int // of its database: wiping makes the next one
	CreatedAt    time.Time
	FilledAt     time.Time // when the present database was made

	Asked, Done int64 // there is work while they differ
}

// Database is the name of the sandbox's database, after that of its server's first one.
func (s Sandbox) Database() string { return fmt.Sprintf("%d_%d", s.Organization, s.Generation) }

// Parse reads a name that Database gave. ok is false for any other.
func Parse(database string) (s Sandbox, ok bool) {
	_, err := fmt.Sscanf(database, "%d_%d", &s.Organization, &s.Generation)
	return s, err == nil && s.Database() == database
}

// ErrNone is of an organization without a sandbox.
var ErrNone = fault.New(fault.NotFound, "no_sandbox", "the organization has no sandbox; its owners and admins make one in the console, or the platform does")

// Receiver says what becomes of webhooks while the clock is moved.
type Receiver string

// The receivers.
const (
	Real    Receiver = "real"    // they are sent to their URLs
	Accepts Receiver = "accepts" // they are not sent, and count as accepted
	Fails   Receiver = "fails"   // they are not sent, and count as answered with 503
)

// Receivers lists them all.
func Receivers() []Receiver { return []Receiver{Real, Accepts, Fails} }

// Clock is a sandbox's clock.
type Clock struct {
	Now      time.Time
	From     time.Time  // where it was when the last move was asked for
	Target   *time.Time // where it is being moved; nil: it stands still
	Receiver Receiver
	KeptOn   clock.Date // the last day whose daily work is done
}

// Mover is who moves a sandbox's clock: whoever has begun last. Others who still think that they do are refused.
type Mover struct {
	Organization id.Organization
	Number       int64
}

// errTakenOver is of a mover that is none any more: it was slow, or stood still, and another process has gone on.
var errTakenOver = errors.New("another process moves the sandbox's clock")

// maxMove is how far one call moves a clock.
const maxMove = 2 // years

// last is where clocks end: what is written with four digits of a year stays so.
var last = time.Date(2199, 12, 31, 0, 0, 0, 0, time.UTC)

// Check refuses a move to a time that has passed, or that is too far away.
func (c Clock) Check(field string, to time.Time) error {
	switch {
	case c.Target != nil:
		return c.Moving()
	case to.Before(c.Now):
		return fault.Field(field, "out_of_range", "%s: the clock is at %s, and never goes back", field, clock.Format(c.Now, time.UTC))
	case to.After(c.Now.AddDate(maxMove, 0, 0)):
		return fault.Field(field, "out_of_range", "%s: one call moves the clock by %d years at most", field, maxMove)
	case to.After(last):
		return fault.Field(field, "out_of_range", "%s: clocks of sandboxes end on %s", field, clock.DateIn(last, time.UTC))
	}
	return nil
}

// Moving is Conflict while the clock is moved.
func (c Clock) Moving() error {
	if c.Target == nil {
		return nil
	}
	return fault.New(fault.Conflict, "clock_moving", "the sandbox's clock is being moved to %s; wait until GET /sandbox/ shows it there", clock.Format(*c.Target, time.UTC))
}

// Progress is how much of the move is done, from 0 to 1.
func (c Clock) Progress() float64 {
	if c.Target == nil || !c.Target.After(c.From) {
		return 1
	}
	return float64(c.Now.Sub(c.From)) / float64(c.Target.Sub(c.From))
}

// Mail is a mail that a sandbox caught.
type Mail struct {
	ID        id.Email
	SentAt    time.Time
	Recipient string
	Subject   string
	Plain     string
	HTML      string
}
