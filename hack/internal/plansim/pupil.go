package plansim

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/flow/work"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// pupil is somebody who prepares for an exam.
type pupil struct {
	school            school
	name, email, exam string
	zone              *time.Location
	months            int
	joined            int // the hour
	target            decimal.Number
	examDay           clock.Date // zero: none
	pace              plan.Pace

	// Steps of the exam's scale: what the person can do, gains in ten days, and how much a
	// day's form and the sections differ.
	ability, gain float64
	sections      []float64
	diligence     float64 // the share of tests that are done

	user       id.User
	enrollment id.Enrollment
	plan       id.Plan
	sessions   int
}

var (
	zones = []string{"Asia/Kolkata", "Asia/Kolkata", "America/Havana", "America/Santiago", "Africa/Cairo", "Pacific/Kiritimati", "Pacific/Apia",
		"Europe/London", "America/New_York", "Asia/Kathmandu", "UTC", "Australia/Lord_Howe"}
	paces = []plan.Pace{plan.Auto, plan.Auto, plan.Auto, plan.Intensive, plan.Standard, plan.Light, plan.Custom}
)

// scale is what the simulation knows of an exam: where scores begin, what a step is, how
// many steps people reach and a section's names.
type scale struct {
	low, step, most float64
	sections        []string
	sectionLow      float64
}

var exams = map[string]scale{
	"ielts": {low: 0, step: 0.5, most: 18, sections: []string{"listening", "reading", "writing", "speaking"}},
	"sat":   {low: 400, step: 10, most: 120, sections: []string{"reading_writing", "math"}, sectionLow: 200},
}

// enlist draws a pupil and what will happen to them.
func (w *World) enlist(i int) {
	r := w.random
	p := &pupil{school: w.choose(), name: fmt.Sprintf("No. %d", i), email: fmt.Sprintf("s%d@simulated.school", i), exam: "ielts", pace: paces[r.IntN(len(paces))], months: 3 + r.IntN(4),
		joined: r.IntN(max(w.Days*24/4, 1)), diligence: 0.45 + 0.55*r.Float64(), gain: 0.4 * r.Float64()}
	p.zone, _ = clock.Zone("zone", zones[r.IntN(len(zones))]) // they are known
	p.ability = 9.5 + 2*r.NormFloat64()
	aim := p.ability + 3*r.Float64()
	if r.IntN(5) == 0 {
		p.exam = "sat"
		p.ability, p.gain = 60+15*r.NormFloat64(), 3*r.Float64()
		aim = p.ability + 20*r.Float64()
	}
	e := exams[p.exam]
	for range e.sections {
		p.sections = append(p.sections, e.most/30*r.NormFloat64())
	}
	p.target = w.number(e.low+e.step*math.Round(min(max(aim, 1), e.most)), e.step)
	start := dateOf(begin.Add(time.Duration(p.joined)*time.Hour), p.zone)
	if r.IntN(10) > 0 {
		p.examDay = start.AddDays(12 + r.IntN(100))
	}
	w.pupils = append(w.pupils, p)
	w.at(p.joined, func(ctx context.Context) error { return w.set(ctx, p, w.wishes(p)) })
	w.fate(p)
}

// choose draws a school by the shares.
func (w *World) choose() school {
	all := 0
	for _, s := range w.schools {
		all += s.share
	}
	n := w.random.IntN(all)
	for _, s := range w.schools {
		if n -= s.share; n < 0 {
			return s
		}
	}
	return w.schools[0]
}

func (w *World) at(hour int, do func(context.Context) error) {
	w.agenda[hour] = append(w.agenda[hour], do)
}

func (w *World) number(v, step float64) decimal.Number {
	return decimal.Number(math.Round(math.Round(v/step) * step * 1e4))
}

// wishes are the settings with which the plan begins.
func (w *World) wishes(p *pupil) plan.Request {
	on, zone := true, p.zone.String()
	r := plan.Request{TargetScore: &p.target, TestPlan: &on, TimeZone: &zone, Pace: &p.pace, ExtraRecipients: []string{"parent@simulated.school"}}
	if !p.examDay.IsZero() {
		r.ExamDate = &p.examDay
	}
	if p.pace == plan.Custom {
		n := 1 + w.random.IntN(14)
		r.CustomIntervalDays = &n
	}
	if p.exam == "ielts" && w.random.IntN(4) == 0 {
		r.SectionMinimums = map[string]decimal.Number{"writing": max(p.target-decimal.One, 0)}
	}
	if w.random.IntN(5) == 0 {
		off := false
		r.PracticeDrills = &off
	}
	return r
}

// fate is what happens to a plan from outside: to one in three something does.
func (w *World) fate(p *pupil) {
	r, hours := w.random, w.Days*24
	when := p.joined + 24*(3+r.IntN(40))
	later := when + 24*(2+r.IntN(12))
	if later >= hours {
		return
	}
	settle := func(of plan.Request) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := w.set(ctx, p, of); err != nil && !refused(err) {
				return err
			}
			return nil
		}
	}
	staff := func(do func(context.Context, id.Plan) error) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := do(ctx, p.plan); err != nil && !refused(err) {
				return err
			}
			return nil
		}
	}
	switch r.IntN(21) {
	case 0: // the exam is moved earlier
		if d := p.examDay.AddDays(-10); !p.examDay.IsZero() {
			w.at(when, settle(plan.Request{ExamDate: &d}))
		}
	case 1: // or later
		if d := p.examDay.AddDays(25); !p.examDay.IsZero() {
			w.at(when, settle(plan.Request{ExamDate: &d}))
		}
	case 2:
		w.at(when, staff(func(ctx context.Context, which id.Plan) error {
			_, err := w.plans.Pause(ctx, audit.Platform, which)
			return err
		}))
		w.at(later, staff(func(ctx context.Context, which id.Plan) error {
			_, err := w.plans.Resume(ctx, audit.Platform, which)
			return err
		}))
	case 3:
		w.at(when, w.enrollment(p, course.Suspended))
		w.at(later, w.enrollment(p, course.Running))
	case 4:
		off := false
		w.at(when, settle(plan.Request{TestPlan: &off}))
	case 5:
		w.at(when, w.enrollment(p, course.Completed))
	case 6:
		pace := plan.Light
		w.at(when, settle(plan.Request{Pace: &pace}))
	}
}

func (w *World) enrollment(p *pupil, state course.State) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := w.status.ChangeEnrollment(ctx, audit.Platform, p.school.Organization, p.enrollment, course.Change{State: &state})
		if err != nil && !refused(err) {
			return err
		}
		return nil
	}
}

// snapshot finds what was assigned since, and lets the students decide what they do with it.
func (w *World) snapshot(ctx context.Context, hour int) error {
	rows, err := w.db.Query(ctx, `SELECT id, user_id, item_id FROM assignments WHERE id > $1 ORDER BY id`, w.read)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var user id.User
		var item id.Item
		if err := rows.Scan(&w.read, &user, &item); err != nil {
			return err
		}
		p := w.byUser[user]
		if w.random.Float64() < p.diligence {
			within := 50
			if w.random.IntN(10) == 0 {
				within = 240 // perhaps long after it is due
			}
			w.sit(p, hour+1+w.random.IntN(within), w.read, item)
		}
	}
	return rows.Err()
}

// sit is a session of the test engine: most are scored at once, a few are held for review or
// left lying, reported days later or marked again.
func (w *World) sit(p *pupil, hour int, given id.Assignment, item id.Item) {
	p.sessions++
	at := begin.Add(time.Duration(hour) * time.Hour)
	r := work.Record{Kind: catalog.Test, Session: fmt.Sprintf("%d-%d", p.user, p.sessions), Organization: p.school.Organization.Slug, User: p.user, Item: item,
		Assignment: fmt.Sprintf("test-assignment:%d", given), Attempt: result.Assigned, State: result.Started, StartedAt: &at}
	fate := w.random.IntN(50)
	if fate == 0 {
		w.sits[hour] = append(w.sits[hour], r) // and never finished
		return
	}
	r.State, r.CompletedAt = result.Finished, &at
	r.Mark = w.mark(p, hour, w.papers[item])
	if fate < 4 {
		held, out := r, hour+24*(1+w.random.IntN(5))
		held.State, held.Mark = result.Held, catalog.Mark{}
		released := begin.Add(time.Duration(out) * time.Hour)
		r.State, r.ReleasedAt = result.Released, &released
		w.sits[hour] = append(w.sits[hour], held)
		hour = out
	}
	if fate >= 4 && fate < 10 {
		hour += 1 + w.random.IntN(72) // an engine that was cut off
	}
	w.sits[hour] = append(w.sits[hour], r)
	if fate >= 9 && fate < 13 {
		r.Mark = w.mark(p, hour, w.papers[item])
		hour += 24 * (1 + w.random.IntN(10))
		w.sits[hour] = append(w.sits[hour], r)
	}
}

// mark draws a score from what the person can do by then.
func (w *World) mark(p *pupil, hour int, scope string) catalog.Mark {
	e := exams[p.exam]
	days := float64(hour-p.joined) / 24
	form := p.ability + p.gain*days/10 + e.most/36*w.random.NormFloat64()
	sections := map[string]decimal.Number{}
	for i, name := range e.sections {
		steps := (form + p.sections[i]) / float64(max(1, int(e.low/200))) // a SAT section has half of the steps
		low, high := e.sectionLow, e.sectionLow+e.step*e.most
		if p.exam == "sat" {
			high = 800
		}
		sections[name] = w.number(min(max(low+e.step*math.Round(steps), low), high), e.step)
	}
	if scope != plan.FullScope {
		score := sections[scope]
		return catalog.Mark{Score: &score}
	}
	return catalog.Mark{Sections: sections}
}
