package e2e

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/client"
	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// violations is a transport that fails the test for whatever Prism found wrong in an exchange.
type violations struct {
	t         *testing.T
	exchanges atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (v *violations) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		v.exchanges.Add(1)
		if found := res.Header.Get("Sl-Violations"); found != "" {
			v.t.Errorf("%s %s: %d: %s", r.Method, r.URL, res.StatusCode, found)
		}
	}
	return res, err
}

// A validating proxy that nobody here wrote stands between a partner and a whole Registrar, and finds
// nothing that is not as the document says.
func TestAValidatingProxyFindsNothing(t *testing.T) {
	t.Parallel()
	modules := nodeTools(t)
	h := newHouse(t)
	file := filepath.Join(h.dir, "partner.yaml")
	must(t, os.WriteFile(file, []byte(partnerDocument(t)), 0o600))
	prism, address, err := stack.StartPrism(t.Context(), modules, filepath.Join(t.TempDir(), "prism.log"), "proxy", file, h.settings.PublicURL())
	must(t, err)
	t.Cleanup(func() { _ = prism.Stop() })
	watch := &violations{t: t}
	h.partner, err = client.New(address, h.key, client.WithHTTPClient(&http.Client{Transport: watch}), client.WithAttempts(1))
	must(t, err)
	h.callEverything()
	if n := watch.exchanges.Load(); n < 25 {
		t.Errorf("only %d exchanges went through the proxy", n)
	}
}

// callEverything makes every call of the partner API, those that are refused too.
func (h *house) callEverything() {
	t, ctx, c := h.t, h.t.Context(), h.partner
	const asha = "asha@north-institute.org"
	h.platform(http.MethodPut, "organizations/demo/catalog/quizzes/q1", `{"title": "Reading, week 1"}`, nil)
	h.platform(http.MethodPut, "organizations/demo/catalog/tests/mock1", `{"title": "Mock 1", "type": "ielts"}`, nil)
	_, err := c.PingWithResponse(ctx)
	must(t, err)
	_, err = c.ShowOrganizationWithResponse(ctx, nil)
	must(t, err)
	student := h.provision(asha, http.StatusCreated)
	h.provision(asha, http.StatusOK)
	enrollment := strconv.Itoa(student.Enrollments[0].EnrollmentID)
	_, err = c.ProvisionStudentWithResponse(ctx, &client.ProvisionStudentParams{IdempotencyKey: new("one"), Prefer: new("wait=1")}, client.ProvisionRequest{
		Email: asha, FirstName: "Asha", Courses: &client.TextList{"ielts"}, TenureMonths: new(2), ExtendAccess: new(true), ExternalRef: new("order-7"),
		TargetScorePlan: &client.TargetScorePlanRequest{TargetScore: new(float64(7)), TestPlan: new(true), Timezone: new("Asia/Kolkata")}})
	must(t, err)
	_, err = c.ListCoursesWithResponse(ctx, nil)
	must(t, err)
	items, err := c.ListCatalogWithResponse(ctx, &client.ListCatalogParams{Kind: new("test,quiz")})
	must(t, err)
	for _, item := range items.JSON200.Items {
		for range 2 {
			_, err := c.AssignWorkWithResponse(ctx, nil, client.NewAssignment{Email: new(asha), Kind: item.Kind, ItemID: item.ItemID, DueDate: new("2036-12-31")})
			must(t, err)
		}
	}
	for page, err := range c.AssignmentPages(ctx, client.ListAssignmentsParams{Limit: new(1), TZ: new("Asia/Kolkata")}) {
		must(t, err)
		for _, a := range page.Assignments {
			if a.Kind == client.KindQuiz {
				_, err := c.WithdrawWorkWithResponse(ctx, a.ID, nil)
				must(t, err)
				continue
			}
			h.platform(http.MethodPut, "test-sessions/s"+strconv.Itoa(a.Item.ID), `{"organization": "demo", "user_id": `+strconv.Itoa(student.UserID)+`, "item_id": `+strconv.Itoa(a.Item.ID)+
				`, "attempt": "assigned", "assignment_id": "`+a.ID+`", "state": "finished", "started_at": "`+time.Now().UTC().Format(time.RFC3339)+
				`", "completed_at": "`+time.Now().UTC().Format(time.RFC3339)+`", "score": 5.5}`, nil)
		}
	}
	results := 0
	for page, err := range c.ResultPages(ctx, client.ListResultsParams{Limit: new(1)}) {
		must(t, err)
		results += page.Count
	}
	check.True(t, "there are results", results > 0, "%d", results)
	_, err = c.Lookup(ctx, asha)
	must(t, err)
	for _, err := range c.StudentPages(ctx, client.StudentsParams{Limit: new(1), Status: new(client.StudentsParamsStatusActive)}) {
		must(t, err)
	}
	for _, err := range c.ActivityPages(ctx, client.ListActivityParams{}) {
		must(t, err)
	}
	for _, err := range c.EventPages(ctx, client.ListEventsParams{}) {
		must(t, err)
	}
	_, err = c.ListProgressWithResponse(ctx, &client.ListProgressParams{Email: new(asha)})
	must(t, err)
	for _, change := range []func() error{
		func() error { _, err := c.SuspendAccessWithResponse(ctx, enrollment, nil); return err },
		func() error { _, err := c.ResumeAccessWithResponse(ctx, enrollment, nil); return err },
		func() error {
			_, err := c.EndAccessWithResponse(ctx, enrollment, nil, client.EndAccess{})
			return err
		},
	} {
		must(t, change())
	}
	for page, err := range c.ExplanationPages(ctx, client.ExplainParams{Email: new(asha), Limit: new(10)}) {
		must(t, err)
		check.True(t, "there is something to explain", page.Count > 0, "%+v", page)
	}
	h.callAboutWebhooks()
	people := "person_external_id,email,first_name,last_name,role\n7,bo@north-institute.org,Bo,Li,student\n"
	_, err = c.ImportRosterWithBodyWithResponse(ctx, &client.ImportRosterParams{XRosterSource: new("sis")}, "text/csv", strings.NewReader(people))
	must(t, err)

	// What is refused is as documented, too.
	_, err = c.Lookup(ctx, "nobody@north-institute.org")
	check.True(t, "nobody is not found", err != nil, "%v", err)
	_, err = c.ProvisionStudentWithResponse(ctx, nil, client.ProvisionRequest{Email: "no address", FirstName: "Asha"})
	check.True(t, "a wrong address is refused", err != nil, "%v", err)
	_, err = c.ProvisionStudentWithResponse(ctx, &client.ProvisionStudentParams{IdempotencyKey: new("one")}, client.ProvisionRequest{Email: asha, FirstName: "Other"})
	check.True(t, "a key that was used is refused", err != nil, "%v", err)
	_, err = c.SuspendAccessWithResponse(ctx, "999999", nil)
	check.True(t, "no such enrollment", err != nil, "%v", err)
}

// callAboutWebhooks makes every call about webhook URLs.
func (h *house) callAboutWebhooks() {
	t, ctx, c := h.t, h.t.Context(), h.partner
	made, err := c.CreateWebhookEndpointWithResponse(ctx, &client.CreateWebhookEndpointParams{IdempotencyKey: new("subscribe")},
		client.NewWebhookEndpoint{URL: h.receiver.URL("/partner"), Events: &[]client.WebhookEventType{client.WebhookEventTypeResultFinal}})
	must(t, err)
	hook := made.JSON201.ID
	h.secrets = append(h.secrets, made.JSON201.SigningSecret)
	rotated, err := c.RotateWebhookSecretWithResponse(ctx, hook, nil, client.WebhookSecretRotation{})
	must(t, err)
	h.secrets = append(h.secrets, rotated.JSON200.SigningSecret)
	h.receiver.Trust("/partner", rotated.JSON200.SigningSecret)
	sent, err := c.SendWebhookTestWithResponse(ctx, hook, nil)
	must(t, err)
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err = h.receiver.Await(waiting, 1, func(r stack.Received) bool { return r.Path == "/partner" && r.Verified != nil && *r.Verified })
	must(t, err)
	for _, err := range c.WebhookDeliveryPages(ctx, hook, client.ListWebhookDeliveriesParams{TZ: new("Asia/Kolkata")}) {
		must(t, err)
	}
	for _, call := range []func() error{
		func() error { _, err := c.ListWebhookEndpointsWithResponse(ctx, nil); return err },
		func() error { _, err := c.ShowWebhookEndpointWithResponse(ctx, hook, nil); return err },
		func() error {
			_, err := c.ChangeWebhookEndpointWithResponse(ctx, hook, nil, client.WebhookEndpointSettings{TimeZone: new("Asia/Kolkata")})
			return err
		},
		func() error { _, err := c.TurnOnWebhookEndpointWithResponse(ctx, hook, nil); return err },
		func() error {
			_, err := c.ShowWebhookDeliveryWithResponse(ctx, hook, sent.JSON202.DeliveryID, nil)
			return err
		},
		func() error {
			_, err := c.RecoverWebhookDeliveriesWithResponse(ctx, hook, nil, client.NewWebhookRecovery{Since: "2026-11-01T00:00:00+00:00"})
			return err
		},
		func() error { _, err := c.ListWebhookRecoveriesWithResponse(ctx, hook, nil); return err },
		func() error { _, err := c.DeleteWebhookEndpointWithResponse(ctx, hook, nil); return err },
	} {
		must(t, call())
	}
	_, err = c.ResendWebhookDeliveryWithResponse(ctx, hook, sent.JSON202.DeliveryID, nil)
	check.True(t, "the URL is gone", err != nil, "%v", err)
	_, err = c.CreateWebhookEndpointWithResponse(ctx, nil, client.NewWebhookEndpoint{URL: "https://10.0.0.1/"})
	check.True(t, "an address that is not public is refused", err != nil, "%v", err)
}
