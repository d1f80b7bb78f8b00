// Package explain says in words what happened to a student of an organization, or to one event: what was asked
// for and by whom, what was decided, which mails and events there are, and what receivers answered. It reads what
// the areas and the audit log have stored, a statement for each of them, and stores nothing itself.
package explain

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook/history"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Kind is what an entry is about.
type Kind string

// The kinds, in the order in which one leads to the next.
const (
	Command    Kind = "command" // of the audit log
	Roster     Kind = "roster"
	Membership Kind = "membership"
	Enrollment Kind = "enrollment"
	Plan       Kind = "plan"
	Assignment Kind = "assignment"
	Result     Kind = "result"
	Mail       Kind = "mail"
	Event      Kind = "event"
)

// allKinds lists them.
func allKinds() []Kind {
	return []Kind{Command, Roster, Membership, Enrollment, Plan, Assignment, Result, Mail, Event}
}

// Entry is one thing that happened.
type Entry struct {
	At      time.Time
	Kind    Kind
	Summary string // a sentence
	Reason  string // why, in sentences; "" where there is no more to say
	By      string // who did it; "" where that is not kept
	IDs     IDs

	Deliveries []Delivery // of an event

	// Position is where the list goes on behind the entry.
	Position Position
}

// IDs are the ids of what an entry is about, as they are on the wire.
type IDs struct {
	Enrollment id.Enrollment `json:"enrollment_id,omitempty"`
	Course     id.Course     `json:"course_id,omitempty"`
	RosterRun  id.RosterRun  `json:"run_id,omitempty"`
	Plan       id.Plan       `json:"plan_id,omitempty"`
	Assignment string        `json:"assignment_id,omitempty"`
	Result     string        `json:"result_id,omitempty"`
	Event      *id.Event     `json:"event_id,omitempty"`
}

// Delivery is one of an event's, with the reason of its status.
type Delivery struct {
	history.Delivery
	Reason string
}

// Position is a place in a list, whose latest entry comes first: behind so many entries of a moment. The zero
// Position is before the first one.
type Position struct {
	At     time.Time
	Behind int
}

// Service reads.
type Service struct {
	DB    *pg.DB
	Clock clock.Clock
	Zone  *time.Location // the platform's: in which days begin
}

// Student reads up to limit entries about a person of the organization, the latest first, from a position on. The
// account comes from student.Lookup or student.Resolve.
func (s *Service) Student(ctx context.Context, org id.Organization, a student.Account, from Position, limit int) ([]Entry, error) {
	r := newReader(s, org, from, limit)
	r.user, r.address = a.ID, string(a.Email)
	for _, read := range []func(context.Context) error{
		each(r, roster.Touches, ofTouch), each(r, roster.Remarks, ofRemark), r.readMembership, r.readEnrollments,
		each(r, plan.Decisions, ofDecision), r.readAssignments, each(r, result.Steps, ofResult),
		each(r, email.OfStudent, ofMail), each(r, history.Events, ofEvent), r.readCommands,
	} {
		if err := read(ctx); err != nil {
			return nil, err
		}
	}
	entries := r.page()
	return entries, r.readDeliveries(ctx, entries, id.Delivery{})
}

// Event reads up to limit entries about an event of the organization, as Student does, and its student: nil for an
// event about nobody, or about a person whom the organization has no longer. Faults: NotFound.
func (s *Service) Event(ctx context.Context, org id.Organization, event id.Event, from Position, limit int) (*student.Account, []Entry, error) {
	return s.event(ctx, org, event, id.Delivery{}, from, limit)
}

// Delivery is Event for the event of a delivery, without its other deliveries. Faults: NotFound.
func (s *Service) Delivery(ctx context.Context, org id.Organization, delivery id.Delivery, from Position, limit int) (*student.Account, []Entry, error) {
	event, err := history.EventOf(ctx, s.DB, org, delivery)
	if err != nil {
		return nil, nil, err
	}
	return s.event(ctx, org, event, delivery, from, limit)
}

func (s *Service) event(ctx context.Context, org id.Organization, event id.Event, only id.Delivery, from Position, limit int) (*student.Account, []Entry, error) {
	e, err := history.Find(ctx, s.DB, org, event)
	if err != nil {
		return nil, nil, err
	}
	r := newReader(s, org, from, limit)
	r.add(ofEvent(e))
	r.subject = string(e.Type) + " " + event.String() // as journal.Resend calls it
	if err := r.readCommands(ctx); err != nil {
		return nil, nil, err
	}
	entries := r.page()
	if err := r.readDeliveries(ctx, entries, only); err != nil || e.User == 0 {
		return nil, entries, err
	}
	a, err := student.Resolve(ctx, s.DB, org, student.Ref{User: e.User})
	if fault.KindOf(err) == fault.NotFound {
		return nil, entries, nil
	}
	return &a, entries, err
}

// reader gathers entries. Every source gives its latest ones until a time, as many as the page may need of it.
type reader struct {
	*Service
	org  id.Organization
	from Position

	user    id.User
	address string
	subject string   // as the audit log calls it; "": the address
	others  []string // further targets in the audit log

	until   time.Time
	limit   int // of entries from one source
	rows    int // of the page
	entries []Entry
}

// never is later than everything that is stored.
var never = time.Date(9998, 12, 31, 0, 0, 0, 0, time.UTC)

func newReader(s *Service, org id.Organization, from Position, limit int) *reader {
	r := &reader{Service: s, org: org, from: from, until: from.At, limit: limit + from.Behind, rows: limit}
	if from == (Position{}) {
		r.until = never
	}
	return r
}

func (r *reader) add(e Entry) {
	if !e.At.After(r.until) {
		r.entries = append(r.entries, e)
	}
}

// page are the entries from the position on. Those of one moment are in the order of their kinds, and then in that
// of their source, which does not change from page to page.
func (r *reader) page() []Entry {
	kinds := allKinds()
	slices.SortStableFunc(r.entries, func(a, b Entry) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(slices.Index(kinds, b.Kind), slices.Index(kinds, a.Kind)))
	})
	at, behind := time.Time{}, 0
	for i := range r.entries {
		if e := &r.entries[i]; e.At.Equal(at) {
			behind++
		} else {
			at, behind = e.At, 1
		}
		r.entries[i].Position = Position{at, behind}
	}
	first := 0
	for first < len(r.entries) && r.entries[first].At.Equal(r.from.At) && r.entries[first].Position.Behind <= r.from.Behind {
		first++
	}
	return r.entries[first:min(first+r.rows, len(r.entries))]
}

// source lists up to limit things of a person in the organization until that time, the last one first.
type source[T any] func(ctx context.Context, q pg.Querier, org id.Organization, user id.User, until time.Time, limit int) ([]T, error)

// each reads a source of which each thing is an entry.
func each[T any](r *reader, list source[T], entry func(T) Entry) func(context.Context) error {
	return func(ctx context.Context) error {
		found, err := list(ctx, r.DB, r.org, r.user, r.until, r.limit)
		for _, one := range found {
			r.add(entry(one))
		}
		return err
	}
}

func (r *reader) readCommands(ctx context.Context) error {
	found, err := audit.About(ctx, r.DB, r.org, cmp.Or(r.subject, r.address), r.others, r.until, r.limit)
	for _, e := range found {
		r.add(ofCommand(e))
	}
	return err
}

func (r *reader) readMembership(ctx context.Context) error {
	m, err := selectMembership(ctx, r.DB, r.org, r.user)
	if pg.None(err) {
		return nil
	}
	for _, e := range ofMembership(m) {
		r.add(e)
	}
	return err
}

func (r *reader) readEnrollments(ctx context.Context) error {
	found, err := course.Grants(ctx, r.DB, r.org, r.user, r.until, r.limit)
	for _, e := range ofGrants(found, r.Clock(), r.Zone) {
		r.add(e)
	}
	return err
}

// readAssignments also makes readCommands find who withdrew work, which is an entry of the same moment.
func (r *reader) readAssignments(ctx context.Context) error {
	found, err := assignment.Steps(ctx, r.DB, r.org, r.user, r.until, r.limit)
	for _, step := range found {
		r.add(ofAssignment(step, r.Zone))
		if step.Stage == assignment.StageExpired {
			r.others = append(r.others, step.Ref()+" of "+r.address) // as assign.Withdraw calls it
		}
	}
	return err
}

// readDeliveries completes the entries of events with all of their deliveries, or with a single one.
func (r *reader) readDeliveries(ctx context.Context, entries []Entry, only id.Delivery) error {
	var events []id.Event
	for _, e := range entries {
		if e.Kind == Event {
			events = append(events, *e.IDs.Event)
		}
	}
	found, err := history.Deliveries(ctx, r.DB, r.org, events)
	if err != nil {
		return err
	}
	for i := range entries {
		e := &entries[i]
		if e.Kind != Event {
			continue
		}
		for _, d := range found[*e.IDs.Event] {
			if only == (id.Delivery{}) || only == d.ID {
				e.Deliveries = append(e.Deliveries, Delivery{d, whyStatus(d)})
			}
		}
		if len(e.Deliveries) == 0 {
			e.Reason = unselected
		}
	}
	return nil
}
