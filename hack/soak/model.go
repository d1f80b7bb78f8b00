package main

import (
	"fmt"
	"strings"
	"time"
)

// op is one call that was accepted, as the journal has it.
type op struct {
	At   time.Time `json:"at"` // when its answer came
	Kind string    `json:"kind"`
	Org  string    `json:"org"`

	Client int `json:"client"` // whose call it was

	Email   string   `json:"email,omitempty"`
	Courses []string `json:"courses,omitempty"`
	Months  int      `json:"months,omitempty"`
	Extend  bool     `json:"extend,omitempty"`
	Ref     string   `json:"ref,omitempty"`
	Quiet   bool     `json:"quiet,omitempty"` // no welcome mail
	Plan    bool     `json:"plan,omitempty"`

	password string // sent with the call

	Course  string  `json:"course,omitempty"` // of a suspension or its end
	Item    int64   `json:"item,omitempty"`
	Due     bool    `json:"due,omitempty"` // in a few minutes, and never handed in
	Session string  `json:"session,omitempty"`
	Score   float64 `json:"score,omitempty"`
	Linked  bool    `json:"linked,omitempty"` // the session hands in the assignment of the item
	Marked  bool    `json:"marked,omitempty"` // an LMS is to get the score

	People   []person `json:"people,omitempty"`
	Snapshot bool     `json:"snapshot,omitempty"`

	// What the answer said.
	User        int64            `json:"user,omitempty"`
	Enrollments map[string]int64 `json:"enrollments,omitempty"` // by course type
	Actions     []string         `json:"actions,omitempty"`     // in the order of Courses
	Created     bool             `json:"created,omitempty"`
	Assignment  string           `json:"assignment,omitempty"`
	Counts      counts           `json:"counts,omitzero"`
	FirstAnswer bool             `json:"first_answer,omitempty"` // of the first try: none may have gone before it
}

type person struct {
	External, Email, First string
}

type counts struct{ Create, Update, Skip int }

// model is what the site should hold. It knows the reference (docs/reference) and nothing of the programs.
type model struct {
	students map[string]*student // by organization and email
	accounts map[string]bool     // by email: a person may be a student of two organizations
	rosters  map[string]*school
	events   map[event]int // how many different ones each organization's URLs are pending
	scores   map[event]float64
	marks    map[marked]float64  // the last score that an LMS is to have
	at       map[event]time.Time // when the call was answered, of what happens once
	touched  map[event]bool      // results whose last mark a restore has lost: who was sent it has it still
}

// marked is a session of a student of an LMS.
type marked struct{ email, session string }

// event says of what and of whom: "enrollment 17".
type event struct{ org, kind, subject string }

type student struct {
	user     int64
	enrolled map[string]*enrollment
	open     map[int64]string // item → assignment
	due      map[int64]bool   // of those, which will be overdue
	sessions map[string]session
	finished int // assignments handed in
	welcomed bool
	hasPlan  bool
}

type enrollment struct {
	id        int64
	granted   time.Time // when it began
	months    []int     // granted one after the other
	refs      map[string]bool
	suspended bool
}

type session struct {
	score  float64
	item   int64
	marked bool
}

type school struct {
	people map[string]*pupil // by external id
}

type pupil struct {
	email string
	here  bool
}

func newModel() *model {
	return &model{students: map[string]*student{}, accounts: map[string]bool{}, rosters: map[string]*school{}, events: map[event]int{}, scores: map[event]float64{},
		marks: map[marked]float64{}, touched: map[event]bool{}, at: map[event]time.Time{}}
}

func (m *model) owe(o op, kind, subject string, args ...any) {
	e := event{o.Org, kind, fmt.Sprintf(subject, args...)}
	if m.events[e]++; strings.HasSuffix(kind, ".created") || kind == "student.joined" {
		m.at[e] = o.At
	}
}

// apply does to the model what the call did to the site. It returns what the answer should have
// been, in the words of op: for a first answer, and where a call has such words.
func (m *model) apply(o op) (want string) {
	switch o.Kind {
	case "provision":
		return m.provision(o)
	case "suspend", "resume":
		m.suspend(o)
	case "assign":
		return m.assign(o)
	case "score":
		m.score(o)
	case "roster":
		return m.roster(o)
	case "empty snapshot", opMoment, opRestored: // the first is held for review: nothing changes
	default:
		panic("the model knows no " + o.Kind)
	}
	return ""
}

// The journal has these as well: what is between them was undone by a restore.
const opMoment, opRestored = "moment", "restored"

// said is what an answer said, in the words of apply.
func (o op) said() string {
	switch o.Kind {
	case "provision":
		return fmt.Sprint(o.Created, o.Actions)
	case "assign":
		return fmt.Sprint(o.Created)
	case "roster":
		return fmt.Sprint(o.Counts)
	}
	return ""
}

func (m *model) provision(o op) string {
	s := m.students[o.Org+" "+o.Email]
	created := !m.accounts[o.Email]
	m.accounts[o.Email] = true
	if s == nil {
		s = &student{user: o.User, enrolled: map[string]*enrollment{}, open: map[int64]string{}, due: map[int64]bool{}, sessions: map[string]session{}, welcomed: created && !o.Quiet}
		m.students[o.Org+" "+o.Email] = s
		m.owe(o, "student.joined", "student %d", o.User)
	}
	s.hasPlan = s.hasPlan || o.Plan
	var actions []string
	for _, course := range o.Courses {
		actions = append(actions, m.enroll(o, s, course))
	}
	return fmt.Sprint(created, actions)
}

func (m *model) enroll(o op, s *student, course string) string {
	e := s.enrolled[course]
	switch {
	case e == nil:
		e = &enrollment{id: o.Enrollments[course], granted: o.At, months: []int{o.Months}, refs: map[string]bool{}}
		s.enrolled[course] = e
		m.owe(o, "enrollment.created", "enrollment %d", e.id)
		e.remember(o.Ref)
		return "created"
	case e.suspended:
		return "skipped"
	case o.Extend && !e.refs[o.Ref]:
		e.months = append(e.months, o.Months)
		e.remember(o.Ref)
		m.owe(o, "enrollment.updated", "enrollment %d", e.id)
		return "extended"
	default:
		return "unchanged"
	}
}

func (e *enrollment) remember(ref string) {
	if ref != "" {
		e.refs[ref] = true
	}
}

// end is the last day of access, each grant counted from the end of the one before.
func (e *enrollment) end(start time.Time) time.Time {
	for _, n := range e.months {
		start = addMonths(start, n)
	}
	return start
}

// addMonths keeps to the last day of a month that is too short.
func addMonths(d time.Time, n int) time.Time {
	first := time.Date(d.Year(), d.Month()+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return first.AddDate(0, 0, min(d.Day(), last)-1)
}

func day(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

func (m *model) suspend(o op) {
	s := m.students[o.Org+" "+o.Email]
	e := s.enrolled[o.Course]
	e.suspended = o.Kind == "suspend"
	if e.suspended {
		m.owe(o, "enrollment.ended", "enrollment %d", e.id)
	} else {
		m.owe(o, "enrollment.updated", "enrollment %d", e.id)
	}
}

func (m *model) assign(o op) string {
	s := m.students[o.Org+" "+o.Email]
	if _, ok := s.open[o.Item]; ok {
		return fmt.Sprint(false)
	}
	s.open[o.Item] = o.Assignment
	m.owe(o, "assignment.created", "assignment %s", o.Assignment)
	if o.Due {
		m.owe(o, "assignment.overdue", "assignment %s", o.Assignment)
		s.due[o.Item] = true
	}
	return fmt.Sprint(true)
}

func (m *model) score(o op) {
	s := m.students[o.Org+" "+o.Email]
	held, known := s.sessions[o.Session]
	if known && held.score == o.Score {
		return
	}
	held.score, held.item, held.marked = o.Score, o.Item, o.Marked
	if !known && o.Linked {
		delete(s.open, o.Item)
		s.finished++
	}
	s.sessions[o.Session] = held
	subject := "result test:" + o.Session
	m.owe(o, "result.final", "%s", subject)
	result := event{o.Org, "result.final", subject}
	m.scores[result] = o.Score
	delete(m.touched, result)
	if o.Marked {
		m.marks[marked{o.Email, o.Session}] = o.Score
	}
}

// lose notes a call that a restore has undone.
func (m *model) lose(o op) {
	if o.Kind == "score" {
		m.touched[event{o.Org, "result.final", "result test:" + o.Session}] = true
	}
}

// roster takes a file in. Whom the file brings for the first time has no id in the answer: people
// are told apart by their email.
func (m *model) roster(o op) string {
	s := m.rosters[o.Org]
	if s == nil {
		s = &school{people: map[string]*pupil{}}
		m.rosters[o.Org] = s
	}
	var c counts
	named := map[string]bool{}
	for _, p := range o.People {
		named[p.External] = true
		held := s.people[p.External]
		switch {
		case held == nil:
			s.people[p.External] = &pupil{email: p.Email, here: true}
			m.owe(o, "student.joined", "%s", p.Email)
			c.Create++
		case !held.here:
			held.here = true
			m.owe(o, "student.joined", "%s", p.Email)
			c.Update++
		default:
			c.Skip++
		}
	}
	for external, held := range s.people {
		if o.Snapshot && held.here && !named[external] {
			held.here = false
			m.owe(o, "student.left", "%s", held.email)
			c.Update++
		}
	}
	return fmt.Sprint(c)
}
