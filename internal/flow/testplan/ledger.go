package testplan

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/notify"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// ledger collects what the plans of one step write, and holds what was read for all of them. The
// number of round trips does not depend on the number of plans, except for one for each organization
// with endpoints.
type ledger struct {
	*Service
	tx  *pg.Tx
	now time.Time

	batch     pg.Batch
	unchanged []id.Plan // plans that stay as they are
	nextRuns  []time.Time
	mails     []email.Message
	handouts  []handout

	organizations map[id.Organization]org.Organization
	accounts      map[plan.Student]student.Account
	browsers      map[plan.Student]bool
	papers        plan.PaperPool
	drills        map[id.Plan][]plan.Drilled // of plans that close, or whose news has waited
	items         map[id.Item]catalog.Item
	staff         map[id.Organization][]plan.StaffMember // where staff get a mail
}

// handout is a paper that a student gets, as a test or as a drill after one.
type handout struct {
	job   *job
	test  plan.Test
	slot  *plan.Slot // nil for a drill
	after int        // the slot that a drill is given after
}

// read loads what the jobs that are not idle need.
func (l *ledger) read(ctx context.Context, jobs []*job) (err error) {
	var busy, wanting []plan.Stored
	var drilled []id.Plan
	orgs := map[id.Organization]bool{}
	for _, j := range jobs {
		if j.idle() {
			continue
		}
		busy = append(busy, j.plan)
		orgs[j.plan.Organization] = true
		if j.closes() || len(j.plan.News) > 0 {
			drilled = append(drilled, j.plan.ID)
		}
		if j.wants {
			wanting = append(wanting, j.plan)
		}
	}
	if len(busy) == 0 {
		return nil
	}
	if err = l.readAccounts(ctx, busy); err != nil {
		return err
	}
	if l.organizations, err = org.ReadAll(ctx, l.tx, slices.Collect(maps.Keys(orgs))...); err != nil {
		return err
	}
	if err := l.readDrills(ctx, drilled); err != nil {
		return err
	}
	if l.browsers, err = plan.Browsers(ctx, l.tx, wanting...); err != nil {
		return err
	}
	l.papers, err = plan.Papers(ctx, l.tx, wanting...)
	return err
}

// readAccounts loads the plans' students, each as the plan's organization calls the person.
func (l *ledger) readAccounts(ctx context.Context, plans []plan.Stored) error {
	orgs, users := make([]id.Organization, len(plans)), make([]id.User, len(plans))
	for i, p := range plans {
		orgs[i], users[i] = p.Organization, p.User
	}
	called, err := student.FindCalled(ctx, l.tx, orgs, users)
	l.accounts = make(map[plan.Student]student.Account, len(called))
	for _, c := range called {
		l.accounts[plan.Student{Organization: c.Organization, User: c.ID}] = c.Account
	}
	return err
}

func (l *ledger) readDrills(ctx context.Context, plans []id.Plan) error {
	if len(plans) == 0 {
		return nil
	}
	all, err := plan.Drills(ctx, l.tx, plans...)
	l.drills = map[id.Plan][]plan.Drilled{}
	for _, d := range all {
		l.drills[d.Plan] = append(l.drills[d.Plan], d)
	}
	return err
}

// readItems loads the papers that are given now, and those of new results and of news.
func (l *ledger) readItems(ctx context.Context, jobs []*job) (err error) {
	papers, orgs := map[id.Item]bool{}, map[id.Organization]bool{}
	for _, j := range jobs {
		for _, a := range j.actions {
			if a.Do == plan.OpenTest || a.Do == plan.Drill || a.Do == plan.Shorten {
				papers[id.Item(a.Test.Paper)], orgs[j.plan.Organization] = true, true
			}
		}
		for _, s := range j.finished {
			papers[id.Item(s.Paper)], orgs[j.plan.Organization] = true, true
		}
		for _, n := range j.plan.News {
			papers[id.Item(n.Paper)], orgs[j.plan.Organization] = true, true
		}
	}
	if len(papers) > 0 {
		l.items, err = catalog.LoadMany(ctx, l.tx, slices.Collect(maps.Keys(orgs)), slices.Collect(maps.Keys(papers)))
	}
	return err
}

// readStaff loads the staff of organizations where a job mails staff.
func (l *ledger) readStaff(ctx context.Context, jobs []*job) (err error) {
	orgs := map[id.Organization]bool{}
	for _, j := range jobs {
		alerts := func(a plan.Action) bool { return a.Do == plan.Unfill || a.Do == plan.Risk && a.AtRisk }
		if len(j.finished) > 0 || slices.ContainsFunc(j.actions, alerts) {
			orgs[j.plan.Organization] = true
		}
	}
	if len(orgs) > 0 {
		l.staff, err = plan.Staff(ctx, l.tx, slices.Collect(maps.Keys(orgs))...)
	}
	return err
}

// close writes what was collected. Assigning comes last: it takes the organization's next positions,
// and everybody else who assigns there waits until the commit.
func (l *ledger) close(ctx context.Context) error {
	records := make([]email.Record, len(l.mails))
	for i, m := range l.mails {
		if err := l.Mail.Write(ctx, &l.batch, l.now, m, &records[i]); err != nil {
			return err
		}
	}
	if len(l.unchanged) > 0 {
		plan.Reschedule(&l.batch, l.unchanged, l.nextRuns)
	}
	if err := l.batch.Send(ctx, l.tx); err != nil || len(l.handouts) == 0 {
		return err
	}
	return l.assign(ctx)
}

// assign gives the students their papers until the end of the due days, and records the events.
func (l *ledger) assign(ctx context.Context) error {
	drafts := make([]assignment.Placed, len(l.handouts))
	for i, g := range l.handouts {
		p, item := g.job.plan, l.items[id.Item(g.test.Paper)]
		due := plan.DueAt(g.test.DueOn, g.job.seen.Zone)
		drafts[i] = assignment.Placed{Organization: p.Organization, Draft: assignment.Draft{User: p.User, Item: item.ID,
			Kind: string(item.Kind), Source: assignment.ViaPlan, Notify: true, DueAt: &due}}
	}
	made, created, err := assignment.AssignAll(ctx, l.tx, drafts, l.now)
	if err != nil {
		return err
	}
	var saves pg.Batch
	events := map[id.Organization][]webhook.Event{}
	for i, g := range l.handouts {
		if g.slot != nil {
			g.slot.Assignment = made[i].ID
			plan.SaveSlot(&saves, g.job.plan.ID, *g.slot)
		} else {
			plan.SaveDrill(&saves, g.job.plan.ID, g.after, g.test, made[i].ID)
		}
		if o := drafts[i].Organization; created[i] {
			_, event := notify.Assigned(made[i], l.accounts[plan.Student{Organization: o, User: made[i].User}], l.items[made[i].Item], l.now)
			events[o] = append(events[o], event)
		}
	}
	if err := saves.Send(ctx, l.tx); err != nil {
		return err
	}
	for _, o := range slices.Sorted(maps.Keys(events)) {
		if err := webhook.Record(ctx, l.tx, o, l.now, events[o]...); err != nil {
			return err
		}
	}
	return nil
}

// takeBack ends those of the assignments that the student has not begun.
func (j *job) takeBack(ctx context.Context, given ...id.Assignment) error {
	found, err := assignment.Lock(ctx, j.tx, j.plan.Organization, given)
	if err != nil {
		return err
	}
	var ended []assignment.Assignment
	for _, a := range found {
		if a.Status == assignment.Pending {
			a.Status = assignment.Expired
			ended = append(ended, a)
		}
	}
	return assignment.Save(ctx, j.tx, j.plan.Organization, ended, j.now)
}

// takeBackDrills ends the drills that the student has not begun.
func (j *job) takeBackDrills(ctx context.Context) error {
	var given []id.Assignment
	for _, d := range j.drills[j.plan.ID] {
		if d.Status == string(assignment.Pending) {
			given = append(given, d.Assignment)
			j.note("drill_withdrawn", map[string]any{"slot": d.Slot, "section": d.Section, "title": d.Title})
		}
	}
	return j.takeBack(ctx, given...)
}

func (j *job) redate(ctx context.Context, given id.Assignment, due time.Time) error {
	return assignment.Redate(ctx, j.tx, j.plan.Organization, given, due, j.now)
}
