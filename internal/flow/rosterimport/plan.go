package rosterimport

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/roster/diff"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// keptIssues is how many issues of a run are stored; all are counted.
const keptIssues = 100_000

// groupSize is how many rows, or issues of rows, are gathered before they are stored.
const groupSize = 4000

// refusal is a person of the file who is left out, and why; or, with the code leaves, a person
// who is missing from a snapshot.
type refusal struct {
	person string
	code   roster.Code
}

const leaves roster.Code = "leaves"

// planner turns a file into a run's changes, in a transaction that writes only the run's own
// rows.
type planner struct {
	tx    *pg.Tx
	run   roster.Run
	turn  *turn
	today clock.Date

	issues  []roster.Issue
	kept    int
	changes []roster.Change
	classes []roster.ClassChange
	refused []refusal
	gone    []string      // people whom a delta calls withdrawn
	ended   []roster.Seat // places that it calls so

	replaced []roster.Change // those that replace an id

	last      int64 // number of the last change
	lastClass int64
	usable    int
	totals    roster.Totals
	hasSeats  bool          // the file says something of classes
	listed    bool          // it lists them apart
	first     *roster.Issue // the first error
}

// plan stores the changes that the run's file leads to, and returns the run with its counts and
// its state: Refused, Held, Previewed or Applying.
func plan(ctx context.Context, q pg.Querier, tx *pg.Tx, run roster.Run, turn *turn, today clock.Date) (roster.Run, error) {
	run.Counts, run.Issues, run.Reasons, run.FaultCode, run.Fault = roster.Counts{}, 0, nil, "", ""
	p := &planner{tx: tx, run: run, turn: turn, today: today}
	if err := diff.Clear(ctx, tx, run.ID); err != nil {
		return run, err
	}
	if err := createStageTables(ctx, tx); err != nil {
		return run, fmt.Errorf("making the stage: %w", err)
	}
	err := p.file(ctx, q)
	var wrong *fault.Error
	switch {
	case errors.As(err, &wrong) && wrong.Kind == fault.Invalid:
		return p.refuse(ctx, wrong)
	case err != nil:
		return run, err
	}
	return p.run, p.flush(ctx)
}

// refuse drops the changes of a file that cannot be used. The issues stay, so that people can
// see what is wrong.
func (p *planner) refuse(ctx context.Context, wrong *fault.Error) (roster.Run, error) {
	p.run.State, p.run.FaultCode, p.run.Fault = roster.Refused, wrong.Code, wrong.Message
	p.run.Counts = roster.Counts{}
	p.changes, p.classes = nil, nil
	if err := p.flush(ctx); err != nil {
		return p.run, err
	}
	return p.run, nil
}

func (p *planner) file(ctx context.Context, q pg.Querier) error {
	if err := p.stage(ctx, q); err != nil {
		return err
	}
	for _, sql := range indexStage {
		if err := p.tx.Script(ctx, sql); err != nil {
			return fmt.Errorf("indexing the stage: %w", err)
		}
		if err := p.next(ctx, p.totals.Rows); err != nil {
			return err
		}
	}
	if err := p.people(ctx); err != nil {
		return err
	}
	if p.totals.Rows > 0 && p.usable == 0 {
		return p.nobody()
	}
	if p.run.Mode == roster.Snapshot {
		if err := p.leavers(ctx); err != nil {
			return err
		}
	} else if p.totals.Rows == 0 && !p.totals.DeltaPeople {
		return fault.New(fault.Invalid, "no_usable_people", "%s has a header line and no rows; send a row for each person", p.run.PeopleFile)
	}
	if err := p.seats(ctx); err != nil {
		return err
	}
	return p.settle(ctx)
}

// nobody is the fault of a file without a usable row; it has the first row's issue.
func (p *planner) nobody() error {
	detail := ""
	if p.first != nil {
		detail = fmt.Sprintf("; line %d: %s", p.first.Line, p.first.Message)
	}
	return fault.New(fault.Invalid, "no_usable_people", "no usable people in %d rows of %s%s", p.totals.Rows, p.run.PeopleFile, detail)
}

// settle decides the state of the planned run.
func (p *planner) settle(ctx context.Context) error {
	p.run.State = roster.Applying
	if p.run.Mode == roster.Snapshot {
		active, seats, err := selectTotals(ctx, p.tx, p.run)
		if err != nil {
			return err
		}
		t := p.totals
		t.Active, t.Seats, t.Deactivate, t.SeatsRemoved = active, seats, p.run.Deactivate, p.run.SeatsRemoved
		t.HadEnrollments = p.run.Source.HadEnrollments
		t.ApproveAlways, t.Percent = p.run.Source.Approval == roster.ApproveAlways, p.run.Source.GuardPercent
		t.Approved = p.run.Approved
		if p.run.Reasons = roster.Guards(t); len(p.run.Reasons) > 0 {
			p.run.State = roster.Held
		}
	}
	if p.run.DryRun {
		p.run.State = roster.Previewed
	}
	return nil
}

// stage copies the file's rows into temporary tables while it reads them.
func (p *planner) stage(ctx context.Context, q pg.Querier) error {
	upload := roster.OpenUpload(ctx, q, p.run)
	file, err := roster.Open(upload, p.run.Size, p.run.Form)
	p.run.PeopleFile, p.totals.PeopleFile = roster.PeopleFile, roster.PeopleFile
	if err == nil {
		p.run.PeopleFile, p.totals.PeopleFile = file.PeopleFile(), file.PeopleFile()
		if p.totals.DeltaPeople, p.totals.DeltaSeats = file.Delta(); p.totals.DeltaPeople || p.totals.DeltaSeats {
			if err := p.tx.Script(ctx, createGone); err != nil {
				return err
			}
		}
		err = p.stagePeople(ctx, file)
	}
	if roster.Empty(err) && p.run.Mode == roster.Snapshot {
		return nil // a guard holds it
	}
	if err != nil {
		return err
	}
	p.run.HasEnrollments, p.totals.HasEnrollments = file.HasEnrollments(), file.HasEnrollments()
	if p.hasSeats = file.HasSeats(); !p.hasSeats {
		return nil
	}
	err = p.stageSeats(ctx, file)
	if roster.Empty(err) && p.run.Mode == roster.Snapshot {
		return nil
	}
	return err
}

func (p *planner) stagePeople(ctx context.Context, file *roster.File) error {
	people, err := file.People(p.rules(ctx))
	if err != nil {
		return err
	}
	defer func() { _ = people.Close() }()
	err = p.copied(ctx, func(full func() bool) (over bool, err error) {
		stored := copyPeople(ctx, p.tx, func() *roster.Person {
			for !full() {
				row, notified, failed := people.Next()
				if err = failed; failed != nil {
					return nil
				}
				p.addIssues(notified)
				if row.Refused == roster.PassedOver {
					continue
				}
				p.totals.Rows++
				if row.Usable {
					p.usable++
				}
				if row.Refused != roster.Withdrawn {
					return &row
				}
				p.withdraw(row)
			}
			return nil
		})
		return ended(err, stored)
	})
	p.totals.Unreadable = people.Unreadable
	return err
}

// rules are those that reading the file goes by.
func (p *planner) rules(ctx context.Context) roster.Rules {
	return roster.Rules{Mode: p.run.Mode, Today: p.today, Name: student.CheckName, Email: func(text string) (string, error) {
		e, err := student.ParseEmail(text)
		return string(e), err
	}, Pause: func() error { return p.next(ctx, turnRows) }}
}

// withdraw notes a person whom the file calls withdrawn, as if the file lacked the row: in a snapshot of everybody that
// alone makes the person leave, in one of changes the note does.
func (p *planner) withdraw(row roster.Person) {
	if p.run.Mode == roster.Additive {
		p.run.Skip++
	} else if p.totals.DeltaPeople {
		p.gone = append(p.gone, row.ExternalID)
	}
}

func (p *planner) stageSeats(ctx context.Context, file *roster.File) error {
	seats, err := file.Seats(p.rules(ctx))
	if err != nil {
		return err
	}
	defer func() { _ = seats.Close() }()
	p.listed = seats.ListsClasses()
	err = p.copied(ctx, func(full func() bool) (over bool, err error) {
		stored := copySeats(ctx, p.tx, func() *roster.Seat {
			for !full() {
				row, notified, ok, failed := seats.Next()
				if err = failed; failed != nil {
					return nil
				}
				p.addIssues(notified)
				switch {
				case ok && !row.Gone:
					return &row
				case ok && p.run.Mode == roster.Snapshot && p.totals.DeltaSeats:
					p.ended = append(p.ended, row)
				}
			}
			return nil
		})
		return ended(err, stored)
	})
	p.totals.SeatRows, p.totals.SeatRowsUnreadable = seats.Rows, seats.Unreadable
	return err
}

// copied stores a section while it is read, group by group; in between it stores the issues found.
func (p *planner) copied(ctx context.Context, some func(full func() bool) (over bool, err error)) error {
	for {
		rows := 0
		over, err := some(func() bool { rows++; return rows > groupSize || len(p.issues) >= groupSize })
		if err != nil {
			return err
		}
		if err := p.next(ctx, rows); err != nil || over {
			return err
		}
	}
}

// ended says whether the section is over after a copy, or only one group of its rows. read is
// the reader's last error.
func ended(read, stored error) (over bool, err error) {
	switch {
	case stored != nil:
		return false, fmt.Errorf("staging: %w", stored)
	case errors.Is(read, io.EOF):
		return true, nil
	}
	return false, read
}

// people decides each row of people.
func (p *planner) people(ctx context.Context) error {
	return eachPerson(ctx, p.tx, p.run, func(rows []personRow) error {
		for _, row := range rows {
			d := roster.Decide(p.run.PeopleFile, row.Person, row.Duplicates, row.Match)
			p.count(d)
			p.addIssues(d.Issues)
			if d.LeftOut != "" && row.ExternalID != "" {
				p.refused = append(p.refused, refusal{row.ExternalID, d.LeftOut})
			}
			if p.last = max(p.last, row.N); d.Effects != 0 {
				c := change(row, d)
				if p.changes = append(p.changes, c); d.Effects.Has(roster.ReplaceIdentity) {
					p.replaced = append(p.replaced, c)
				}
			}
		}
		return p.next(ctx, len(rows))
	})
}

// change is the change that a decision about a row makes.
func change(row personRow, d roster.Decision) roster.Change {
	c := roster.Change{N: row.N, Line: row.Line, Action: d.Action, Effects: d.Effects, User: id.User(row.User), ExternalID: row.ExternalID,
		Email: row.Person.Email, FirstName: row.Person.FirstName, LastName: row.Person.LastName}
	if row.User == 0 || !row.Named {
		return c
	}
	if !d.Effects.Has(roster.ChangeProfile) {
		c.Email, c.FirstName, c.LastName = row.Match.Email, row.Match.FirstName, row.Match.LastName
	}
	c.BeforeID, c.BeforeEmail, c.BeforeFirst, c.BeforeLast = row.OtherID, row.Match.Email, row.Match.FirstName, row.Match.LastName
	if c.FirstName == "" { // a file without names changes none
		c.FirstName = c.BeforeFirst
	}
	if c.LastName == "" {
		c.LastName = c.BeforeLast
	}
	return c
}

func (p *planner) count(d roster.Decision) {
	switch c := &p.run.Counts; d.Action {
	case roster.Create:
		c.Create++
	case roster.Update:
		c.Update++
	case roster.Leave:
		c.Update++
		c.Deactivate++
	case roster.Skip:
		c.Skip++
	case roster.NoteAbsent:
	}
}

// leavers decides about people of the source who are missing from the snapshot.
func (p *planner) leavers(ctx context.Context) error {
	return eachLeaver(ctx, p.tx, p.run, p.totals.DeltaPeople, func(rows []leaverRow) error {
		for _, l := range rows {
			d := roster.DecideLeaver(p.run.PeopleFile, l.Leaver)
			p.count(d)
			p.addIssues(d.Issues)
			p.refused = append(p.refused, refusal{l.ExternalID, leaves})
			p.last++
			p.changes = append(p.changes, roster.Change{N: p.last, Action: d.Action, Effects: d.Effects, User: l.User, ExternalID: l.ExternalID,
				Email: l.Email, FirstName: l.FirstName, LastName: l.LastName})
		}
		return p.next(ctx, len(rows))
	})
}

// seats decides about classes and the seats in them.
func (p *planner) seats(ctx context.Context) error {
	if !p.hasSeats {
		return nil
	}
	if err := p.tx.Script(ctx, indexSeats); err != nil {
		return err
	}
	if err := p.next(ctx, p.totals.SeatRows); err != nil {
		return err
	}
	if err := eachClass(ctx, p.tx, p.run, func(rows []roster.ClassRow) error {
		for _, c := range rows {
			c.Unlisted = p.listed && !c.Listed
			p.class(c)
		}
		return p.next(ctx, len(rows))
	}); err != nil {
		return err
	}
	if p.run.Mode == roster.Snapshot && p.run.HasEnrollments {
		if err := eachMissingSeat(ctx, p.tx, p.run, p.totals.DeltaSeats, func(rows []roster.ClassChange) error {
			for _, c := range rows {
				p.addClass(c)
			}
			return p.next(ctx, len(rows))
		}); err != nil {
			return err
		}
	}
	return eachSeat(ctx, p.tx, p.run, func(rows []seatRow) error {
		for _, s := range rows {
			sit, notified := roster.DecideSeat(s.Seat, s.SeatHolder)
			p.addIssues(notified)
			if sit {
				p.addClass(roster.ClassChange{Action: roster.AddSeat, Class: s.Class, Person: s.Person})
			}
		}
		return p.next(ctx, len(rows))
	})
}

func (p *planner) class(c roster.ClassRow) {
	changes, notified := roster.DecideClass(c)
	p.addIssues(notified)
	for _, d := range changes {
		p.addClass(d)
	}
}

func (p *planner) addClass(c roster.ClassChange) {
	p.lastClass++
	c.N = p.lastClass
	p.classes = append(p.classes, c)
	switch n := &p.run.Counts; c.Action {
	case roster.CreateClass:
		n.ClassesCreated++
	case roster.RenameClass:
		n.ClassesRenamed++
	case roster.RescheduleClass:
		n.ClassesRescheduled++
	case roster.AddSeat:
		n.SeatsAdded++
	case roster.RemoveSeat:
		n.SeatsRemoved++
	}
}

func (p *planner) addIssues(notified []roster.Issue) {
	for i := range notified {
		if p.first == nil && notified[i].Severity == roster.Error {
			p.first = &notified[i]
		}
	}
	p.run.Issues += len(notified)
	if room := keptIssues - p.kept - len(p.issues); len(notified) > room {
		notified = notified[:max(room, 0)]
	}
	p.issues = append(p.issues, notified...)
}

// next ends a step that has worked on rows: it stores what was gathered, and passes the turn on.
func (p *planner) next(ctx context.Context, rows int) error {
	if err := p.flush(ctx); err != nil {
		return err
	}
	p.turn.did(rows)
	return p.turn.next(ctx)
}

// flush stores the issues, changes and refusals gathered so far.
func (p *planner) flush(ctx context.Context) error {
	if err := diff.AddIssues(ctx, p.tx, p.run.ID, int64(p.kept)+1, p.issues); err != nil {
		return fmt.Errorf("storing issues: %w", err)
	}
	if err := diff.AddChanges(ctx, p.tx, p.run.ID, p.changes); err != nil {
		return fmt.Errorf("storing changes: %w", err)
	}
	if err := diff.AddClassChanges(ctx, p.tx, p.run.ID, p.classes); err != nil {
		return fmt.Errorf("storing changes of classes: %w", err)
	}
	if err := copyRefused(ctx, p.tx, p.refused); err != nil {
		return err
	}
	if err := copyReplaced(ctx, p.tx, p.replaced); err != nil {
		return err
	}
	if err := copyGone(ctx, p.tx, p.gone, p.ended); err != nil {
		return err
	}
	p.kept += len(p.issues)
	p.issues, p.changes, p.classes, p.refused = p.issues[:0], p.changes[:0], p.classes[:0], p.refused[:0]
	p.replaced, p.gone, p.ended = p.replaced[:0], p.gone[:0], p.ended[:0]
	return nil
}
