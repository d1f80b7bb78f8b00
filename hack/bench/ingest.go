package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/registrar-dev/registrar/hack/internal/chart"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// ingestScene is a house with one organization of n students.
func ingestScene(ctx context.Context, r *run, students, urls int) (*scene, *estate, error) {
	s, err := newScene(ctx, r, urls)
	if err != nil {
		return nil, nil, err
	}
	e := &estate{house: s.house, r: r, orgs: []holding{{id: int64(s.org), students: students}}}
	e.orgs[0].firstUser, err = s.addStudents(ctx, s.org, students)
	return s, e, err
}

// addStudents makes n students of the organization; their ids follow each other from the first.
func (s *scene) addStudents(ctx context.Context, org id.Organization, n int) (first int64, err error) {
	err = s.db.QueryRow(ctx, `
		WITH a AS (INSERT INTO accounts (email, username, first_name, created_via, created_at, updated_at)
			SELECT 's' || n || '@' || $1::bigint || '.estate.school', $1::bigint || '-s' || n, 'Student', 'api', now(), now()
			FROM generate_series(1, $2::integer) AS n RETURNING id),
		m AS (INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
			SELECT $1, id, 'member', 'active', 'api', now(), now() FROM a)
		SELECT min(id) FROM a`, org, n).Scan(&first)
	return first, err
}

// callers are as many as call at once: a core each.
const callers = 2

func activityIngest(ctx context.Context, r *run) (err error) {
	const events = 10_000
	s, e, err := ingestScene(ctx, r, 5000, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	kinds := []string{"visit", "page_view", "heartbeat", "test_started", "test_completed"}
	body := func() string {
		var b strings.Builder
		now := time.Now().UTC()
		for i := range events {
			fmt.Fprintf(&b, `,{"organization":"quiet","user_id":%d,"at":%q,"kind":%q}`, e.orgs[0].user(),
				now.Add(-time.Duration(i)*time.Millisecond).Format(time.RFC3339Nano), kinds[i%len(kinds)])
		}
		return `{"events":[` + b.String()[1:] + `]}`
	}
	bodies := []string{body(), body(), body(), body()}
	var calls atomic.Int64
	cpu := s.cpu()
	profiled := s.profiles(ctx, r, r.lasting(10*time.Second))
	done, err := load(ctx, callers, r.lasting(15*time.Second), func(ctx context.Context) error {
		var receipt struct{ Accepted int }
		err := s.settings.Platform(ctx, http.MethodPost, "activity", bodies[calls.Add(1)%int64(len(bodies))], &receipt)
		if err == nil && receipt.Accepted != events {
			err = fmt.Errorf("%d of %d events were accepted", receipt.Accepted, events)
		}
		return err
	})
	profiled()
	if err != nil {
		return err
	}
	r.printf("  CPU a 1,000 events: %s", s.cpu().since(cpu, int(calls.Load())*events/1000))
	rate := done.rate() * events
	r.step("a call with 10,000 events", done.times, done.rate())
	r.draw(chart.Rows{Title: "Events a second", Unit: "/s", Rows: []chart.Row{bar("POST /activity", rate, 50_000, chart.Blue)}})
	r.verdict("events a second", rate >= 50_000, "at least 50,000", "%.0f", rate)
	return s.printStatements(ctx, r)
}

func workIngest(ctx context.Context, r *run) (err error) {
	const records = 1000
	s, e, err := ingestScene(ctx, r, 5000, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	var quiz struct {
		ID int64 `json:"item_id"`
	}
	if err := s.settings.Platform(ctx, http.MethodPut, "catalog/tests/ielts", `{"title": "IELTS 1", "type": "ielts"}`, &quiz); err != nil {
		return err
	}
	at := time.Now().UTC().Add(-time.Hour).Format(time.RFC3339)
	cpu := s.cpu()
	profiled := s.profiles(ctx, r, r.lasting(15*time.Second))
	var calls atomic.Int64
	done, err := load(ctx, callers, r.lasting(20*time.Second), func(ctx context.Context) error {
		body := workBody(records, fmt.Sprint("b", calls.Add(1)), "quiet", quiz.ID, at, e.orgs[0].user)
		return s.settings.Platform(ctx, http.MethodPost, "work", body, nil)
	})
	profiled()
	if err != nil {
		return err
	}
	var results, deliveries int
	err = s.db.QueryRow(ctx, `SELECT (SELECT count(*) FROM results WHERE position IS NOT NULL), (SELECT count(*) FROM webhook_states)`).Scan(&results, &deliveries)
	if err != nil {
		return err
	}
	r.printf("  CPU a result: %s", s.cpu().since(cpu, max(1, results)))
	rate := done.rate() * records
	r.step("a call with 1,000 final results", done.times, done.rate())
	r.draw(chart.Rows{Title: "Final results a second, with their events and deliveries", Unit: "/s", Rows: []chart.Row{bar("POST /work", rate, 5000, chart.Blue)}})
	r.verdict("results a second", rate >= 5000 && results > 0 && deliveries >= results, "at least 5,000, each with its delivery", "%.0f; %d results and %d deliveries are stored", rate, results, deliveries)
	return s.printStatements(ctx, r)
}

// workBody is a body of POST /work with so many finished tests.
func workBody(records int, name, organization string, item int64, at string, user func() int64) string {
	var b strings.Builder
	for i := range records {
		fmt.Fprintf(&b, `,{"kind":"test","id":"%s-%d","organization":%q,"user_id":%d,"item_id":%d,"attempt":"practice","state":"finished",
			"started_at":%q,"completed_at":%q,"sections":{"listening":6.5,"reading":7,"writing":6,"speaking":6.5}}`, name, i, organization, user(), item, at, at)
	}
	return `{"records":[` + b.String()[1:] + `]}`
}
