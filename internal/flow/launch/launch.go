// Package launch handles launches of LTI 1.1 and 1.3: an organization's LMS sends a learner to the lti_link of
// an item (reference: catalog#catalog-items). In one transaction the learner becomes a student of
// the organization and is assigned the work.
package launch

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/domain/lti"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/notify"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Service handles launches.
type Service struct {
	DB    *pg.DB
	Clock clock.Clock
	Zone  *time.Location // the platform's: decides today
}

// Visitor is the learner of a launch and the work that it opens. The LMS's word signs the person in,
// with the organization's proof alone (student.ByOrganization).
type Visitor struct {
	Organization id.Organization
	Account      student.Account
	Item         catalog.Item
	// Result is the id of the result of work that the student finished before; "" if the launch assigned
	// the work, or found it open.
	Result string
}

// Take makes the learner of a verified launch a student, assigns the work and notes the sign-in. It changes nothing
// of a student or an open assignment that is there, so a launch may be repeated. Work that the
// student has finished is assigned again only if the catalog item says retake. NotFound for
// work that the organization cannot assign; Forbidden for staff and for people who are not
// learners; Conflict (no_access) for a student who was made inactive.
func (d *Service) Take(ctx context.Context, l lti.Launch, kind catalog.Kind, item id.Item) (visitor Visitor, err error) {
	work, err := d.work(ctx, l.Organization, kind, item)
	if err != nil {
		return Visitor{}, err
	}
	err = d.DB.InTx(ctx, func(tx *pg.Tx) error {
		visitor, err = d.visit(ctx, tx, l, work, func(Visitor) error { return nil })
		return err
	})
	return visitor, err
}

// Message is a verified one of LTI 1.3, of a launch that the LMS of the registration began and has brought back.
type Message struct {
	lms.Message

	Organization id.Organization
	Registration id.Registration
	State        string // of the launch
}

// TakeMessage is Take for LTI 1.3, where it takes the launch, too: a message that comes twice, or to two replicas, is taken once.
// Who has come before, or is in a roster that was pulled from the LMS, is found by the LMS's subject, whatever the address is by now. Invalid (used) for a launch that was
// taken; Conflict (other_subject) for a subject with the address of a student who is another one there.
func (d *Service) TakeMessage(ctx context.Context, m Message, kind catalog.Kind, item id.Item) (visitor Visitor, err error) {
	work, err := d.work(ctx, m.Organization, kind, item)
	if err != nil {
		return Visitor{}, err
	}
	err = d.DB.InTx(ctx, func(tx *pg.Tx) error {
		if err := lms.Finish(ctx, tx, m.Organization, m.State, d.Clock()); err != nil {
			return err
		}
		l := lti.Launch{Organization: m.Organization, Email: m.Email, FirstName: lti.Tidy(m.FirstName), LastName: lti.Tidy(m.LastName), Roles: m.Roles}
		known, err := lms.Person(ctx, tx, m.Organization, m.Registration, m.Subject)
		if err != nil {
			return err
		}
		if known == 0 {
			if known, err = selectRostered(ctx, tx, m); err != nil {
				return err
			}
		}
		if known != 0 {
			a, err := student.Find(ctx, tx, known)
			if err != nil {
				return err
			}
			l.Email = string(a.Email)
		}
		if l.Email == "" {
			return fault.Field("email", "missing",
				"email: the LMS did not send the learner's email address; switch on sharing it in the LMS's settings of this tool")
		}
		visitor, err = d.visit(ctx, tx, l, work, func(v Visitor) error {
			if known != 0 && v.Account.ID != known { // whose address has changed this moment
				return lms.ErrOther
			}
			if err := lms.Bind(ctx, tx, m.Organization, m.Registration, m.Subject, v.Account.ID, d.Clock()); err != nil || m.LineItem == "" {
				return err
			}
			return d.link(ctx, tx, m, v)
		})
		return err
	})
	return visitor, err
}

// link remembers where the marks of the work go, and has one that is final already sent.
func (d *Service) link(ctx context.Context, tx *pg.Tx, m Message, v Visitor) error {
	line := lms.Line{Registration: m.Registration, Address: m.LineItem, User: v.Account.ID, Item: v.Item.ID}
	last, err := result.LastFinal(ctx, tx, m.Organization, v.Account.ID, v.Item.ID)
	if err != nil {
		return err
	}
	var score *lms.Score
	if last.Score != nil && last.MaxScore != nil && last.FinalAt != nil {
		score = &lms.Score{Organization: m.Organization, User: v.Account.ID, Item: v.Item.ID, Value: *last.Score, Max: *last.MaxScore, At: *last.FinalAt}
	}
	return lms.Link(ctx, tx, m.Organization, line, score, d.Clock())
}

func (d *Service) work(ctx context.Context, o id.Organization, kind catalog.Kind, item id.Item) (catalog.Item, error) {
	work, err := catalog.Find(ctx, d.DB, o, kind, item)
	if fault.KindOf(err) == fault.NotFound {
		err = errWork
	}
	return work, err
}

// visit is a whole launch, in its transaction. What last does comes before new positions, whose counters are the last locks.
func (d *Service) visit(ctx context.Context, tx *pg.Tx, l lti.Launch, work catalog.Item, last func(Visitor) error) (Visitor, error) {
	address, err := student.ParseEmail(l.Email)
	if err != nil {
		return Visitor{}, err
	}
	l, now := tidyNames(l, address), d.Clock()
	v := &visit{launch: l, address: address, now: now, today: clock.DateIn(now, d.Zone), commitDay: notify.CommitDay(now, d.Zone)}
	if err := v.enter(ctx, tx); err != nil {
		return Visitor{}, err
	}
	if err := student.NoteLaunch(ctx, tx, l.Organization, v.snapshot.Account.ID, now); err != nil {
		return Visitor{}, err
	}
	done, err := v.assign(ctx, tx, work)
	if err != nil {
		return Visitor{}, err
	}
	visitor := Visitor{Organization: l.Organization, Account: v.snapshot.Account, Item: work, Result: done}
	if err := last(visitor); err != nil {
		return Visitor{}, err
	}
	var relist pg.Batch
	if v.returns {
		notify.Relist(&relist, l.Organization, v.snapshot.Account.ID)
	}
	return visitor, relist.Send(ctx, tx)
}

// tidyNames leaves out names that may not be sent. The learner, who cannot change them, is not turned
// away, and is called by the address.
func tidyNames(l lti.Launch, address student.Email) lti.Launch {
	if l.FirstName == "" || student.CheckName("first_name", l.FirstName) != nil {
		l.FirstName, _, _ = strings.Cut(string(address), "@")
	}
	if student.CheckName("last_name", l.LastName) != nil {
		l.LastName = ""
	}
	return l
}

// The faults of a verified launch.
var (
	errStaff = fault.New(fault.Forbidden, "staff", "you are on the organization's staff, and the link is for its students")
	errRole  = fault.New(fault.Forbidden, "no_learner", "the LMS did not send you as a learner, and the link is for students")
	errWork  = fault.New(fault.NotFound, "item_not_found", "the link leads to work that your institute does not offer; please tell whoever gave you the link")
	errGone  = fault.New(fault.Conflict, "no_access", "you have no access at present; please ask your institute")
)

// visit is one launch on its way through the transaction.
type visit struct {
	launch    lti.Launch
	address   student.Email
	now       time.Time
	today     clock.Date
	commitDay clock.Date // notify.CommitDay
	snapshot  notify.Snapshot
	returns   bool // the student comes back into the scope of lists
}

// enter makes the person a student.
func (v *visit) enter(ctx context.Context, tx *pg.Tx) error {
	if err := v.read(ctx, tx); err != nil {
		return err
	}
	if err := v.refuse(); err != nil {
		return err
	}
	return v.join(ctx, tx)
}

// read takes the address's lock, as provisioning does, and reads a snapshot.
func (v *visit) read(ctx context.Context, tx *pg.Tx) error {
	var first pg.Batch
	first.Lock(pg.LockEmail, string(v.address))
	student.Load(&first, v.launch.Organization, v.address, &v.snapshot.Account)
	if err := first.Send(ctx, tx); err != nil || v.snapshot.Account.ID == 0 {
		return err
	}
	var held course.Held
	var second pg.Batch
	org.LoadMember(&second, v.launch.Organization, v.snapshot.Account.ID, &v.snapshot.Member)
	course.LoadHeld(&second, v.launch.Organization, v.snapshot.Account.ID, "", &held)
	err := second.Send(ctx, tx)
	v.snapshot.Account, v.snapshot.Enrollments = v.snapshot.Account.SeenBy(v.launch.Organization), held.Enrollments
	return err
}

// refuse is the fault of a launch that is not allowed; nil for one that is. An inactive person
// stays inactive: the LMS does not know why they are.
func (v *visit) refuse() error {
	access := func(e course.Enrollment) bool { return e.HasAccess(v.today) }
	switch {
	case v.snapshot.Member.Role.Staff():
		return errStaff
	case !v.launch.Learner():
		return errRole
	case v.snapshot.Member.Status == org.MemberInactive && !slices.ContainsFunc(v.snapshot.Enrollments, access):
		return errGone
	}
	return nil
}

// join makes the account and the membership where they are missing, and records a new student.
func (v *visit) join(ctx context.Context, tx *pg.Tx) (err error) {
	o, before, known := v.launch.Organization, v.snapshot, v.snapshot.Account.ID != 0
	if !known {
		draft := student.Draft{Email: v.address, FirstName: v.launch.FirstName, LastName: v.launch.LastName, CreatedBy: o, CreatedVia: student.ViaLTI}
		if v.snapshot.Account, err = student.Create(ctx, tx, draft, v.now); err != nil {
			return err
		}
	}
	if v.snapshot.Member.Role == "" {
		var b pg.Batch
		if known {
			v.takeNames(&b)
		}
		v.snapshot.Member = org.AddMember(&b, o, v.snapshot.Account.ID, org.RoleMember, org.ViaLTI, v.now)
		v.returns = known && notify.Rejoins(before, v.snapshot, v.today, v.commitDay)
		if err := b.Send(ctx, tx); err != nil {
			return err
		}
	}
	if before.IsStudent(v.today) {
		return nil
	}
	return webhook.Record(ctx, tx, o, v.now, notify.Joined(v.snapshot, v.today))
}

// takeNames makes the launch's names the organization's for a person who has an account from
// elsewhere.
func (v *visit) takeNames(b *pg.Batch) {
	a := &v.snapshot.Account
	if a.Known() {
		return
	}
	a.FirstName, a.LastName = v.launch.FirstName, v.launch.LastName
	student.SetNames(b, v.launch.Organization, student.Name{User: a.ID, FirstName: a.FirstName, LastName: a.LastName})
}

// assign gives the work to the student, unless it is open already or finished. Then done is the id of its
// result.
func (v *visit) assign(ctx context.Context, tx *pg.Tx, item catalog.Item) (done string, err error) {
	o, a := v.launch.Organization, v.snapshot.Account
	if !item.Retake {
		if done, err = assignment.FinishedResult(ctx, tx, o, a.ID, item.ID); err != nil || done != "" {
			return done, err
		}
	}
	made, created, err := assignment.Assign(ctx, tx, o, assignment.Draft{User: a.ID, Item: item.ID, Kind: string(item.Kind),
		Source: assignment.ViaLTI}, v.now)
	if err != nil || !created {
		return "", err
	}
	_, event := notify.Assigned(made, a, item, v.now)
	return "", webhook.Record(ctx, tx, o, v.now, event)
}
