package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/client"
	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/openapi"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/apicheck"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// printed is what f writes to the standard output.
func printed(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	defer func() { os.Stdout = stdout }()
	f() // prints less than a pipe holds
	_ = w.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestExamples(t *testing.T) {
	e := apitest.New(t)
	e.Organization(t, "north")
	t.Setenv("BASE_URL", e.URL()+"/api/v1/")
	t.Setenv("API_KEY", e.Key(t, "north", org.Full))
	for _, c := range []struct {
		example func()
		want    string
	}{
		{Example, "success created ielts\nalready_provisioned unchanged\n"},
		{ExampleClientWithResponses_StudentPages, "Asha active 1\n"},
		{ExampleClientWithResponses_EventPages, "student.joined asha@north-institute.org\nenrollment.created IELTS Academic\n"},
		{ExampleFault, "404 student_not_found false\n"},
	} {
		if got := printed(t, c.example); got != c.want {
			t.Errorf("an example prints\n%s, want\n%s", got, c.want)
		}
	}
}

// Every call of the document goes out as the document says and comes back into its types:
// the transport holds both against it.
func TestCallsKeepToTheDocument(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.ImportRosters(t)
	e.Organization(t, "north")
	checker, err := apicheck.New(openapi.Partner())
	if err != nil {
		t.Fatal(err)
	}
	e.Platform.Put(t, "organizations/north/catalog/quizzes/q1", `{"title": "Reading, week 1"}`).Want(t, 201)
	c, err := client.New(e.URL(), e.Key(t, "north", org.Full), client.WithHTTPClient(&http.Client{Transport: checker.Transport(nil)}))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	who, err := c.PingWithResponse(ctx)
	check.NoError(check.Now(t), err, "%v %v", who, err)
	check.Equal(check.Now(t), "who.JSON200.OrganizationSlug", who.JSON200.OrganizationSlug, "north", "%v %v", who, err)
	settings, err := c.ShowOrganizationWithResponse(ctx, nil)
	check.NoError(check.Now(t), err, "%v %v", settings, err)
	check.True(check.Now(t), "settings.JSON200.Organization.LanguageTestsEnabled", settings.JSON200.Organization.LanguageTestsEnabled, "%v %v", settings, err)
	check.False(check.Now(t), "the key's time of creation is missing", settings.JSON200.APIKey.CreatedAt.IsZero(), "%v %v", settings, err)
	courses, err := c.ListCoursesWithResponse(ctx, nil)
	check.NoError(check.Now(t), err, "%v %v", courses, err)
	check.True(check.Now(t), "there is no default course", courses.JSON200.CourseTypes[0].DefaultCourse == nil, "%v %v", courses, err)
	planned, err := c.ProvisionStudentWithResponse(ctx, &client.ProvisionStudentParams{IdempotencyKey: new("one")}, client.ProvisionRequest{
		Email: "ana@north-institute.org", FirstName: "Ana", Courses: &client.TextList{"ielts"}, TenureMonths: new(6), ExternalRef: new("order-7"),
		TargetScorePlan: &client.TargetScorePlanRequest{TargetScore: new(7.5), TestPlan: new(true), Timezone: new("Asia/Kolkata"),
			StaffRecipients: &client.TextList{}, SafeExamBrowser: new(false)}})
	check.NoError(check.Now(t), err, "%v %v", planned, err)
	check.True(check.Now(t), "there is an answer 201", planned.JSON201 != nil, "%v %v", planned, err)
	check.Equal(check.Now(t), "target score", *planned.Student().TargetScorePlan.TargetScore, 7.5, "%v %v", planned, err)
	items, err := c.ListCatalogWithResponse(ctx, &client.ListCatalogParams{Kind: new("quiz")})
	check.NoError(check.Now(t), err, "%v %v", items, err)
	check.Equal(check.Now(t), "items.JSON200.Count", items.JSON200.Count, 1, "%v %v", items, err)
	assigned, err := c.AssignWorkWithResponse(ctx, nil, client.NewAssignment{UserID: &planned.Student().UserID,
		Kind: client.KindQuiz, ItemID: items.JSON200.Items[0].ItemID, DueDate: new("2026-12-31"), Notify: new(false)})
	check.NoError(check.Now(t), err, "%v %v", assigned, err)
	check.True(check.Now(t), "the assignment is new", assigned.Work().Created, "%v %v", assigned, err)
	check.True(check.Now(t), "there is a due date", assigned.Work().Assignment.DueDate != nil, "%v %v", assigned, err)
	run, err := c.ImportRosterWithBodyWithResponse(ctx, &client.ImportRosterParams{XRosterSource: new("sis")}, "text/csv",
		strings.NewReader("person_external_id,email,first_name,last_name,role\n7,bo@north-institute.org,Bo,Li,student\n"))
	check.NoError(check.Now(t), err, "%v %v", run, err)
	check.Equal(check.Now(t), "status", run.Run().Status, client.RosterRunStatusApplied, "%v %v", run, err)
	found, err := c.Lookup(ctx, "ana@north-institute.org")
	check.NoError(check.Now(t), err, "%v %v", found, err)
	check.Equal(check.Now(t), "found.Student.UserID", found.Student.UserID, planned.Student().UserID, "%v %v", found, err)
	check.True(check.Now(t), "there is no last login", found.Student.LastLogin == nil, "%v %v", found, err)
	for _, count := range []int{
		countPages(t, c.AssignmentPages(ctx, client.ListAssignmentsParams{Limit: new(1)})),
		countPages(t, c.ResultPages(ctx, client.ListResultsParams{Kind: new("test,quiz"), Since: new("2026-01-01")})),
		countPages(t, c.EventPages(ctx, client.ListEventsParams{Limit: new(1), Types: new("student.joined,assignment.created")})),
		countPages(t, c.ExplanationPages(ctx, client.ExplainParams{Limit: new(1), Email: new("ana@north-institute.org")})),
		countPages(t, c.ActivityPages(ctx, client.ListActivityParams{})),
	} {
		if count == 0 {
			t.Error("a list has no page")
		}
	}
	days, err := c.ListProgressWithResponse(ctx, &client.ListProgressParams{TZ: new("Asia/Kolkata")})
	check.NoError(check.Now(t), err, "%v %v", days, err)
	check.Equal(check.Now(t), "days.JSON200.Timezone", days.JSON200.Timezone, "Asia/Kolkata", "%v %v", days, err)
}

func countPages[P any](t *testing.T, pages func(func(*P, error) bool)) (n int) {
	t.Helper()
	for _, err := range pages {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestARefusalOfAProxyIsAFaultToo(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		http.Error(w, "busy", http.StatusBadGateway)
	}))
	t.Cleanup(s.Close)
	c, err := client.New(s.URL, "reg_key", client.WithAttempts(1))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.PingWithResponse(t.Context())
	fault, ok := errors.AsType[*client.Fault](err)
	if check.True(t, "ok", ok, "%v %+v", err, fault) &&
		check.Equal(t, "fault.Status", fault.Status, http.StatusBadGateway, "%v %+v", err, fault) &&
		check.Equal(t, "fault.Message", fault.Message, "busy", "%v %+v", err, fault) &&
		check.Equal(t, "fault.RetryAfter", fault.RetryAfter, 7*time.Second, "%v %+v", err, fault) {
		check.True(t, "a retry helps", fault.Retry(), "%v %+v", err, fault)
	}
}

func TestPagesEndWithTheirContext(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	c, err := client.New(e.URL(), e.Key(t, "north", org.ReadOnly))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for page, err := range c.StudentPages(ctx, client.StudentsParams{}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v %v", page, err)
		}
	}
}
