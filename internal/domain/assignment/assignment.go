// Package assignment holds the work that students were given: one row for a student and a piece of
// work, from pending to completed or expired.
//
// Lists are ordered by position, a number that grows with every assignment of the organization.
// Positions become visible in their order. All work of a student who comes back into the scope of lists
// takes new ones (Relist), as readers have skipped it.
package assignment

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Status is the progress of an assignment (reference: assignments#assignment-status).
type Status string

// The statuses. Pending, InProgress and Submitted are open.
const (
	Pending    Status = "pending"
	InProgress Status = "in_progress"
	Submitted  Status = "submitted" // handed in, awaiting marking or review
	Completed  Status = "completed"
	Expired    Status = "expired" // not handed in in time
)

// Open says whether the work is not over. Open work cannot be assigned a second time.
func (s Status) Open() bool { return s == Pending || s == InProgress || s == Submitted }

// unfinished says whether the student still has to hand in the work, and can miss its due date.
func (s Status) unfinished() bool { return s == Pending || s == InProgress }

// rank orders the statuses of work on its way to completion.
var rank = map[Status]int{Pending: 0, InProgress: 1, Submitted: 2, Completed: 3}

// Can says whether the status may change to another one. It may move forwards from pending through
// in_progress and submitted to completed, also several steps at once, and from pending or in_progress
// to expired. Completed and expired do not change.
func (s Status) Can(to Status) bool {
	if to == Expired {
		return s.unfinished()
	}
	return s.Open() && rank[to] > rank[s]
}

// Source is who assigned the work.
type Source string

// The sources.
const (
	ViaAPI  Source = "api"
	ViaLTI  Source = "lti"
	ViaPlan Source = "plan"
	ViaApp  Source = "app"
)

// Assignment is one piece of work of one student (reference: assignments#assignment-fields).
type Assignment struct {
	ID          id.Assignment
	User        id.User
	Item        id.Item
	Kind        string // test, quiz or assessment
	Status      Status
	Source      Source
	Notify      bool // mail the student about it
	AssignedAt  time.Time
	DueAt       *time.Time
	CompletedAt *time.Time
	ResultRef   string // the id of the result; "" until there is one
	Position    int64
}

// Key names an assignment of an organization.
type Key struct {
	Organization id.Organization
	ID           id.Assignment
}

// Overdue says whether the due date has passed before the work was handed in.
func (a Assignment) Overdue(now time.Time) bool {
	return a.Status.unfinished() && a.DueAt != nil && a.DueAt.Before(now)
}

// refSuffix is the middle of every id on the wire: test-assignment:7, quiz-assignment:7,
// assessment-assignment:7.
const refSuffix = "-assignment:"

// Ref returns the id of the assignment on the wire.
func (a Assignment) Ref() string { return a.Kind + refSuffix + strconv.FormatInt(int64(a.ID), 10) }

// ParseRef reads the wire's id of an assignment of the kind, or its number alone. NotFound for every
// other text.
func ParseRef(kind, text string) (id.Assignment, error) {
	digits, _ := strings.CutPrefix(text, kind+refSuffix)
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 || strings.HasPrefix(digits, "+") {
		return 0, ErrNone(text)
	}
	return id.Assignment(n), nil
}

// SplitRef reads the wire's id of an assignment of any kind. NotFound for every other text.
func SplitRef(text string) (kind string, a id.Assignment, err error) {
	kind, _, _ = strings.Cut(text, refSuffix)
	if !strings.HasPrefix(text, kind+refSuffix) {
		return "", 0, ErrNone(text)
	}
	a, err = ParseRef(kind, text)
	return kind, a, err
}

// Withdraw takes back work that the student has not begun: it expires at once. Work that has expired
// already stays as it is, and changed is false. Conflict for work that has begun (work_has_begun), and for
// a test of a plan (test_of_a_plan), which its plan would miss.
func (a Assignment) Withdraw() (after Assignment, changed bool, err error) {
	switch {
	case a.Status == Expired:
		return a, false, nil
	case a.Status != Pending:
		return a, false, fault.New(fault.Conflict, "work_has_begun", "the student has begun the work; only work that is pending can be withdrawn")
	case a.Source == ViaPlan:
		return a, false, fault.New(fault.Conflict, "test_of_a_plan",
			"the work belongs to the student's test plan; send test_plan: false to end the plan, or have the test skipped in the platform")
	}
	a.Status = Expired
	return a, true, nil
}

// ErrNone returns the NotFound of an assignment.
func ErrNone(ref any) error {
	return fault.New(fault.NotFound, "assignment_not_found", "there is no assignment %v", ref)
}

// Draft is work to be assigned.
type Draft struct {
	User   id.User
	Item   id.Item
	Kind   string
	Source Source
	Notify bool
	DueAt  *time.Time
}

// Open returns the user's open assignment of the item. NotFound when there is none.
func Open(ctx context.Context, q pg.Querier, org id.Organization, user id.User, item id.Item) (Assignment, error) {
	a, err := selectOpen(ctx, q, org, user, item)
	if pg.None(err) {
		return a, ErrNone(item)
	}
	return a, err
}

// maxTries limits how often others may open and close the same work during one Assign.
const maxTries = 5

// Assign makes an assignment and returns it with created true. If the same work is open, it returns that
// assignment unchanged. It takes the organization's next position, and others who assign there wait
// until the commit: call it late in the transaction.
func Assign(ctx context.Context, tx *pg.Tx, org id.Organization, d Draft, now time.Time) (a Assignment, created bool, err error) {
	for range maxTries {
		a, err = selectOpen(ctx, tx, org, d.User, d.Item)
		if !pg.None(err) {
			return a, false, err
		}
		a, err = insert(ctx, tx, org, d, now)
		if !pg.None(err) {
			return a, err == nil, err
		}
	}
	return Assignment{}, false, fmt.Errorf("the assignment of item %d to user %d does not settle", d.Item, d.User)
}

// Placed is a Draft with its organization.
type Placed struct {
	Organization id.Organization
	Draft
}

// AssignAll is Assign for many drafts, in one statement, which locks the positions of organizations in
// the order of their ids. The answers are in the order of the drafts. No two drafts may have the same
// organization, student and item.
func AssignAll(ctx context.Context, tx *pg.Tx, drafts []Placed, now time.Time) (made []Assignment, created []bool, err error) {
	made, created = make([]Assignment, len(drafts)), make([]bool, len(drafts))
	if len(drafts) == 0 {
		return made, created, nil
	}
	if err := insertAll(ctx, tx, drafts, now, made, created); err != nil {
		return nil, nil, err
	}
	for i, d := range drafts { // work that was open already
		if !created[i] {
			if made[i], created[i], err = Assign(ctx, tx, d.Organization, d.Draft, now); err != nil {
				return nil, nil, err
			}
		}
	}
	return made, created, nil
}

// Choice narrows the list by status (reference: assignments#assignment-list).
type Choice string

// The choices. Overdue work is open as well; submitted work is open and not overdue.
const (
	ChooseAll       Choice = ""
	ChooseOpen      Choice = "open"
	ChooseCompleted Choice = "completed"
	ChooseOverdue   Choice = "overdue"
)

// Filter chooses assignments.
type Filter struct {
	Choice Choice
	Kinds  []string // nil: all
	User   id.User  // 0: everybody's
	Course id.Course
	Few    []id.User // the people of Course, where they are few (course.Few); nil: they are not
	Since  time.Time // assigned then or later; zero: ever
	Now    time.Time
	Today  clock.Date // the day on which people have to be students
}

// Listed is an assignment with its student and item, as lists show them.
type Listed struct {
	Assignment
	Email, FirstName, LastName string
	ItemTitle, ItemType        string
}

// Stage is what happened to an assignment.
type Stage string

// The stages.
const (
	StageAssigned  Stage = "assigned"
	StageOverdue   Stage = "overdue"
	StageCompleted Stage = "completed"
	StageExpired   Stage = "expired" // or withdrawn
)

// Step is a stage of an assignment and when it came to it.
type Step struct {
	Assignment
	ItemTitle string
	Stage     Stage
	At        time.Time
}

// ExpireAfter is how long after its due date unfinished work expires.
const ExpireAfter = 30 * 24 * time.Hour

// Due are assignments of one organization whose due date has passed.
type Due struct {
	Organization id.Organization
	Listed       []Listed
}
