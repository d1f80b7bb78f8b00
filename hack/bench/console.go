package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var consoleCases = []benchCase{
	{"console", "every page of the console, signed in as an owner of the estate's largest organization, and those of one of its students", onEstate(consolePages)},
}

// mostPage is how long a page may take at the 95th percentile, at its server, and mostBytes how long it may be, not packed.
const (
	mostPage  = 50 * time.Millisecond
	mostBytes = 100_000
)

// What the largest organization has, at scale 1.
const (
	consoleStudents   = 300_000
	consoleDeliveries = 10_000_000
)

// furniture is what an estate does not have: the other students of its largest organization, a URL with a month of deliveries, an
// audit log and a large import that is held. Statements may run again on a kept estate.
var furniture = []string{
	`WITH o AS (SELECT id, $students - (SELECT count(*) FROM members m WHERE m.organization_id = o.id) AS missing FROM organizations o WHERE slug = 'estate-0'),
		a AS (INSERT INTO accounts (email, username, first_name, last_name, created_by_organization, created_via, created_at, updated_at)
			SELECT 'more' || n || '@estate.school', 'more' || n, (ARRAY['Ana', 'Ben', 'Chitra', 'Duy', 'Elif', 'Farah', 'Goran', 'Hana'])[1 + n % 8], 'Further ' || n, id, 'api', now(), now()
			FROM o CROSS JOIN generate_series(1, o.missing) AS n RETURNING id),
		m AS (INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
			SELECT o.id, a.id, 'member', 'active', 'api', now() - a.id % 400 * interval '1 day', now() FROM o CROSS JOIN a)
		INSERT INTO enrollments (organization_id, user_id, course_id, start_date, end_date, grace_period_end, next_day, created_at, updated_at)
		SELECT o.id, a.id, (SELECT min(c.id) FROM courses c WHERE c.organization_id = o.id), current_date - 100, current_date + (a.id % 200)::int,
			current_date + (a.id % 200)::int + 7, NULL, now(), now() FROM o CROSS JOIN a`,
	`INSERT INTO directory (user_id, organization_id, name, surname, email)
		SELECT a.id, m.organization_id, directory_key(a.first_name || ' ' || a.last_name), directory_key(a.last_name || ' ' || a.first_name), a.email
		FROM members m JOIN accounts a ON a.id = m.user_id ON CONFLICT DO NOTHING`,
	// Events are drawn over a day, as they are in life: ids have the time in front.
	`SELECT make_partitions(parent, 'UTC', (now() AT TIME ZONE 'UTC')::date - 1, 1, true) FROM unnest(ARRAY['webhook_events', 'webhook_journal']) AS parent`,
	`WITH e AS (INSERT INTO webhook_endpoints (organization_id, slot, url, switched_on, created_at, updated_at)
			SELECT id, 10, 'https://hooks.estate.school/in', false, now(), now() FROM organizations WHERE slug = 'estate-0' ON CONFLICT DO NOTHING RETURNING id, organization_id),
		h AS (INSERT INTO webhook_health (endpoint_id) SELECT id FROM e),
		v AS (INSERT INTO webhook_events (id, organization_id, user_id, type, created_at, data)
			SELECT overlay(uuid7_floor(now() - random() * interval '1 day')::text PLACING substr(gen_random_uuid()::text, 20) FROM 20)::uuid, e.organization_id, m.user_id, 'student.joined', now(), '{}'
			FROM e JOIN LATERAL (SELECT user_id FROM members WHERE organization_id = e.organization_id) AS m ON true CROSS JOIN generate_series(1, $each) RETURNING id, organization_id),
		d AS (SELECT overlay(v.id::text PLACING substr(gen_random_uuid()::text, 20) FROM 20)::uuid AS id, v.id AS event_id, v.organization_id, e.id AS endpoint_id, CASE WHEN random() < .001 THEN 'declined' ELSE 'delivered' END AS status FROM v, e)
		INSERT INTO webhook_journal (organization_id, endpoint_id, delivery_id, number, event_id, status, started_at, duration_us, outcome, cause, request_headers, response_body)
		SELECT organization_id, endpoint_id, id, 1, event_id, status, now(), 1000, status, 'ok', '{"X-Service-Signature": "t=1,v1=0"}', convert_to(repeat('x', 500), 'UTF8') FROM d`,
	`INSERT INTO webhook_hours (organization_id, endpoint_id, hour, delivered, failed)
		SELECT organization_id, id, date_trunc('hour', now()) - n * interval '1 hour', 40000 + n * 100, n FROM webhook_endpoints CROSS JOIN generate_series(0, 720) AS n ON CONFLICT DO NOTHING`,
	`INSERT INTO audit_log (organization_id, actor_kind, actor_name, action, target, created_at)
		SELECT o.id, 'staff', 'owner@estate.school', 'sent test event', 'https://hooks.estate.school/in', now()
		FROM organizations o CROSS JOIN generate_series(1, 100000) WHERE o.slug = 'estate-0' AND NOT EXISTS (SELECT FROM audit_log WHERE organization_id = o.id)`,
	`WITH s AS (INSERT INTO roster_sources (organization_id, name, created_at, updated_at)
			SELECT id, 'default', now(), now() FROM organizations WHERE slug = 'estate-0' ON CONFLICT DO NOTHING RETURNING id, organization_id),
		r AS (INSERT INTO roster_runs (organization_id, source_id, mode, state, requested_by, created, updated, deactivated, issues, reasons, created_at, updated_at)
			SELECT organization_id, id, 'authoritative_snapshot', 'held', 'Key', 0, 200000, 100, 200000, '[]', now(), now() FROM s RETURNING id, source_id, organization_id),
		i AS (INSERT INTO roster_identities (source_id, organization_id, external_id, user_id, present)
			SELECT r.source_id, r.organization_id, 'EXT-' || m.user_id, m.user_id, true FROM r JOIN members m ON m.organization_id = r.organization_id),
		c AS (INSERT INTO roster_changes (run_id, n, line, action, effects, external_id, email, first_name, last_name)
			SELECT r.id, n, n, CASE WHEN n > 199900 THEN 'deactivate' ELSE 'update' END, 0, 'EXT-' || n, n || '@estate.school', 'Student', 'No. ' || n FROM r CROSS JOIN generate_series(1, 200000) AS n)
		INSERT INTO roster_issues (run_id, n, file, line, person_external_id, code, severity, message)
		SELECT r.id, n, 'people.csv', n, 'EXT-' || n, 'suspicious_value', 'warning', 'begins with =' FROM r CROSS JOIN generate_series(1, 200000) AS n`,
	`ANALYZE`,
}

// visitor is a browser without a picture: it keeps cookies.
type visitor struct {
	http.Client
	base string
}

// owner makes an organization's, who may sign in to the console.
func (h *house) owner(ctx context.Context, slug string) (name, password string, err error) {
	name, password = "owner@"+slug+".school", "a long walk along the estate"
	return name, password, h.settings.Platform(ctx, http.MethodPut, "organizations/"+slug+"/staff/"+name, `{"first_name": "Olga", "last_name": "Owner", "role": "owner", "password": "`+password+`"}`, nil)
}

// visitor is signed in as the organization's owner.
func (h *house) visitor(ctx context.Context, slug string) (*visitor, error) {
	name, password, err := h.owner(ctx, slug)
	if err != nil {
		return nil, err
	}
	return h.signedIn(ctx, name, password, "/console/"+slug+"/")
}

func (h *house) signedIn(ctx context.Context, name, password, next string) (*visitor, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	v := &visitor{http.Client{Jar: jar}, h.settings.PublicURL()}
	_, err = v.do(ctx, http.MethodPost, "/sign-in/", url.Values{"name": {name}, "password": {password}, "next": {next}})
	return v, err
}

// student is signed in as that student of the organization, who gets the owner's password.
func (h *house) student(ctx context.Context, slug string, user int64) (*visitor, error) {
	owner, password, err := h.owner(ctx, slug)
	if err != nil {
		return nil, err
	}
	var email string
	err = h.db.QueryRow(ctx, `
		UPDATE accounts a SET password_hash = o.password_hash, proven_password = true, own_password = true
		FROM accounts o WHERE o.email = $1 AND a.id = $2 RETURNING a.email`, owner, user).Scan(&email)
	if err != nil {
		return nil, err
	}
	return h.signedIn(ctx, email, password, "/my-courses/")
}

// do gives the page that a request leads to.
func (v *visitor) do(ctx context.Context, method, path string, form url.Values) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, v.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	res, err := v.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	page, err := io.ReadAll(res.Body)
	if err == nil && (res.StatusCode != http.StatusOK || strings.Contains(res.Request.URL.Path, "sign-in")) {
		err = fmt.Errorf("%s leads to %s: %s", path, res.Request.URL, res.Status)
	}
	return string(page), err
}

func consolePages(ctx context.Context, r *run, e *estate) error {
	h := e.house
	fill := strings.NewReplacer("$students", strconv.Itoa(r.size(consoleStudents)), "$each", strconv.Itoa((consoleDeliveries+consoleStudents-1)/consoleStudents))
	for _, sql := range furniture {
		if _, err := h.db.Exec(ctx, fill.Replace(sql)); err != nil {
			return err
		}
	}
	var user int64 // one of the estate's own students, who have results
	if err := h.db.QueryRow(ctx, `
		SELECT user_id FROM results WHERE organization_id = $1 AND position IS NOT NULL ORDER BY position DESC LIMIT 1`, e.orgs[0].id).Scan(&user); err != nil {
		return err
	}
	student, err := h.student(ctx, "estate-0", user) // sets the owner's password, which ends the owner's sessions
	if err != nil {
		return err
	}
	owner, err := h.visitor(ctx, "estate-0")
	if err != nil {
		return err
	}
	defer h.profiles(ctx, r, r.lasting(20*time.Second))()
	p := pageTimes{r: r}
	for _, reader := range []struct {
		*visitor
		pages func(context.Context) ([]string, error)
	}{
		{owner, func(ctx context.Context) ([]string, error) { return owner.pages(ctx, user) }},
		{student, student.ownPages},
	} {
		paths, err := reader.pages(ctx)
		if err != nil {
			return err
		}
		for _, path := range paths {
			if err := p.measure(ctx, reader.visitor, path); err != nil {
				return err
			}
		}
	}
	r.verdict("p95 of every page", p.slow == 0, fmt.Sprintf("below %s", mostPage), "%s at most, of %s; %d of %d pages are slower", round(p.slowest), p.where, p.slow, p.pages)
	r.verdict("length of every page", p.longest <= mostBytes, fmt.Sprintf("at most %d bytes", mostBytes), "%d bytes at most, of %s", p.longest, p.long)
	return h.printStatements(ctx, r)
}

// pageTimes is what is found of pages one after the other.
type pageTimes struct {
	r           *run
	pages, slow int
	slowest     time.Duration
	where       string // the slowest
	longest     int
	long        string // the longest
}

func (p *pageTimes) measure(ctx context.Context, v *visitor, path string) error {
	name, length := delivery.ReplaceAllString(strings.TrimPrefix(path, "/console/estate-0"), "dlv_…"), 0
	all, err := repeat(100, func(int) (time.Duration, error) {
		began := time.Now()
		page, err := v.do(ctx, http.MethodGet, path, nil)
		length = len(page)
		return time.Since(began), err
	})
	if err != nil {
		return err
	}
	p.r.step(name, all, 0)
	p.pages++
	if p95 := all.At(.95); p95 > p.slowest {
		p.slowest, p.where = p95, name
	}
	if all.At(.95) >= mostPage {
		p.slow++
	}
	if length > p.longest {
		p.longest, p.long = length, name
	}
	return nil
}

// ownPages are those of a student.
func (v *visitor) ownPages(ctx context.Context) ([]string, error) {
	const courses = "/my-courses/"
	page, err := v.do(ctx, http.MethodGet, courses, nil)
	if err != nil {
		return nil, err
	}
	result := regexp.MustCompile(`"(/results/[^"]+)"`).FindStringSubmatch(page)
	if result == nil {
		return nil, errors.New("the student's page shows no result")
	}
	return []string{courses, result[1], "/sessions/", "/change-password/", "/time-zone/"}, nil
}

// pages are all of them, each with what there is most of on it.
func (v *visitor) pages(ctx context.Context, student int64) ([]string, error) {
	const base = "/console/estate-0/"
	paths := []string{"", "students/", "students/?q=student", "students/?q=no.+1", "students/?q=s", "students/?q=nobody", "students/?show=access", "students/?show=expiring", "students/?show=at_risk", "students/?show=joined", "students/?show=pending", "students/?show=expired", "students/?show=suspended", "students/?show=never", "students/?q=student+estate", fmt.Sprintf("students/?q=EXT-%d", student),
		fmt.Sprintf("students/%d/", student), fmt.Sprintf("students/%d/assign/", student), "lms/", "staff/", "staff/provider/", "sandbox/", "settings/", "mails/", "sessions/", "api-keys/", "webhooks/", "roster-runs/", "plans/", "audit-log/", "audit-log/?before=5000"}
	for _, follow := range []struct{ page, link string }{
		{"students/?q=student", `students/(\?q=[^"]*after=[^"]*)|href="(\?q=[^"]*after=[^"]*)"`}, {"webhooks/", `webhooks/\d+/`}, {"roster-runs/", `roster-runs/\d+/`},
	} {
		page, err := v.do(ctx, http.MethodGet, base+follow.page, nil)
		if err != nil {
			return nil, err
		}
		found := regexp.MustCompile(follow.link).FindStringSubmatch(page)
		if found == nil {
			return nil, fmt.Errorf("%s has no link %s", follow.page, follow.link)
		}
		link := found[len(found)-1]
		if strings.HasPrefix(link, "?") {
			link = "students/" + strings.ReplaceAll(link, "&amp;", "&")
		}
		paths = append(paths, link)
		if strings.HasPrefix(link, "roster-runs/") {
			paths = append(paths, link+"changes/changed/", link+"changes/changed/?q=199900")
		}
		if strings.HasPrefix(link, "webhooks/") {
			more, err := v.deliveries(ctx, base, link+"deliveries/")
			if err != nil {
				return nil, err
			}
			paths = append(append(paths, link+"?chart=30-days"), more...)
		}
	}
	for i := range paths {
		paths[i] = base + paths[i]
	}
	return paths, nil
}

var delivery = regexp.MustCompile(`dlv_[0-9a-f]+`)

// deliveries are the pages of a URL's log.
func (v *visitor) deliveries(ctx context.Context, base, list string) ([]string, error) {
	page, err := v.do(ctx, http.MethodGet, base+list, nil)
	if err != nil {
		return nil, err
	}
	one := delivery.FindAllString(page, -1)
	if len(one) == 0 {
		return nil, errors.New("the log shows no delivery")
	}
	return []string{list, list + "?status=declined", list + "?status=exhausted", list + "?status=waiting", list + "?before=" + one[len(one)-1], list + one[0] + "/"}, nil
}
