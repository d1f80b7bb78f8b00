// Package plansim runs students through test plans: random people on a real database, with
// the code that the API server and the worker run and a clock that is moved on hour by hour.
// What they do is drawn from a seed. Rules holds what happened against the scheduler's rules.
package plansim

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/flow/enrollment"
	"github.com/registrar-dev/registrar/internal/flow/provision"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/flow/work"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// Options say what is simulated.
type Options struct {
	Students int
	Days     int
	Seed     uint64
}

// World is a simulation. Its database is one that nobody else uses.
type World struct {
	Options
	db     *pg.DB
	now    time.Time
	random *rand.Rand

	plans  *testplan.Service
	people *provision.Service
	status *enrollment.Service
	engine *work.Service

	schools []school
	pupils  []*pupil
	byUser  map[id.User]*pupil
	agenda  map[int][]func(context.Context) error // by hour
	sits    map[int][]work.Record
	read    id.Assignment // the last one that was looked at
	papers  map[id.Item]string
	broken  []string // rules
}

// school is an organization with a catalog of its own.
type school struct {
	org.Principal
	full, section int // papers of each exam, and of each of its sections
	gains         int // days after which its catalog gains a paper of each scope; 0: never
	share         int // of the students, in parts of all shares
}

// catalogs are rich, without any section paper, and so thin that papers run out.
var catalogs = []struct {
	slug string
	school
}{
	{"simulated", school{full: 24, section: 14, share: 6}},
	{"mocks", school{full: 24, share: 2}},
	{"thin", school{full: 5, section: 2, gains: 20, share: 2}},
}

// begin is when simulations start: before clocks change in most zones.
var begin = time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)

// New makes the organization, its staff and papers.
func New(ctx context.Context, db *pg.DB, o Options) (*World, error) {
	keyset, err := seal.NewKeyset()
	if err != nil {
		return nil, err
	}
	box, err := seal.New(keyset)
	if err != nil {
		return nil, err
	}
	const base = "https://registrar.example"
	w := &World{Options: o, db: db, now: begin, random: rand.New(rand.NewPCG(o.Seed, 1)), byUser: map[id.User]*pupil{},
		agenda: map[int][]func(context.Context) error{}, sits: map[int][]work.Record{}, papers: map[id.Item]string{}}
	at, mail := func() time.Time { return w.now }, email.Service{Box: box}
	w.plans = &testplan.Service{DB: db, Mail: mail, Clock: at, Log: slog.New(slog.DiscardHandler), Zone: time.UTC, PublicURL: base, BrowserAvailable: true}
	w.people = &provision.Service{DB: db, Mail: mail, Clock: at, Zone: time.UTC, PublicURL: base, Plans: w.plans}
	w.status = &enrollment.Service{DB: db, Clock: at, Zone: time.UTC}
	w.engine = &work.Service{DB: db, Clock: at, Zone: time.UTC, PublicURL: base}
	if err := w.build(ctx); err != nil {
		return nil, err
	}
	for i := range o.Students {
		w.enlist(i)
	}
	return w, nil
}

func (w *World) build(ctx context.Context) error {
	for _, c := range catalogs {
		if err := w.found(ctx, c.slug, c.school); err != nil {
			return err
		}
	}
	return nil
}

// found makes an organization with an owner and its papers.
func (w *World) found(ctx context.Context, slug string, s school) error {
	_, err := w.db.Exec(ctx, `INSERT INTO organizations (slug, name, language_tests_enabled, default_access_months, grace_period_days, starter_tests_per_course,
			visible_tests_limit, send_welcome_email_default, set_password_link_valid_days, created_at, updated_at)
		VALUES ($1, 'School ' || $1, true, 6, 7, 0, 10, true, 7, now(), now())`, slug)
	if err != nil {
		return err
	}
	organization, err := org.Find(ctx, w.db, slug)
	if err != nil {
		return err
	}
	s.Principal = org.Principal{Organization: organization, Key: org.Key{Name: "Simulation", Access: org.Full}}
	w.schools = append(w.schools, s)
	_, err = w.db.Exec(ctx, `WITH a AS (
			INSERT INTO accounts (email, username, first_name, last_name, created_via, created_at, updated_at)
			VALUES ('owner@' || $2 || '.school', 'owner-' || $2, 'Olive', 'Owner', 'api', now(), now()) RETURNING id)
		INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at) SELECT $1, id, 'owner', 'active', 'api', now(), now() FROM a`,
		organization.ID, slug)
	if err != nil {
		return err
	}
	if s.gains > 0 {
		for day := s.gains; day < w.Days; day += s.gains {
			w.at(day*24, func(ctx context.Context) error { return w.stock(ctx, s, 1, 1, fmt.Sprintf("of day %d", day)) })
		}
	}
	return w.stock(ctx, s, s.full, s.section, "first")
}

// stock adds papers to a school's catalog, as the platform does.
func (w *World) stock(ctx context.Context, s school, full, section int, batch string) error {
	rows, err := w.db.Query(ctx, `
		INSERT INTO catalog_items (organization_id, kind, code, title, type, scope, max_score_e4, difficulty_e4, created_at, updated_at)
		SELECT $3, 'test', $4 || t.type || '-' || t.scope || '-' || i, t.type || ' ' || t.scope || ' ' || i || ', ' || $4, t.type, t.scope, t.most * 10000, t.low * 10000 + i * t.step, now(), now()
		FROM (VALUES ('ielts', 'full', 9, 4, 1500), ('ielts', 'listening', 9, 4, 2500), ('ielts', 'reading', 9, 4, 2500), ('ielts', 'writing', 9, 4, 2500), ('ielts', 'speaking', 9, 4, 2500),
			('sat', 'full', 1600, 900, 300000), ('sat', 'reading_writing', 800, 400, 200000), ('sat', 'math', 800, 400, 200000)) AS t(type, scope, most, low, step),
		LATERAL generate_series(1, CASE t.scope WHEN 'full' THEN $1::integer ELSE $2::integer END) AS i
		RETURNING id, scope`, full, section, s.Organization.ID, batch)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var item id.Item
		var scope string
		if err := rows.Scan(&item, &scope); err != nil {
			return err
		}
		w.papers[item] = scope
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for exam := range exams {
		if err := w.db.InTx(ctx, func(tx *pg.Tx) error { return plan.TouchUnfilled(ctx, tx, s.Organization.ID, exam, w.now) }); err != nil {
			return err
		}
	}
	return nil
}

// Run lets the time go by, hour by hour; progress is called at each day's end.
func (w *World) Run(ctx context.Context, progress func(day int)) error {
	for hour := range w.Days * 24 {
		w.now = begin.Add(time.Duration(hour) * time.Hour)
		if err := w.hour(ctx, hour); err != nil {
			return fmt.Errorf("%v: %w", w.now, err)
		}
		if hour%24 == 23 {
			if err := w.checkDay(ctx); err != nil {
				return err
			}
			progress(hour/24 + 1)
		}
	}
	return nil
}

// hour does what people do in it, and then what the worker does.
func (w *World) hour(ctx context.Context, hour int) error {
	for _, do := range w.agenda[hour] {
		if err := do(ctx); err != nil {
			return err
		}
	}
	delete(w.agenda, hour)
	if records := w.sits[hour]; len(records) > 0 {
		outcomes, err := w.engine.Work(ctx, records)
		if err != nil {
			return err
		}
		for i, o := range outcomes {
			if o.Err != nil {
				return fmt.Errorf("session %s: %w", records[i].Session, o.Err)
			}
		}
		delete(w.sits, hour)
	}
	if err := w.work(ctx); err != nil {
		return err
	}
	return w.snapshot(ctx, hour)
}

// work is the worker's part: pending steps, the daily pass, and what the calendar does.
func (w *World) work(ctx context.Context) error {
	if _, err := w.status.Sweep(ctx); err != nil {
		return err
	}
	for {
		claimed, err := outbox.Claim(ctx, w.db, task.PlanStep, w.now, time.Hour, 1000)
		if err != nil {
			return err
		}
		for _, o := range claimed {
			if err := w.plans.Step(ctx, task.Outbox{Task: o.ID, Claim: o.Claim}); err != nil {
				return err
			}
		}
		if len(claimed) == 0 {
			break
		}
	}
	_, err := w.plans.Sweep(ctx)
	return err
}

// set provisions the pupil with settings of a plan, as a partner does.
func (w *World) set(ctx context.Context, p *pupil, r plan.Request) error {
	a, err := w.people.Student(ctx, p.school.Principal, provision.Command{Email: p.email, FirstName: "Student", LastName: p.name, Courses: []string{p.exam},
		TenureMonths: p.months, Plan: &r})
	if err != nil {
		return fmt.Errorf("%s: %w", p.email, err)
	}
	if p.user == 0 {
		p.user, p.enrollment = a.UserID, a.Enrollments[0].EnrollmentID
		w.byUser[p.user] = p
		p.months = 0
		return w.db.QueryRow(ctx, `SELECT id FROM plans WHERE user_id = $1`, p.user).Scan(&p.plan)
	}
	return nil
}

func dateOf(t time.Time, zone *time.Location) clock.Date { return clock.DateIn(t, zone) }
