package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// partner onboards students of its own and lets them work.
type partner struct {
	*load

	call   *caller
	number int
	org    string   // that the step is about
	orgs   []string // that it calls for
	model  *model
	emails []string          // of its students
	at     map[string]string // their organizations
}

func (p *partner) chance(of float64) bool { return p.call.rand.Float64() < of }

func (p *partner) step(ctx context.Context) error {
	if len(p.emails) < 5 || p.chance(0.3) {
		return p.onboard(ctx)
	}
	email := p.emails[p.call.rand.IntN(len(p.emails))]
	p.org = p.at[email]
	s := p.model.students[p.org+" "+email]
	steps := []func(context.Context, string, *student) error{p.again, p.again, p.extend, p.extend, p.lookUp, p.lookUp}
	if !s.hasPlan {
		steps = append(steps, p.suspend, p.assign, p.assign, p.score, p.score, p.score)
	}
	return steps[p.call.rand.IntN(len(steps))](ctx, email, s)
}

var courseTypes = []string{"ielts", "toefl", "sat", "gre"}

func (p *partner) onboard(ctx context.Context) error {
	p.org = p.orgs[p.call.rand.IntN(len(p.orgs))]
	email := fmt.Sprintf("s%d.%d.%x@%s-school.org", p.number, len(p.emails), p.call.rand.Uint32(), p.org) // nobody whom a restore forgot
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
	if _, err := p.provision(ctx, o); err != nil {
		return err
	}
	p.emails, p.at[email] = append(p.emails, email), p.org
	return nil
}

// rewind has the client know what is left after a restore.
func (p *partner) rewind(m *model) {
	p.model = m
	p.emails = slices.DeleteFunc(p.emails, func(email string) bool { return m.students[p.at[email]+" "+email] == nil })
}

// again names courses of before, and perhaps one more.
func (p *partner) again(ctx context.Context, email string, s *student) error {
	courses := slices.Sorted(maps.Keys(s.enrolled))
	if more := courseTypes[p.call.rand.IntN(len(courseTypes))]; p.chance(0.5) && !slices.Contains(courses, more) && !s.hasPlan {
		courses = append(courses, more)
	}
	_, err := p.provision(ctx, op{Kind: "provision", Org: p.org, Email: email, Courses: courses, Months: 2})
	return err
}

// extend names a reference: mostly a new one, sometimes one of before.
func (p *partner) extend(ctx context.Context, email string, s *student) error {
	courses := slices.Sorted(maps.Keys(s.enrolled))
	if len(courses) == 0 {
		return nil
	}
	_, err := p.provision(ctx, op{Kind: "provision", Org: p.org, Email: email, Courses: courses[:1], Months: 1, Extend: true,
		Ref: fmt.Sprintf("order-%d", p.call.rand.IntN(4))})
	return err
}

// provision makes the call, and gives the link in its answer; "" for none.
func (p *partner) provision(ctx context.Context, o op) (link string, err error) {
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
	if o.password != "" {
		body["password"] = o.password
	}
	if o.Plan {
		body["target_score_plan"] = map[string]any{"target_score": 7, "timezone": "Asia/Kolkata", "test_plan": true}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	var got struct {
		UserID      int64  `json:"user_id"`
		CreatedUser bool   `json:"created_user"`
		Link        string `json:"set_password_url"`
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
		return "", err
	}
	o.User, o.Created, o.Enrollments = got.UserID, got.CreatedUser, map[string]int64{}
	for _, e := range got.Enrollments {
		o.Enrollments[e.CourseType] = e.ID
		o.Actions = append(o.Actions, e.Action)
	}
	return got.Link, p.accepted(p.number, p.model, o, a)
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
		p.report.find("%s is user %d with %d enrollments, the model has %d with %d", email, got.Student.UserID, len(got.Enrollments), s.user, len(s.enrolled))
	}
	for _, e := range got.Enrollments {
		held, status := s.enrolled[e.Type], "active"
		if held == nil || held.id != e.ID {
			p.report.find("%s has enrollment %d in %s, the model %+v", email, e.ID, e.Type, held)
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
		return p.accepted(p.number, p.model, o, a)
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
	if _, open := s.open[o.Item]; !open && p.chance(0.2) {
		o.Due = true
	}
	return p.give(ctx, o)
}

// give assigns a test.
func (p *partner) give(ctx context.Context, o op) error {
	body := map[string]any{"user_id": o.User, "kind": "test", "item_id": o.Item}
	if o.Due {
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
	return p.accepted(p.number, p.model, o, a)
}

// score finishes a test, practised or assigned, or marks one again.
func (p *partner) score(ctx context.Context, email string, s *student) error {
	o := op{Kind: "score", Org: p.org, Email: email, Score: float64(p.call.rand.IntN(19)) / 2}
	sessions, open := slices.Sorted(maps.Keys(s.sessions)), slices.Sorted(maps.Keys(s.open))
	switch {
	case len(sessions) > 0 && p.chance(0.3):
		o.Session = sessions[p.call.rand.IntN(len(sessions))]
		o.Item, o.Marked = s.sessions[o.Session].item, s.sessions[o.Session].marked
	case len(open) > 0 && p.chance(0.7):
		o.Item, o.Linked = open[p.call.rand.IntN(len(open))], true
		if s.due[o.Item] {
			return nil // is to become overdue
		}
	case p.org == lmsSchool: // which goes by one session of a student
		o.Session = sessions[0]
		o.Item, o.Marked = s.sessions[o.Session].item, s.sessions[o.Session].marked
	default:
		o.Item = p.items[p.call.rand.IntN(len(p.items))]
	}
	return p.finish(ctx, o, s)
}

// finish reports the score of a session, of a new one unless it is named.
func (p *partner) finish(ctx context.Context, o op, s *student) error {
	body := map[string]any{"organization": o.Org, "state": "finished", "score": o.Score}
	if o.Linked {
		body["assignment_id"] = s.open[o.Item]
	}
	if o.Session == "" {
		o.Session = fmt.Sprintf("%s-%d-%x", o.Org, p.number, p.call.rand.Uint64())
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
	return p.accepted(p.number, p.model, o, a)
}
