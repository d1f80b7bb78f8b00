package lms

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Names and Role Provisioning Services: messages name the course that they come from, and where its people are listed (Note). Whoever
// turns the pull of a course on (SetPull) has its people imported as a roster, every night (SchedulePulls) and by hand (AskPull).
// DuePulls hands pulls out to those who make them, and SettlePull records each attempt.

// NamesScope is the right to read who is in a course.
const NamesScope = "https://purl.imsglobal.org/spec/lti-nrps/scope/contextmembership.readonly"

// namesVersion is the one of the service that is spoken.
const namesVersion = "2.0"

// Limits of contexts.
const (
	maxContexts = 500 // of a registration; a new one takes the place of the one whose pull is off and that was opened longest ago
	maxPulled   = 300 // of an organization
	maxTitle    = 200 // characters, as of a class
	// maxPulls is how often a pull is begun before it waits for the next night, or for somebody to ask.
	maxPulls = 4
)

// Course is that of an LMS from which a message comes.
type Course struct {
	ID             string // as the LMS calls it
	Title          string
	MembershipsURL string // where its people are listed
}

// readCourse reads the claims of a message; the zero Course where the LMS does not list the people of one. What cannot be read is no
// reason to refuse a launch.
func readCourse(said, service json.RawMessage) (c Course) {
	var course struct{ ID, Label, Title string }
	var names struct {
		URL      string   `json:"context_memberships_url"`
		Versions []string `json:"service_versions"`
	}
	if json.Unmarshal(said, &course) != nil || json.Unmarshal(service, &names) != nil ||
		course.ID == "" || len(course.ID) > maxText || !plain(course.ID) || names.URL == "" ||
		len(names.Versions) > 0 && !slices.Contains(names.Versions, namesVersion) {
		return c
	}
	title := course.Title
	if strings.TrimSpace(title) == "" {
		title = course.Label
	}
	return Course{course.ID, line(title, maxTitle), names.URL}
}

// line is a text as it fits into a line of so many characters.
func line(text string, most int) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool { return r <= ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 }), " ")
	if all := []rune(text); len(all) > most {
		return string(all[:most])
	}
	return text
}

// Context is a course of an LMS that messages have named.
type Context struct {
	ID           id.LMSContext
	Registration id.Registration
	Deployment   string
	Course       string // as the LMS calls it
	Title        string
	SeenAt       time.Time
	Pulled       bool // the pull is on
	DueAt        *time.Time
	InHand       bool
	Tries        int
	PulledAt     *time.Time // the last pull that was handed over as a roster
	Attempts     []PullAttempt
}

// Source is the name of the roster source that its people come from.
func (c Context) Source() string { return sourceOf(c.ID) }

func sourceOf(c id.LMSContext) string { return fmt.Sprintf("lms-%d", c) }

// Last is the last attempt; nil: there was none.
func (c Context) Last() *PullAttempt {
	if len(c.Attempts) == 0 {
		return nil
	}
	return &c.Attempts[len(c.Attempts)-1]
}

// State is a word for people.
func (c Context) State() string {
	failed := c.Last() != nil && c.Last().Cause != ""
	switch {
	case !c.Pulled:
		return "off"
	case c.InHand:
		return "being pulled"
	case c.DueAt != nil && failed && c.Tries > 0:
		return "failing"
	case c.DueAt != nil:
		return "waiting"
	case failed:
		return "failed"
	}
	return "pulled"
}

// PullAttempt is one try to pull the people of a course.
type PullAttempt struct {
	At        time.Time    `json:"at"`
	Status    int          `json:"status,omitempty"` // of HTTP; 0: there was no answer
	Cause     string       `json:"cause,omitempty"`  // a sentence that says what to do; "": they were handed over
	Run       id.RosterRun `json:"run,omitempty"`    // to this run
	Members   int          `json:"members,omitempty"`
	NoAddress int          `json:"no_address,omitempty"` // students among them without an email address, who are left out
}

// Note remembers the course of a message that was checked. A course whose people are listed at an address that is not called is not
// remembered.
func (s Service) Note(ctx context.Context, org id.Organization, r id.Registration, m Message, now time.Time) error {
	c := m.Course
	if c.ID == "" {
		return nil
	}
	address, err := s.Policy.CheckURL("context_memberships_url", c.MembershipsURL)
	if err != nil {
		return nil //nolint:nilerr // the launch itself is good
	}
	c.MembershipsURL = address
	if known, err := selectNoted(ctx, s.DB, org, r, m.Deployment, c, now.Add(-time.Hour)); err != nil || known {
		return err
	}
	return s.DB.InTx(ctx, func(tx *pg.Tx) error {
		if err := pg.Lock(ctx, tx, pg.LockLMS, fmt.Sprint(org)); err != nil {
			return err
		}
		if err := upsertContext(ctx, tx, org, r, m.Deployment, c, now); err != nil {
			return err
		}
		return deleteSurplus(ctx, tx, org, r, maxContexts)
	})
}

var errNoContext = fault.New(fault.NotFound, "not_found", "the LMS has no such course; one is known once somebody has opened a link in it")

// FindContext gives one of the courses of a registration. NotFound.
func FindContext(ctx context.Context, q pg.Querier, org id.Organization, r id.Registration, which id.LMSContext) (Context, error) {
	c, err := selectContext(ctx, q, org, r, which)
	if pg.None(err) {
		return c, errNoContext
	}
	return c, err
}

// SetPull turns the pull of a course on, which asks for one at once, or off. Who is in the roster stays. NotFound; Conflict:
// pull_limit.
func (s Service) SetPull(
	ctx context.Context, by audit.Actor, org id.Organization, r id.Registration, which id.LMSContext, on bool, now time.Time,
) (c Context, err error) {
	err = s.DB.InTx(ctx, func(tx *pg.Tx) error {
		if err := pg.Lock(ctx, tx, pg.LockLMS, fmt.Sprint(org)); err != nil {
			return err
		}
		if c, err = FindContext(ctx, tx, org, r, which); err != nil || c.Pulled == on {
			return err
		}
		if n, err := countPulled(ctx, tx, org); err != nil || on && n >= maxPulled {
			if err == nil {
				err = fault.New(fault.Conflict, "pull_limit", "the rosters of %d courses are pulled, which is the limit; turn another one off first", maxPulled)
			}
			return err
		}
		action := "turned off roster of LMS course"
		if on {
			action = "turned on roster of LMS course"
		}
		if err := updatePulled(ctx, tx, org, which, on, by, now); err != nil {
			return err
		}
		if c, err = FindContext(ctx, tx, org, r, which); err != nil {
			return err
		}
		return audit.Write(ctx, tx, c.entry(by, org, action, now))
	})
	return c, err
}

// AskPull makes a pull due now. NotFound; Conflict: pull_off, pull_running.
func (s Service) AskPull(
	ctx context.Context, by audit.Actor, org id.Organization, r id.Registration, which id.LMSContext, now time.Time,
) (c Context, err error) {
	err = s.DB.InTx(ctx, func(tx *pg.Tx) error {
		if err := pg.Lock(ctx, tx, pg.LockLMS, fmt.Sprint(org)); err != nil {
			return err
		}
		if c, err = FindContext(ctx, tx, org, r, which); err != nil {
			return err
		}
		switch {
		case !c.Pulled:
			return fault.New(fault.Conflict, "pull_off", "the roster of this course is not pulled; turn that on first")
		case c.InHand && c.DueAt != nil && c.DueAt.After(now):
			return fault.New(fault.Conflict, "pull_running", "the roster of this course is being pulled; wait for its end")
		}
		if err := updateAsked(ctx, tx, org, which, by, now); err != nil {
			return err
		}
		if c, err = FindContext(ctx, tx, org, r, which); err != nil {
			return err
		}
		return audit.Write(ctx, tx, c.entry(by, org, "asked for roster of LMS course", now))
	})
	return c, err
}

func (c Context) entry(by audit.Actor, org id.Organization, action string, now time.Time) audit.Entry {
	return audit.Entry{Organization: org, Actor: by, Action: action, Target: c.Title + " (" + c.Source() + ")", At: now}
}

// Pull is one that was handed out.
type Pull struct {
	Services

	ID             id.LMSContext
	Course         string
	Title          string
	MembershipsURL string
	Claim          int64
	Tries          int // this one included
	AskedBy        *audit.Actor
}

// By is who has asked for it.
func (p Pull) By() audit.Actor {
	if p.AskedBy == nil {
		return audit.Scheduled
	}
	return *p.AskedBy
}

// Source is the name of the roster source that the people come from.
func (p Pull) Source() string { return sourceOf(p.ID) }

// pullsLock is the key of the lock under which one process hands out pulls.
const pullsLock = "pulls"

// DuePulls hands out up to most pulls that are due, for the length of lease, of each LMS one at a time: whoever has not settled one by
// then has lost it. No two callers get the same, or two of one LMS: they take turns, for each has to see what the one before it got.
func DuePulls(ctx context.Context, db *pg.DB, most int, now time.Time, lease time.Duration) (due []Pull, err error) {
	if some, err := selectAnyDue(ctx, db, now); err != nil || !some {
		return nil, err
	}
	err = db.InTx(ctx, func(tx *pg.Tx) error {
		if err := pg.Lock(ctx, tx, pg.LockLMS, pullsLock); err != nil {
			return err
		}
		due, err = updateDuePulls(ctx, tx, most, now, now.Add(lease))
		return err
	})
	return due, err
}

// InHand says whether the pull is still the caller's: it is not when it was turned off, or handed out again.
func (p Pull) InHand(ctx context.Context, q pg.Querier) (bool, error) {
	return selectInHand(ctx, q, p)
}

// pauses are those after an attempt that failed, until maxPulls were made.
var pauses = [maxPulls - 1]time.Duration{5 * time.Minute, 30 * time.Minute, 2 * time.Hour}

// SettlePull records an attempt. One that failed is made again after a pause, a few times. A pull that was handed out again meanwhile,
// or turned off, stays as it is.
func SettlePull(ctx context.Context, q pg.Querier, p Pull, a PullAttempt) error {
	var due *time.Time
	if a.Cause != "" && p.Tries <= len(pauses) {
		at := a.At.Add(pauses[max(p.Tries, 1)-1])
		due = &at
	}
	return updateSettled(ctx, q, p, a, due)
}

// pullSpread is for how long after the beginning of the night pulls become due, so that they do not come all at once.
const pullSpread = 4 * time.Hour

// SchedulePulls makes the pulls due that none was asked for since the night began, one after the other within four hours of it; what
// was missed is made up for. night is when the last one began.
func SchedulePulls(ctx context.Context, q pg.Querier, night, now time.Time) error {
	return updateScheduled(ctx, q, night, now)
}

// FailingPulls is of how many courses the last pull has failed, each time that it was tried.
func FailingPulls(ctx context.Context, q pg.Querier) (int, error) { return countFailing(ctx, q) }
