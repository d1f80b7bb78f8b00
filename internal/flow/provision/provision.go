// Package provision onboards one student: account, membership, enrollments, events and
// the welcome mail, in one transaction (reference: provisioning#rules).
//
// Calls for one address run one after the other, under a lock that the transaction holds, so a
// call may be repeated at any time. One batch reads all that a call needs to know and another
// writes what it decides: a creation takes three round trips to PostgreSQL, a repeat two.
package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/notify"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Service provisions students.
type Service struct {
	DB        *pg.DB
	Mail      email.Service
	Clock     clock.Clock
	Zone      *time.Location // the platform's: decides today
	PublicURL string         // the base of every link, without a slash at its end
	Watch     *email.Watch   // where calls may wait for their mail
	Plans     *testplan.Service

	gate gate
}

// maxTries is how often a call is tried when the account changes under it.
const maxTries = 5

// Student provisions one student and returns what was done. Forbidden as for Allow; Invalid
// lists every fault of the command, and then nothing was saved.
func (o *Service) Student(ctx context.Context, who org.Principal, cmd Command) (Answer, error) {
	if err := Allow(who); err != nil {
		return Answer{}, err
	}
	address, faults := cmd.check()
	now := o.Clock()
	fresh := call{Service: o, who: who, cmd: cmd, address: address, now: now, today: clock.DateIn(now, o.Zone)}
	if faults.Err() != nil {
		return Answer{}, fresh.refuse(ctx, faults)
	}
	leave, err := o.gate.enter(ctx, address)
	if err != nil {
		return Answer{}, err
	}
	defer leave()
	for range maxTries {
		if fresh.details, err = o.prepare(ctx, &fresh); err != nil {
			return Answer{}, err
		}
		var a Answer
		if a, err = fresh.transact(ctx); !errors.Is(err, errStale) {
			return a, err
		}
	}
	return Answer{}, err
}

// transact carries out a copy of the call, as it may have to run again.
func (c call) transact(ctx context.Context) (a Answer, err error) {
	err = c.DB.InTx(ctx, func(tx *pg.Tx) error {
		c := c
		if err := c.read(ctx, tx); err != nil {
			return err
		}
		if err := c.plan(); err != nil {
			var faults fault.List
			if err := faults.Add(err); err != nil {
				return err
			}
			return c.checkBlock(ctx, tx, &faults)
		}
		if err := c.write(ctx, tx); err != nil {
			return err
		}
		a = c.answer() // committed; a mail has its number now
		return nil
	})
	return a, err
}

// refuse adds to the faults of the fields what else is wrong with the call, so that one answer
// has every fault.
func (c call) refuse(ctx context.Context, faults *fault.List) error {
	if !faults.Has("username") && c.cmd.Username != "" {
		c.details.username, _ = student.ParseUsername(c.cmd.Username)
		c.details.derived = student.DerivedFrom(c.details.username, c.address)
	}
	return c.DB.InTx(ctx, func(tx *pg.Tx) error {
		c, faults := c, faults.Copy() // copies: the transaction may run again
		snapshot := c.read
		if c.address == "" {
			snapshot = c.readOffer
		}
		if err := snapshot(ctx, tx); err != nil {
			return err
		}
		_ = faults.Add(c.checkName()) // a fault or nil
		err := c.planCourses()
		if c.address == "" { // without a student, only unknown courses can be found
			err = course.Unknown(c.cmd.request(), c.offer)
		}
		if err := faults.Add(err); err != nil {
			return err
		}
		return c.checkBlock(ctx, tx, faults)
	})
}

// checkBlock adds what is wrong with the target_score_plan, as far as the other faults allow to
// say, and returns all faults.
func (c *call) checkBlock(ctx context.Context, tx *pg.Tx, faults *fault.List) error {
	if c.cmd.Plan == nil {
		return faults.Err()
	}
	named := len(c.cmd.Courses)+len(c.cmd.CourseIDs) > 0
	doubts := plan.Doubts{Student: c.address == "", Courses: faults.Has("courses") || faults.Has("course_ids") || named && len(c.moves) == 0,
		Access: faults.Has("tenure_months") || faults.Has("extend_access") || faults.Has("external_ref")}
	for _, name := range plan.Fields {
		if faults.Has(plan.Block + "." + name) {
			doubts.Unread = append(doubts.Unread, name)
		}
	}
	if err := faults.Add(c.Plans.Check(ctx, tx, c.planCall(), doubts)); err != nil {
		return err
	}
	return faults.Err()
}

// call is one command and what its transaction reads, decides and writes.
type call struct {
	*Service
	who     org.Principal
	cmd     Command
	address student.Email
	now     time.Time
	today   clock.Date

	// read
	account student.Account // zero until it is made
	member  org.Member      // likewise
	offer   course.Offer
	held    course.Held
	latest  email.Record // the last onboarding mail; the one that the call sends, once it is written

	nameTaken bool // the sent username is another account's

	// prepared before the transaction
	details details

	// decided and written
	created  bool // the account
	named    bool // an account that existed: the sent names are the organization's from now on
	applied  bool // sign-in details to an account that existed
	joined   joining
	moves    []course.Move
	warnings []string
	starters []int        // tests placed, for each move
	link     student.Link // of the answer; zero: none may be handed out
	mailing  mailing
	block    *wire.PlanAnswer // nil: the call has no target_score_plan
}

// joining is what the call does to the membership.
type joining int

const (
	memberUnchanged joining = iota
	memberCreated
	memberReactivated
)

// read takes the address's lock and reads, in the same round trip, the account, what the
// organization has of its student, and the courses that the call names.
func (c *call) read(ctx context.Context, tx *pg.Tx) error {
	in, request := c.who.Organization.ID, c.cmd.request()
	var b pg.Batch
	b.Lock(pg.LockEmail, string(c.address))
	if c.cmd.sends() {
		student.LoadLocked(&b, in, c.address, &c.account) // nobody signs in for the first time meanwhile
	} else {
		student.Load(&b, in, c.address, &c.account)
	}
	if c.details.username != "" {
		student.LookUpUsername(&b, c.details.username, c.address, &c.nameTaken)
	}
	course.LoadOffer(&b, in, request, &c.offer)
	org.LoadMemberBy(&b, in, string(c.address), &c.member)
	course.LoadHeldBy(&b, in, string(c.address), c.cmd.ExternalRef, &c.held)
	email.LoadLatest(&b, in, string(c.address), &c.latest)
	if err := b.Send(ctx, tx); err != nil {
		return fmt.Errorf("reading what the call is about: %w", err)
	}
	return c.offer.Complete(ctx, tx, request)
}

// readOffer is read for a call without an address.
func (c *call) readOffer(ctx context.Context, tx *pg.Tx) error {
	var b pg.Batch
	course.LoadOffer(&b, c.who.Organization.ID, c.cmd.request(), &c.offer)
	if err := b.Send(ctx, tx); err != nil {
		return fmt.Errorf("reading what the call names: %w", err)
	}
	return c.offer.Complete(ctx, tx, c.cmd.request())
}

// plan decides without I/O. Invalid lists every fault.
func (c *call) plan() error {
	c.created = c.account.ID == 0
	var faults fault.List
	if err := faults.Add(c.planDetails()); err != nil {
		return err
	}
	if err := faults.Add(c.planCourses()); err != nil {
		return err
	}
	c.joined = c.join()
	c.takeNames()
	return faults.Err()
}

func (c *call) planCourses() (err error) {
	terms := course.Terms{AccessMonths: c.who.Organization.Defaults.AccessMonths, GraceDays: c.who.Organization.Defaults.GracePeriodDays}
	moves, warnings, err := course.Plan(c.cmd.request(), c.offer, c.held, terms, c.today)
	c.moves, c.warnings = moves, append(c.warnings, warnings...)
	return err
}

// join decides about the membership. Any course that is not skipped makes an inactive member
// active again, as a student: an API key cannot make anybody staff.
func (c *call) join() joining {
	switch {
	case c.member.Role == "":
		return memberCreated
	case c.member.Status == org.MemberActive:
		return memberUnchanged
	case slices.ContainsFunc(c.moves, func(m course.Move) bool { return m.Action != course.Skipped }):
		if c.member.Role.Staff() {
			c.warn("the membership was ended as %s and is a student's now; the roles of staff are given in the platform", c.member.Role)
		}
		return memberReactivated
	}
	c.warn("the membership is inactive and stays so; name a course to reactivate it")
	return memberUnchanged
}

// takeNames takes the names for a person of whom the organization has none yet, and warns of others:
// what an organization calls a person stays as it was first sent (reference: students#names).
func (c *call) takeNames() {
	a := &c.account
	if c.created {
		return
	}
	if !a.Known() || a.FirstName+a.LastName == "" {
		a.FirstName, a.LastName, c.named = c.cmd.FirstName, c.cmd.LastName, c.cmd.FirstName+c.cmd.LastName != ""
		return
	}
	if c.cmd.FirstName != a.FirstName {
		c.warn("first_name: the student keeps the name %q, which was sent first; %q was ignored", a.FirstName, c.cmd.FirstName)
	}
	if c.cmd.LastName != "" && c.cmd.LastName != a.LastName {
		c.warn("last_name: the student keeps the name %q, which was sent first; %q was ignored", a.LastName, c.cmd.LastName)
	}
}

func (c *call) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// changed says whether the call changed something that the onboarding mail is about. Sending a
// mail is not a change.
func (c *call) changed() bool {
	return c.created || c.applied || c.joined != memberUnchanged || slices.ContainsFunc(c.moves, course.Move.Granted)
}

// write carries the decisions out.
func (c *call) write(ctx context.Context, tx *pg.Tx) (err error) {
	org := c.who.Organization.ID
	before := notify.Snapshot{Account: c.account.SeenBy(org), Member: c.member, Enrollments: c.held.Enrollments}
	if c.created {
		draft := student.Draft{Email: c.address, Username: c.details.username, FirstName: c.cmd.FirstName, LastName: c.cmd.LastName,
			PasswordHash: c.details.hash, MustChangePassword: c.cmd.mode() == ModeGenerate, CreatedBy: org, CreatedVia: student.ViaAPI}
		if c.account, err = student.Create(ctx, tx, draft, c.now); err != nil {
			return err
		}
	}
	if err := course.EnsureDefaults(ctx, tx, org, c.moves, c.now); err != nil {
		return err
	}
	b := &pg.Batch{}
	if c.named {
		student.SetNames(b, org, student.Name{User: c.account.ID, FirstName: c.account.FirstName, LastName: c.account.LastName})
	}
	c.writeMember(b)
	c.writeDetails(b)
	c.markNotified(b)
	course.Enroll(b, org, c.account.ID, c.moves, c.today, c.now)
	c.placeStarters(b)
	if c.account.Untouched(org) {
		c.link = student.IssueLink(b, org, c.account.ID, c.who.Organization.Defaults.SetPasswordLinkValidDays, c.now)
	}
	if c.cmd.Plan != nil {
		c.enter(b)
	}
	if c.cmd.Plan != nil || slices.ContainsFunc(c.moves, unfinished) {
		if err := student.Named(b.Send(ctx, tx)); err != nil {
			return fmt.Errorf("writing membership and enrollments: %w", err)
		}
		b = &pg.Batch{}
	}
	after := notify.Snapshot{Account: c.account.SeenBy(org), Member: c.member, Enrollments: c.enrollmentsAfter()}
	if err := webhook.Write(ctx, b, org, c.now, notify.Changes(before, after, c.today)...); err != nil {
		return err
	}
	if c.cmd.Plan != nil { // whose first test has an event as well, which comes after these
		if err := b.Send(ctx, tx); err != nil {
			return fmt.Errorf("writing events: %w", err)
		}
		b = &pg.Batch{}
	}
	if err := c.writePlan(ctx, tx); err != nil {
		return err
	}
	if c.cmd.By.Kind != "" {
		entry := audit.Entry{Organization: org, Actor: c.cmd.By, Action: c.cmd.Does, Target: string(c.address), At: c.now}
		if err := audit.Write(ctx, tx, entry); err != nil {
			return err
		}
	}
	if err := c.writeMail(ctx, b); err != nil {
		return err
	}
	if c.cmd.Plan == nil {
		c.enter(b)
	}
	if !c.created && notify.Rejoins(before, after, c.today, notify.CommitDay(c.now, c.Zone)) {
		notify.Relist(b, org, c.account.ID)
	}
	if err := student.Named(b.Commit(ctx, tx)); err != nil {
		return fmt.Errorf("writing events and the mail: %w", err)
	}
	return nil
}

// unfinished says whether a move has to be written before the rest: what follows needs the id of
// a new enrollment, or the plan of one that is renewed.
func unfinished(m course.Move) bool {
	return m.Granted() && (m.Before.ID != 0 || m.After.ID == 0)
}

// writePlan comes last but for the mail: assigning a plan's first test locks the
// organization's assignments until the commit.
func (c *call) writePlan(ctx context.Context, tx *pg.Tx) error {
	block, warnings, err := c.Plans.Set(ctx, tx, c.planCall())
	c.block, c.warnings = block, append(c.warnings, warnings...)
	return err
}

func (c *call) planCall() testplan.Call {
	return testplan.Call{Who: c.who, Account: c.account, Moves: c.moves, Request: c.cmd.Plan, Quiet: !c.sendsMail(), Now: c.now}
}

// placeStarters gives starter tests with new courses only: renewed ones have had them.
func (c *call) placeStarters(b *pg.Batch) {
	o := c.who.Organization
	c.starters = make([]int, len(c.moves))
	for i, m := range c.moves {
		if m.Action == course.Created {
			catalog.PlaceStarters(b, catalog.Placement{Organization: o.ID, User: c.account.ID, Course: m.After.Course.ID, Type: m.After.Course.Type,
				PerCourse: o.Defaults.StarterTestsPerCourse, Limit: o.Defaults.VisibleTestsLimit}, c.now, &c.starters[i])
		}
	}
}

func (c *call) writeMember(b *pg.Batch) {
	o := c.who.Organization.ID
	switch c.joined {
	case memberCreated:
		c.member = org.NewMember(org.RoleMember, org.ViaAPI, c.now)
	case memberReactivated:
		c.member = org.Readmit(b, o, c.account.ID, c.member, c.now)
	case memberUnchanged:
	}
}

// enter writes a new membership, which takes the organization's next position for students: as late as
// possible, but before a plan's first test takes one for assignments, as everywhere.
func (c *call) enter(b *pg.Batch) {
	if c.joined == memberCreated {
		org.InsertMember(b, c.who.Organization.ID, c.account.ID, c.member)
	}
}

// markNotified stores that receivers know the state of the student's enrollments: the events of
// this call include changes by the calendar that no sweep has found yet.
func (c *call) markNotified(b *pg.Batch) {
	for i := range c.moves {
		if m := &c.moves[i]; m.Granted() {
			m.After = m.After.MarkNotified(c.today)
		}
	}
	for _, e := range c.held.Enrollments {
		granted := slices.ContainsFunc(c.moves, func(m course.Move) bool { return m.Granted() && m.After.ID == e.ID })
		if !granted && e.NotifiedStatus(c.today) != e.Status(c.today) {
			course.Save(b, c.who.Organization.ID, e.MarkNotified(c.today), c.today, c.now)
		}
	}
}

// enrollmentsAfter are the student's enrollments after the call, by id.
func (c *call) enrollmentsAfter() []course.Enrollment {
	all := slices.Clone(c.held.Enrollments)
	for _, m := range c.moves {
		if i := slices.IndexFunc(all, func(e course.Enrollment) bool { return e.ID == m.After.ID }); i >= 0 {
			all[i] = m.After
		} else {
			all = append(all, m.After)
		}
	}
	slices.SortFunc(all, func(a, b course.Enrollment) int { return int(a.ID - b.ID) })
	return all
}
