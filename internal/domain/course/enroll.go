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

// LoadOffer queues the reading of the types and courses that r names. Sending b fills offer;
// then the caller calls Complete.
func LoadOffer(b *pg.Batch, org id.Organization, r Request, offer *Offer) {
	if len(r.Types) > 0 {
		queueNamedTypes(b, org, r.Types, offer)
	}
	if len(r.Courses) > 0 {
		queueNamedCourses(b, org, r.Courses, offer)
	}
}

// Complete reads all types when r names an unknown or inactive one, so that the fault can list
// the valid ones.
func (o *Offer) Complete(ctx context.Context, q pg.Querier, r Request) (err error) {
	for _, text := range r.Types {
		if _, unknown := ResolveType(o.Types, "courses", text); unknown != nil {
			o.Types, err = Types(ctx, q)
			return err
		}
	}
	return nil
}

// Unknown checks the names in r without a student. Invalid lists every type and course that
// the organization does not have.
func Unknown(r Request, o Offer) error {
	p := planner{Request: r, offer: o}
	p.targets()
	return p.faults.Err()
}

// LoadHeld queues the reading of the student's enrollments in the organization, and of those
// for which the external_ref ref was used; "" for none. Sending b fills held. Whoever changes
// enrollments holds the lock of the student's address, so the rows need no locks.
func LoadHeld(b *pg.Batch, org id.Organization, user id.User, ref string, held *Held) {
	loadHeld(b, org, byID, user, ref, held)
}

// LoadHeldBy is LoadHeld for the person with the address, who need not exist.
func LoadHeldBy(b *pg.Batch, org id.Organization, address, ref string, held *Held) {
	loadHeld(b, org, byAddress, address, ref, held)
}

func loadHeld(b *pg.Batch, org id.Organization, by string, who any, ref string, held *Held) {
	queueHeld(b, org, by, who, &held.Enrollments)
	if ref != "" {
		queueRefUse(b, org, by, who, ref, &held.RefUsed)
	}
}

// LoadEnrollments queues the reading of the student's enrollments in the organization by id.
// Sending b fills into.
func LoadEnrollments(b *pg.Batch, org id.Organization, user id.User, into *[]Enrollment) {
	queueHeld(b, org, byID, user, into)
}

// EnsureDefaults creates the default courses that the moves need and that do not exist yet, and
// puts their ids into the moves. When another transaction creates the same course, it waits
// and uses that one. It costs no round trip when all exist.
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
	// All calls create courses in this order, so that two of them never block each other.
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

// Enroll queues the writes of the moves for user, as of the day today. Sending b, in a
// transaction that holds the student's lock, gives new enrollments their ids.
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
			Save(b, org, m.After, today, now)
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
