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

// Call is what a provisioning call says that can concern test plans.
type Call struct {
	Who     org.Principal   // the organization, and the key that the plan's history names
	Account student.Account // zero when it is not known
	Moves   []course.Move   // what the call does to the student's enrollments
	Request *plan.Request   // its target_score_plan; nil when it has none
	Quiet   bool            // send the student no mail, neither of the plan nor of a test that opens at once
	Now     time.Time
}

// Set carries out the target_score_plan of a provisioning call and returns the block of the
// answer, nil for a call without one, and the call's warnings. It runs in the call's transaction,
// after the enrollments are written. A call without the block can concern a plan too: access that
// it extends can move the plan's last test day. Invalid lists every field that is refused; roll
// the whole transaction back then.
func (o *Service) Set(ctx context.Context, tx *pg.Tx, c Call) (*wire.PlanAnswer, []string, error) {
	if err := touchMoved(ctx, tx, c); err != nil || c.Request == nil {
		return nil, nil, err
	}
	s := &setting{Service: o, Call: c, request: parsed(*c.Request)}
	if err := s.judge(ctx, tx, plan.Doubts{}); err != nil {
		return nil, nil, err
	}
	if err := s.write(ctx, tx); err != nil {
		return nil, nil, err
	}
	answer, err := s.answer(ctx, tx)
	return answer, s.change.Warnings, err
}

// Check returns what Set would refuse of the call's target_score_plan, for a call that is refused
// for other fields already. It leaves out what cannot be known because of the doubts, and writes
// nothing.
func (o *Service) Check(ctx context.Context, tx *pg.Tx, c Call, doubts plan.Doubts) error {
	s := &setting{Service: o, Call: c, request: parsed(*c.Request)}
	return s.judge(ctx, tx, doubts)
}

// touchMoved has the plans on renewed enrollments decided again.
func touchMoved(ctx context.Context, tx *pg.Tx, c Call) error {
	var moved []id.Enrollment
	for _, m := range c.Moves {
		if m.Granted() && m.Before.ID != 0 {
			moved = append(moved, m.After.ID)
		}
	}
	if len(moved) == 0 {
		return nil
	}
	return plan.TouchEnrollments(ctx, tx, c.Who.Organization.ID, c.Now, moved...)
}

// chosen returns the enrollment that the settings are for: in the course that they name, or in the
// call's only course.
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

// setting is a call's target_score_plan while it is carried out.
type setting struct {
	*Service
	Call
	request request

	// read
	enrollment course.Enrollment // that the settings are for
	plan       plan.Stored       // the one on the enrollment; zero when there is none
	over       []plan.Stored     // plans whose exam is over, which this call closes
	before     plan.Snapshot
	terms      plan.Terms

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

// judge finds the course, reads what the student has and decides. When the course is unknown, it checks
// what does not depend on it.
func (s *setting) judge(ctx context.Context, tx *pg.Tx, doubts plan.Doubts) (err error) {
	if !doubts.Courses && !slices.Contains(doubts.Unread, "course") {
		s.enrollment, err = chosen(s.Moves, s.request.Course)
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
	o := s.Who.Organization.ID
	running, err := plan.LockRunning(ctx, tx, o, s.Account.ID)
	if err != nil {
		return err
	}
	goals, err := plan.Goals(ctx, tx, o, s.enrollment.ID)
	if err != nil {
		return err
	}
	s.before = plan.Snapshot{Goal: goals[s.enrollment.ID]}
	if s.before.SafeExamBrowser, err = plan.SafeExamBrowser(ctx, tx, o, s.Account.ID); err != nil {
		return err
	}
	today := clock.DateIn(s.Now, s.Zone)
	status := s.enrollment.Status(today)
	s.terms = plan.Terms{Scale: scaleOf(s.enrollment.Course.Type), CourseName: s.enrollment.Course.Name,
		Suspended: status == course.EnrollmentSuspended, AccessStart: s.enrollment.StartDate, AccessEnd: s.enrollment.EndDate,
		AccessOver:       status == course.EnrollmentDropped || status == course.EnrollmentCompleted || status == course.EnrollmentExpired,
		BrowserAvailable: s.BrowserAvailable, Now: s.Now}
	for _, p := range running {
		switch {
		case p.ExamOver(s.Now): // the daily pass has not come to it yet
			s.over = append(s.over, p)
			if p.Enrollment == s.enrollment.ID {
				s.before.Goal = p.Goal
			}
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

// write stores what the call sets, and decides the plan at once.
func (s *setting) write(ctx context.Context, tx *pg.Tx) error {
	c, o := s.change, s.Who.Organization.ID
	for _, p := range s.over {
		if _, err := s.step(ctx, tx, s.Now, false, work{plan: p, quiet: s.Quiet}); err != nil {
			return err
		}
	}
	var b pg.Batch
	if c.Has("safe_exam_browser") {
		plan.SetSafeExamBrowser(&b, o, s.Account.ID, c.After.SafeExamBrowser, s.Now)
	}
	if !c.After.Running() && (c.Has("target_score") || c.Has("exam_date") || c.Action == plan.Ended) {
		plan.SaveGoal(&b, o, s.enrollment.ID, c.After.Goal, s.Now)
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
	s.plan = plan.Stored{Organization: s.Who.Organization.ID, User: s.Account.ID, Enrollment: e.ID, Exam: e.Course.Type,
		Status: plan.Active, Goal: s.change.After.Goal, Settings: s.change.After.Settings, StartedAt: s.Now,
		Course: e.Course.ID, CourseName: e.Course.Name, State: e.State, AccessStart: e.StartDate, AccessEnd: e.EndDate, GraceEnd: e.GracePeriodEnd}
	s.plan.Level = s.startLevel()
	if s.plan.ID, err = plan.Start(ctx, tx, s.plan, s.Now); err != nil {
		return err
	}
	if !s.Quiet {
		if err := s.notice(ctx, tx); err != nil {
			return err
		}
	}
	return s.act(ctx, tx, "created")
}

func (s *setting) startLevel() plan.Pace {
	zone, err := clock.Zone("timezone", s.plan.TimeZone)
	if err != nil {
		return plan.Standard // does not happen: plan.Set has checked the zone
	}
	return plan.StartLevel(clock.DateIn(s.Now, zone), plan.LastDay(s.plan.ExamDate, s.enrollment.EndDate))
}

// steer changes or ends the running plan.
func (s *setting) steer(ctx context.Context, tx *pg.Tx) error {
	after := s.change.After
	s.plan.Goal, s.plan.AccessEnd, s.plan.AccessStart = after.Goal, s.enrollment.EndDate, s.enrollment.StartDate
	s.plan.GraceEnd, s.plan.State = s.enrollment.GracePeriodEnd, s.enrollment.State
	event := "updated"
	if s.change.Action == plan.Ended {
		event, s.plan.Status, s.plan.ClosedAt, s.plan.AtRisk = "closed", plan.Closed, &s.Now, false
		return s.act(ctx, tx, event)
	}
	s.plan.Settings = after.Settings
	if s.change.Has("pace") && after.Settings.Pace == plan.Auto {
		s.plan.Level = s.startLevel()
	}
	return s.act(ctx, tx, event)
}

// act records the change in the API key's name, and decides the plan.
func (s *setting) act(ctx context.Context, tx *pg.Tx, event string) error {
	detail := map[string]any{"changes": s.change.Names}
	if event == "updated" {
		detail["values"] = s.change.Values(s.before)
	}
	entry := plan.Entry{At: s.Now, Actor: s.Who.Key.Name, Event: event, Detail: detail}
	done, err := s.step(ctx, tx, s.Now, false, work{plan: s.plan, changed: true, quiet: s.Quiet, entries: []plan.Entry{entry}})
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
