package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

const consolePassword = "plum-orbit-lantern-42"

// india is where the administrator sits, five and a half hours ahead of UTC.
var india = time.FixedZone("Asia/Kolkata", 19800)

// adminBrowser is an administrator's browser at the console of a running house.
type adminBrowser struct {
	*house
	*browsertest.Browser
	url string // that the administrator adds, without its host
}

func newAdminBrowser(t *testing.T) *adminBrowser {
	t.Helper()
	d := &adminBrowser{Browser: browsertest.Open(t), house: newHouse(t), url: "/console"}
	d.platform(http.MethodPut, "organizations/demo/staff/olive@institute.org",
		`{"first_name": "Olive", "last_name": "Owner", "role": "owner", "password": "`+consolePassword+`"}`, nil)
	d.Size(1200, 900)
	d.Zone(india.String())
	return d
}

func (d *adminBrowser) open(path string) { d.t.Helper(); d.Visit(d.settings.PublicURL() + path) }

// see keeps a picture of the page and checks that everybody can use it.
func (d *adminBrowser) see(name string) {
	d.t.Helper()
	d.Screenshot(name)
	d.Accessible(name)
}

// awaitPage loads the page until it shows the text: what it waits for is done by others.
func (d *adminBrowser) awaitPage(path, text string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), limit)
	defer cancel()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		d.open(path)
		if strings.Contains(d.Text(), text) {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			d.t.Fatalf("%s never shows %q:\n%s", path, text, d.Text())
		}
	}
}

// awaitRequest waits until the administrator's URL has had n requests of the type.
func (d *adminBrowser) awaitRequest(event string, n int) stack.Received {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), limit)
	defer cancel()
	got, err := d.receiver.Await(ctx, n, func(r stack.Received) bool { return r.Path == d.url && r.Headers["X-Service-Event"] == event })
	if err != nil {
		d.t.Fatalf("%d of %d %s: %v", len(got), n, event, err)
	}
	return got[n-1]
}

func TestAnAdministratorsDay(t *testing.T) {
	t.Parallel()
	d := newAdminBrowser(t)
	d.signIn()
	endpoint := d.addURL()
	d.breakAndMend(endpoint)
	d.rotate(endpoint)
	d.switchedOff(endpoint)
	d.heldRun()
	d.Press("Sign out")
	d.AwaitHeading("Sign in")
}

func (d *adminBrowser) signIn() {
	d.t.Helper()
	d.open("/console/")
	d.AwaitHeading("Sign in")
	d.see("01-sign-in")
	d.Type("#name", "olive@institute.org")
	d.Type("#password", "wrong password")
	d.Press("Sign in")
	d.Await("[role=alert]")
	d.see("02-wrong-password")
	d.Type("#password", consolePassword)
	d.Press("Sign in")
	d.AwaitHeading("Demo Institute")
	d.see("03-overview")
}

// addURL adds a URL, copies its secret, and sends a test; it gives the path of its page.
func (d *adminBrowser) addURL() string {
	d.t.Helper()
	d.Press("Webhooks")
	d.AwaitHeading("Webhooks")
	d.Type("#url", d.receiver.URL(d.url))
	d.Press("Add the URL")
	d.AwaitText("The URL is added")
	d.see("04-url-added")
	secret := d.TextOf("code.copy")
	d.receiver.Trust(d.url, secret)
	d.Press("Webhooks")
	d.AwaitHeading("Webhooks")
	d.Press(d.receiver.URL(d.url))
	d.AwaitText("Last success")
	if strings.Contains(d.Text(), secret) {
		d.t.Error("the secret is shown a second time")
	}
	page := strings.TrimPrefix(d.Location(), d.settings.PublicURL())
	d.Press("Send test")
	d.AwaitText("The test: delivered")
	d.see("05-test-answered")
	if ping := d.awaitRequest("ping", 1); check.True(d.t, "the signature verifies", ping.Verified != nil, "the copied secret does not verify the ping") {
		check.True(d.t, "*ping.Verified", *ping.Verified, "the copied secret does not verify the ping")
	}
	d.awaitPage(page+"deliveries/", "The receiver accepted the event.")
	d.see("05-test-delivered")
	d.Press("ping")
	d.AwaitText("First byte")
	d.see("06-attempt")
	return page
}

// breakAndMend lets the receiver decline, and sends what it declined again.
func (d *adminBrowser) breakAndMend(endpoint string) {
	d.t.Helper()
	log := endpoint + "deliveries/"
	d.receiver.SetRespond(stack.Status(http.StatusNotFound))
	student := d.provision("asha@institute.org", http.StatusCreated)
	d.awaitRequest("student.joined", 1)
	d.awaitRequest("enrollment.created", 1)
	d.awaitPage(log+"?status=declined&event=enrollment.created", "there is nothing at this path")
	d.awaitPage(log+"?status=declined&event=student.joined", "there is nothing at this path")
	d.see("07-declined-with-cause")
	d.Press("student.joined")
	d.AwaitText("First byte")
	d.receiver.SetRespond(stack.Status(http.StatusOK))
	d.Press("Resend")
	d.AwaitText("The event is sent again")
	d.awaitRequest("student.joined", 2)
	d.awaitPage(strings.TrimPrefix(d.Location(), d.settings.PublicURL()), "delivered")
	d.see("08-resent")
	d.open(log)
	d.Fill("#since", time.Now().In(india).Add(-time.Hour).Format("2006-01-02T15:04"))
	d.Press("Recover")
	d.AwaitText("The recovery has begun")
	d.awaitRequest("enrollment.created", 2)
	d.awaitPage(log, "1 of 1")
	d.see("09-recovered")
	d.Press("Students")
	d.AwaitHeading("Students")
	d.Type("#q", "rao")
	d.Press("Search")
	d.AwaitText("for “rao”") // the page before has her, too
	d.Press("Asha Rao")
	d.AwaitHeading("Asha Rao")
	d.awaitPage(fmt.Sprintf("/console/demo/students/%d/", student.UserID), "enrollment.created")
	d.see("10-student")
	d.Size(390, 844)
	d.see("10-student-telephone")
	d.Size(1200, 900)
}

func (d *adminBrowser) rotate(endpoint string) {
	d.t.Helper()
	d.open(endpoint)
	d.Press("Replace the secret…")
	d.see("11-replace-the-secret")
	d.Press("Replace the secret")
	d.AwaitText("The new secret signs")
	d.see("12-secret-replaced")
	d.receiver.Trust(d.url, d.TextOf("code.copy"))
	d.Press("Send test")
	d.AwaitText("The test: delivered")
	if ping := d.awaitRequest("ping", 2); check.True(d.t, "the signature verifies", ping.Verified != nil, "the new secret does not verify the next ping") {
		check.True(d.t, "*ping.Verified", *ping.Verified, "the new secret does not verify the next ping")
	}
}

// switchedOff lets the fiftieth attempt in a row fail, and turns the URL on again, without
// scripts for once.
func (d *adminBrowser) switchedOff(endpoint string) {
	d.t.Helper()
	conn, err := pgx.Connect(d.t.Context(), d.database)
	must(d.t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(d.t.Context())) }()
	_, err = conn.Exec(d.t.Context(), `UPDATE webhook_health SET consecutive_failures = 49
		WHERE endpoint_id = (SELECT id FROM webhook_endpoints WHERE url = $1)`, d.receiver.URL(d.url))
	must(d.t, err)
	d.receiver.SetRespond(stack.Status(http.StatusGone))
	d.provision("binod@institute.org", http.StatusCreated)
	d.awaitPage(endpoint, "Switched off.")
	d.see("13-switched-off")
	d.receiver.SetRespond(stack.Status(http.StatusOK))
	d.Scripts(false)
	d.open(endpoint)
	d.Press("Turn on")
	d.AwaitText("The URL is on")
	d.Scripts(true)
	d.see("14-turned-on")
}

// heldRun reviews a snapshot that would deactivate most of the people, and approves it.
func (d *adminBrowser) heldRun() {
	d.t.Helper()
	d.platform(http.MethodPut, "organizations/demo/roster-sources/default", `{"authoritative_enabled": true}`, nil)
	rows := "person_external_id,email,first_name,last_name\n"
	for i := range 8 {
		rows += fmt.Sprintf("s%d,s%d@institute.org,Given%d,Family\n", i, i, i)
	}
	d.importRoster(rows, http.StatusOK)
	d.importRoster("person_external_id,email,first_name,last_name\ns0,s0@institute.org,Given0,Family\n", http.StatusAccepted)
	d.Press("Roster imports")
	d.AwaitHeading("Roster imports")
	d.see("15-imports")
	d.Press("2")
	d.AwaitText("Why it was held")
	d.see("16-held-run")
	d.Press("Approve…")
	d.see("16-held-run-question")
	d.Press("Approve and apply")
	d.Await("#undo")
	d.see("17-approved")
	d.Press("Audit log")
	d.AwaitText("approved roster import")
	d.see("18-audit-log")
}

func (d *adminBrowser) importRoster(rows string, want int) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, d.settings.PublicURL()+"/api/v1/roster/import/", strings.NewReader(rows))
	must(d.t, err)
	for name, value := range map[string]string{"X-API-Key": d.key, "Content-Type": "text/csv", "X-Roster-Mode": "authoritative_snapshot"} {
		req.Header.Set(name, value)
	}
	resp, err := web.Do(req)
	must(d.t, err)
	_ = resp.Body.Close()
	if resp.StatusCode != want {
		d.t.Fatalf("the import: %d, want %d", resp.StatusCode, want)
	}
}

// A student follows the link in the mail on a telephone, and sets a password.
func TestAStudentsTelephone(t *testing.T) {
	t.Parallel()
	d := newAdminBrowser(t)
	d.provision("asha@institute.org", http.StatusCreated)
	mail := strings.ReplaceAll(string(d.awaitMail("asha@institute.org", 1)[0].Data), "=\r\n", "")
	d.Size(390, 844)
	d.Visit(link.FindString(mail))
	d.AwaitHeading("Set your password")
	d.see("set-password")
	d.Type("#password", "lantern orbit plum 42")
	d.Type("#again", "lantern orbit plum 42")
	d.Press("Set password")
	d.AwaitHeading("Your password is set")
	d.see("password-set")
	d.Press("Continue")
	d.AwaitHeading("My courses")
	d.Press("Sign out")
	d.AwaitHeading("Sign in")
	d.Type("#name", "asha@institute.org")
	d.Type("#password", "lantern orbit plum 42")
	d.Press("Sign in")
	d.AwaitHeading("My courses")
	d.see("my-courses")
}
