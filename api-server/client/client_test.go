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
	checker, err := apicheck.New(openapi.Partner)
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
	if err != nil || who.JSON200.OrganizationSlug != "north" {
		t.Fatal(who, err)
	}
	settings, err := c.ShowOrganizationWithResponse(ctx, nil)
	if err != nil || !settings.JSON200.Organization.LanguageTestsEnabled || settings.JSON200.APIKey.CreatedAt.IsZero() {
		t.Fatal(settings, err)
	}
	courses, err := c.ListCoursesWithResponse(ctx)
	if err != nil || courses.JSON200.CourseTypes[0].DefaultCourse != nil {
		t.Fatal(courses, err)
	}
	planned, err := c.ProvisionStudentWithResponse(ctx, &client.ProvisionStudentParams{IdempotencyKey: new("one")}, client.ProvisionRequest{
		Email: "ana@north-institute.org", FirstName: "Ana", Courses: []string{"ielts"}, TenureMonths: 6, ExternalRef: "order-7",
		TargetScorePlan: &client.TargetScorePlanRequest{TargetScore: 7.5, TestPlan: new(true), Timezone: "Asia/Kolkata",
			StaffRecipients: new([]string{}), SafeExamBrowser: new(false)}})
	if err != nil || planned.JSON201 == nil || *planned.Student().TargetScorePlan.TargetScore != 7.5 {
		t.Fatal(planned, err)
	}
	items, err := c.ListCatalogWithResponse(ctx, &client.ListCatalogParams{Kind: new("quiz")})
	if err != nil || items.JSON200.Count != 1 {
		t.Fatal(items, err)
	}
	assigned, err := c.AssignWorkWithResponse(ctx, nil, client.NewAssignment{UserID: planned.Student().UserID,
		Kind: client.KindQuiz, ItemID: items.JSON200.Items[0].ItemID, DueDate: "2026-12-31", Notify: new(false)})
	if err != nil || !assigned.Work().Created || assigned.Work().Assignment.DueDate == nil {
		t.Fatal(assigned, err)
	}
	run, err := c.ImportRosterWithBodyWithResponse(ctx, &client.ImportRosterParams{XRosterSource: new("sis")}, "text/csv",
		strings.NewReader("person_external_id,email,first_name,last_name,role\n7,bo@north-institute.org,Bo,Li,student\n"))
	if err != nil || run.Run().Status != client.RosterRunStatusApplied {
		t.Fatal(run, err)
	}
	found, err := c.Lookup(ctx, "ana@north-institute.org")
	if err != nil || found.Student.UserID != planned.Student().UserID || found.Student.LastLogin != nil {
		t.Fatal(found, err)
	}
	for _, count := range []int{
		countPages(t, c.AssignmentPages(ctx, client.ListAssignmentsParams{Limit: new(1)})),
		countPages(t, c.ResultPages(ctx, client.ListResultsParams{Kind: new("test,quiz"), Since: new("2026-01-01")})),
		countPages(t, c.ActivityPages(ctx, client.ListActivityParams{})),
	} {
		if count == 0 {
			t.Error("a list has no page")
		}
	}
	days, err := c.ListProgressWithResponse(ctx, &client.ListProgressParams{TZ: new("Asia/Kolkata")})
	if err != nil || days.JSON200.Timezone != "Asia/Kolkata" {
		t.Fatal(days, err)
	}
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
	c, err := client.New(s.URL, "reg_key")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.PingWithResponse(t.Context())
	fault, ok := errors.AsType[*client.Fault](err)
	if !ok || fault.Status != http.StatusBadGateway || fault.Message != "busy" || fault.RetryAfter != 7*time.Second || !fault.Retry() {
		t.Errorf("%v %+v", err, fault)
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
