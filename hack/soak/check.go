package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// check tells the model every accepted call and holds everything that is left behind against it.
func check(ctx context.Context, s *site, l *load, r *report) error {
	m, calls := newModel(), 0
	err := readLines(filepath.Join(s.dir, "accepted.jsonl"), func(o op) error {
		m.apply(o)
		calls++
		return nil
	})
	if err != nil {
		return err
	}
	r.checked("accepted calls told to the model", calls)
	c := &checker{site: s, model: m, report: r}
	for _, part := range []func(context.Context) error{c.accounts, c.enrollments, c.rosters, c.assignments, c.results, c.mails, c.webhooks, c.switches, c.gauges} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	for _, reader := range l.readers {
		c.followed(reader)
	}
	return c.neighbours(ctx, l.neighbours)
}

type checker struct {
	*site

	model  *model
	report *report
}

// nearMidnight says that the programs, whose clocks differ, may have had two opinions of the day.
func nearMidnight(t time.Time) bool {
	return day(t.Add(-15*time.Minute)) != day(t) || day(t.Add(5*time.Minute)) != day(t)
}

// rows are the rows of a statement as texts, sorted.
func (c *checker) rows(ctx context.Context, statement string) ([]string, error) {
	rows, err := c.db.Query(ctx, statement)
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

// followed holds what a reader with stored cursors came to know against the model.
func (c *checker) followed(r *reader) {
	var got, want []string
	for id, score := range r.last {
		got = append(got, fmt.Sprintf("%s %.1f", id, score))
	}
	for e, score := range c.model.scores {
		if e.org == r.org {
			want = append(want, fmt.Sprintf("%s %.1f", strings.TrimPrefix(e.subject, "result "), score))
		}
	}
	c.same("results that a reader followed in "+r.org, got, want)
}

func (c *checker) gauges(ctx context.Context) error {
	for _, p := range c.programs {
		if value, ok := p.gauge(ctx, "registrar_webhook_unaccounted_deliveries"); ok && value != "0" {
			c.report.find("%s counts %s unaccounted deliveries", p.Name, value)
		}
	}
	return ctx.Err()
}
