package work

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Record is an engine's report of one piece of work. Zero values were not sent; a later record may leave
// out what is known.
type Record struct {
	Kind    catalog.Kind
	Session string // of a test: the engine's own id of the session

	Organization string // of a test: a slug. Quizzes and assessments have the organization of their assignment
	User         id.User
	Item         id.Item // of a test
	Assignment   string  // its id on the wire, or its number where the kind says the rest
	Attempt      result.Attempt
	Section      string // practised alone

	State       result.State
	StartedAt   *time.Time
	CompletedAt *time.Time
	ReleasedAt  *time.Time
	Mark        catalog.Mark

	Fault error // found while it was decoded

	traceparent string // of a record that others are gathered with
}

// Outcome is the answer to a record.
type Outcome struct {
	Status Status
	Result result.Result // after the record; zero when rejected
	New    bool          // there was no such result before
	// SafeExamBrowser says whether the session of an assigned test runs only in the secure exam browser.
	// That is decided when it begins.
	SafeExamBrowser bool
	Err             error // the fault of a rejected record
}

// Status is what was done with a record.
type Status string

// The statuses.
const (
	Applied   Status = "applied"
	Unchanged Status = "unchanged" // everything in it was known
	Rejected  Status = "rejected"
)

const maxSession = 200

// ref returns the id of the result on the wire. A quiz or assessment needs its assignment.
func (r Record) ref(of id.Assignment) string {
	n := strconv.FormatInt(int64(of), 10)
	switch r.Kind {
	case catalog.Quiz:
		return "quiz:" + n
	case catalog.Assessment:
		return "assessment:" + n + ":" + strconv.FormatInt(int64(r.User), 10)
	case catalog.Test:
	}
	return "test:" + r.Session
}

// target is a record with what it names.
type target struct {
	Record
	index      int
	assignment id.Assignment // 0: none
	org        id.Organization
	ref        string
}

// before is what the database has of what a record names.
type before struct {
	known      bool
	result     result.Result
	person     *result.Person // nil: not of the organization
	item       *catalog.Item
	assignment *assignment.Assignment
	now        time.Time
}

// decide returns the known result with the record merged into it. It does no I/O. Faults name the field.
func (t target) decide(b before) (result.Result, error) {
	r := b.result
	if !b.known {
		r = result.Result{Ref: t.ref, Kind: string(t.Kind)}
	}
	if err := t.identify(&r, b); err != nil {
		return r, err
	}
	if err := t.attempt(&r, b); err != nil {
		return r, err
	}
	if t.State == "" && !b.known {
		return r, fault.Field("state", "missing", "state: required; send one of started, finished, held, released")
	}
	if t.State != "" {
		r.State = r.State.After(t.State)
	}
	if err := t.times(&r, b.now); err != nil {
		return r, err
	}
	return r, t.score(&r, b)
}

// identify sets the student, the item and the assignment.
func (t target) identify(r *result.Result, b before) error {
	if t.User == 0 {
		return fault.Field("user_id", "missing", "user_id: required for work that is new")
	}
	if b.person == nil {
		return missing("user_id", "student_not_found", "user_id: the organization has no such student")
	}
	if r.User != 0 && r.User != b.person.User {
		return fault.Field("user_id", "invalid", "user_id: the work is another student's; send the same user_id as before")
	}
	if t.Item == 0 {
		return fault.Field("item_id", "missing", "item_id: required for work that is new")
	}
	if b.item == nil {
		return missing("item_id", "item_not_found", "item_id: the organization's catalog has no such item")
	}
	if b.item.Kind != t.Kind {
		return fault.Field("item_id", "invalid", "item_id: it is a %s and not a %s", b.item.Kind, t.Kind)
	}
	if r.Item != 0 && r.Item != b.item.ID {
		return fault.Field("item_id", "invalid", "item_id: the work is on another item; send the same item_id as before")
	}
	r.User, r.Item, r.Type = b.person.User, b.item.ID, b.item.Type
	if t.assignment == 0 {
		return nil
	}
	if b.assignment == nil {
		return missing("assignment_id", "assignment_not_found", "assignment_id: the organization has no such assignment")
	}
	if b.assignment.User != r.User || b.assignment.Item != r.Item {
		return fault.Field("assignment_id", "invalid", "assignment_id: it is another student's or on another item")
	}
	r.Assignment = b.assignment.ID
	return nil
}

// attempt sets why the work was done, and the section if it was a single one.
func (t target) attempt(r *result.Result, b before) error {
	switch {
	case t.Attempt != "":
		r.Attempt = t.Attempt
	case r.Assignment != 0 && (r.Attempt == "" || r.Attempt == result.Practice):
		r.Attempt = result.Assigned
	case r.Attempt == "" && (t.Section != "" || b.item.Scope != catalog.ScopeFull):
		r.Attempt = result.SectionPractice
	case r.Attempt == "":
		r.Attempt = result.Practice
	}
	if t.Kind != catalog.Test && r.Attempt != result.Assigned {
		return fault.Field("attempt", "invalid", "attempt: a %s is assigned; leave it out", t.Kind)
	}
	if t.Section != "" {
		r.Section = t.Section
	}
	if r.Attempt != result.SectionPractice {
		if t.Section != "" && t.Section != b.item.Scope {
			return fault.Field("section", "invalid", "section: only section_practice has one; leave it out")
		}
		r.Section = ""
		return nil
	}
	if r.Section == "" && b.item.Scope != catalog.ScopeFull {
		r.Section = b.item.Scope
	}
	if !b.item.HasSection(r.Section) {
		return fault.Field("section", "unknown_section", "section: the item has no section %q; send the one that was practised", r.Section)
	}
	return nil
}

// skew is how far an engine's clock may be ahead.
const skew = 5 * time.Minute

// times takes over the sent times and fills in those that the state needs.
func (t target) times(r *result.Result, now time.Time) error {
	for _, sent := range []struct {
		field string
		at    *time.Time
	}{{"started_at", t.StartedAt}, {"completed_at", t.CompletedAt}, {"released_at", t.ReleasedAt}} {
		if sent.at != nil && sent.at.After(now.Add(skew)) {
			return fault.Field(sent.field, "in_the_future", "%s: it is ahead of the clock; send when it happened, with its offset", sent.field)
		}
	}
	set(&r.StartedAt, t.StartedAt)
	set(&r.CompletedAt, t.CompletedAt)
	set(&r.ReleasedAt, t.ReleasedAt)
	if r.State == result.Started {
		return nil
	}
	if r.CompletedAt == nil {
		r.CompletedAt = moment(now)
	}
	if r.State == result.Released && r.ReleasedAt == nil {
		r.ReleasedAt = moment(now)
	}
	if r.State == result.Held {
		r.ReleasedAt = nil
	}
	if r.StartedAt != nil && r.CompletedAt.Before(*r.StartedAt) {
		return fault.Field("completed_at", "before_start", "completed_at: it is before started_at")
	}
	return nil
}

func set(to **time.Time, from *time.Time) {
	if from != nil {
		*to = moment(*from)
	}
}

// moment returns t as the database stores it, so that a repeated record is recognized.
func moment(t time.Time) *time.Time { return new(t.UTC().Truncate(time.Microsecond)) }

// score checks the score against the item's scale. Final work needs a score.
func (t target) score(r *result.Result, b before) error {
	sent := t.Mark.Score != nil || len(t.Mark.Sections) > 0
	if !sent && (r.Score != nil || !r.State.Final()) {
		return nil
	}
	mark := t.Mark
	if sent && mark.Sections == nil && b.known && r.Sections != nil {
		_ = json.Unmarshal(r.Sections, &mark.Sections) // it was written by this package
	}
	scored, err := b.item.Check(r.Section, mark)
	if err != nil {
		return err
	}
	r.Score, r.MaxScore = &scored.Score, &scored.MaxScore
	r.Sections = sectionsJSON(r.Type, scored.Sections)
	return nil
}

// sectionsJSON writes the sections in the order of the scale.
func sectionsJSON(typ string, sections map[string]decimal.Number) json.RawMessage {
	if len(sections) == 0 {
		return nil
	}
	text := []byte{'{'}
	for i, name := range catalog.SectionNames(typ, sections) {
		if i > 0 {
			text = append(text, ',')
		}
		key, _ := json.Marshal(name)
		text = append(append(append(text, key...), ':'), sections[name].String()...)
	}
	return append(text, '}')
}

// finish decides whether the merged result takes a position, and when it became final: at first by its
// own times, and now if it is final again with other values.
func finish(was, r result.Result, now time.Time) result.Change {
	c := result.Change{Result: r, New: was.Ref == ""}
	switch {
	case !r.State.Final():
		c.FinalAt, c.Position = nil, 0
	case was.FinalAt == nil:
		c.Places, c.FinalAt = true, r.CompletedAt
		if r.State == result.Released {
			c.FinalAt = r.ReleasedAt
		}
	case !was.Alike(r):
		c.Places, c.FinalAt = true, moment(now)
	}
	return c
}

// progress returns the assignment after the work, and false when it does not change. Its result is the one
// that became final first: a retake has a result of its own, and the assignment keeps the one that completed
// it (reference: assignments#assignment-fields).
func progress(a assignment.Assignment, r result.Result) (next assignment.Assignment, ok bool) {
	to := map[result.State]assignment.Status{result.Started: assignment.InProgress, result.Held: assignment.Submitted,
		result.Finished: assignment.Completed, result.Released: assignment.Completed}[r.State]
	next = a
	if a.Status.Can(to) {
		next.Status = to
		if to == assignment.Completed {
			next.CompletedAt = r.CompletedAt
		}
	}
	if r.State.Final() && a.ResultRef == "" {
		next.ResultRef = r.Ref
	}
	return next, next.Status != a.Status || next.ResultRef != a.ResultRef
}

// missing returns the fault of a field that names something that the organization does not have.
func missing(field, code, format string, args ...any) error {
	f := fault.New(fault.NotFound, code, format, args...)
	f.Field = field
	return f
}
