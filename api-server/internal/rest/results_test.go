package rest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// school is an organization with students and a catalog.
type school struct {
	*apitest.Env
	apitest.Organization
	ana, bo                  int64
	ielts, sat, quiz, rubric int64
}

func newSchool(t *testing.T) *school {
	t.Helper()
	e := apitest.New(t)
	s := &school{Env: e, Organization: e.Organization(t, "north")}
	listen(t, e, "north")
	s.ana = provision(t, s.Organization, "ana@school.example", `"courses": ["ielts"]`)
	s.bo = provision(t, s.Organization, "bo@school.example", `"courses": ["sat"]`)
	s.ielts = item(t, e, "catalog/tests/i1", `{"title": "IELTS 1", "type": "ielts"}`)
	s.sat = item(t, e, "catalog/tests/s1", `{"title": "SAT 1", "type": "sat"}`)
	s.quiz = item(t, e, "organizations/north/catalog/quizzes/q1", `{"title": "Grammar"}`)
	s.rubric = item(t, e, "organizations/north/catalog/assessments/e1", `{"title": "Essay", "max_score": 20}`)
	return s
}

// session reports a test session of the school.
func (s *school) session(t *testing.T, name, format string, args ...any) *apitest.Answer {
	t.Helper()
	return s.Platform.Put(t, "test-sessions/"+name, `{"organization": "north", `+fmt.Sprintf(format, args...)+`}`)
}

func (s *school) assign(t *testing.T, user int64, kind string, item int64) string {
	t.Helper()
	var answer struct{ Assignment struct{ ID string } }
	s.Full.Post(t, "assignments/", fmt.Sprintf(`{"user_id": %d, "kind": %q, "item_id": %d}`, user, kind, item)).Want(t, 201).Into(t, &answer)
	return answer.Assignment.ID
}

// assignment is the object as the list shows it.
func (s *school) assignment(t *testing.T, ref string) map[string]any {
	t.Helper()
	for _, a := range s.Full.Get(t, "assignments/?limit=500").Want(t, 200).Object(t)["assignments"].([]any) {
		if a := a.(map[string]any); a["id"] == ref {
			return a
		}
	}
	t.Fatalf("no assignment %s", ref)
	return nil
}

// Reference: assignments#assignment-fields, results#result-fields.
func TestATestBecomesAResult(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.session(t, "s1", `"user_id": %d, "item_id": %d, "state": "started", "started_at": "2026-11-20T08:00:00Z"`, s.ana, s.ielts).Want(t, 201).Golden(t, "session-started")
	if got := walk(t, s.Full, "results/"); got != nil {
		t.Errorf("an unfinished test is a result: %v", got)
	}
	finish := func() *apitest.Answer {
		return s.session(t, "s1", `"state": "finished", "completed_at": "2026-11-20T10:45:00.123456789+00:00",
			"sections": {"speaking": 7, "listening": 6.5, "reading": "6.5", "writing": 5}`)
	}
	finish().Want(t, 200).Golden(t, "session-finished")
	finish().Want(t, 200).Golden(t, "session-finished") // a repeat
	s.session(t, "s1", `"state": "started"`).Want(t, 200).Golden(t, "session-finished")
	s.ReadOnly.Get(t, "results/").Want(t, 200).Golden(t, "results")
	s.ReadOnly.Get(t, "results/?tz=Asia/Kolkata").Want(t, 200).Golden(t, "results-in-zone")
	notified := events(t, s.Env, "north", "result.final")
	if check.Equal(t, "number of events", len(notified), 1, "%v", notified) &&
		check.Lacks(t, "the first event", notified[0], "section_practiced", "%v", notified) &&
		check.Contains(t, "the first event", notified[0], `"percentage":72.22`, "%v", notified) {
		check.Contains(t, "the first event", notified[0], `"completed_at":"2026-11-20T10:45:00+00:00"`, "%v", notified)
	}
	// A re-mark keeps the id, moves to the end and is notified again.
	s.session(t, "s2", `"user_id": %d, "item_id": %d, "state": "finished", "score": 1360`, s.bo, s.sat).Want(t, 201)
	s.session(t, "s1", `"score": 7, "sections": {}`).Want(t, 200)
	s.Full.Get(t, "results/").Want(t, 200).Golden(t, "results-marked-again")
	if got := walk(t, s.Full, "results/"); !slices.Equal(got, []string{"test:s2", "test:s1"}) {
		t.Errorf("%v", got)
	}
	if notified := events(t, s.Env, "north", "result.final"); len(notified) != 3 {
		t.Errorf("%d events", len(notified))
	}
}

// Reference: results#final-results.
func TestAResultThatIsHeldIsShownOnceReleased(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	ref := s.assign(t, s.ana, "test", s.ielts)
	s.session(t, "s1", `"user_id": %d, "item_id": %d, "assignment_id": %q, "state": "started"`, s.ana, s.ielts, ref).Want(t, 201)
	if a := s.assignment(t, ref); a["status"] != "in_progress" {
		t.Errorf("%v", a)
	}
	s.session(t, "s1", `"state": "held", "score": 6.5`).Want(t, 200)
	if a := s.assignment(t, ref); check.Equal(t, "status", a["status"], "submitted", "%v", a) {
		check.True(t, "there is no result_id", a["result_id"] == nil, "%v", a)
	}
	if got, notified := walk(t, s.Full, "results/"), events(t, s.Env, "north", "result.final"); check.True(t, "nothing is shown", got == nil, "a held result is shown: %v, notified: %v", got, notified) {
		check.True(t, "there are no events", notified == nil, "a held result is shown: %v, notified: %v", got, notified)
	}
	s.session(t, "s1", `"state": "released", "released_at": "2026-11-21T09:00:00Z"`).Want(t, 200)
	if a := s.assignment(t, ref); check.Equal(t, "status", a["status"], "completed", "%v", a) &&
		check.Equal(t, "result_id", a["result_id"], "test:s1", "%v", a) {
		check.Equal(t, "completed_at", a["completed_at"], "2026-11-21T10:00:00+00:00", "%v", a)
	}
	s.Full.Get(t, "results/").Want(t, 200).Golden(t, "results-released")
	if notified := events(t, s.Env, "north", "result.final"); check.Equal(t, "number of events", len(notified), 1, "%v", notified) {
		check.Contains(t, "the first event", notified[0], `"id":"test:s1"`, "%v", notified)
	}
	// Held again, it disappears until it is released again.
	s.session(t, "s1", `"state": "held"`).Want(t, 200)
	if got := walk(t, s.Full, "results/"); got != nil {
		t.Errorf("%v", got)
	}
	s.session(t, "s1", `"state": "released"`).Want(t, 200)
	if got := walk(t, s.Full, "results/"); !slices.Equal(got, []string{"test:s1"}) {
		t.Errorf("%v", got)
	}
}

// A retake is a result of its own; the assignment keeps the one that completed it.
// Reference: assignments#assignment-fields.
func TestARetakeLeavesTheAssignmentItsResult(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	ref := s.assign(t, s.ana, "test", s.ielts)
	for i, score := range []string{"6", "8"} {
		s.session(t, fmt.Sprint("s", i+1), `"user_id": %d, "item_id": %d, "assignment_id": %q, "state": "finished", "score": %s`, s.ana, s.ielts, ref, score).Want(t, 201)
		a := s.assignment(t, ref)
		check.Equal(t, "result_id", a["result_id"], any("test:s1"), "after session %d: %v", i+1, a)
	}
	s.session(t, "s1", `"score": 6.5`).Want(t, 200) // marked again
	if got := walk(t, s.Full, "results/"); !slices.Equal(got, []string{"test:s2", "test:s1"}) {
		t.Errorf("%v", got)
	}
}

// Reference: assignments#assignment-status.
func TestQuizzesAndAssessments(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	quiz, essay := s.assign(t, s.ana, "quiz", s.quiz), s.assign(t, s.bo, "assessment", s.rubric)
	s.Platform.Put(t, "quiz-submissions/"+quiz, `{"state": "submitted", "completed_at": "2026-11-21T09:00:00Z", "score": 17, "max_score": 20}`).Want(t, 201).Golden(t, "quiz-submitted")
	s.Platform.Put(t, "quiz-submissions/1", `{"state": "submitted", "score": 17, "max_score": 20}`).Want(t, 200).Golden(t, "quiz-submitted")
	submit := fmt.Sprintf("assessment-submissions/%s/%d", essay, s.bo)
	s.Platform.Put(t, submit, `{"state": "submitted", "submitted_at": "2026-11-21T09:30:00Z"}`).Want(t, 201)
	if a := s.assignment(t, essay); a["status"] != "submitted" {
		t.Errorf("%v", a)
	}
	s.Platform.Put(t, submit, `{"score": 15.5}`).Want(t, 200)
	if got := walk(t, s.Full, "results/"); !slices.Equal(got, []string{"quiz:1"}) {
		t.Errorf("feedback that was not sent is shown: %v", got)
	}
	s.Platform.Put(t, submit, `{"state": "released", "released_at": "2026-11-21T09:45:00Z"}`).Want(t, 200)
	s.Full.Get(t, "results/").Want(t, 200).Golden(t, "results-quiz-and-assessment")
	if a := s.assignment(t, essay); check.Equal(t, "status", a["status"], "completed", "%v", a) {
		check.Equal(t, "result_id", a["result_id"], any(fmt.Sprintf("assessment:2:%d", s.bo)), "%v", a)
	}
	if notified := events(t, s.Env, "north", "result.final"); len(notified) != 2 {
		t.Errorf("%v", notified)
	}
	put := func(path, body string) *apitest.Answer { return s.Platform.Put(t, path, body) }
	put("quiz-submissions/999", `{"state": "submitted", "score": 1}`).WantFault(t, 404, "assignment_not_found", "")
	put("quiz-submissions/"+essay, `{"state": "submitted", "score": 1}`).WantFault(t, 404, "assignment_not_found", "")
	put("quiz-submissions/2", `{"state": "submitted", "score": 1}`).Want(t, 400) // an assessment's number
	put(fmt.Sprintf("assessment-submissions/%s/%d", essay, s.ana), `{"state": "submitted"}`).WantFault(t, 400, "invalid", "assignment_id")
	put(fmt.Sprintf("assessment-submissions/%s/99999", essay), `{"state": "submitted"}`).WantFault(t, 404, "student_not_found", "user_id")
	put("quiz-submissions/1", `{"state": "held"}`).WantFault(t, 400, "not_a_choice", "state")
	put("quiz-submissions/1", `{"score": 21, "max_score": 20}`).WantFault(t, 400, "off_scale", "score")
}

func TestSessionsRefuseWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	south := s.Env.Organization(t, "south")
	other := provision(t, south, "else@school.example", `"courses": ["ielts"]`)
	private := item(t, s.Env, "organizations/south/catalog/tests/own", `{"title": "Private", "type": "ielts"}`)
	theirs := provisionAndAssign(t, south, "both@school.example", s.ielts)
	ref := s.assign(t, s.ana, "test", s.ielts)
	good := fmt.Sprintf(`"user_id": %d, "item_id": %d`, s.ana, s.ielts)
	for name, c := range map[string]struct {
		body, code, field string
		status            int
	}{
		"no organization":        {`{}`, "missing", "organization", 400},
		"unknown organization":   {`{"organization": "nowhere", ` + good + `, "state": "started"}`, "not_found", "organization", 404},
		"no state":               {`{"organization": "north", ` + good + `}`, "missing", "state", 400},
		"unknown state":          {`{"organization": "north", ` + good + `, "state": "done"}`, "not_a_choice", "state", 400},
		"no score":               {`{"organization": "north", ` + good + `, "state": "finished"}`, "missing", "score", 400},
		"off the scale":          {`{"organization": "north", ` + good + `, "state": "finished", "score": 6.25}`, "off_scale", "score", 400},
		"section off the scale":  {`{"organization": "north", ` + good + `, "state": "finished", "score": 6, "sections": {"reading": 9.5}}`, "off_scale", "sections.reading", 400},
		"another's student":      {fmt.Sprintf(`{"organization": "north", "user_id": %d, "item_id": %d, "state": "started"}`, other, s.ielts), "student_not_found", "user_id", 404},
		"another's private test": {fmt.Sprintf(`{"organization": "north", "user_id": %d, "item_id": %d, "state": "started"}`, s.ana, private), "item_not_found", "item_id", 404},
		"a quiz":                 {fmt.Sprintf(`{"organization": "north", "user_id": %d, "item_id": %d, "state": "started"}`, s.ana, s.quiz), "invalid", "item_id", 400},
		"another's assignment":   {`{"organization": "north", ` + good + fmt.Sprintf(`, "assignment_id": %q, "state": "started"}`, theirs), "assignment_not_found", "assignment_id", 404},
		"a student's assignment": {fmt.Sprintf(`{"organization": "north", "user_id": %d, "item_id": %d, "assignment_id": %q, "state": "started"}`, s.bo, s.ielts, ref), "invalid", "assignment_id", 400},
		"end before start":       {`{"organization": "north", ` + good + `, "state": "finished", "score": 6, "started_at": "2026-11-20T10:00:00Z", "completed_at": "2026-11-20T09:00:00Z"}`, "before_start", "completed_at", 400},
		"end yet to come":        {`{"organization": "north", ` + good + `, "state": "finished", "score": 6, "completed_at": "2126-11-20T09:00:00Z"}`, "in_the_future", "completed_at", 400},
		"no section":             {`{"organization": "north", ` + good + `, "state": "finished", "score": 6, "attempt": "section_practice"}`, "unknown_section", "section", 400},
		"not JSON":               {`{`, "invalid_json", "", 400},
	} {
		t.Run(name, func(t *testing.T) {
			s.Platform.Put(t, "test-sessions/bad", c.body).WantFault(t, c.status, c.code, c.field)
		})
	}
	s.session(t, "s1", `%s, "state": "started"`, good).Want(t, 201)
	s.session(t, "s1", `"user_id": %d`, s.bo).WantFault(t, 400, "invalid", "user_id")
	s.session(t, "s1", `"item_id": %d`, s.sat).WantFault(t, 400, "invalid", "item_id")
	s.Platform.With("Authorization", "").Put(t, "test-sessions/s1", `{}`).WantFault(t, 401, "invalid_platform_key", "")
	if got := walk(t, s.Full, "results/"); got != nil {
		t.Errorf("%v", got)
	}
	// The same session's id is another piece of work in another organization.
	s.Platform.Put(t, "test-sessions/s1", fmt.Sprintf(`{"organization": "south", "user_id": %d, "item_id": %d, "state": "finished", "score": 5}`, other, s.ielts)).Want(t, 201)
	if got := walk(t, south.Full, "results/"); check.Slices(t, "the results", got, []string{"test:s1"}, "%v", got) {
		check.True(t, "the list of all is empty", walk(t, s.Full, "results/") == nil, "%v", got)
	}
}

func provisionAndAssign(t *testing.T, o apitest.Organization, email string, item int64) string {
	t.Helper()
	user := provision(t, o, email, `"courses": ["ielts"]`)
	var answer struct{ Assignment struct{ ID string } }
	o.Full.Post(t, "assignments/", fmt.Sprintf(`{"user_id": %d, "kind": "test", "item_id": %d}`, user, item)).Want(t, 201).Into(t, &answer)
	return answer.Assignment.ID
}

// Reference: students#scope-of-lists, results#result-list.
func TestResultFilters(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	south := s.Env.Organization(t, "south")
	staff := provision(t, s.Organization, "staff@school.example", `"courses": ["ielts"]`)
	s.Platform.Put(t, "organizations/north/staff/staff@school.example", `{"role": "teacher"}`).Want(t, 200)
	done := func(name string, user, item int64, at, more string) {
		t.Helper()
		s.session(t, name, `"user_id": %d, "item_id": %d, "state": "finished", "completed_at": %q, %s`, user, item, at, more).Want(t, 201)
	}
	done("a1", s.ana, s.ielts, "2026-11-01T12:00:00Z", `"score": 6`)
	done("b1", s.bo, s.sat, "2026-11-03T20:00:00Z", `"score": 1200, "attempt": "testing_center"`)
	done("a2", s.ana, s.ielts, "2026-11-02T12:00:00Z", `"score": 7, "attempt": "section_practice", "section": "reading"`) // reported late
	done("b2", s.bo, s.ielts, "2026-11-03T18:29:59Z", `"score": 5`)
	done("staff", staff, s.ielts, "2026-11-03T12:00:00Z", `"score": 9`)
	quiz := s.assign(t, s.ana, "quiz", s.quiz)
	s.Platform.Put(t, "quiz-submissions/"+quiz, `{"state": "submitted", "completed_at": "2026-11-05T00:00:00Z", "score": 50}`).Want(t, 201)
	all := []string{"test:a1", "test:b1", "test:a2", "test:b2", "quiz:1"}
	for filter, want := range map[string][]string{
		"":                               all,
		"?kind=test":                     all[:4],
		"?kind=quiz":                     {"quiz:1"},
		"?kind=assessment":               nil,
		"?kind=quiz,test":                all,
		"?test_type=ielts":               {"test:a1", "test:a2", "test:b2"},
		"?test_type=SAT&kind=test":       {"test:b1"},
		"?test_type=sat&kind=quiz":       nil,
		"?email=ana@school.example":      {"test:a1", "test:a2", "quiz:1"},
		fmt.Sprintf("?user_id=%d", s.bo): {"test:b1", "test:b2"},
		fmt.Sprintf("?user_id=%d&test_type=ielts&since=2026-11-01", s.bo): {"test:b2"},
		"?course_id=" + courseOf(t, s.Env, s.bo):                          {"test:b1", "test:b2"},
		"?course_id=" + courseOf(t, s.Env, s.ana) + "&kind=test":          {"test:a1", "test:a2"},
		"?since=2026-11-02":                            {"test:b1", "test:a2", "test:b2", "quiz:1"},
		"?since=2026-11-02&until=2026-11-02":           {"test:a2"},
		"?until=2026-11-03":                            {"test:a1", "test:b1", "test:a2", "test:b2"},
		"?until=2026-11-03&tz=Asia/Kolkata":            {"test:a1", "test:a2", "test:b2"}, // to 18:30 UTC
		"?until=2026-11-03T20:00:00Z":                  {"test:a1", "test:a2", "test:b2"},
		"?since=2026-11-03T20:00:00%2B00:00&kind=test": {"test:b1"},
		"?since=2026-11-05":                            {"quiz:1"},
		"?since=2026-11-06":                            nil,
		"?since=2026-11-02&until=2026-11-01":           nil,
	} {
		if got := walk(t, s.Full, "results/"+filter); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", filter, got, want)
		}
	}
	for filter, field := range map[string]string{"kind=x": "kind", "test_type=latin": "test_type", "test_type=quiz": "test_type", "email=": "email", "user_id=x": "user_id",
		"course_id=x": "course_id", "since=now": "since", "until=2026-13-01": "until", "limit=501": "limit", "limit=-1": "limit", "tz=X": "tz", "cursor=z": "cursor"} {
		if f := s.Full.Get(t, "results/?"+filter).Want(t, 400).Object(t); f["field"] != field {
			t.Errorf("%s: %v", filter, f)
		}
	}
	for _, filter := range []string{"email=staff@school.example", "email=nobody@school.example", fmt.Sprintf("user_id=%d", staff)} {
		s.Full.Get(t, "results/?"+filter).WantFault(t, 404, "student_not_found", "")
		south.Full.Get(t, "results/?"+filter).WantFault(t, 404, "student_not_found", "")
	}
	south.Full.Get(t, fmt.Sprintf("results/?user_id=%d", s.ana)).WantFault(t, 404, "student_not_found", "")
	south.Full.Get(t, "results/?course_id="+courseOf(t, s.Env, s.bo)).WantFault(t, 404, "not_found", "course_id")
	if got := walk(t, south.Full, "results/"); got != nil {
		t.Errorf("%v", got)
	}
	if notified := events(t, s.Env, "north", "result.final"); len(notified) != 5 {
		t.Errorf("%d events, staff included?", len(notified))
	}
}

func TestWork(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	quiz, essay := s.assign(t, s.ana, "quiz", s.quiz), s.assign(t, s.bo, "assessment", s.rubric)
	body := fmt.Sprintf(`{"records": [
		{"kind": "test", "id": "w1", "organization": "north", "user_id": %[1]d, "item_id": %[3]d, "state": "finished", "score": 6.5},
		{"kind": "test", "id": 77, "organization": "north", "user_id": %[2]d, "item_id": %[3]d, "state": "started"},
		{"kind": "test", "id": "w3", "organization": "north", "user_id": %[2]d, "item_id": %[3]d, "state": "finished", "score": 6.4},
		{"kind": "quiz", "id": %[4]q, "state": "submitted", "score": 40},
		{"kind": "assessment", "id": %[5]q, "user_id": %[2]d, "state": "released", "score": 12},
		{"kind": "essay", "id": "x"}, 7, {"kind": "quiz", "id": "quiz-assignment:99"}, {"kind": "test", "id": "w4"},
		{"kind": "test", "id": "w1", "organization": "north", "score": 7}
	]}`, s.ana, s.bo, s.ielts, quiz, essay)
	s.Platform.Post(t, "work", body).Want(t, 200).Golden(t, "work")
	if got := walk(t, s.Full, "results/"); !slices.Equal(got, []string{"quiz:1", fmt.Sprintf("assessment:2:%d", s.bo), "test:w1"}) {
		t.Errorf("%v", got)
	}
	for _, bad := range []string{`{}`, `{"records": []}`, `{"records": 3}`, `{"records": [` + strings.Repeat("{},", 1000) + `{}]}`} {
		s.Platform.Post(t, "work", bad).WantFault(t, 400, "not_a_list", "records")
	}
	s.Platform.With("Authorization", "").Post(t, "work", `{}`).WantFault(t, 401, "invalid_platform_key", "")
}
