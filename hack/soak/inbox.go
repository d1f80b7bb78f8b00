package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/hack/stack"
)

// inbox is what one URL received.
type inbox struct {
	org    string
	flaky  bool
	seen   map[string]time.Time // events that were accepted, by id
	again  []repeat
	events map[event]int
	bodies map[string]string // of accepted events by id, of URLs whose organization's feed is followed

	applied map[event]applied // results, by what was accepted
	tried   map[string]bool   // events
	firsts  map[string][]first
}

// repeat is an event that came again.
type repeat struct{ first, again time.Time }

// applied is the newest state of a result.
type applied struct {
	sequence int64
	score    float64
	id       string // of the event
}

// first is the first attempt of an event about a student, in the order in which they came.
type first struct {
	id       string
	sequence int64
}

func newInbox(path string) *inbox {
	return &inbox{org: strings.Split(path, "/")[1], flaky: strings.HasSuffix(path, "/flaky"), seen: map[string]time.Time{}, events: map[event]int{},
		bodies: map[string]string{}, applied: map[event]applied{}, tried: map[string]bool{}, firsts: map[string][]first{}}
}

// take notes a request, which the URL has refused or accepted; known says whether the site has its event still, and bodies
// that it is to be kept.
func (b *inbox) take(d stack.Received, refused, known, bodies bool) (about event, accepted bool, err error) {
	var e struct {
		ID, Type     string
		Organization struct{ Slug string }
		Data         struct {
			ID         string
			UserID     int64 `json:"user_id"`
			Email      string
			Student    struct{ Email string }
			Score      float64
			Enrollment struct {
				ID int64 `json:"enrollment_id"`
			}
		}
	}
	if err := json.Unmarshal([]byte(d.Body), &e); err != nil {
		return about, false, err
	}
	sequence, err := strconv.ParseInt(d.Headers["X-Service-Sequence"], 10, 64)
	if err != nil {
		return about, false, err
	}
	if !b.tried[e.ID] {
		b.tried[e.ID] = true
		student := e.Data.Email + e.Data.Student.Email
		b.firsts[student] = append(b.firsts[student], first{e.ID, sequence})
	}
	if refused {
		return about, false, nil
	}
	if at, seen := b.seen[e.ID]; seen {
		b.again = append(b.again, repeat{at, d.ReceivedAt})
		return about, false, nil
	}
	b.seen[e.ID] = d.ReceivedAt
	about = event{e.Organization.Slug, e.Type, subject(e.Type, e.Data.ID, e.Data.Email, e.Data.UserID, e.Data.Enrollment.ID)}
	if known {
		b.events[about]++
	}
	if bodies {
		if b.bodies[e.ID], err = canonical([]byte(d.Body)); err != nil {
			return about, false, err
		}
	}
	if e.Type == "result.final" && sequence > b.applied[about].sequence {
		b.applied[about] = applied{sequence, e.Data.Score, e.ID}
	}
	return about, true, nil
}

// disorder finds a first attempt that came after one of a later event about the same student. An event of which an attempt
// got no answer is not looked at: that one may not have come.
func (b *inbox) disorder(failed map[string]bool) (found []string) {
	for _, student := range slices.Sorted(maps.Keys(b.firsts)) {
		var before first
		for _, f := range b.firsts[student] {
			if failed[f.id] {
				continue
			}
			if f.sequence < before.sequence {
				found = append(found, fmt.Sprintf("about %s: %s with the sequence %d after %s with %d", student, f.id, f.sequence, before.id, before.sequence))
			}
			before = f
		}
	}
	return found
}

// boxes reads what was received by URLs that are well, or that fail now and then, by the name of the log and the path.
func (c *checker) boxes() (map[string]*inbox, error) {
	got := map[string]*inbox{}
	for _, name := range []string{nearLog, farLog} {
		if name == farLog && c.distant == nil {
			continue
		}
		err := readLines(filepath.Join(c.dir, name), func(d stack.Received) error {
			if d.Verified == nil || !*d.Verified {
				c.report.find("a signature at %s does not verify: %s", d.Path, d.Body)
			}
			if d.Invalid != "" {
				c.report.find("an event at %s is not as its schema says: %s: %s", d.Path, d.Invalid, d.Body)
			}
			if !strings.HasSuffix(d.Path, "/healthy") && !strings.HasSuffix(d.Path, "/flaky") {
				return nil
			}
			box := got[name+d.Path]
			if box == nil {
				box = newInbox(d.Path)
				got[name+d.Path] = box
			}
			id := d.Headers["X-Service-Delivery"]
			_, known := c.events[id]
			if !known && !slices.ContainsFunc(c.report.restores, func(r restored) bool { return r.has(d.ReceivedAt) }) {
				c.report.find("no row knows an event that %s received at %s: %s", d.Path, d.ReceivedAt, d.Body)
			}
			about, accepted, err := box.take(d, c.refused(box, d), known, name == nearLog && slices.Contains(c.watched, box.org))
			if at, named := c.model.at[about]; accepted && named && name == nearLog && !box.flaky && known {
				c.report.arrived(at, d.ReceivedAt)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return got, nil
}

// refused says whether a flaky URL failed that request. Its answers were as this says but for a moment around the time from
// which on none fails.
func (c *checker) refused(b *inbox, d stack.Received) bool {
	return b.flaky && d.ReceivedAt.Before(*c.healed.Load()) && refuses(d.Headers["X-Service-Signature"])
}

// webhooks holds what URLs received against what the model owes them.
func (c *checker) webhooks(ctx context.Context) error {
	task, err := c.pending(ctx)
	if err != nil {
		return err
	}
	superseded, err := c.superseded(ctx)
	if err != nil {
		return err
	}
	var have, want []string
	total, twice, because := 0, 0, 0
	for _, name := range slices.Sorted(maps.Keys(c.received)) {
		box := c.received[name]
		for id, e := range superseded[pathOf(name)] {
			if _, seen := box.seen[id]; !seen {
				box.events[e]++
			}
		}
		for e, n := range box.events {
			have = append(have, fmt.Sprintf("%s: %s %s × %d", name, e.kind, e.subject, n))
		}
		for e, n := range task {
			if e.org == box.org {
				want = append(want, fmt.Sprintf("%s: %s %s × %d", name, e.kind, e.subject, n))
			}
		}
		total += len(box.seen)
		for _, r := range box.again {
			if slices.ContainsFunc(c.report.restores, func(w restored) bool { return w.has(r.first) && !r.again.Before(w.to) }) {
				because++
			} else {
				twice++
			}
		}
	}
	c.same("subjects of events at URLs", have, want)
	if len(c.received) == 0 {
		c.report.find("no healthy URL received anything")
	}
	c.report.counted("URLs that received them", len(c.received))
	c.report.counted("events that they accepted", total)
	c.report.counted("of them sent again because a restore forgot it", because)
	c.report.twice(total, twice)
	return nil
}

// pathOf is the path of an inbox's name.
func pathOf(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, nearLog), farLog)
}

// order holds that first attempts about a student come in the order of their sequences.
func (c *checker) order(ctx context.Context) error {
	failed := map[string]map[string]bool{}
	rows, err := c.db.Query(ctx, `
		SELECT DISTINCT regexp_replace(e.url, '^https?://[^/]+', ''), 'evt_' || replace(j.event_id::text, '-', '')
		FROM webhook_journal j JOIN webhook_endpoints e ON e.id = j.endpoint_id
		WHERE j.outcome = 'retry' AND j.response_status IS NULL AND e.url ~ '/(healthy|flaky)$'`)
	if err != nil {
		return err
	}
	var path, id string
	_, err = pgx.ForEachRow(rows, []any{&path, &id}, func() error {
		if failed[path] == nil {
			failed[path] = map[string]bool{}
		}
		failed[path][id] = true
		return nil
	})
	students := 0
	for name, box := range c.received {
		students += len(box.firsts)
		for _, found := range box.disorder(failed[pathOf(name)]) {
			c.report.find("first attempts at %s: %s", name, found)
		}
	}
	c.report.checked("students at URLs whose first attempts came in order", students)
	return err
}

// superseded are, by URL path and event, the results that were not sent to a URL any more, because it had
// accepted newer ones.
func (c *checker) superseded(ctx context.Context) (map[string]map[string]event, error) {
	rows, err := c.db.Query(ctx, `
		SELECT regexp_replace(e.url, '^https?://[^/]+', ''), 'evt_' || replace(v.id::text, '-', ''), o.slug, v.type, 'result ' || (v.data ->> 'id')
		FROM webhook_journal j
		JOIN webhook_endpoints e ON e.id = j.endpoint_id
		JOIN webhook_events v ON v.id = j.event_id
		JOIN organizations o ON o.id = j.organization_id
		WHERE j.status = 'superseded'`)
	if err != nil {
		return nil, err
	}
	found := map[string]map[string]event{}
	var path, id string
	var e event
	n, err := pgx.ForEachRow(rows, []any{&path, &id, &e.org, &e.kind, &e.subject}, func() error {
		if found[path] == nil {
			found[path] = map[string]event{}
		}
		found[path][id] = e
		return nil
	})
	c.report.counted("results that a newer one superseded", int(n.RowsAffected()))
	return found, err
}

// states holds what receivers have that store results by their id and pass over late events against the model, which
// is held against GET /results/ as well.
func (c *checker) states(context.Context) error {
	var have, want []string
	for _, name := range slices.Sorted(maps.Keys(c.received)) {
		box := c.received[name]
		for e, a := range box.applied {
			if _, known := c.events[a.id]; known || !c.model.touched[e] {
				have = append(have, fmt.Sprintf("%s: %s: %v", name, e.subject, a.score))
			}
		}
		for e, score := range c.model.scores {
			if a, has := box.applied[e]; e.org == box.org {
				if _, known := c.events[a.id]; known || !has || !c.model.touched[e] {
					want = append(want, fmt.Sprintf("%s: %s: %v", name, e.subject, score))
				}
			}
		}
	}
	c.same("results as receivers have them that store them by their id", have, want)
	return nil
}

// pending are the model's events, and the first tests of plans.
func (c *checker) pending(ctx context.Context) (map[event]int, error) {
	task := maps.Clone(c.model.events)
	plans, err := c.rows(ctx, `SELECT o.slug || ' ' || a.id FROM assignments a JOIN organizations o ON o.id = a.organization_id WHERE a.source = 'plan'`)
	for _, line := range plans {
		org, id, _ := strings.Cut(line, " ")
		task[event{org, "assignment.created", "assignment test-assignment:" + id}]++
	}
	return task, err
}

// subject names of whom an event speaks as the model does.
func subject(kind, id, email string, user, enrollment int64) string {
	switch {
	case strings.HasPrefix(kind, "enrollment."):
		return fmt.Sprintf("enrollment %d", enrollment)
	case strings.HasPrefix(kind, "assignment."):
		return "assignment " + id
	case strings.HasPrefix(kind, "student.") && strings.HasSuffix(email, "@"+rosterSchool+"-school.org"):
		return email
	case strings.HasPrefix(kind, "student."):
		return fmt.Sprintf("student %d", user)
	default:
		return "result " + id
	}
}
