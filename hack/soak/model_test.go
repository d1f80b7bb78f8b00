package main

import (
	"maps"
	"slices"
	"testing"
	"time"
)

func TestTheModelFollowsTheReference(t *testing.T) {
	at := time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)
	m := newModel()
	call := func(o op) op {
		o.At, o.Org, o.Email, o.User = at, "alpha", "asha@alpha-school.org", 7
		if o.Kind == "" {
			o.Kind = "provision"
		}
		o.Enrollments = map[string]int64{"ielts": 11, "sat": 12}
		return o
	}
	for n, c := range []struct {
		op   op
		want string
	}{
		{op{Courses: []string{"ielts"}, Months: 1, Ref: "a"}, "true [created]"},
		{op{Courses: []string{"ielts"}, Months: 1, Ref: "a"}, "false [unchanged]"},
		{op{Courses: []string{"ielts", "sat"}, Months: 1, Extend: true, Ref: "a"}, "false [unchanged created]"},
		{op{Courses: []string{"ielts"}, Months: 1, Extend: true, Ref: "b"}, "false [extended]"},
		{op{Kind: "suspend", Course: "ielts"}, ""},
		{op{Courses: []string{"ielts"}, Months: 1, Extend: true, Ref: "c"}, "false [skipped]"},
		{op{Kind: "resume", Course: "ielts"}, ""},
		{op{Kind: "assign", Item: 5, Assignment: "test-assignment:1"}, "true"},
		{op{Kind: "assign", Item: 5, Assignment: "test-assignment:1"}, "false"},
		{op{Kind: "score", Item: 5, Session: "s1", Score: 6, Linked: true}, ""},
		{op{Kind: "score", Item: 5, Session: "s1", Score: 6}, ""},
		{op{Kind: "score", Item: 5, Session: "s1", Score: 6.5}, ""},
	} {
		if got := m.apply(call(c.op)); got != c.want {
			t.Errorf("call %d: %s, want %s", n, got, c.want)
		}
	}
	e := m.students["alpha asha@alpha-school.org"].enrolled["ielts"]
	if got := e.end(day(e.granted)).Format(time.DateOnly); got != "2027-03-28" { // by way of 28 February
		t.Errorf("the access ends on %s", got)
	}
	want := map[event]int{
		{"alpha", "student.joined", "student 7"}:                        1,
		{"alpha", "enrollment.created", "enrollment 11"}:                1,
		{"alpha", "enrollment.created", "enrollment 12"}:                1,
		{"alpha", "enrollment.updated", "enrollment 11"}:                2,
		{"alpha", "enrollment.ended", "enrollment 11"}:                  1,
		{"alpha", "assignment.created", "assignment test-assignment:1"}: 1,
		{"alpha", "result.final", "result test:s1"}:                     2,
	}
	if !maps.Equal(m.events, want) {
		t.Errorf("events: %v", m.events)
	}
}

func TestTheModelFollowsFiles(t *testing.T) {
	m := newModel()
	ana, ben := person{"1", "ana@gamma-school.org", "Ana"}, person{"2", "ben@gamma-school.org", "Ben"}
	for n, c := range []struct {
		people   []person
		snapshot bool
		want     string
	}{
		{[]person{ana, ben}, false, "{2 0 0}"},
		{[]person{ana}, false, "{0 0 1}"},
		{[]person{ana}, true, "{0 1 1}"},
		{[]person{ana, ben}, true, "{0 1 1}"},
	} {
		if got := m.apply(op{Kind: "roster", Org: "gamma", People: c.people, Snapshot: c.snapshot}); got != c.want {
			t.Errorf("file %d: %s, want %s", n, got, c.want)
		}
	}
	if got := m.events[event{"gamma", "student.joined", ben.Email}]; got != 2 {
		t.Errorf("Ben joined %d times", got)
	}
}

func TestDifferences(t *testing.T) {
	got := differences([]string{"a", "b", "b", "d"}, []string{"b", "c", "d"})
	if want := []string{"not in the model: a", "not in the model: b", "only in the model: c"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
