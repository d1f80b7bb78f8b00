// Package dispatch hands deliveries that are due to senders, as leases: it decides what may
// run now, and keeps to each URL's allowance.
package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// Batch bounds how many deliveries one lease holds.
const Batch = 16

// leaseBatch bounds how many leases one statement makes.
const leaseBatch = 64

// Lease is a group of deliveries of one URL that one task attempts. It is kept by a
// deadline: rows whose lease ran out are due again, whatever became of the task.
type Lease struct {
	task.Deliver
	Organization id.Organization
}

// LeaseDue hands out deliveries that are due, for the length of term. It takes turns
// between URLs, each up to the room its allowance leaves and a fair share of the call.
// orgs narrows the search; none means all. more is true when a URL may have further
// deliveries that could have been leased now.
func LeaseDue(ctx context.Context, q pg.Querier, now time.Time, term time.Duration, orgs []id.Organization) (leases []Lease, more bool, err error) {
	keys := make([][16]byte, leaseBatch+leaseBatch/2)
	for i := range keys {
		keys[i] = uuid.New()
	}
	asked, err := leaseAsked(ctx, q, now.Add(term), leaseBatch)
	if err != nil {
		return nil, false, err
	}
	ordered, err := leaseInOrder(ctx, q, now, now.Add(term), keys[:leaseBatch/2])
	if err != nil {
		return nil, false, err
	}
	rows, err := leaseDue(ctx, q, now, now.Add(term), orgs, keys[leaseBatch/2:])
	if err != nil {
		return nil, false, err
	}
	more = len(rows) >= leaseBatch || len(asked) == leaseBatch
	return slices.Concat(group(asked), group(ordered), group(rows)), more, nil
}

// group gathers rows, which come ordered by lease, into leases.
func group(rows []leasedRow) []Lease {
	var leases []Lease
	for _, r := range rows {
		key := uuid.UUID(r.lease).String()
		if n := len(leases); n == 0 || leases[n-1].Lease != key {
			leases = append(leases, Lease{Organization: r.organization,
				Deliver: task.Deliver{Endpoint: r.endpoint, Lease: key, InOrder: r.inOrder}})
		}
		last := &leases[len(leases)-1]
		last.Deliveries = append(last.Deliveries, r.delivery)
	}
	return leases
}

type leasedRow struct {
	delivery     id.Delivery
	endpoint     id.Endpoint
	organization id.Organization
	lease        [16]byte
	inOrder      bool
}

// Expired lists leases that ran out, oldest first, so that the relay can ask whether
// their task still waits on the run queue.
func Expired(ctx context.Context, q pg.Querier, now time.Time, limit int) ([]string, error) {
	return expired(ctx, q, now, limit)
}

// Release makes the deliveries of leases due again at once; it counts them.
func Release(ctx context.Context, q pg.Querier, leases []string) (int64, error) {
	return release(ctx, q, leases)
}

// Renew keeps leases until the given time; it counts the deliveries that are still held.
func Renew(ctx context.Context, q pg.Querier, leases []string, until time.Time) (int64, error) {
	return renew(ctx, q, leases, until)
}

// Target is where the deliveries of a lease go.
type Target struct {
	URL           string
	Zone          string
	SwitchedOn    bool   // what was asked for by hand leaves also when it is not
	Secret        []byte // sealed; open it with webhook.Service's Box at SecretContext
	SecretContext string
	From          webhook.Sender
}

// Due is one leased delivery, ready to be attempted.
type Due struct {
	Delivery id.Delivery
	Event    webhook.Stored
	Number   int // of the attempt to be made
	Tries    int // made in the schedule's round so far
}

// Load reads what a lease still holds. An empty list means that the lease was lost, was
// settled already, or that its URL is gone: nothing is to be attempted.
func Load(ctx context.Context, q pg.Querier, d task.Deliver) (Target, []Due, time.Time, error) {
	return load(ctx, q, d)
}

// ReadTarget reads the target as it is by now; the zero Target when the URL is gone.
func ReadTarget(ctx context.Context, q pg.Querier, endpoint id.Endpoint) (Target, error) {
	t, err := scanTarget(q.QueryRow(ctx, targetRow, endpoint), endpoint)
	if pg.None(err) {
		return Target{}, nil
	}
	return t, err
}

// Traces reads where in their traces the events of leases were recorded; events that were
// not traced are left out.
func Traces(ctx context.Context, q pg.Querier, leases []Lease) (traceparents []string, err error) {
	var all []id.Delivery
	for _, l := range leases {
		all = append(all, l.Deliveries...)
	}
	return selectTraces(ctx, q, all)
}
