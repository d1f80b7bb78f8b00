// Package dispatch leases due deliveries to senders. It decides what may be attempted now,
// and keeps to each URL's allowance.
package dispatch

import (
	"bytes"
	"cmp"
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

// Lease is a group of deliveries of one URL that one task attempts. It has a deadline: when
// it runs out, the deliveries are due again, whatever happened to the task.
type Lease struct {
	task.Deliver
	Organization id.Organization
}

// LeaseDue leases deliveries that are due, for the length of term. It takes turns between
// URLs; each gets what its allowance leaves and a fair share of the call. orgs narrows the
// search; none means all. more is true when further deliveries might be leased now.
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
	due, err := leaseDue(ctx, q, now, now.Add(term), orgs, keys[leaseBatch/2:])
	if err != nil {
		return nil, false, err
	}
	more = len(due) >= leaseBatch || len(asked) == leaseBatch
	return slices.Concat(group(asked, false), group(ordered, true), group(due, false)), more, nil
}

type leasedRow struct {
	Delivery     id.Delivery
	Endpoint     id.Endpoint
	Organization id.Organization
	Lease        [16]byte
}

// group makes leases of rows, each with its deliveries in their order.
func group(rows []leasedRow, inOrder bool) []Lease {
	slices.SortFunc(rows, func(a, b leasedRow) int {
		return cmp.Or(bytes.Compare(a.Lease[:], b.Lease[:]), bytes.Compare(a.Delivery[:], b.Delivery[:]))
	})
	var leases []Lease
	for i, r := range rows {
		if i == 0 || rows[i-1].Lease != r.Lease {
			deliver := task.Deliver{Endpoint: r.Endpoint, Lease: uuid.UUID(r.Lease).String(), InOrder: inOrder}
			leases = append(leases, Lease{Organization: r.Organization, Deliver: deliver})
		}
		last := &leases[len(leases)-1]
		last.Deliveries = append(last.Deliveries, r.Delivery)
	}
	return leases
}

// Target is the URL that the deliveries of a lease go to.
type Target struct {
	URL           string
	Zone          string
	SwitchedOn    bool   // deliveries that a person asked for are sent also when it is off
	Secret        []byte // sealed; open it with webhook.Service's Box and SecretContext
	SecretContext string
	From          webhook.Sender
}

// Due is one leased delivery, ready to be attempted.
type Due struct {
	Delivery id.Delivery
	Event    webhook.Stored
	Number   int // of the attempt to make
	Tries    int // earlier attempts in this round of the schedule
}

// bounds are the arguments of a search for deliveries by id. The least and the greatest id let
// PostgreSQL leave out the partitions of other days.
func bounds(deliveries []id.Delivery) (least, greatest id.Delivery) {
	if len(deliveries) == 0 {
		return least, greatest
	}
	compare := func(a, b id.Delivery) int { return bytes.Compare(a[:], b[:]) }
	return slices.MinFunc(deliveries, compare), slices.MaxFunc(deliveries, compare)
}
