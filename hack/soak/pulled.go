package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/hack/internal/plansim"
)

// pulled holds the feeds that were read against the events that there are, and each event against what was pushed.
func (c *checker) pulled(readers []*reader) error {
	var have, want []string
	compared := 0
	for _, r := range readers {
		if r.list != "events" {
			continue
		}
		box := c.received[nearLog+"/"+r.org+"/healthy"]
		for id, pulled := range r.rows {
			if _, known := c.events[id]; !known {
				continue // a restore has lost it
			}
			have = append(have, r.org+" "+id)
			if box == nil || box.bodies[id] == "" {
				continue
			}
			if compared++; box.bodies[id] != pulled {
				c.report.find("an event of %s was pushed as %s and pulled as %s", r.org, box.bodies[id], pulled)
			}
		}
		for id, org := range c.events {
			if org == r.org {
				want = append(want, r.org+" "+id)
			}
		}
	}
	c.same("events in feeds that were followed", have, want)
	c.report.checked("of them the same as they were pushed", compared)
	return nil
}

// followed holds what readers with stored cursors came to know against what there is.
func (c *checker) followed(ctx context.Context, readers []*reader) error {
	for _, r := range readers {
		there, err := c.listed(ctx, r)
		if err != nil {
			return err
		}
		gaps, lost := compare(there, r.rows)
		for _, id := range gaps {
			c.report.find("the reader of %s of %s missed %s", r.list, r.org, id)
		}
		if r.list == "students" && r.org == rosterSchool {
			lost = 0 // who has left is listed no more
		}
		switch {
		case lost > 0 && len(c.report.restores) == 0:
			c.report.find("the reader of %s of %s has %d rows that there are not", r.list, r.org, lost)
		case lost > 0 && r.told == 0:
			c.report.find("the reader of %s of %s has %d rows that a restore has lost, and was not told", r.list, r.org, lost)
		}
		c.report.tally("rows that readers with stored cursors have: "+r.list, len(there))
		c.report.tally("times that readers were told of lost rows", r.told)
		if r.list == "results" {
			c.scores(r)
		}
	}
	return nil
}

// compare says which rows a reader lacks, and how many it has that there are not.
func compare(there []string, has map[string]string) (gaps []string, lost int) {
	rows := map[string]bool{}
	for _, id := range there {
		rows[id] = true
		if _, known := has[id]; !known {
			gaps = append(gaps, id)
		}
	}
	for id := range has {
		if !rows[id] {
			lost++
		}
	}
	return gaps, lost
}

// listed are the rows that a list has now, by the database.
func (c *checker) listed(ctx context.Context, r *reader) ([]string, error) {
	if r.list == "events" {
		var ids []string
		for id, org := range c.events {
			if org == r.org {
				ids = append(ids, id)
			}
		}
		return ids, nil
	}
	return c.rows(ctx, map[string]string{
		"students":    `SELECT m.user_id::text FROM members m JOIN organizations o ON o.id = m.organization_id WHERE o.slug = $1 AND m.role = 'member' AND m.status = 'active'`,
		"assignments": `SELECT 'test-assignment:' || a.id FROM assignments a JOIN organizations o ON o.id = a.organization_id WHERE o.slug = $1`,
		"results":     `SELECT r.ref FROM results r JOIN organizations o ON o.id = r.organization_id WHERE o.slug = $1 AND r.position IS NOT NULL`,
	}[r.list], r.org)
}

// scores holds the scores that a reader of results knows against the model.
func (c *checker) scores(r *reader) {
	for e, score := range c.model.scores {
		id := strings.TrimPrefix(e.subject, "result ")
		if known, has := r.last[id]; e.org == r.org && has && known != score && !c.model.touched[e] {
			c.report.find("the reader of results of %s has %v for %s, the model %v", r.org, known, id, score)
		}
	}
}

// plans holds the rules of test plans in the installation's own database.
func (c *checker) plans(ctx context.Context) error {
	var broken []string
	for range 120 { // what is due at this moment is done within moments
		var err error
		if broken, err = plansim.BrokenNow(ctx, c.product, time.Now()); err != nil || len(broken) == 0 {
			break
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
	for _, rule := range broken {
		c.report.find("plans: %s", rule)
	}
	var plans int
	err := c.db.QueryRow(ctx, `SELECT count(*) FROM plans`).Scan(&plans)
	c.report.checked(fmt.Sprintf("plans that keep %d rules", plansim.EachDay()), plans)
	return err
}
