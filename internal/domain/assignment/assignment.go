// Package assignment holds the work that students were given: one row for a student and
// a piece of work, from pending to completed or expired.
//
// An assignment is told to readers by its position: a number that grows with every
// assignment of the organization and becomes visible in its order.
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

// Status is how far an assignment is (reference: assignments#assignment-status).
type Status string

// The statuses. Pending, InProgress and Submitted are open.
const (
	Pending    Status = "pending"
	InProgress Status = "in_progress"
	Submitted  Status = "submitted" // handed in, awaiting marking or review
	Completed  Status = "completed"
	Expired    Status = "expired" // over without having been handed in
)

// Open says whether the same work cannot be assigned once more.
func (s Status) Open() bool { return s == Pending || s == InProgress || s == Submitted }

// unfinished says whether a due date can still be missed.
func (s Status) unfinished() bool { return s == Pending || s == InProgress }

// rank orders the statuses through which work goes.
var rank = map[Status]int{Pending: 0, InProgress: 1, Submitted: 2, Completed: 3}

// Can says whether a status may become another one: forwards from pending over
// in_progress and submitted to completed, steps left out at will, and from pending and
// in_progress to expired. Completed and expired are ends.
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
	Notify      bool // the student is told of it
	AssignedAt  time.Time
	DueAt       *time.Time
	CompletedAt *time.Time
	ResultRef   string // the id of the result; "" until there is one
	Position    int64
}

// Overdue says whether the due date has passed before the work was handed in.
func (a Assignment) Overdue(now time.Time) bool {
	return a.Status.unfinished() && a.DueAt != nil && a.DueAt.Before(now)
}

// refSuffix ends the first part of every assignment's id: test-assignment:7,
// quiz-assignment:7, assessment-assignment:7.
const refSuffix = "-assignment:"

// Ref is the id of the assignment on the wire.
func (a Assignment) Ref() string { return a.Kind + refSuffix + strconv.FormatInt(int64(a.ID), 10) }

// ParseRef reads the wire's id of an assignment of the kind, or its number alone.
// NotFound for everything else: nothing has such an id.
func ParseRef(kind, text string) (id.Assignment, error) {
	digits, _ := strings.CutPrefix(text, kind+refSuffix)
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 || strings.HasPrefix(digits, "+") {
		return 0, ErrNone(text)
	}
	return id.Assignment(n), nil
}

// ErrNone is the fault of an assignment that is not there.
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

// maxTries bounds how often an assignment may be closed between two looks at it.
const maxTries = 5

// Assign makes the assignment, or gives the open one of the same work, which stays as it
// is; created says which. It takes the organization's next position, so little should
// follow it in the transaction.
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

// Placed is a Draft of an organization.
type Placed struct {
	Organization id.Organization
	Draft
}

// AssignAll is Assign for many, in one statement, with which organizations' positions are
// locked in their order. The answers are in the order of the drafts. No two drafts may be
// of the same student and item.
func AssignAll(ctx context.Context, tx *pg.Tx, drafts []Placed, now time.Time) (made []Assignment, created []bool, err error) {
	made, created = make([]Assignment, len(drafts)), make([]bool, len(drafts))
	if len(drafts) == 0 {
		return made, created, nil
	}
	if err := insertAll(ctx, tx, drafts, now, made, created); err != nil {
		return nil, nil, err
	}
	for i, d := range drafts { // what was open already
		if !created[i] {
			if made[i], created[i], err = Assign(ctx, tx, d.Organization, d.Draft, now); err != nil {
				return nil, nil, err
			}
		}
	}
	return made, created, nil
}

// Find reads assignments by their ids, of whatever organization: for the platform alone.
func Find(ctx context.Context, q pg.Querier, ids []id.Assignment) (map[id.Assignment]id.Organization, error) {
	return selectOwners(ctx, q, ids)
}

// Lock reads assignments of the organization under row locks, in the order of their ids.
func Lock(ctx context.Context, tx *pg.Tx, org id.Organization, ids []id.Assignment) (map[id.Assignment]Assignment, error) {
	if len(ids) == 0 {
		return map[id.Assignment]Assignment{}, nil
	}
	all, err := lockSome(ctx, tx, org, ids)
	byID := make(map[id.Assignment]Assignment, len(all))
	for _, a := range all {
		byID[a.ID] = a
	}
	return byID, err
}

// Save writes status, completion and result of assignments that the transaction locked.
func Save(ctx context.Context, tx *pg.Tx, org id.Organization, changed []Assignment, now time.Time) error {
	if len(changed) == 0 {
		return nil
	}
	return updateProgress(ctx, tx, org, changed, now)
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
	Today  clock.Date // decides who is a student
}

// Listed is an assignment with what is shown of its student and item.
type Listed struct {
	Assignment
	Email, FirstName, LastName string
	ItemTitle, ItemType        string
}

// List gives up to limit assignments of the organization's students, as they are today,
// whose position is above after, by position.
func List(ctx context.Context, q pg.Querier, org id.Organization, f Filter, after int64, limit int) ([]Listed, error) {
	return selectPage(ctx, q, org, f, after, limit)
}

// Latest gives the latest assignments of one person in the organization, the last one
// first, whether the person is a student of it today or not.
func Latest(ctx context.Context, q pg.Querier, org id.Organization, user id.User, limit int) ([]Listed, error) {
	return selectLatest(ctx, q, org, user, limit)
}

// ExpireAfter is how long after its due date unfinished work expires.
const ExpireAfter = 30 * 24 * time.Hour

// Due are assignments of one organization whose due date has passed.
type Due struct {
	Organization id.Organization
	Listed       []Listed
}

// TakeOverdue marks up to limit unfinished assignments, of any organization, whose due
// date has passed, as told, and returns them by organization: each comes once. Only
// students as of today are in the answer; staff and people who left are marked alone.
func TakeOverdue(ctx context.Context, tx *pg.Tx, now time.Time, today clock.Date, limit int) (due []Due, taken int, err error) {
	rows, err := takeOverdue(ctx, tx, now, today, limit)
	for _, r := range rows {
		if !r.InScope {
			continue
		}
		if len(due) == 0 || due[len(due)-1].Organization != r.Organization {
			due = append(due, Due{Organization: r.Organization})
		}
		last := &due[len(due)-1]
		last.Listed = append(last.Listed, r.Listed)
	}
	return due, len(rows), err
}

// Expire ends up to limit unfinished assignments whose due date passed ExpireAfter ago,
// after it was told that they are overdue.
func Expire(ctx context.Context, q pg.Querier, now time.Time, limit int) (int64, error) {
	return expire(ctx, q, now, now.Add(-ExpireAfter), limit)
}

// Redate moves the due date of an assignment that is pending; others stay as they are.
func Redate(ctx context.Context, tx *pg.Tx, org id.Organization, a id.Assignment, due, now time.Time) error {
	return updateDue(ctx, tx, org, a, due, now)
}
