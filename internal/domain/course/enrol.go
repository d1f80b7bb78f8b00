package course

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// LoadOffer queues the reading of what r names; offer is filled when b is sent.
func LoadOffer(b *pg.Batch, org id.Organization, r Request, offer *Offer) {
	queueTypes(b, &offer.Types)
	if len(r.Types)+len(r.Courses) > 0 {
		queueNamed(b, org, r, &offer.Courses)
	}
}

// Unknown finds what r names and does not exist, for a call whose student is not known:
// nil, or a fault that lists all of it.
func Unknown(ctx context.Context, q pg.Querier, org id.Organization, r Request) (unknown, err error) {
	var b pg.Batch
	var p planner
	p.Request = r
	LoadOffer(&b, org, r, &p.offer)
	if err := b.Send(ctx, q); err != nil {
		return nil, fmt.Errorf("reading what the call names: %w", err)
	}
	p.targets()
	return p.faults.Err(), nil
}

// LoadHeld queues the reading of the student's enrolments in the organization; held is
// filled when b is sent. ref is the external_ref to look for. Whoever changes enrolments
// holds the lock of the student's address, so the rows need no locks of their own.
func LoadHeld(b *pg.Batch, org id.Organization, user id.User, ref string, held *Held) {
	queueHeld(b, org, user, &held.Enrolments)
	if ref != "" {
		queueRefUse(b, org, user, ref, &held.RefUsed)
	}
}

// LoadEnrolments queues the reading of the student's enrolments in the organization by
// id; into is filled when b is sent.
func LoadEnrolments(b *pg.Batch, org id.Organization, user id.User, into *[]Enrolment) {
	queueHeld(b, org, user, into)
}

// EnsureDefaults makes the default courses that the moves lead to and that do not exist
// yet, and puts their ids into the moves. Whoever else makes the same course at the same
// time is waited for, and its course is used. It costs no round trip when all exist.
func EnsureDefaults(ctx context.Context, tx *pg.Tx, org id.Organization, moves []Move, now time.Time) error {
	var missing []*Course
	for i := range moves {
		if c := &moves[i].After.Course; c.ID == 0 {
			missing = append(missing, c)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	// One order for everybody: two calls that make several courses never wait for each other.
	slices.SortFunc(missing, func(a, b *Course) int { return strings.Compare(a.Type, b.Type) })
	var b pg.Batch
	for _, c := range missing {
		queueDefault(&b, org, c, now)
	}
	if err := b.Send(ctx, tx); err != nil {
		return fmt.Errorf("making default courses: %w", err)
	}
	return nil
}

// Enrol queues the writes of the moves for user, as of the day today; the ids of new enrolments are in the
// moves when b is sent, which must be in a transaction that holds the student's lock.
func Enrol(b *pg.Batch, org id.Organization, user id.User, moves []Move, today clock.Date, now time.Time) {
	var remember []id.Course
	var ref string
	for i := range moves {
		m := &moves[i]
		m.After.User = user
		switch m.Action {
		case Created:
			queueInsertEnrolment(b, org, &m.After, today, now)
		case Extended, Reactivated:
			queueUpdateEnrolment(b, org, m.After, today, now)
		case Unchanged, Skipped:
		}
		if m.ref != "" {
			remember, ref = append(remember, m.After.Course.ID), m.ref
		}
	}
	if len(remember) > 0 {
		queueRememberRef(b, org, user, remember, ref, now)
	}
}
