package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// check tells the model every accepted call and holds everything that is left behind against it.
func check(ctx context.Context, s *site, l *load, r *report) error {
	c := &checker{site: s, model: newModel(), report: r, watched: l.orgs[:min(watched, len(l.orgs))]}
	calls, lost := 0, 0
	err := readJournal(filepath.Join(s.dir, "accepted.jsonl"),
		func(o op) { c.model.apply(o); calls++ }, func(o op) { c.model.lose(o); lost++ })
	if err != nil {
		return err
	}
	r.counted("accepted calls told to the model", calls)
	r.counted("accepted calls that restores have undone", lost)
	if c.events, err = c.known(ctx); err != nil {
		return err
	}
	if c.received, err = c.boxes(); err != nil {
		return err
	}
	for _, part := range []struct {
		rule string
		hold func(context.Context) error
	}{
		{"accounts, memberships and courses are what was asked for, once", func(ctx context.Context) error {
			return errors.Join(c.accounts(ctx), c.enrollments(ctx), c.rosters(ctx))
		}},
		{"assignments and results are what was asked for, once", func(ctx context.Context) error {
			return errors.Join(c.assignments(ctx), c.results(ctx))
		}},
		{"each mail is received once, at most", c.mails},
		{"each event reaches each URL", c.webhooks},
		{"first attempts about a student come in order", c.order},
		{"a receiver that stores results by their id has what the list shows", c.states},
		{"what is pulled is what is pushed", func(context.Context) error { return c.pulled(l.readers) }},
		{"stored cursors miss nothing, and readers are told of what restores have lost", func(ctx context.Context) error { return c.followed(ctx, l.readers) }},
		{"URLs are switched off at their fiftieth failure in a row", c.switches},
		{"plans keep their rules", c.plans},
		{"sandboxes live as a quiet one does", func(ctx context.Context) error { return c.years(ctx, l.years) }},
		{"an LMS has the last mark of each student", func(context.Context) error { c.marks(l.lms); return nil }},
		{"an organization learns nothing of what its students have elsewhere, and ends no link or password of theirs", func(ctx context.Context) error { return c.neighbours(ctx, l.neighbours) }},
		{"programs count what they cannot account for", c.gauges},
	} {
		if err := r.hold(part.rule, func() error { return part.hold(ctx) }); err != nil {
			return fmt.Errorf("%s: %w", part.rule, err)
		}
	}
	return nil
}

type checker struct {
	*site

	model    *model
	report   *report
	watched  []string          // organizations
	events   map[string]string // the organization, by the event's id
	received map[string]*inbox // by the name of the log and the URL's path
}

// known are the events that the site has.
func (c *checker) known(ctx context.Context) (map[string]string, error) {
	rows, err := c.db.Query(ctx, `
		SELECT 'evt_' || replace(v.id::text, '-', ''), o.slug FROM webhook_events v JOIN organizations o ON o.id = v.organization_id WHERE v.type <> 'ping'`)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	var id, org string
	_, err = pgx.ForEachRow(rows, []any{&id, &org}, func() error {
		found[id] = org
		return nil
	})
	return found, err
}

// nearMidnight says that the programs, whose clocks differ, may have had two opinions of the day.
func nearMidnight(t time.Time) bool {
	return day(t.Add(-15*time.Minute)) != day(t) || day(t.Add(5*time.Minute)) != day(t)
}

// rows are the rows of a statement as texts, sorted.
func (c *checker) rows(ctx context.Context, statement string, args ...any) ([]string, error) {
	rows, err := c.db.Query(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	slices.Sort(lines)
	return lines, err
}

// same reports up to three things that only one side has.
func (c *checker) same(what string, got, want []string) {
	slices.Sort(got)
	slices.Sort(want)
	c.report.checked(what, len(want))
	var shown int
	for _, difference := range differences(got, want) {
		if shown++; shown <= 3 {
			c.report.find("%s: %s", what, difference)
		}
	}
	if shown > 3 {
		c.report.find("%s: %d more like these", what, shown-3)
	}
}

// number reports a count that is not the model's.
func (c *checker) number(what string, got, want int) {
	c.report.checked(what, want)
	if got != want {
		c.report.find("%s: %d, and %d in the model", what, got, want)
	}
}

// differences of two sorted lists.
func differences(got, want []string) (found []string) {
	for len(got) > 0 || len(want) > 0 {
		switch {
		case len(want) == 0 || len(got) > 0 && got[0] < want[0]:
			found, got = append(found, "not in the model: "+got[0]), got[1:]
		case len(got) == 0 || want[0] < got[0]:
			found, want = append(found, "only in the model: "+want[0]), want[1:]
		default:
			got, want = got[1:], want[1:]
		}
	}
	return found
}

func (c *checker) accounts(ctx context.Context) error {
	got, err := c.rows(ctx, `SELECT format('%s %s', email, id) FROM accounts WHERE created_via = 'api'`)
	if err != nil {
		return err
	}
	var want []string
	for key, s := range c.model.students {
		_, email, _ := strings.Cut(key, " ")
		want = append(want, fmt.Sprintf("%s %d", email, s.user))
	}
	slices.Sort(want)
	want = slices.Compact(want) // students of two organizations
	c.same("accounts", got, want)
	got, err = c.rows(ctx, `SELECT format('%s %s %s', o.slug, m.user_id, m.status) FROM members m JOIN organizations o ON o.id = m.organization_id WHERE m.created_via = 'api'`)
	want = nil
	for key, s := range c.model.students {
		org, _, _ := strings.Cut(key, " ")
		want = append(want, fmt.Sprintf("%s %d active", org, s.user))
	}
	c.same("memberships", got, want)
	return err
}

func (c *checker) enrollments(ctx context.Context) error {
	got, err := c.rows(ctx, `
		SELECT format('%s %s %s %s %s %s', e.id, e.user_id, c.course_type, e.state, e.start_date, e.end_date) FROM enrollments e JOIN courses c ON c.id = e.course_id`)
	if err != nil {
		return err
	}
	var want, refs []string
	for _, s := range c.model.students {
		for course, e := range s.enrolled {
			state := "running"
			if e.suspended {
				state = "suspended"
			}
			line := func(start time.Time) string {
				return fmt.Sprintf("%d %d %s %s %s %s", e.id, s.user, course, state, start.Format(time.DateOnly), e.end(start).Format(time.DateOnly))
			}
			want = append(want, c.eitherDay(got, e.granted, line))
			for ref := range e.refs {
				refs = append(refs, fmt.Sprintf("%d %s", e.id, ref))
			}
		}
	}
	c.same("enrollments with their dates", got, want)
	got, err = c.rows(ctx, `SELECT format('%s %s', enrollment_id, ref) FROM enrollment_refs`)
	c.same("references of extensions", got, refs)
	return err
}

// eitherDay is the line for the day on which it happened; around midnight the day before or after
// is right too, where the site has that.
func (c *checker) eitherDay(got []string, at time.Time, line func(time.Time) string) string {
	if nearMidnight(at) {
		for _, n := range []int{-1, 1} {
			if other := line(day(at).AddDate(0, 0, n)); slices.Contains(got, other) {
				return other
			}
		}
	}
	return line(day(at))
}

func (c *checker) rosters(ctx context.Context) error {
	got, err := c.rows(ctx, `
		SELECT format('%s %s %s', o.slug, a.email, m.status) FROM members m JOIN accounts a ON a.id = m.user_id JOIN organizations o ON o.id = m.organization_id WHERE m.created_via = 'roster'`)
	var want []string
	for org, school := range c.model.rosters {
		for _, p := range school.people {
			status := "inactive"
			if p.here {
				status = "active"
			}
			want = append(want, fmt.Sprintf("%s %s %s", org, p.email, status))
		}
	}
	c.same("people of rosters", got, want)
	return err
}

func (c *checker) assignments(ctx context.Context) error {
	const columns = `SELECT format('test-assignment:%s %s %s', a.id, a.user_id, CASE WHEN a.status = 'completed' THEN 'done' WHEN a.overdue_at IS NOT NULL THEN 'overdue' ELSE 'open' END) FROM assignments a `
	got, err := c.rows(ctx, columns+`WHERE a.source = 'api' AND a.status <> 'completed'`)
	if err != nil {
		return err
	}
	var want []string
	done, plans := 0, 0
	for _, s := range c.model.students {
		for item, a := range s.open {
			state := "open"
			if s.due[item] {
				state = "overdue"
			}
			want = append(want, fmt.Sprintf("%s %d %s", a, s.user, state))
		}
		done += s.finished
		if s.hasPlan {
			plans++
		}
	}
	c.same("open assignments", got, want)
	var doneRows, planRows, baselines int
	err = c.db.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM assignments WHERE source = 'api' AND status = 'completed'), (SELECT count(*) FROM plans WHERE status = 'active'),
		       (SELECT count(*) FROM assignments WHERE source = 'plan')`).Scan(&doneRows, &planRows, &baselines)
	c.number("finished assignments", doneRows, done)
	c.number("test plans", planRows, plans)
	c.number("first tests of plans", baselines, plans)
	return err
}

func (c *checker) results(ctx context.Context) error {
	got, err := c.rows(ctx, `SELECT format('%s %s %s', o.slug, r.ref, round(r.score_e4 / 10000.0, 1)) FROM results r JOIN organizations o ON o.id = r.organization_id WHERE r.position IS NOT NULL`)
	var want []string
	for e, score := range c.model.scores {
		want = append(want, fmt.Sprintf("%s %s %.1f", e.org, strings.TrimPrefix(e.subject, "result "), score))
	}
	c.same("results with their last score", got, want)
	return err
}

func (c *checker) gauges(ctx context.Context) error {
	for _, p := range c.programs {
		if value, ok := p.gauge(ctx, "registrar_webhook_unaccounted_deliveries"); ok && value != "0" {
			c.report.find("%s counts %s unaccounted deliveries", p.Name, value)
		}
	}
	return ctx.Err()
}
