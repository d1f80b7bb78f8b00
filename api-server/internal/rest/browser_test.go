package rest_test

import (
	"fmt"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// Whether a test runs only in the secure exam browser is settled as it begins, for tests
// that are assigned, and holds until it ends.
func TestTheBrowserOfATestIsSettledAsItBegins(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	require := func(on bool) {
		t.Helper()
		s.Full.Post(t, provisionPath, fmt.Sprintf(`{"email": "ana@school.example", "first_name": "Ana", "courses": "ielts",
			"target_score_plan": {"safe_exam_browser": %t}}`, on)).Want(t, 200)
	}
	second := item(t, s.Env, "catalog/tests/i2", `{"title": "IELTS 2", "type": "ielts"}`)
	free, bound := s.assign(t, s.ana, "test", s.ielts), s.assign(t, s.ana, "test", second)
	report := func(name string, item int64, assignment, state string) bool {
		t.Helper()
		a := s.session(t, name, `"user_id": %d, "item_id": %d, "assignment_id": %q, "state": %q, "score": 6`, s.ana, item, assignment, state)
		only, ok := a.Object(t)["safe_exam_browser"].(bool)
		if !ok {
			t.Fatalf("%s", a.Body)
		}
		return only
	}
	if report("free", s.ielts, free, "started") {
		t.Error("nobody has asked for it yet")
	}
	require(true)
	if check.False(t, "the free test needs the browser", report("free", s.ielts, free, "started"), "it holds for tests that begin from now on") {
		check.True(t, "the bound test needs the browser", report("bound", second, bound, "started"), "it holds for tests that begin from now on")
	}
	if report("practice", s.ielts, "", "started") {
		t.Error("it holds for tests that are assigned")
	}
	require(false)
	if check.True(t, "the bound test needs the browser", report("bound", second, bound, "finished"), "a started test has changed") {
		check.False(t, "the free test needs the browser", report("free", s.ielts, free, "finished"), "a started test has changed")
	}
}
