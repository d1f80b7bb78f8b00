package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
)

// route is one that is called for one thing at a time.
type route struct {
	name string
	call func(ctx context.Context, n int64) error // the n-th
}

const (
	pieces = 40                   // quizzes that each student has been assigned, and as many that are to be
	half   = studentsOfSchool / 2 // members and enrollments are changed of the second half, as work needs access
)

// places gives the school what the routes change: quizzes, of which half are assigned to every student, and
// enrollments. It returns the lowest id of each.
func (e *engine) places(ctx context.Context, org int64, s school) (quiz, assignment, enrollment int64, err error) {
	err = e.db.QueryRow(ctx, `
		WITH quiz AS (
			INSERT INTO catalog_items (organization_id, kind, code, title, type, max_score_e4, created_at, updated_at)
			SELECT $1, 'quiz', 'q' || n, 'Quiz ' || n, 'quiz', 100000, now(), now() FROM generate_series(1, 2 * $2::int) AS n
			RETURNING id)
		SELECT min(id) FROM quiz`, org, pieces).Scan(&quiz)
	if err != nil {
		return 0, 0, 0, err
	}
	err = e.db.QueryRow(ctx, `
		WITH given AS (
			INSERT INTO assignments (organization_id, user_id, item_id, kind, status, source, notify, assigned_at, position, updated_at)
			SELECT $1, $2 + n % $3::int, $4 + n / $3::int, 'quiz', 'pending', 'api', false, now(), n + 1, now()
			FROM generate_series(0, $3::int * $5::int - 1) AS n ORDER BY n
			RETURNING id, position),
		counter AS (
			UPDATE assignment_positions SET last = (SELECT max(position) FROM given), last_at = now() WHERE organization_id = $1)
		SELECT min(id) FROM given`, org, s.first, studentsOfSchool, quiz, pieces).Scan(&assignment)
	if err != nil {
		return 0, 0, 0, err
	}
	err = e.db.QueryRow(ctx, `
		WITH course AS (
			INSERT INTO courses (organization_id, name, course_type, start_date, created_at, updated_at)
			VALUES ($1, 'Morning', 'ielts', current_date - 30, now(), now()) RETURNING id),
		place AS (
			INSERT INTO enrollments (organization_id, user_id, course_id, start_date, end_date, grace_period_end, created_at, updated_at)
			SELECT $1, $2 + n, course.id, current_date - 30, current_date + 300, current_date + 307, now(), now()
			FROM course, generate_series(0, $3::int - 1) AS n ORDER BY n RETURNING id)
		SELECT min(id) FROM place`, org, s.first, studentsOfSchool).Scan(&enrollment)
	return quiz, assignment, enrollment, err
}

// routes are those that are measured, in the school.
func (e *engine) routes(ctx context.Context, slug string) ([]route, error) {
	p, err := e.partner(ctx, slug)
	if err != nil {
		return nil, err
	}
	org, err := e.organization(ctx, slug)
	if err != nil {
		return nil, err
	}
	s, err := e.fill(ctx, id.Organization(org), slug)
	if err != nil {
		return nil, err
	}
	quiz, assignment, enrollment, err := e.places(ctx, org, s)
	if err != nil {
		return nil, err
	}
	partner := request{method: http.MethodPost, address: "127.0.0.1:" + strconv.Itoa(e.settings.Ports.API), auth: partnerKey(p.key)}
	platform := request{address: "127.0.0.1:" + strconv.Itoa(e.settings.Ports.Platform), auth: platformKey(e.settings.PlatformKey)}
	own := "/platform/v1/organizations/" + slug
	send := func(ctx context.Context, r request, method, path, format string, args ...any) error {
		r.method, r.path, r.body = method, path, fmt.Sprintf(format, args...)
		return e.lines.send(ctx, r, func(status int, body []byte) error {
			if status/100 != 2 {
				return fmt.Errorf("%s %s %s: %d %s", method, path, r.body, status, body)
			}
			return nil
		})
	}
	turn := func(n int64) (student, round int64) { return n % half, n / half }
	return []route{
		{"POST /provision/student/", func(ctx context.Context, _ int64) error { return p.create(ctx) }},
		{"POST /assignments/", func(ctx context.Context, n int64) error {
			student, round := turn(n)
			return send(ctx, partner, http.MethodPost, "/api/v1/assignments/", `{"user_id":%d,"kind":"quiz","item_id":%d}`, s.first+student, quiz+pieces+round%pieces)
		}},
		{"PUT /quiz-submissions/{id}", func(ctx context.Context, n int64) error {
			return send(ctx, platform, http.MethodPut, fmt.Sprint("/platform/v1/quiz-submissions/", assignment+n%(studentsOfSchool*pieces)), `{"state":"finished","score":7}`)
		}},
		{"POST /sign-ins", func(ctx context.Context, _ int64) error {
			return send(ctx, platform, http.MethodPost, "/platform/v1/sign-ins", `{"user_id":%d}`, s.first+rand.Int64N(studentsOfSchool))
		}},
		{"PATCH /members/{id}", func(ctx context.Context, n int64) error {
			student, round := turn(n)
			status := []string{"inactive", "active"}[round%2]
			return send(ctx, platform, http.MethodPatch, fmt.Sprint(own, "/members/", s.first+half+student), `{"status":%q}`, status)
		}},
		{"PATCH /enrollments/{id}", func(ctx context.Context, n int64) error {
			student, round := turn(n)
			state := []string{"suspended", "running"}[round%2]
			return send(ctx, platform, http.MethodPatch, fmt.Sprint(own, "/enrollments/", enrollment+half+student), `{"state":%q}`, state)
		}},
	}, nil
}

// leastBesideSlowCommits is what 16 clients get of a route whose calls share commits of 20 ms. They would get
// 800 a second at most; if each held something until its commit that the next one needs, 50.
const leastBesideSlowCommits = 300

func callsSingly(ctx context.Context, r *run, e *engine) error {
	routes, err := e.routes(ctx, "school")
	if err != nil {
		return err
	}
	if err := e.superuser(ctx, "registrar", `VACUUM ANALYZE`, `CHECKPOINT`); err != nil {
		return err
	}
	calls := make([]atomic.Int64, len(routes))
	measure := func(i, clients int, note string) (measured, error) {
		next := func(ctx context.Context) error { return routes[i].call(ctx, calls[i].Add(1)-1) }
		cpu := e.cpu()
		done, err := load(ctx, clients, r.lasting(5*time.Second), next)
		if err == nil {
			r.step(routes[i].name+note, done.times, done.rate())
			r.printf("  CPU a call: %s", e.cpu().since(cpu, max(1, len(done.times))))
		}
		return done, err
	}
	for i := range routes {
		if _, err := measure(i, 1, ", one client"); err != nil {
			return err
		}
		if _, err := measure(i, clients, ", 16 clients"); err != nil {
			return err
		}
	}
	if err := e.slowCommits(ctx, 20*time.Millisecond); err != nil {
		return err
	}
	for i := range routes {
		done, err := measure(i, clients, ", 20 ms a commit")
		if err != nil {
			return err
		}
		r.verdict(routes[i].name+", 20 ms a commit", done.rate() >= leastBesideSlowCommits, fmt.Sprintf("at least %d/s", leastBesideSlowCommits), "%.0f/s", done.rate())
	}
	return e.printStatements(ctx, r)
}
