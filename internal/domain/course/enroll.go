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

// LoadOffer queues the reading of what r names; offer is filled when b is sent. Complete
// is to be called then.
func LoadOffer(b *pg.Batch, org id.Organization, r Request, offer *Offer) {
	if len(r.Types) > 0 {
		queueNamedTypes(b, org, r.Types, offer)
	}
	if len(r.Courses) > 0 {
		queueNamedCourses(b, org, r.Courses, offer)
	}
}

// Complete reads all types where r names one that cannot be had, so that the fault can
// list what can.
func (o *Offer) Complete(ctx context.Context, q pg.Querier, r Request) (err error) {
	for _, text := range r.Types {
		if _, unknown := ResolveType(o.Types, "courses", text); unknown != nil {
			o.Types, err = selectTypes(ctx, q)
			return err
		}
	}
	return nil
}

// Unknown finds what r names and the offer has not, for a call whose student is not known:
// Invalid lists all of it.
func Unknown(r Request, o Offer) error {
	p := planner{Request: r, offer: o}
	p.targets()
	return p.faults.Err()
}

// LoadHeld queues the reading of the student's enrollments in the organization; held is
// filled when b is sent. ref is the external_ref to look for. Whoever changes enrollments
// holds the lock of the student's address, so the rows need no locks of their own.
func LoadHeld(b *pg.Batch, org id.Organization, user id.User, ref string, held *Held) {
	loadHeld(b, org, byID, user, ref, held)
}

// LoadHeldBy is LoadHeld for who has the address; nobody holds nothing.
func LoadHeldBy(b *pg.Batch, org id.Organization, address, ref string, held *Held) {
	loadHeld(b, org, byAddress, address, ref, held)
}

func loadHeld(b *pg.Batch, org id.Organization, by string, who any, ref string, held *Held) {
	queueHeld(b, org, by, who, &held.Enrollments)
	if ref != "" {
		queueRefUse(b, org, by, who, ref, &held.RefUsed)
	}
}

// LoadEnrollments queues the reading of the student's enrollments in the organization by
// id; into is filled when b is sent.
func LoadEnrollments(b *pg.Batch, org id.Organization, user id.User, into *[]Enrollment) {
	queueHeld(b, org, byID, user, into)
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

// Enroll queues the writes of the moves for user, as of the day today. New enrollments whose
// ids are not drawn yet have them when b is sent, which must be in a transaction that holds
// the student's lock.
func Enroll(b *pg.Batch, org id.Organization, user id.User, moves []Move, today clock.Date, now time.Time) {
	var remember []id.Course
	var ref string
	for i := range moves {
		m := &moves[i]
		m.After.User = user
		switch m.Action {
		case Created:
			queueInsertEnrollment(b, org, &m.After, today, now)
		case Extended, Reactivated:
			queueUpdateEnrollment(b, org, m.After, today, now)
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
