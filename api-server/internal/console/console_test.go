package console_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/server"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

const password = "plum-orbit-lantern-42"

// site is the pages with an organization whose staff can sign in.
type site struct {
	*apitest.Env
	north   apitest.Organization
	counter int
}

func open(t *testing.T, changes ...func(*server.Deps)) *site {
	t.Helper()
	// Without https the session's cookie may travel over the test's plain HTTP.
	e := apitest.New(t, append(changes, func(d *server.Deps) { d.PublicURL = "http://registrar.test" })...)
	s := &site{Env: e, north: e.Organization(t, "north")}
	for role, address := range map[string]string{"owner": "olive", "admin": "adam", "examiner": "elena", "teacher": "tariq"} {
		e.Platform.Put(t, "organizations/north/staff/"+address+"@north-institute.org",
			map[string]any{"first_name": address, "last_name": "Staff", "role": role, "password": password})
	}
	return s
}

// browser keeps cookies; it does not follow redirects.
type browser struct {
	*http.Client
	base string
}

func (s *site) browser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{&http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, s.URL()}
}

// signedIn is a browser in which the person has signed in.
func (s *site) signedIn(t *testing.T, name string) *browser {
	t.Helper()
	b := s.browser(t)
	if status, page, _ := b.post(t, "/sign-in/", url.Values{"name": {name + "@north-institute.org"}, "password": {password}}); status != http.StatusSeeOther {
		t.Fatalf("%s cannot sign in: %d %s", name, status, page)
	}
	return b
}

func (b *browser) get(t *testing.T, path string) (int, string, http.Header) {
	t.Helper()
	return b.send(t, http.MethodGet, path, nil, "same-origin")
}

func (b *browser) post(t *testing.T, path string, form url.Values) (int, string, http.Header) {
	t.Helper()
	return b.send(t, http.MethodPost, path, form, "same-origin")
}

func (b *browser) send(t *testing.T, method, path string, form url.Values, fetchSite string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, b.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.ask(t, r, fetchSite)
}

// sendFile posts a form with a file in the field, as a browser does.
func (b *browser) sendFile(t *testing.T, path string, fields map[string]string, field, name, content string) (int, string, http.Header) {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for field, value := range fields {
		check.NoError(t, form.WriteField(field, value), "%s", field)
	}
	part, err := form.CreateFormFile(field, name)
	check.NoError(check.Now(t), err, "the file")
	_, err = io.WriteString(part, content)
	check.NoError(t, err, "the file")
	check.NoError(t, form.Close(), "the form")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.base+path, &body)
	check.NoError(check.Now(t), err, "the request")
	r.Header.Set("Content-Type", form.FormDataContentType())
	return b.ask(t, r, "same-origin")
}

func (b *browser) ask(t *testing.T, r *http.Request, fetchSite string) (int, string, http.Header) {
	t.Helper()
	r.Header.Set("Sec-Fetch-Site", fetchSite)
	res, err := b.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body), res.Header
}

func want(t *testing.T, what string, status int, page string, wantStatus int, texts ...string) {
	t.Helper()
	if status != wantStatus {
		t.Fatalf("%s: status %d, want %d\n%s", what, status, wantStatus, page)
	}
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("%s: the page lacks %q\n%s", what, text, page)
		}
	}
}

var secretText = regexp.MustCompile(`<code class="copy" tabindex="0">([^<]+)</code>`)

func TestAPIKeysAreMadeShownOnceAndRevoked(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.signedIn(t, "olive")
	status, page, _ := b.post(t, "/console/north/api-keys/", url.Values{"name": {"Student <system>"}, "access": {"full"}})
	want(t, "creating", status, page, http.StatusCreated, "Student &lt;system&gt;", "will not be shown again")
	key := secretText.FindStringSubmatch(page)[1]
	s.Partner(key).Get(t, "ping/").Want(t, http.StatusOK)
	status, page, _ = b.get(t, "/console/north/api-keys/")
	want(t, "the list", status, page, http.StatusOK, "Student &lt;system&gt;", key[:12])
	if strings.Contains(page, key) {
		t.Error("the key is shown a second time")
	}
	revoke := regexp.MustCompile(`action="([^"]+/revoke)"`).FindAllStringSubmatch(page, -1)
	status, page, header := b.post(t, revoke[len(revoke)-1][1], nil)
	want(t, "revoking", status, page, http.StatusSeeOther)
	status, page, _ = b.get(t, header.Get("Location"))
	want(t, "after it", status, page, http.StatusOK, "is revoked")
	s.Partner(key).Get(t, "ping/").WantFault(t, http.StatusUnauthorized, "invalid_api_key", "")
	status, page, _ = b.post(t, "/console/north/api-keys/", url.Values{"name": {" "}})
	want(t, "a key without a name", status, page, http.StatusBadRequest, `role="alert"`)
	status, page, _ = b.get(t, "/console/north/audit-log/")
	want(t, "the audit log", status, page, http.StatusOK, "created API key", "revoked API key", "olive@north-institute.org")
}

func TestAWebhookURLsLife(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.signedIn(t, "adam")
	status, page, _ := b.post(t, "/console/north/webhooks/", url.Values{"url": {"http://hooks.north-institute.org/"}, "time_zone": {"Mars"}})
	want(t, "a wrong URL", status, page, http.StatusBadRequest, "only https:// addresses are accepted", `value="http://hooks.north-institute.org/"`)
	status, page, _ = b.post(t, "/console/north/webhooks/", url.Values{"url": {"https://hooks.north-institute.org/in"}, "time_zone": {"Asia/Kolkata"},
		"events": {"result.final", "student.joined"}})
	want(t, "adding", status, page, http.StatusCreated, "whsec_", "will not be shown again", "Asia/Kolkata")
	first := secretText.FindStringSubmatch(page)[1]
	status, page, _ = b.get(t, "/console/north/webhooks/1/")
	want(t, "the page", status, page, http.StatusOK, "https://hooks.north-institute.org/in", "Send test")
	if strings.Contains(page, first) {
		t.Error("the secret is shown a second time")
	}
	status, page, _ = b.post(t, "/console/north/webhooks/1/rotate-secret", nil)
	want(t, "rotating", status, page, http.StatusOK, "whsec_")
	if secretText.FindStringSubmatch(page)[1] == first {
		t.Error("the secret is not replaced")
	}
	status, page, _ = b.post(t, "/console/north/webhooks/1/rotate-secret", url.Values{"overlap_hours": {"24"}})
	want(t, "rotating with an overlap", status, page, http.StatusOK, "whsec_", "the old one beside it", "Old secret signs, too, until")
	status, page, _ = b.post(t, "/console/north/webhooks/1/", url.Values{"url": {"https://hooks.north-institute.org/new"}, "time_zone": {"UTC"}})
	want(t, "changing", status, page, http.StatusSeeOther)
	status, page, _ = b.post(t, "/console/north/webhooks/1/send-test", nil)
	want(t, "send test", status, page, http.StatusSeeOther)
	if _, err := s.DB.Exec(t.Context(), `UPDATE webhook_endpoints SET switched_on = false, switched_off_reason = '50 failed attempts in a row'`); err != nil {
		t.Fatal(err)
	}
	status, page, _ = b.get(t, "/console/north/webhooks/1/")
	want(t, "switched off", status, page, http.StatusOK, "50 failed attempts in a row", "Turn on", "hooks.north-institute.org/new")
	status, page, _ = b.post(t, "/console/north/webhooks/1/turn-on", nil)
	want(t, "turning on", status, page, http.StatusSeeOther)
	status, page, _ = b.post(t, "/console/north/webhooks/1/delete", nil)
	want(t, "deleting", status, page, http.StatusSeeOther)
	status, page, _ = b.get(t, "/console/north/webhooks/")
	want(t, "afterwards", status, page, http.StatusOK, "is deleted", "No URL receives events yet")
	status, page, _ = b.get(t, "/console/north/audit-log/")
	want(t, "the audit log", status, page, http.StatusOK, "added webhook URL", "replaced signing secret", "changed webhook URL", "sent test event",
		"turned on webhook URL", "deleted webhook URL")
}

func TestReceiversSeeWhereDeliveriesComeFrom(t *testing.T) {
	t.Parallel()
	for published, shown := range map[string]bool{"203.0.113.7": true, "": false} {
		s := open(t, func(d *server.Deps) { d.EgressAddresses = strings.Fields(published) })
		status, page, _ := s.signedIn(t, "adam").get(t, "/console/north/webhooks/")
		want(t, "the page", status, page, http.StatusOK, "Add a URL")
		check.Equal(t, "the addresses are shown", strings.Contains(page, "<code>203.0.113.7</code>"), shown, "%s", page)
		check.Equal(t, "they are announced", strings.Contains(page, "Where deliveries come from"), shown, "%s", page)
	}
}

func TestAURLKeptElsewhereIsReadOnly(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/in"}`).Want(t, http.StatusCreated)
	if _, err := s.DB.Exec(t.Context(), `UPDATE webhook_endpoints SET managed_by = 'kubernetes/demo/main'`); err != nil {
		t.Fatal(err)
	}
	b := s.signedIn(t, "olive")
	status, page, _ := b.get(t, "/console/north/webhooks/1/")
	want(t, "the page", status, page, http.StatusOK, "kept by <code>kubernetes/demo/main</code>", "Send test")
	for _, path := range []string{"/console/north/webhooks/1/", "/console/north/webhooks/1/delete", "/console/north/webhooks/1/rotate-secret"} {
		status, page, _ = b.post(t, path, url.Values{"url": {"https://hooks.north-institute.org/mine"}})
		want(t, path, status, page, http.StatusConflict)
	}
	status, page, _ = b.post(t, "/console/north/webhooks/1/send-test", nil)
	want(t, "send test", status, page, http.StatusSeeOther)
}

func TestTheDeliveryLog(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.signedIn(t, "olive")
	s.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/in"}`).Want(t, http.StatusCreated)
	status, page, _ := b.get(t, "/console/north/webhooks/1/deliveries/")
	want(t, "an empty log", status, page, http.StatusOK, "Nothing has been sent to this URL yet")
	s.north.Full.Post(t, "provision/student/", `{"email": "asha@north-institute.org", "first_name": "Asha"}`).Want(t, http.StatusCreated)
	s.fail(t)
	status, page, _ = b.get(t, "/console/north/webhooks/1/deliveries/")
	want(t, "the log", status, page, http.StatusOK, "student.joined", "declined", "there is nothing at this path")
	one := regexp.MustCompile(`/console/north/webhooks/1/deliveries/dlv_[0-9a-f]+/`).FindString(page)
	status, page, _ = b.get(t, "/console/north/webhooks/1/deliveries/?status=delivered")
	want(t, "a filter", status, page, http.StatusOK, "There is no such delivery.")
	status, page, _ = b.get(t, one)
	want(t, "a delivery", status, page, http.StatusOK, "404", "&lt;b&gt;gone&lt;/b&gt;", "X-Service-Signature", "12.3 ms", "Resend")
	status, page, _ = b.post(t, "/console/north/webhooks/1/recover", url.Values{"since": {"yesterday"}})
	want(t, "a wrong recovery", status, page, http.StatusBadRequest, "Say since when", `value="yesterday"`)
	status, page, header := b.post(t, "/console/north/webhooks/1/recover", url.Values{"since": {"2026-01-01T09:00"}, "until": {"2026-11-21T23:00"}}) // whatever the machine's date is
	want(t, "a recovery", status, page, http.StatusSeeOther)
	status, page, _ = b.get(t, header.Get("Location"))
	want(t, "afterwards", status, page, http.StatusOK, "The recovery has begun", "0 of 1")
	status, page, _ = b.post(t, one+"resend", nil)
	want(t, "resend", status, page, http.StatusSeeOther)
	status, page, _ = b.get(t, "/console/north/audit-log/")
	want(t, "the audit log", status, page, http.StatusOK, "recovered events", "resent event",
		`https://hooks.north-institute.org/in, <time datetime="2026-01-01T09:00:00Z" title="2026-01-01 09:00:00 UTC">`)
}

// fail records a declined attempt of everything that is due.
func (s *site) fail(t *testing.T) {
	t.Helper()
	leases, _, err := dispatch.LeaseDue(t.Context(), s.DB, s.Now(), time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	var outcomes []webhook.Outcome
	for _, l := range leases {
		held, err := dispatch.Load(t.Context(), s.DB, l.Deliver)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range held[0].Dues {
			outcomes = append(outcomes, webhook.Outcome{Delivery: d.Delivery, Endpoint: l.Endpoint, Organization: l.Organization, Lease: d.Lease, Number: d.Number, Ping: d.Event.Type == webhook.Ping,
				StartedAt: s.Now(), Duration: 12300 * time.Microsecond, Verdict: webhook.Declined, Cause: "http_404", Status: 404,
				Response: []byte("<b>gone</b>"), RequestHeaders: map[string]string{"X-Service-Signature": "t=1,v1=ab"}})
		}
	}
	if len(outcomes) == 0 {
		t.Fatal("nothing is due")
	}
	if err := s.DB.InTx(t.Context(), func(tx *pg.Tx) error { return webhook.Settle(t.Context(), tx, outcomes) }); err != nil {
		t.Fatal(err)
	}
}
