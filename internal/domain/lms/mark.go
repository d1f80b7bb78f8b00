package lms

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// ScoreScope is the right to send marks, which an LMS gives a link or not.
const ScoreScope = "https://purl.imsglobal.org/spec/lti-ags/scope/score"

// Score is a final result of a student's work on an item.
type Score struct {
	Organization id.Organization
	User         id.User
	Item         id.Item
	Value        decimal.Number
	Max          decimal.Number
	At           time.Time
}

// Line is a column of marks in an LMS, of one link, for one student.
type Line struct {
	Registration id.Registration
	Address      string
	User         id.User
	Item         id.Item
}

// Scored queues the sending of final results to the LMSes whose links the students have opened; of several of one student and item
// the last one. Results that no LMS waits for change nothing.
func Scored(b *pg.Batch, scores []Score, now time.Time) {
	type work struct {
		org  id.Organization
		user id.User
		item id.Item
	}
	at := map[work]int{}
	var last []Score
	for _, s := range scores {
		w := work{s.Organization, s.User, s.Item}
		if i, seen := at[w]; seen {
			last[i] = s
			continue
		}
		at[w] = len(last)
		last = append(last, s)
	}
	if len(last) > 0 {
		updateScores(b, last, now)
	}
}

// Services is an LMS of an organization whose services are called, with what it takes to get a token of it.
type Services struct {
	Organization id.Organization
	Registration id.Registration
	ClientID     string
	TokenURL     string
	Audience     string
}

// Mark is one that is due, with what it takes to send it.
type Mark struct {
	Services

	Line     []byte
	User     id.User
	Claim    int64
	LineItem string
	Subject  string // the student, as the LMS calls them; "": the LMS's user was forgotten
	Score    decimal.Number
	MaxScore decimal.Number
	ScoredAt time.Time
	Version  int64
	Tries    int // that failed
}

// MaxEach is how many marks of one LMS a process has in hand at most, so that one that is late or away holds up its own alone; they are
// handed out handful by handful.
const (
	MaxEach = 8
	handful = MaxEach / 2
)

// Busy says how many marks of an LMS a process has in hand.
type Busy struct {
	Organization id.Organization
	Registration id.Registration
	InHand       int
}

// Due hands out marks that are due, for the length of lease: whoever has not settled one by then has lost it. No two callers get the
// same. An LMS of which the caller would have more than MaxEach in hand is passed over.
func Due(ctx context.Context, q pg.Querier, busy []Busy, now time.Time, lease time.Duration) ([]Mark, error) {
	var orgs, registrations []int64
	for _, b := range busy {
		if b.InHand > MaxEach-handful {
			orgs, registrations = append(orgs, int64(b.Organization)), append(registrations, int64(b.Registration))
		}
	}
	return updateDue(ctx, q, orgs, registrations, now, now.Add(lease))
}

// MarkAttempt is one try to send a mark.
type MarkAttempt struct {
	At     time.Time `json:"at"`
	Status int       `json:"status,omitempty"` // of HTTP; 0: there was no answer
	Cause  string    `json:"cause,omitempty"`  // a sentence that says what to do; "": it was taken
}

// Sent is a mark as the console shows it.
type Sent struct {
	User     id.User
	Item     id.Item
	Score    decimal.Number
	MaxScore decimal.Number
	ScoredAt time.Time
	Tries    int
	Taken    bool // by the LMS, as it is now
	DueAt    *time.Time
	Attempts []MarkAttempt
}

// State is a word for people.
func (s Sent) State() string {
	switch {
	case s.Taken:
		return "sent"
	case s.DueAt == nil:
		return "given up"
	case s.Tries > 0:
		return "failing"
	}
	return "waiting"
}

// shownMarks is how many marks a page has.
const shownMarks = 100

// SendAgain makes all marks of an LMS due that were given up. Conflict (no_marks) where there are none.
func (s Service) SendAgain(ctx context.Context, org id.Organization, r id.Registration, now time.Time) error {
	n, err := updateGivenUp(ctx, s.DB, org, r, now)
	if err == nil && n == 0 {
		return fault.New(fault.Conflict, "no_marks", "no mark was given up")
	}
	return err
}
