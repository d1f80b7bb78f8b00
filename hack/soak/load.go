package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The organizations: students of the first two are onboarded one by one, those of the third come
// from files.
var schools = []string{"alpha", "beta", "gamma"}

const rosterSchool = "gamma"

// load is everyone who calls.
type load struct {
	site    *site
	options options
	report  *report
	journal *journal
	keys    map[string]string
	items   []int64 // tests that can be assigned
	readers []*reader

	over, shut  atomic.Bool
	calls, read sync.WaitGroup
}

func newLoad(ctx context.Context, s *site, o options, r *report) (*load, error) {
	j, err := openJournal(filepath.Join(s.dir, "accepted.jsonl"))
	if err != nil {
		return nil, err
	}
	l := &load{site: s, options: o, report: r, journal: j, keys: map[string]string{}}
	return l, l.seed(ctx)
}

func (l *load) caller(n uint64) *caller {
	return &caller{site: l.site, report: l.report, keys: l.keys, rand: rand.New(rand.NewPCG(l.options.seed, 100+n))}
}

// seed makes the organizations with keys, tests and URLs, good and bad.
func (l *load) seed(ctx context.Context) error {
	c := l.caller(0)
	for _, org := range schools {
		var key struct{ Key string }
		for _, r := range []request{
			{method: http.MethodPut, path: "organizations/" + org, body: fmt.Sprintf(`{"name": %q, "language_tests_enabled": true}`, org)},
			{method: http.MethodPost, path: "organizations/" + org + "/api-keys", body: `{"name": "Soak", "access": "full"}`},
			{method: http.MethodPut, path: "organizations/" + org + "/staff/owner@" + org + "-school.org", body: `{"first_name": "Olive", "last_name": "Owner", "role": "owner", "password": "a long pass phrase 7"}`},
			{method: http.MethodPut, path: "organizations/" + org + "/roster-sources/sis", body: `{"authoritative_enabled": true}`},
		} {
			var into any
			if r.method == http.MethodPost {
				into = &key
			}
			if _, err := c.ask(ctx, r, into); err != nil {
				return err
			}
		}
		l.keys[org] = key.Key
		if err := l.addURLs(ctx, c, org); err != nil {
			return err
		}
	}
	for n := range 12 {
		var item struct {
			ID int64 `json:"item_id"`
		}
		if _, err := c.ask(ctx, request{method: http.MethodPut, path: fmt.Sprintf("catalog/tests/ielts-%d", n), body: fmt.Sprintf(`{"title": "IELTS %d", "type": "ielts"}`, n)}, &item); err != nil {
			return err
		}
		l.items = append(l.items, item.ID)
	}
	return nil
}

// addURLs gives an organization a healthy URL on each receiver, and some that are not well.
func (l *load) addURLs(ctx context.Context, c *caller, org string) error {
	bases := map[string]interface{ Trust(path, secret string) }{}
	for _, name := range []string{"healthy", "fails", "hangs", "drips"} {
		bases[l.site.receiver.URL("/"+org+"/"+name)] = l.site.receiver
	}
	if l.site.distant != nil {
		bases[l.site.distant.URL("/"+org+"/healthy")] = l.site.distant
	}
	for address, receiver := range bases {
		var made struct {
			Secret string `json:"signing_secret"`
		}
		if _, err := c.ask(ctx, request{method: http.MethodPost, path: "organizations/" + org + "/webhook-endpoints", body: fmt.Sprintf(`{"url": %q}`, address)}, &made); err != nil {
			return err
		}
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		receiver.Trust(u.Path, made.Secret)
	}
	return nil
}

// start lets the clients and the readers go; stop and stopReaders let them come to an end.
func (l *load) start(ctx context.Context) {
	for n := range l.options.clients {
		p := &partner{load: l, call: l.caller(uint64(n) + 1), number: n, org: schools[n%2], model: newModel()}
		l.calls.Go(func() { l.loop(ctx, p.call, p.step) })
	}
	r := &registrar{load: l, call: l.caller(1000), model: newModel()}
	l.calls.Go(func() { l.loop(ctx, r.call, r.step) })
	for n, org := range schools {
		reader := &reader{load: l, call: l.caller(2000 + uint64(n)), org: org, last: map[string]float64{}}
		l.readers = append(l.readers, reader)
		l.read.Go(func() { reader.follow(ctx) })
	}
}

func (l *load) stop() {
	l.over.Store(true)
	l.calls.Wait()
}

func (l *load) stopReaders() {
	l.shut.Store(true)
	l.read.Wait()
}

func (l *load) loop(ctx context.Context, c *caller, step func(ctx context.Context) error) {
	for !l.over.Load() {
		if err := step(ctx); err != nil {
			if ctx.Err() != nil {
				return
			}
			l.report.find("a call: %v", err)
		}
		if pause(ctx, time.Duration(c.rand.Int64N(2*int64(l.options.pause)+1))) != nil {
			return
		}
	}
}

// accepted writes the call down, tells it to the client's own model, and holds the answer against it.
func (l *load) accepted(m *model, o op, a answer) error {
	o.At, o.FirstAnswer = time.Now().UTC(), a.first
	l.report.accepted(o.Kind)
	want := m.apply(o)
	if o.FirstAnswer && o.said() != want {
		l.report.find("%s of %s%s: the answer says %s, the model %s: %s", o.Kind, o.Org, o.Email, o.said(), want, a.body)
	}
	return l.journal.add(o)
}

// partner onboards students of its own and lets them work.
type partner struct {
	*load

	call   *caller
	number int
	org    string
	model  *model
	emails []string // of its students
}

func (p *partner) chance(of float64) bool { return p.call.rand.Float64() < of }

func (p *partner) step(ctx context.Context) error {
	if len(p.emails) < 5 || p.chance(0.3) {
		return p.onboard(ctx)
	}
	email := p.emails[p.call.rand.IntN(len(p.emails))]
	s := p.model.students[p.org+" "+email]
	steps := []func(context.Context, string, *student) error{p.again, p.again, p.extend, p.extend, p.lookUp, p.lookUp}
	if !s.hasPlan {
		steps = append(steps, p.suspend, p.assign, p.assign, p.score, p.score, p.score)
	}
	return steps[p.call.rand.IntN(len(steps))](ctx, email, s)
}

var courseTypes = []string{"ielts", "toefl", "sat", "gre"}

func (p *partner) onboard(ctx context.Context) error {
	email := fmt.Sprintf("s%d.%d@%s-school.org", p.number, len(p.emails), p.org)
	o := op{Kind: "provision", Org: p.org, Email: email, Months: 1 + p.call.rand.IntN(6), Quiet: p.chance(0.3)}
	for _, n := range p.call.rand.Perm(len(courseTypes))[:p.call.rand.IntN(4)] {
		o.Courses = append(o.Courses, courseTypes[n])
	}
	if p.chance(0.1) {
		o.Courses, o.Plan = []string{"ielts"}, true
	}
	if p.chance(0.5) {
		o.Ref = "first"
	}
	if err := p.provision(ctx, o); err != nil {
		return err
	}
	p.emails = append(p.emails, email)
	return nil
}

// again names courses of before, and perhaps one more.
func (p *partner) again(ctx context.Context, email string, s *student) error {
	courses := slices.Sorted(maps.Keys(s.enrolled))
	if more := courseTypes[p.call.rand.IntN(len(courseTypes))]; p.chance(0.5) && !slices.Contains(courses, more) && !s.hasPlan {
		courses = append(courses, more)
	}
	return p.provision(ctx, op{Kind: "provision", Org: p.org, Email: email, Courses: courses, Months: 2})
}

// extend names a reference: mostly a new one, sometimes one of before.
func (p *partner) extend(ctx context.Context, email string, s *student) error {
	courses := slices.Sorted(maps.Keys(s.enrolled))
	if len(courses) == 0 {
		return nil
	}
	return p.provision(ctx, op{Kind: "provision", Org: p.org, Email: email, Courses: courses[:1], Months: 1, Extend: true,
		Ref: fmt.Sprintf("order-%d", p.call.rand.IntN(4))})
}

func (p *partner) provision(ctx context.Context, o op) error {
	body := map[string]any{"email": o.Email, "first_name": "Asha", "last_name": "Rao", "tenure_months": o.Months}
	if len(o.Courses) > 0 {
		body["courses"] = o.Courses
	}
	if o.Ref != "" {
		body["external_ref"] = o.Ref
	}
	if o.Extend {
		body["extend_access"] = true
	}
	if o.Quiet {
		body["send_welcome_email"] = false
	}
	if o.Plan {
		body["target_score_plan"] = map[string]any{"target_score": 7, "timezone": "Asia/Kolkata", "test_plan": true}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	var got struct {
		UserID      int64 `json:"user_id"`
		CreatedUser bool  `json:"created_user"`
		Enrollments []struct {
			ID         int64  `json:"enrollment_id"`
			CourseType string `json:"course_type"`
			Action     string
		}
	}
	r := request{method: http.MethodPost, path: "provision/student/", org: o.Org, body: string(text)}
	if p.chance(0.5) {
		r.once = fmt.Sprintf("%d-%d", p.number, p.call.rand.Uint64())
	}
	a, err := p.call.ask(ctx, r, &got)
	if err != nil {
		return err
	}
	o.User, o.Created, o.Enrolments = got.UserID, got.CreatedUser, map[string]int64{}
	for _, e := range got.Enrollments {
		o.Enrolments[e.CourseType] = e.ID
		o.Actions = append(o.Actions, e.Action)
	}
	return p.accepted(p.model, o, a)
}

// lookUp reads the student and holds the answer against the client's model: what was answered can
// be read at once, from either server.
func (p *partner) lookUp(ctx context.Context, email string, s *student) error {
	var got struct {
		Student struct {
			UserID int64 `json:"user_id"`
		}
		Enrollments []struct {
			ID      int64  `json:"enrollment_id"`
			Type    string `json:"course_type"`
			Status  string
			EndDate string `json:"end_date"`
		}
	}
	if _, err := p.call.ask(ctx, request{method: http.MethodGet, path: "students/?email=" + url.QueryEscape(email), org: p.org}, &got); err != nil {
		return err
	}
	p.report.accepted("look-up")
	if len(got.Enrollments) != len(s.enrolled) || got.Student.UserID != s.user {
		p.report.find("%s is user %d with %d enrolments, the model has %d with %d", email, got.Student.UserID, len(got.Enrollments), s.user, len(s.enrolled))
	}
	for _, e := range got.Enrollments {
		held, status := s.enrolled[e.Type], "active"
		if held == nil || held.id != e.ID {
			p.report.find("%s has enrolment %d in %s, the model %+v", email, e.ID, e.Type, held)
			continue
		}
		if held.suspended {
			status = "suspended"
		}
		if end := held.end(day(held.granted)).Format(time.DateOnly); !nearMidnight(held.granted) && (e.EndDate != end || e.Status != status) {
			p.report.find("%s in %s is %s until %s, the model has %s until %s", email, e.Type, e.Status, e.EndDate, status, end)
		}
	}
	return nil
}

func (p *partner) suspend(ctx context.Context, email string, s *student) error {
	for course, e := range s.enrolled {
		o := op{Kind: "suspend", Org: p.org, Email: email, Course: course}
		body := `{"state": "suspended"}`
		if e.suspended {
			o.Kind, body = "resume", `{"state": "running"}`
		}
		a, err := p.call.ask(ctx, request{method: http.MethodPatch, path: fmt.Sprintf("organizations/%s/enrollments/%d", p.org, e.id), body: body}, nil)
		if err != nil {
			return err
		}
		return p.accepted(p.model, o, a)
	}
	return nil
}

func (s *student) hasAccess() bool {
	for _, e := range s.enrolled {
		if !e.suspended {
			return true
		}
	}
	return false
}

func (p *partner) assign(ctx context.Context, email string, s *student) error {
	if !s.hasAccess() {
		return nil
	}
	o := op{Kind: "assign", Org: p.org, Email: email, User: s.user, Item: p.items[p.call.rand.IntN(len(p.items))]}
	body := map[string]any{"user_id": s.user, "kind": "test", "item_id": o.Item}
	if _, open := s.open[o.Item]; !open && p.chance(0.2) {
		o.Due = true
		body["due_date"] = time.Now().UTC().Add(4 * time.Minute).Format(time.RFC3339)
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	var got struct {
		Created    bool
		Assignment struct {
			ID      string
			DueDate *string `json:"due_date"`
		}
	}
	a, err := p.call.ask(ctx, request{method: http.MethodPost, path: "assignments/", org: p.org, body: string(text)}, &got)
	if err != nil {
		return err
	}
	o.Created, o.Assignment = got.Created, got.Assignment.ID
	return p.accepted(p.model, o, a)
}

// score finishes a test, practised or assigned, or marks one anew.
func (p *partner) score(ctx context.Context, email string, s *student) error {
	o := op{Kind: "score", Org: p.org, Email: email, Score: float64(p.call.rand.IntN(19)) / 2}
	body := map[string]any{"organization": p.org, "state": "finished", "score": o.Score}
	sessions, open := slices.Sorted(maps.Keys(s.sessions)), slices.Sorted(maps.Keys(s.open))
	switch {
	case len(sessions) > 0 && p.chance(0.3):
		o.Session = sessions[p.call.rand.IntN(len(sessions))]
		o.Item = s.sessions[o.Session].item
	case len(open) > 0 && p.chance(0.7):
		o.Item, o.Linked = open[p.call.rand.IntN(len(open))], true
		if s.due[o.Item] {
			return nil // is to become overdue
		}
		body["assignment_id"] = s.open[o.Item]
	default:
		o.Item = p.items[p.call.rand.IntN(len(p.items))]
	}
	if o.Session == "" {
		o.Session = fmt.Sprintf("%s-%d-%x", p.org, p.number, p.call.rand.Uint64())
		body["user_id"], body["item_id"] = s.user, o.Item
	}
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r := request{method: http.MethodPut, path: "test-sessions/" + o.Session, body: string(text)}
	if p.chance(0.3) {
		body["kind"], body["id"] = "test", o.Session
		if text, err = json.Marshal(map[string]any{"records": []any{body}}); err != nil {
			return err
		}
		r = request{method: http.MethodPost, path: "work", body: string(text)}
	}
	a, err := p.call.ask(ctx, r, nil)
	if err != nil {
		return err
	}
	if strings.Contains(string(a.body), `"error"`) && r.path == "work" {
		return fmt.Errorf("%s: %s", r.body, a.body)
	}
	return p.accepted(p.model, o, a)
}

// registrar sends a school's file again and again, with people who come, go and come back.
type registrar struct {
	*load

	call  *caller
	model *model
	known int
}

func (g *registrar) step(ctx context.Context) error {
	if g.call.rand.IntN(8) == 0 && g.known > 0 {
		return g.emptySnapshot(ctx)
	}
	g.known += g.call.rand.IntN(30)
	if g.known < 20 {
		g.known = 20
	}
	away := map[int]bool{}
	for range g.call.rand.IntN(5) { // too few for a guard
		away[g.call.rand.IntN(g.known)] = true
	}
	o := op{Kind: "roster", Org: rosterSchool, Snapshot: g.call.rand.IntN(3) > 0}
	var file strings.Builder
	file.WriteString("person_external_id,email,first_name,last_name,role\n")
	for n := range g.known {
		if away[n] {
			continue
		}
		p := person{External: fmt.Sprintf("p%05d", n), Email: fmt.Sprintf("p%05d@gamma-school.org", n), First: "Ana"}
		fmt.Fprintf(&file, "%s,%s,%s,Lee,student\n", p.External, p.Email, p.First)
		o.People = append(o.People, p)
	}
	var got struct {
		Status string
		Counts counts
	}
	a, err := g.call.ask(ctx, g.upload(o.Snapshot, file.String()), &got)
	if err != nil {
		return err
	}
	if got.Status != "applied" {
		return fmt.Errorf("a roster that no guard concerns: %s", a.body)
	}
	o.Counts = got.Counts
	return g.accepted(g.model, o, a)
}

func (g *registrar) upload(snapshot bool, file string) request {
	mode := "additive_only"
	if snapshot {
		mode = "authoritative_snapshot"
	}
	return request{method: http.MethodPost, path: "roster/import/", org: rosterSchool, body: file,
		header: map[string]string{"Content-Type": "text/csv", "X-Roster-Mode": mode, "X-Roster-Source": "sis"}}
}

func (g *registrar) emptySnapshot(ctx context.Context) error {
	a, err := g.call.ask(ctx, g.upload(true, "person_external_id,email,first_name,last_name,role\n"), nil)
	if err != nil {
		return err
	}
	if a.status != http.StatusAccepted {
		return fmt.Errorf("an empty snapshot was answered %d: %s", a.status, a.body)
	}
	return g.accepted(g.model, op{Kind: "empty snapshot", Org: rosterSchool}, a)
}

// reader follows the results of an organization with a stored cursor.
type reader struct {
	*load

	call   *caller
	org    string
	cursor string
	last   map[string]float64 // by result id
	rows   int
}

// follow reads on until it is told to come to an end, and then to the end.
func (r *reader) follow(ctx context.Context) {
	for {
		ending := r.shut.Load()
		more, err := r.page(ctx)
		if err != nil {
			if ctx.Err() == nil {
				r.report.find("reading results of %s: %v", r.org, err)
			}
			return
		}
		if ending && !more {
			return
		}
		if !more && pause(ctx, time.Second) != nil {
			return
		}
	}
}

func (r *reader) page(ctx context.Context) (more bool, err error) {
	var page struct {
		HasMore    bool   `json:"has_more"`
		NextCursor string `json:"next_cursor"`
		Results    []struct {
			ID    string
			Score float64
		}
	}
	path := "results/?limit=100"
	if r.cursor != "" {
		path += "&cursor=" + url.QueryEscape(r.cursor)
	}
	if _, err := r.call.ask(ctx, request{method: http.MethodGet, path: path, org: r.org}, &page); err != nil {
		return false, err
	}
	for _, row := range page.Results {
		r.last[row.ID] = row.Score
		r.rows++
	}
	r.cursor = page.NextCursor
	return page.HasMore, nil
}
