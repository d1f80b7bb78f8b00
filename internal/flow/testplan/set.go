package testplan

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Set carries out the target_score_plan of a provisioning call, in the call's transaction
// and after its enrollments; r nil is a call without one, whose moves may still concern a
// plan. quiet sends the student no mail, neither of the plan nor of a test that opens at once.
// Invalid lists every field that is refused: then the whole transaction is to be given up.
func (o *Service) Set(ctx context.Context, tx *pg.Tx, who org.Principal, a student.Account, moves []course.Move, r *plan.Request,
	quiet bool, now time.Time,
) (*wire.PlanAnswer, []string, error) {
	if err := touchMoved(ctx, tx, who.Organization.ID, moves, now); err != nil || r == nil {
		return nil, nil, err
	}
	s := &setting{Service: o, who: who, account: a, request: parsed(*r), quiet: quiet, now: now}
	if err := s.judge(ctx, tx, moves, plan.Doubts{}); err != nil {
		return nil, nil, err
	}
	if err := s.write(ctx, tx); err != nil {
		return nil, nil, err
	}
	answer, err := s.answer(ctx, tx)
	return answer, s.change.Warnings, err
}

// Check tells what Set would refuse of a call that is refused for other fields already, as
// far as the doubts leave it known. It writes nothing.
func (o *Service) Check(ctx context.Context, tx *pg.Tx, who org.Principal, a student.Account, moves []course.Move, r plan.Request,
	doubts plan.Doubts, now time.Time,
) error {
	s := &setting{Service: o, who: who, account: a, request: parsed(r), now: now}
	return s.judge(ctx, tx, moves, doubts)
}

// touchMoved: access that was prolonged may move a plan's last test day.
func touchMoved(ctx context.Context, tx *pg.Tx, o id.Organization, moves []course.Move, now time.Time) error {
	var moved []id.Enrollment
	for _, m := range moves {
		if m.Granted() && m.Before.ID != 0 {
			moved = append(moved, m.After.ID)
		}
	}
	if len(moved) == 0 {
		return nil
	}
	return plan.TouchEnrollments(ctx, tx, o, now, moved...)
}

// chosen is the enrollment that the settings are for: of the course that they name, else
// of the call's only one.
func chosen(moves []course.Move, name string) (course.Enrollment, error) {
	const field = plan.Block + ".course"
	switch {
	case len(moves) == 0:
		return course.Enrollment{}, fault.Field(plan.Block, "no_course",
			"%s: the settings go on a course of the same call; name one in courses or course_ids", plan.Block)
	case name == "" && len(moves) == 1:
		return moves[0].After, nil
	case name == "":
		return course.Enrollment{}, fault.Field(field, "missing", "%s: required, as the call names several courses; send a course type or course id", field)
	}
	var found []course.Enrollment
	for _, m := range moves {
		c := m.After.Course
		if strings.EqualFold(name, c.Type) || strings.EqualFold(name, c.TypeDisplay) || name == strconv.FormatInt(int64(c.ID), 10) {
			found = append(found, m.After)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return course.Enrollment{}, fault.Field(field, "unknown_course", "%s: %q is no course of this call; send a course type or course id that the call names", field, name)
	}
	return course.Enrollment{}, fault.Field(field, "ambiguous_course", "%s: the call names %d courses of the type %q; send the course id", field, len(found), name)
}

type setting struct {
	*Service
	who        org.Principal
	account    student.Account
	enrollment course.Enrollment
	request    request
	quiet      bool // the student is sent no mail
	now        time.Time

	// read
	plan   plan.Stored // the one on the enrollment; zero when there is none
	before plan.Snapshot
	terms  plan.Terms

	change plan.Change
}

// request is the block with its recipients read as addresses.
type request struct {
	plan.Request
	faults fault.List
}

func parsed(r plan.Request) request {
	p := request{Request: r}
	p.StaffRecipients = p.addresses("staff_recipients", r.StaffRecipients)
	p.ExtraRecipients = p.addresses("extra_recipients", r.ExtraRecipients)
	return p
}

func (r *request) addresses(field string, list []string) []string {
	if list == nil {
		return nil
	}
	read := []string{}
	seen := map[string]bool{}
	for _, text := range list {
		address, err := student.ParseEmail(text)
		switch {
		case err != nil:
			name := plan.Block + "." + field
			_ = r.faults.Add(fault.Field(name, "invalid_email", "%s: %q is no email address", name, text))
		case !seen[string(address)]:
			seen[string(address)] = true
			read = append(read, string(address))
		}
	}
	return read
}

// judge finds the course, reads what the student has and decides. Without the course, the
// settings are judged as far as they do not depend on it.
func (s *setting) judge(ctx context.Context, tx *pg.Tx, moves []course.Move, doubts plan.Doubts) (err error) {
	if !doubts.Courses && !slices.Contains(doubts.Unread, "course") {
		s.enrollment, err = chosen(moves, s.request.Course)
		if err := s.request.faults.Add(err); err != nil {
			return err
		}
	}
	if err := s.read(ctx, tx); err != nil {
		return err
	}
	s.terms.Doubts = doubts
	return s.decide()
}

func (s *setting) read(ctx context.Context, tx *pg.Tx) error {
	o := s.who.Organization.ID
	running, err := plan.LockRunning(ctx, tx, o, s.account.ID)
	if err != nil {
		return err
	}
	goals, err := plan.Goals(ctx, tx, o, s.enrollment.ID)
	if err != nil {
		return err
	}
	s.before = plan.Snapshot{Goal: goals[s.enrollment.ID]}
	if s.before.SafeExamBrowser, err = plan.SafeExamBrowser(ctx, tx, o, s.account.ID); err != nil {
		return err
	}
	today := clock.DateIn(s.now, s.Zone)
	status := s.enrollment.Status(today)
	s.terms = plan.Terms{Scale: scaleOf(s.enrollment.Course.Type), CourseName: s.enrollment.Course.Name,
		Suspended: status == course.EnrollmentSuspended, AccessStart: s.enrollment.StartDate, AccessEnd: s.enrollment.EndDate,
		AccessOver:       status == course.EnrollmentDropped || status == course.EnrollmentCompleted || status == course.EnrollmentExpired,
		BrowserAvailable: s.BrowserAvailable, Now: s.now}
	for _, p := range running {
		switch {
		case p.Enrollment == s.enrollment.ID:
			s.plan = p
			s.before.Goal, s.before.Status, s.before.Settings = p.Goal, p.Status, p.Settings
		case p.Exam == s.enrollment.Course.Type:
			s.terms.Elsewhere = p.CourseName
		}
	}
	staff, err := plan.Staff(ctx, tx, o)
	for _, m := range staff[o] {
		s.terms.Staff = append(s.terms.Staff, m.Email)
	}
	s.terms.DefaultStaff = plan.DefaultStaff(staff[o])
	return err
}

func (s *setting) decide() (err error) {
	faults := s.request.faults
	if s.change, err = plan.Set(s.before, s.request.Request, s.terms); err != nil {
		if err := faults.Add(err); err != nil {
			return err
		}
	}
	return faults.Err()
}

// write keeps what the call sets, and lets the plan act on it at once.
func (s *setting) write(ctx context.Context, tx *pg.Tx) error {
	c, o := s.change, s.who.Organization.ID
	var b pg.Batch
	if c.Has("safe_exam_browser") {
		plan.SetSafeExamBrowser(&b, o, s.account.ID, c.After.SafeExamBrowser, s.now)
	}
	if !c.After.Running() && (c.Has("target_score") || c.Has("exam_date") || c.Action == plan.Ended) {
		plan.SaveGoal(&b, o, s.enrollment.ID, c.After.Goal, s.now)
	}
	if err := b.Send(ctx, tx); err != nil {
		return err
	}
	switch c.Action {
	case plan.Created:
		return s.start(ctx, tx)
	case plan.Ended, plan.Updated:
		if s.plan.ID != 0 {
			return s.steer(ctx, tx)
		}
	case plan.Unchanged, plan.Left:
	}
	return nil
}

func (s *setting) start(ctx context.Context, tx *pg.Tx) (err error) {
	e := s.enrollment
	s.plan = plan.Stored{Organization: s.who.Organization.ID, User: s.account.ID, Enrollment: e.ID, Exam: e.Course.Type,
		Status: plan.Active, Goal: s.change.After.Goal, Settings: s.change.After.Settings, StartedAt: s.now,
		Course: e.Course.ID, CourseName: e.Course.Name, State: string(e.State), AccessStart: e.StartDate, AccessEnd: e.EndDate, GraceEnd: e.GracePeriodEnd}
	s.plan.Level = s.startLevel()
	if s.plan.ID, err = plan.Start(ctx, tx, s.plan, s.now); err != nil {
		return err
	}
	if !s.quiet {
		if err := s.notice(ctx, tx); err != nil {
			return err
		}
	}
	return s.act(ctx, tx, "created")
}

func (s *setting) startLevel() plan.Pace {
	zone, err := clock.Zone("timezone", s.plan.Settings.TimeZone)
	if err != nil {
		return plan.Standard // it was found a moment ago
	}
	return plan.StartLevel(clock.DateIn(s.now, zone), plan.LastDay(s.plan.Goal.ExamDate, s.enrollment.EndDate))
}

// steer changes or ends the running plan.
func (s *setting) steer(ctx context.Context, tx *pg.Tx) error {
	after := s.change.After
	s.plan.Goal, s.plan.AccessEnd, s.plan.AccessStart = after.Goal, s.enrollment.EndDate, s.enrollment.StartDate
	s.plan.GraceEnd, s.plan.State = s.enrollment.GracePeriodEnd, string(s.enrollment.State)
	event := "updated"
	if s.change.Action == plan.Ended {
		event, s.plan.Status, s.plan.ClosedAt, s.plan.AtRisk = "closed", plan.Closed, s.now, false
		return s.act(ctx, tx, event)
	}
	s.plan.Settings = after.Settings
	if s.change.Has("pace") && after.Settings.Pace == plan.Auto {
		s.plan.Level = s.startLevel()
	}
	return s.act(ctx, tx, event)
}

// act records the change as made by the API key, and does what it leads to.
func (s *setting) act(ctx context.Context, tx *pg.Tx, event string) error {
	entry := plan.Entry{At: s.now, Actor: s.who.Key.Name, Event: event, Detail: map[string]any{"changes": s.change.Names}}
	done, err := s.step(ctx, tx, s.now, false, work{plan: s.plan, changed: true, quiet: s.quiet, entries: []plan.Entry{entry}})
	if err == nil {
		s.plan = done[0].plan
	}
	return err
}

func (s *setting) answer(ctx context.Context, tx *pg.Tx) (*wire.PlanAnswer, error) {
	block := newBlock(s.enrollment, s.change.After.Goal, s.change.After.SafeExamBrowser)
	if s.plan.ID != 0 && s.plan.Status != plan.Closed {
		slots, err := plan.Slots(ctx, tx, s.plan.ID)
		if err != nil {
			return nil, err
		}
		block = withPlan(block, s.plan, slots[s.plan.ID])
	}
	return &wire.PlanAnswer{PlanBlock: block, Action: s.change.Action, Changes: s.change.Names}, nil
}
