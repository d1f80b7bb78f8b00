package platform_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

func TestStaffSteerPlansOverThePlatformAPI(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north, south := e.Organization(t, "north"), e.Organization(t, "south")
	for i := range 3 {
		e.Platform.Put(t, fmt.Sprintf("organizations/north/catalog/tests/mock-%d", i), `{"title": "Mock", "type": "ielts"}`)
	}
	body := `{"email": "ana@institute.org", "first_name": "Ana", "courses": "ielts", "target_score_plan": {"target_score": 7, "test_plan": true, "timezone": "Asia/Kolkata"}}`
	made := north.Full.Post(t, "provision/student/", body).Want(t, 201).Object(t)
	block := made["target_score_plan"].(map[string]any)
	if next := block["test_plan"].(map[string]any)["next_test"].(map[string]any); check.Equal(t, "action", block["action"], "created", "%v", block) &&
		check.Equal(t, "kind", next["kind"], "baseline", "%v", block) {
		check.Equal(t, "state", next["state"], "waiting", "%v", block)
	}
	if again := north.Full.Post(t, "provision/student/", body).Want(t, 200).Object(t); check.Equal(t, "status", again["status"], "already_provisioned", "again: %v", again) {
		check.Equal(t, "action", again["target_score_plan"].(map[string]any)["action"], "unchanged", "again: %v", again)
	}
	refused := `{"email": "new@institute.org", "first_name": "New", "courses": "ielts", "target_score_plan": {"test_plan": true, "pase": 1}}`
	north.Full.Post(t, "provision/student/", refused).WantFault(t, 400, "unknown_field", "target_score_plan.pase")
	north.Full.Post(t, "provision/student/", `{"email": "new@institute.org", "first_name": "New", "courses": "ielts", "target_score_plan": {"test_plan": true, "timezone": "UTC"}}`).
		WantFault(t, 400, "missing", "target_score_plan.target_score")
	north.Full.Get(t, "students/?email=new@institute.org").Want(t, 404) // a refusal saves nothing
	north.ReadOnly.Post(t, "provision/student/", body).Want(t, 403)
	looked := north.ReadOnly.Get(t, "students/?email=ana@institute.org").Want(t, 200).Object(t)
	if entry := looked["enrollments"].([]any)[0].(map[string]any)["target_score_plan"].(map[string]any); check.True(t, "there is a test_plan", entry["test_plan"] != nil, "%v", entry) {
		check.True(t, "there is no action", entry["action"] == nil, "%v", entry)
	}
	plans := e.Platform.Get(t, "plans?organization=north").Want(t, 200).Object(t)["plans"].([]any)
	which := fmt.Sprintf("plans/%v/", plans[0].(map[string]any)["id"])
	e.Platform.Get(t, "plans").WantFault(t, 400, "missing", "organization")
	e.Platform.Get(t, "plans?organization=north&limit=0").WantFault(t, 400, "out_of_range", "limit")
	if n := e.Platform.Get(t, "plans?organization=south").Want(t, 200).Object(t)["count"]; n != 0.0 {
		t.Errorf("%s sees %v plans of north", south.Slug, n)
	}
	e.Platform.Post(t, which+"skip-test", ``).Want(t, 200)
	e.Platform.Post(t, which+"open-test", ``).Want(t, 200)
	e.Platform.Post(t, which+"open-test", ``).WantFault(t, 409, "test_is_open", "")
	e.Platform.Post(t, which+"pause", ``).Want(t, 200)
	e.Platform.Post(t, which+"resume", ``).Want(t, 200)
	e.Platform.Post(t, which+"official-result", `{"score": 7.5, "date": "2026-11-20"}`).Want(t, 200)
	e.Platform.Post(t, which+"official-result", `{"score": 7.4, "date": "2026-11-20"}`).WantFault(t, 400, "off_scale", "score")
	tomorrow := e.Now().AddDate(0, 0, 2).Format(time.DateOnly) // or the day after, where Kolkata has it already
	e.Platform.Post(t, which+"official-result", `{"score": 7.5, "date": "`+tomorrow+`"}`).WantFault(t, 400, "in_the_future", "date")
	e.Platform.Post(t, "plans/99999/pause", ``).Want(t, 404)
	north.Full.Post(t, "provision/student/", `{"email": "ana@institute.org", "first_name": "Ana", "courses": "ielts", "target_score_plan": {"test_plan": false}}`).Want(t, 200)
	for _, action := range []string{"pause", "resume", "skip-test", "open-test"} {
		e.Platform.Post(t, which+action, ``).WantFault(t, 409, "plan_is_closed", "")
	}
	e.Platform.Post(t, which+"official-result", `{"score": 8, "date": "2026-11-21"}`).Want(t, 200) // the one thing that a closed plan takes
	entries, err := audit.List(t.Context(), e.DB, north.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, entry := range entries {
		if target := fmt.Sprintf("plans/%s/", entry.Target); entry.Actor == audit.Platform && target == which {
			actions = append(actions, entry.Action)
		}
	}
	slices.Reverse(actions)
	if want := []string{"skipped test of plan", "opened test of plan", "paused plan", "resumed plan",
		"recorded official result of plan", "recorded official result of plan"}; !slices.Equal(actions, want) {
		t.Errorf("the audit log has %q, want %q", actions, want)
	}
}

// A plan that lacks a paper gets the one that the catalog gains with the next pass of a worker.
func TestAPaperThatIsAddedOpensATestThatWaitsForIt(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	north.Full.Post(t, "provision/student/", `{"email": "ana@institute.org", "first_name": "Ana", "courses": "ielts",
		"target_score_plan": {"target_score": 7, "test_plan": true, "timezone": "Asia/Kolkata"}}`).Want(t, 201)
	state := func() any {
		t.Helper()
		e.DecidePlans(t)
		plans := e.Platform.Get(t, "plans?organization=north").Want(t, 200).Object(t)["plans"].([]any)
		return plans[0].(map[string]any)["tests"].([]any)[0].(map[string]any)["state"]
	}
	if got := state(); got != "unfilled" {
		t.Fatalf("without a paper the test is %v", got)
	}
	for _, path := range []string{"organizations/north/catalog/quizzes/q", "catalog/tests/off"} {
		body := map[string]string{"organizations/north/catalog/quizzes/q": `{"title": "Quiz"}`, "catalog/tests/off": `{"title": "Mock", "type": "ielts", "active": false}`}[path]
		e.Platform.Put(t, path, body).Want(t, 201)
		if got := state(); got != "unfilled" {
			t.Errorf("after %s the test is %v", path, got)
		}
	}
	e.Platform.Put(t, "catalog/tests/off", `{"active": true}`).Want(t, 200)
	if got := state(); got != "opened" {
		t.Errorf("with a paper the test is %v", got)
	}
}
