package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/hack/stack"
)

// mails holds the mails that were received against the rows, and the rows against the model.
func (c *checker) mails(ctx context.Context) error {
	received := map[string]int{}
	for _, mail := range c.mail.All() {
		_, rest, ok := strings.Cut(string(mail.Data), "Message-ID: <")
		if !ok {
			_, rest, ok = strings.Cut(string(mail.Data), "Message-Id: <")
		}
		reference, _, _ := strings.Cut(rest, "@")
		if !ok {
			c.report.find("a mail without Message-ID to %v", mail.To)
		}
		received[reference]++
	}
	c.report.checked("mails received", len(received))
	rows, err := c.db.Query(ctx, `SELECT reference::text, status, recipient, type FROM emails`)
	if err != nil {
		return err
	}
	var reference, status, recipient, kind string
	welcomed := map[string]bool{}
	uncertain, suppressed := 0, 0
	_, err = pgx.ForEachRow(rows, []any{&reference, &status, &recipient, &kind}, func() error {
		n := received[reference]
		delete(received, reference)
		switch {
		case status == "uncertain" && n <= 1:
			uncertain++
		case status == "sent" && n == 1:
		case status == "suppressed" && n == 0 && kind != "password_reset": // the address had its share of the day
			suppressed++
		default:
			c.report.find("the %s mail %s to %s is %s and was received %d times", kind, reference, recipient, status, n)
		}
		if kind == "welcome" {
			welcomed[recipient] = true
		}
		return nil
	})
	for reference := range received {
		c.report.find("a mail was received that no row knows: %s", reference)
	}
	c.report.checked("mails whose receipt stays uncertain", uncertain)
	c.report.checked("mails beyond the share of their address", suppressed)
	over, overErr := c.rows(ctx, `
		SELECT DISTINCT recipient
		FROM (SELECT recipient, created_at - lag(created_at, 5) OVER (PARTITION BY recipient ORDER BY created_at) AS gap
			FROM emails
			WHERE type IN ('welcome', 'credentials', 'access_update') AND status <> 'suppressed') AS sent
		WHERE gap < '1 day'`)
	for _, address := range over {
		c.report.find("%s had more than five onboarding mails within a day", address)
	}
	for key, s := range c.model.students {
		_, email, _ := strings.Cut(key, " ")
		if s.welcomed && !welcomed[email] {
			c.report.find("%s was promised a welcome mail and has none", email)
		}
	}
	return errors.Join(err, overErr)
}

// webhooks holds what healthy URLs received against what the model owes them.
func (c *checker) webhooks(ctx context.Context) error {
	task, err := c.pending(ctx)
	if err != nil {
		return err
	}
	got := map[string]*inbox{}
	for _, name := range []string{"received.jsonl", "received-far.jsonl"} {
		if name == "received-far.jsonl" && c.distant == nil {
			continue
		}
		err := readLines(filepath.Join(c.dir, name), func(d stack.Received) error {
			if d.Verified == nil || !*d.Verified {
				c.report.find("a signature at %s does not verify: %s", d.Path, d.Body)
			}
			if d.Invalid != "" {
				c.report.find("an event at %s is not as its schema says: %s: %s", d.Path, d.Invalid, d.Body)
			}
			if strings.HasSuffix(d.Path, "/healthy") {
				box := name + d.Path
				if got[box] == nil {
					got[box] = &inbox{org: strings.Split(d.Path, "/")[1], seen: map[string]bool{}, events: map[event]int{}, applied: map[event]applied{}}
				}
				return got[box].take(d)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	superseded, err := c.superseded(ctx)
	if err != nil {
		return err
	}
	total, twice := 0, 0
	for _, name := range slices.Sorted(maps.Keys(got)) {
		box := got[name]
		for id, e := range superseded[strings.TrimPrefix(strings.TrimPrefix(name, "received.jsonl"), "received-far.jsonl")] {
			if !box.seen[id] {
				box.events[e]++
			}
		}
		c.states(name, box)
		var have, want []string
		for e, n := range box.events {
			have = append(have, fmt.Sprintf("%s %s × %d", e.kind, e.subject, n))
		}
		for e, n := range task {
			if e.org == box.org {
				want = append(want, fmt.Sprintf("%s %s × %d", e.kind, e.subject, n))
			}
		}
		c.same("subjects of events at "+name, have, want)
		total += len(box.seen)
		twice += box.twice
	}
	if len(got) == 0 {
		c.report.find("no healthy URL received anything")
	}
	c.report.checked("events received by healthy URLs", total)
	c.report.checked("of them received twice", twice)
	return nil
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
	c.report.checked("results that a newer one superseded", int(n.RowsAffected()))
	return found, err
}

// states holds what a receiver has that stores results by their id and passes over late events against
// the model, which is held against GET /results/ as well.
func (c *checker) states(name string, box *inbox) {
	var have, want []string
	for e, a := range box.applied {
		have = append(have, fmt.Sprintf("%s: %v", e.subject, a.score))
	}
	for e, score := range c.model.scores {
		if e.org == box.org {
			want = append(want, fmt.Sprintf("%s: %v", e.subject, score))
		}
	}
	c.same("results as stored from events at "+name, have, want)
}

// pending are the model's events, with students of rosters by id, and the first tests of plans.
func (c *checker) pending(ctx context.Context) (map[event]int, error) {
	task := maps.Clone(c.model.events)
	plans, err := c.rows(ctx, `SELECT o.slug || ' ' || a.id FROM assignments a JOIN organizations o ON o.id = a.organization_id WHERE a.source = 'plan'`)
	for _, line := range plans {
		org, id, _ := strings.Cut(line, " ")
		task[event{org, "assignment.created", "assignment test-assignment:" + id}]++
	}
	return task, err
}

// inbox is what one URL received.
type inbox struct {
	org    string
	seen   map[string]bool
	twice  int
	events map[event]int

	applied map[event]applied // results, by what was received
}

// applied is the newest state of a result.
type applied struct {
	sequence int64
	score    float64
}

func (b *inbox) take(d stack.Received) error {
	var e struct {
		ID, Type     string
		Organization struct{ Slug string }
		Data         struct {
			ID         string
			UserID     int64 `json:"user_id"`
			Email      string
			Score      float64
			Enrollment struct {
				ID int64 `json:"enrollment_id"`
			}
		}
	}
	if err := json.Unmarshal([]byte(d.Body), &e); err != nil {
		return err
	}
	if b.seen[e.ID] {
		b.twice++
		return nil
	}
	b.seen[e.ID] = true
	about := event{e.Organization.Slug, e.Type, subject(e.Type, e.Data.ID, e.Data.Email, e.Data.UserID, e.Data.Enrollment.ID)}
	b.events[about]++
	if e.Type != "result.final" {
		return nil
	}
	sequence, err := strconv.ParseInt(d.Headers["X-Service-Sequence"], 10, 64)
	if sequence > b.applied[about].sequence {
		b.applied[about] = applied{sequence, e.Data.Score}
	}
	return err
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

// switches holds that URLs that are never well are off after exactly fifty failures, or not yet there.
func (c *checker) switches(ctx context.Context) error {
	bad, err := c.rows(ctx, `
		SELECT format('%s: on: %s, %s failures in a row, %s attempts: %s', e.url, e.switched_on, h.consecutive_failures, count(a.*),
		              string_agg(a.outcome || ' ' || a.cause || ' ' || coalesce(a.response_status, 0) || ' in ' || a.duration_us / 1000 || ' ms', ', ' ORDER BY a.started_at DESC) FILTER (WHERE a.outcome = 'delivered'))
		FROM webhook_endpoints e JOIN webhook_health h ON h.endpoint_id = e.id LEFT JOIN webhook_journal a ON a.endpoint_id = e.id AND a.outcome IS NOT NULL
		WHERE e.url NOT LIKE '%/healthy' GROUP BY e.id, h.endpoint_id
		HAVING NOT (NOT e.switched_on AND h.consecutive_failures = 50 AND count(a.*) = 50 OR e.switched_on AND h.consecutive_failures < 50 AND count(a.*) = h.consecutive_failures)`)
	for _, line := range bad {
		c.report.find("%s", line)
	}
	var off int
	if err == nil {
		err = c.db.QueryRow(ctx, `SELECT count(*) FROM webhook_endpoints WHERE NOT switched_on`).Scan(&off)
	}
	c.report.checked("URLs switched off, each at its fiftieth failure", off)
	return err
}
