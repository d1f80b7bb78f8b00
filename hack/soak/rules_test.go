package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
)

var noon = time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)

// post is a request of an event about a student's result.
func post(id, student string, sequence int64, score float64) stack.Received {
	return stack.Received{ReceivedAt: noon, Path: "/alpha/healthy", Headers: map[string]string{"X-Service-Sequence": fmt.Sprint(sequence), "X-Service-Delivery": id},
		Body: fmt.Sprintf(`{"id": %q, "type": "result.final", "organization": {"slug": "alpha"}, "data": {"id": "test:1", "email": %q, "score": %v}}`, id, student, score)}
}

func take(t *testing.T, b *inbox, refused bool, posts ...stack.Received) *inbox {
	t.Helper()
	for _, d := range posts {
		if _, _, err := b.take(d, refused, true, true); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func TestOrderOfFirstAttempts(t *testing.T) {
	one, two, three, other := post("evt_1", "asha", 1, 1), post("evt_2", "asha", 2, 2), post("evt_3", "asha", 3, 3), post("evt_0", "ben", 0, 1)
	for _, c := range []struct {
		name   string
		posts  []stack.Received
		failed map[string]bool
		want   int
	}{
		{"in order", []stack.Received{one, two, three}, nil, 0},
		{"a repeat comes late", []stack.Received{one, two, one, three}, nil, 0},
		{"another student's comes late", []stack.Received{one, two, other, three}, nil, 0},
		{"one overtakes", []stack.Received{one, three, two}, nil, 1},
		{"the first comes last", []stack.Received{two, three, one}, nil, 1},
		{"the late one had failed", []stack.Received{one, three, two}, map[string]bool{"evt_2": true}, 0},
	} {
		if got := take(t, newInbox("/alpha/healthy"), false, c.posts...).disorder(c.failed); len(got) != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func TestReceiversStates(t *testing.T) {
	old, recent := post("evt_1", "asha", 1, 5), post("evt_2", "asha", 2, 7)
	result := event{"alpha", "result.final", "result test:1"}
	for _, c := range []struct {
		name    string
		posts   []stack.Received
		model   float64
		known   []string
		touched bool
		want    int
	}{
		{"the newest came last", []stack.Received{old, recent}, 7, []string{"evt_1", "evt_2"}, false, 0},
		{"the older one came late", []stack.Received{recent, old}, 7, []string{"evt_1", "evt_2"}, false, 0},
		{"the newest never came", []stack.Received{old}, 7, []string{"evt_1", "evt_2"}, false, 1},
		{"none came", nil, 7, nil, false, 1},
		{"a restore has lost the newest", []stack.Received{old, recent}, 5, []string{"evt_1"}, true, 0},
		{"the newest is not the model's", []stack.Received{old, recent}, 5, []string{"evt_1", "evt_2"}, false, 1},
	} {
		k := broken(t)
		k.received[nearLog+"/alpha/healthy"] = take(t, newInbox("/alpha/healthy"), false, c.posts...)
		k.model.scores[result] = c.model
		k.model.touched[result] = c.touched
		for _, id := range c.known {
			k.events[id] = "alpha"
		}
		if err := k.states(t.Context()); err != nil || min(1, k.report.broken()) != c.want {
			t.Errorf("%s: %v %q", c.name, err, k.report.findings)
		}
	}
}

// broken is a checker of a site without anything.
func broken(t *testing.T) *checker {
	t.Helper()
	return &checker{site: &site{}, model: newModel(), report: newReport(options{}, nil), events: map[string]string{}, received: map[string]*inbox{}}
}

func TestPullEqualsPush(t *testing.T) {
	pushed := post("evt_1", "asha", 1, 5)
	row := strings.Replace(pushed.Body, `{"id"`, `{"sequence": 1, "id"`, 1)
	for _, c := range []struct {
		name  string
		rows  []string
		known []string
		want  int
	}{
		{"the same", []string{row}, []string{"evt_1"}, 0},
		{"a field differs", []string{strings.Replace(row, "asha", "ben", 1)}, []string{"evt_1"}, 1},
		{"one is missing in the feed", []string{row}, []string{"evt_1", "evt_2"}, 1},
		{"a restore has lost one", []string{row, strings.NewReplacer("evt_1", "evt_0", `"sequence": 1`, `"sequence": 2`).Replace(row)}, []string{"evt_1"}, 0},
		{"the sequence goes back", []string{row, strings.NewReplacer("evt_1", "evt_2", `"sequence": 1`, `"sequence": 0`).Replace(row)}, []string{"evt_1", "evt_2"}, 1},
	} {
		k := broken(t)
		k.received[nearLog+"/alpha/healthy"] = take(t, newInbox("/alpha/healthy"), false, pushed)
		for _, id := range c.known {
			k.events[id] = "alpha"
		}
		r := newReader(&load{report: k.report}, nil, "alpha", "events")
		for _, text := range c.rows {
			if err := r.take(json.RawMessage(text)); err != nil {
				t.Fatal(err)
			}
		}
		if err := k.pulled([]*reader{r}); err != nil || k.report.broken() != c.want {
			t.Errorf("%s: %v %q", c.name, err, k.report.findings)
		}
	}
}

func TestReadersThatMissRows(t *testing.T) {
	has := map[string]string{"1": "", "2": "", "9": ""}
	gaps, lost := compare([]string{"1", "2", "3"}, has)
	if !slices.Equal(gaps, []string{"3"}) || lost != 1 {
		t.Errorf("%q are missing, %d lost", gaps, lost)
	}
	r := newReader(&load{}, nil, "alpha", "results")
	if err := r.goOn(`<https://registrar.example/api/v1/results/?cursor=abc&limit=100>; rel="next"`); err != nil || r.cursor != "abc" || r.told != 1 {
		t.Errorf("%v: goes on at %q", err, r.cursor)
	}
	if r.goOn("") == nil {
		t.Error("it goes on without an address")
	}
}

func TestFewComeTwice(t *testing.T) {
	for _, c := range []struct{ total, twice, want int }{
		{100_000, 500, 0},
		{100_000, 501, 1},
		{1000, 100, 0}, // says nothing
	} {
		r := newReport(options{}, nil)
		r.twice(c.total, c.twice)
		if r.broken() != c.want {
			t.Errorf("%d of %d: %q", c.twice, c.total, r.findings)
		}
	}
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	w := restored{from: at(1), to: at(2)}
	for minute, want := range []bool{false, true, false} {
		if w.has(at(minute)) != want {
			t.Errorf("minute %d: %v", minute, !want)
		}
	}
}

func TestARestoreUndoesCalls(t *testing.T) {
	file := filepath.Join(t.TempDir(), "accepted.jsonl")
	j, err := openJournal(file)
	if err != nil {
		t.Fatal(err)
	}
	join := func(email string) op { return op{Kind: "provision", Org: "alpha", Email: email, Client: 1} }
	mark := func(score float64) op {
		return op{Kind: "score", Org: "alpha", Email: "kept", Session: "s", Score: score, Marked: true}
	}
	for _, o := range []op{join("kept"), mark(5), {Kind: opMoment}, join("lost"), mark(7), {Kind: opRestored}, join("after"), {Kind: opMoment}, join("kept as well")} {
		if err := j.add(o); err != nil {
			t.Fatal(err)
		}
	}
	m := newModel()
	if err := readJournal(file, func(o op) { m.apply(o) }, m.lose); err != nil {
		t.Fatal(err)
	}
	for email, want := range map[string]bool{"kept": true, "lost": false, "after": true, "kept as well": true} {
		if got := m.students["alpha "+email] != nil; got != want {
			t.Errorf("%s: %v", email, got)
		}
	}
	result := event{"alpha", "result.final", "result test:s"}
	if m.scores[result] != 5 || !m.touched[result] {
		t.Errorf("%v, touched: %v", m.scores, m.touched)
	}
	m.apply(mark(8))
	if m.scores[result] != 8 || m.touched[result] {
		t.Errorf("marked again: %v, touched: %v", m.scores, m.touched)
	}
	p := &partner{emails: []string{"kept", "lost"}, at: map[string]string{"kept": "alpha", "lost": "alpha"}}
	if p.rewind(m); !slices.Equal(p.emails, []string{"kept"}) {
		t.Errorf("the client knows %q", p.emails)
	}
}

func TestAnLMSHasTheLastMark(t *testing.T) {
	for _, c := range []struct {
		name  string
		marks []mark
		want  int
	}{
		{"the last one came last", []mark{{"2027-01-31T12:00:00Z", 5}, {"2027-01-31T12:00:01Z", 7}}, 0},
		{"an older one came late", []mark{{"2027-01-31T12:00:01Z", 7}, {"2027-01-31T12:00:00Z", 5}}, 0},
		{"the last one never came", []mark{{"2027-01-31T12:00:00Z", 5}}, 1},
		{"none came", nil, 1},
	} {
		k := broken(t)
		k.model.marks[marked{"asha", "s"}] = 7
		m := &lms{marks: map[string]mark{}, seen: map[string]bool{}}
		for _, sent := range c.marks {
			m.take("asha", sent)
		}
		if k.marks(m); min(1, k.report.broken()) != c.want {
			t.Errorf("%s: %q", c.name, k.report.findings)
		}
	}
}

func TestSandboxesLiveAlike(t *testing.T) {
	life := func(texts ...string) (events []string) {
		s := &year{ids: map[string]string{}}
		for _, text := range texts {
			var e map[string]any
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(s.alike(e, "", ""))
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, string(got))
		}
		return events
	}
	quiet := life(`{"id": "evt_a", "data": {"user_id": 1, "days": 7}}`, `{"id": "evt_b", "data": {"user_id": 2}}`, `{"id": "evt_c", "data": {"user_id": 1}}`)
	like, alike := life(`{"data": {"item": {"id": 3}, "user_id": 3}}`), life(`{"data": {"item": {"id": 3}, "user_id": 8}}`)
	if got := unlike(alike, like); got != "" {
		t.Errorf("a number that a person and an item share: %s", got)
	}
	for _, c := range []struct {
		name string
		life []string
		want string
	}{
		{"other ids", life(`{"id": "evt_d", "data": {"user_id": 8, "days": 7}}`, `{"id": "evt_e", "data": {"user_id": 9}}`, `{"id": "evt_f", "data": {"user_id": 8}}`), ""},
		{"another day", life(`{"id": "evt_a", "data": {"user_id": 1, "days": 6}}`, `{"id": "evt_b", "data": {"user_id": 2}}`, `{"id": "evt_c", "data": {"user_id": 1}}`), "event 1 is"},
		{"another student", life(`{"id": "evt_a", "data": {"user_id": 1, "days": 7}}`, `{"id": "evt_b", "data": {"user_id": 2}}`, `{"id": "evt_c", "data": {"user_id": 2}}`), "event 3 is"},
		{"one is missing", quiet[:2], "1 events are missing"},
		{"one is more", append(slices.Clone(quiet), quiet[0]), "1 events are more"},
	} {
		if got := unlike(c.life, quiet); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func TestShortRunsLeaveTheReport(t *testing.T) {
	o := options{lasting: time.Minute, report: "docs/soak.md", organizations: 4, servers: 1, workers: 1, senders: 1}
	if o.check() == nil {
		t.Error("a minute overwrites " + usual)
	}
	if o.overwrite = true; o.check() != nil {
		t.Error("it may not though it was asked to")
	}
}
