package person

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Eraser erases people: Erase, in the call, whatever leads to a person; Sweep, in the worker, what the person was
// called wherever that was written, once at once and once more when everything has ended that was under way.
//
// A call that knew the person before may write afterwards what it had read. None is at work for longer than
// settled, and roster runs are waited for.
type Eraser struct {
	DB    *pg.DB
	Box   *seal.Box
	Clock clock.Clock
	Log   *slog.Logger
}

// settled is more than a call, a delivery or a step of the worker's may take.
const settled = 10 * time.Minute

// State says how far an erasure is.
type State string

// The states.
const (
	Erasing State = "erasing" // nothing leads to the person any more; what the person was called is being looked for
	Erased  State = "erased"
)

// Erasure is that of one person.
type Erasure struct {
	User     id.User
	At       time.Time
	Finished time.Time // zero: it is not
}

// State says how far it is.
func (e Erasure) State() State {
	if e.Finished.IsZero() {
		return Erasing
	}
	return Erased
}

// callings is what a person was called where only that tells whom something is about.
type callings struct {
	Addresses   []string // the present one first
	Username    string
	ExternalIDs []externalID
}

type externalID struct {
	Source id.RosterSource
	ID     string
}

// errMoved means that the person's address changed while this waited for the lock of the old one.
var errMoved = errors.New("the person's address has changed")

const maxMoves = 5

// Erase erases a person of all organizations: no sign-in, membership, enrollment, plan or name is left, and nothing
// leads from an address to what still counts. It takes the lock of the address, as every call does that changes what
// the person has. A repeat says how far it is. NotFound when there never was such a person.
func (o *Eraser) Erase(ctx context.Context, by audit.Actor, user id.User) (e Erasure, err error) {
	for range maxMoves {
		e, err = o.erase(ctx, by, user)
		if !errors.Is(err, errMoved) {
			return e, err
		}
	}
	return e, err
}

func (o *Eraser) erase(ctx context.Context, by audit.Actor, user id.User) (e Erasure, err error) {
	err = o.DB.InTx(ctx, func(tx *pg.Tx) error {
		a, err := student.Find(ctx, tx, user)
		if fault.KindOf(err) == fault.NotFound {
			var known bool
			if e, known, err = selectErasure(ctx, tx, user); err == nil && !known {
				_, err = student.Find(ctx, tx, user) // the fault
			}
			return err
		}
		if err != nil {
			return err
		}
		if err := pg.Lock(ctx, tx, pg.LockEmail, string(a.Email)); err != nil {
			return err
		}
		again, err := student.Find(ctx, tx, user)
		if fault.KindOf(err) == fault.NotFound || err == nil && again.Email != a.Email {
			return errMoved
		}
		if err != nil {
			return err
		}
		e = Erasure{User: user, At: o.Clock()}
		called, err := selectCallings(ctx, tx, user)
		if err != nil {
			return err
		}
		text, err := json.Marshal(called)
		if err != nil {
			return err
		}
		sealed, err := o.Box.Seal(ctx, text, place(user))
		if err != nil {
			return err
		}
		if err := insertErasure(ctx, tx, e, sealed); err != nil {
			return err
		}
		if err := erasePerson(ctx, tx, user); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Actor: by, Action: "erased user", Target: target(user), At: e.At})
	})
	return e, err
}

func place(user id.User) string { return fmt.Sprintf("erasures/%d", user) }

// Sweep goes on with erasures. Each of its transactions is small, and a pass that breaks off begins again.
func (o *Eraser) Sweep(ctx context.Context) error {
	now := o.Clock()
	due, err := selectDue(ctx, o.DB, now.Add(-settled))
	if err != nil {
		return err
	}
	for _, d := range due {
		if err := o.search(ctx, d, now); err != nil {
			return fmt.Errorf("erasing user %d: %w", d.User, err)
		}
	}
	return nil
}

func (o *Eraser) search(ctx context.Context, d dueErasure, now time.Time) error {
	text, err := o.Box.Open(ctx, d.Sealed, place(d.User))
	if err != nil {
		return err
	}
	var called callings
	if err := json.Unmarshal(text, &called); err != nil {
		return err
	}
	final := d.Searched
	more, err := selectRemarked(ctx, o.DB, d.User)
	if err != nil {
		return err
	}
	called.ExternalIDs = append(called.ExternalIDs, more...)
	s := search{Eraser: o, user: d.User, callings: called, erased: d.At, now: now}
	if final { // an address may be somebody's again, and is then looked for no further
		if s.Addresses, err = selectNobodys(ctx, o.DB, called.Addresses); err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context) error{
		s.rows,
		func(ctx context.Context) error { return journal.EraseUser(ctx, o.DB, d.User, now, !final) },
		s.discardHeld, s.rosters, s.mails, s.plans, s.answers, s.audit,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if !final {
		return setSearched(ctx, o.DB, d.User, now)
	}
	o.Log.InfoContext(ctx, "a person is erased", "user", int64(d.User))
	return setFinished(ctx, o.DB, d.User, now)
}

// search looks for one person.
type search struct {
	*Eraser
	callings
	user   id.User
	erased time.Time // what is younger and about an address may be about somebody new
	now    time.Time
}

// rows deletes what a call has written that began before the erasure.
func (s *search) rows(ctx context.Context) error {
	if err := erasePerson(ctx, s.DB, s.user); err != nil {
		return err
	}
	return deleteResets(ctx, s.DB, s.Addresses)
}

// discardHeld discards held runs whose file has the person: approved later, they would bring the person back.
func (s *search) discardHeld(ctx context.Context) error {
	runs, err := selectHeld(ctx, s.DB, s.user, s.callings, s.erased)
	if err != nil {
		return err
	}
	for _, r := range runs {
		err := roster.Discard(ctx, s.DB, audit.Scheduled, r.Organization, r.ID, s.now)
		if k := fault.KindOf(err); err != nil && k != fault.Conflict && k != fault.NotFound { // somebody decided meanwhile
			return err
		}
	}
	return nil
}

// someRuns, someRows and someAnswers are how much one transaction looks at.
const (
	someRuns    = 50
	someRows    = 10_000
	someAnswers = 200
)

func (s *search) rosters(ctx context.Context) error {
	return inRanges(ctx, s.DB, "roster_runs", someRuns, func(ctx context.Context, tx *pg.Tx, behind, last int64) error {
		return eraseFromRuns(ctx, tx, s.user, s.callings, s.erased, behind, last)
	})
}

func (s *search) mails(ctx context.Context) error {
	return inRanges(ctx, s.DB, "emails", someRows, func(ctx context.Context, tx *pg.Tx, behind, last int64) error {
		return eraseMails(ctx, tx, s.user, s.Addresses, s.erased, behind, last)
	})
}

// plans takes a staff person, or whoever got mails about a student, out of other people's plans.
func (s *search) plans(ctx context.Context) error {
	err := inRanges(ctx, s.DB, "plans", someRows, func(ctx context.Context, tx *pg.Tx, behind, last int64) error {
		return eraseRecipients(ctx, tx, s.Addresses, behind, last)
	})
	if err != nil {
		return err
	}
	return inRanges(ctx, s.DB, "plan_history", someRows, func(ctx context.Context, tx *pg.Tx, behind, last int64) error {
		return eraseFromHistory(ctx, tx, s.user, s.Addresses, behind, last)
	})
}

// inRanges calls do in a transaction for each range of the table's ids, up to the last one that there is.
func inRanges(ctx context.Context, db *pg.DB, table string, most int64, do func(ctx context.Context, tx *pg.Tx, behind, last int64) error) error {
	for behind := int64(0); ; {
		last, found, err := endOfRange(ctx, db, table, behind, most)
		if err != nil || !found {
			return err
		}
		if err := db.InTx(ctx, func(tx *pg.Tx) error { return do(ctx, tx, behind, last) }); err != nil {
			return err
		}
		behind = last
	}
}

// answers makes stored answers unreadable that speak of the person. The hash of such a request might be guessed, so
// it goes, too: whoever repeats the request is told that its key was used for another one.
func (s *search) answers(ctx context.Context) error {
	for after := (answerKey{}); ; {
		some, err := selectAnswers(ctx, s.DB, after, someAnswers)
		if err != nil || len(some) == 0 {
			return err
		}
		var about []answerKey
		for _, a := range some {
			speaks := s.isIn(a.Key)
			if len(a.Sealed) > 0 && !speaks {
				text, err := s.Box.Open(ctx, a.Sealed, fmt.Sprintf("idempotency_keys/%d/%s", a.Organization, a.Key))
				if err != nil {
					return err
				}
				speaks = s.isIn(string(text))
			}
			if speaks {
				about = append(about, a.answerKey)
			}
		}
		if err := eraseAnswers(ctx, s.DB, about, s.Addresses); err != nil {
			return err
		}
		after = some[len(some)-1].answerKey
	}
}

// isIn says whether a text in JSON speaks of the person.
func (s *search) isIn(text string) bool {
	text = strings.ToLower(text)
	for _, number := range []string{`"user_id":%d,`, `"user_id":%d}`, `"user_id": %d,`, `"user_id": %d}`} {
		if strings.Contains(text, fmt.Sprintf(number, s.user)) {
			return true
		}
	}
	words := append([]string{`"` + inJSON(s.Username) + `"`}, s.Addresses...)
	for _, a := range s.Addresses {
		words = append(words, inJSON(a))
	}
	for _, e := range s.ExternalIDs {
		words = append(words, `"person_external_id":"`+inJSON(e.ID)+`"`)
	}
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, strings.ToLower(word)) })
}

// inJSON is a text as it stands within JSON.
func inJSON(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		return text
	}
	return strings.Trim(string(quoted), `"`)
}

func (s *search) audit(ctx context.Context) error {
	for behind := int64(0); ; {
		last, found, err := eraseFromAudit(ctx, s.DB, s.user, s.Addresses, behind, someRows)
		if err != nil || !found {
			return err
		}
		behind = last
	}
}
