package console_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/registrar-dev/registrar/api-server/internal/server"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// plain is a browser that runs no scripts, and what was done in it.
type plain struct {
	*browsertest.Browser
	*site
	done []string // routes
}

// act does something by a form of the page at path, and waits for what the next page says.
func (p *plain) act(route, path string, by func(), says string) {
	if path != "" {
		p.Visit(p.URL() + path)
	}
	by()
	p.AwaitText(says)
	p.done = append(p.done, route)
}

// press opens what asks first, and presses the button behind it.
func (p *plain) press(texts ...string) func() {
	return func() {
		for _, text := range texts {
			p.Press(text)
		}
	}
}

// Everything that can be done on a page can be done without scripts. An action that is not
// done here fails the test.
func TestEveryActionWorksWithoutScripts(t *testing.T) {
	t.Parallel()
	s := open(t, withSandboxes(t), func(d *server.Deps) { d.DNS = records{} })
	p := &plain{Browser: browsertest.Open(t), site: s}
	held := s.hold(t)
	p.Scripts(false)
	p.students(t)
	p.signIn("olive", password, "/console/")
	p.runs(t, held)
	p.helpStudents(t)
	s.Advance(11 * time.Minute) // then the password is asked for once
	p.keys()
	p.lms(t)
	p.endpoints(t)
	p.deliveries(t)
	p.sandbox(t)
	p.settings(t)
	p.staff(t)
	p.account(t)
	for _, route := range walk(t, s) {
		if !strings.HasPrefix(route, "POST ") || strings.Contains(route, "/lti/") || strings.Contains(route, "/passkey") { // which only a script can ask for
			continue
		}
		check.True(t, "it was done without scripts", slices.Contains(p.done, route), "%s", route)
	}
}

func (p *plain) signIn(name, password, path string) {
	p.act("POST /sign-in", path, func() {
		p.Type("#name", name+"@north-institute.org")
		p.Type("#password", password)
		p.Press("Sign in")
	}, "Sign out")
}

// students set a first password, and ask for a link to set another one.
func (p *plain) students(t *testing.T) {
	t.Helper()
	made := p.north.Full.Post(t, "provision/student/", `{"email": "asha@north-institute.org", "first_name": "Asha"}`).Want(t, 201).Object(t)
	link, err := url.Parse(made["set_password_url"].(string))
	if err != nil {
		t.Fatal(err)
	}
	p.act("POST /set-password/{token}", link.Path, func() {
		p.Type("#password", "lantern orbit plum 42")
		p.Type("#again", "lantern orbit plum 42")
		p.Press("Set password")
	}, "Your password is set")
	p.signIn("asha", "lantern orbit plum 42", "/sign-in/")
	p.act("POST /send-link", "/console/", p.press("Send me a link"), "Look into your mailbox")
	p.act("POST /time-zone", "/time-zone/", func() {
		p.Type("#zone", "Europe/London")
		p.Press("Use this zone")
	}, "Times are in Europe/London, as you chose.")
	p.act("POST /language", "/my-courses/", p.press("हिन्दी"), "मेरे पाठ्यक्रम")
	p.act("POST /language", "", p.press("English"), "My courses")
	p.act("POST /sign-out", "/my-courses/", p.press("Sign out"), "Forgot your password")
	p.act("POST /forgot-password", "/forgot-password/", func() {
		p.Type("#email", "asha@north-institute.org")
		p.Press("Send the link")
	}, "Look into your mailbox")
}

// helpStudents does for a student what staff can do, with a plan that finds no paper at first.
func (p *plain) helpStudents(t *testing.T) {
	t.Helper()
	item := p.Platform.Put(t, "organizations/north/catalog/quizzes/words", `{"title": "Words"}`).Want(t, 201).Object(t)["item_id"]
	made := p.north.Full.Post(t, "provision/student/", `{"email": "binod@north-institute.org", "first_name": "Binod", "courses": "ielts"}`).Want(t, 201).Object(t)
	student, route := fmt.Sprintf("/console/north/students/%v/", made["user_id"]), "POST /console/{slug}/students/{id}"
	p.act(route+"/resend-welcome", student, p.press("Send the welcome mail again…", "Send it again"), "is on its way")
	p.act(route+"/extend", student, func() {
		p.Press("Extend…")
		p.Type("input[name=until]", "02012099")
		p.Press("Extend")
	}, "now ends on 1 February 2099")
	p.act(route+"/suspend", student, p.press("Suspend…", "Suspend"), "is suspended.")
	p.act(route+"/resume", student, p.press("Lift the suspension"), "is no longer suspended")
	p.act(route+"/assign", student, func() {
		p.Press("Assign work")
		p.AwaitHeading("Assign work")
		p.Fill("#item", fmt.Sprintf("quiz-%v", item))
		p.Press("Assign")
	}, "Words is assigned.")
	p.act(route+"/start-plan", student, func() {
		p.Press("Start a test plan…")
		p.Type("input[name=target]", "7")
		p.Press("Start the plan")
	}, "The test plan for IELTS Academic has begun.")
	p.DecidePlans(t)
	p.Press("IELTS Academic, target 7")
	p.AwaitText("The plan lacks a paper")
	route = "POST /console/{slug}/plans/{id}"
	p.act(route+"/add-paper", "", func() {
		p.Type("#title", "Mock 1")
		p.Type("#code", "mock-1")
		p.Press("Add to the catalog")
	}, "The paper is in the catalog")
	p.DecidePlans(t)
	p.act(route+"/pause", "", p.press("Pause…", "Pause the plan"), "The plan is paused")
	p.act(route+"/resume", "", p.press("Resume the plan"), "The plan goes on")
	p.act(route+"/skip-test", "", p.press("Skip the test…", "Skip the test"), "The test is skipped")
	p.Platform.Put(t, "organizations/north/catalog/tests/mock-2", `{"title": "Mock 2", "type": "ielts"}`).Want(t, 201)
	p.DecidePlans(t)
	p.act(route+"/open-test", p.Location()[len(p.URL()):], p.press("Open the test today…", "Open it today"), "The test opens today")
	p.act(route+"/official-result", "", func() {
		p.Press("Record the official result…")
		p.Type("#score", "7.5")
		p.Type("#on", p.Now().Format("01022006"))
		p.Press("Record it")
	}, "The official result is recorded")
}

func (p *plain) keys() {
	const page = "/console/north/api-keys/"
	p.act("POST /console/{slug}/api-keys", page, func() {
		p.Type("#name", "Student system")
		p.Press("Create the key")
		p.AwaitHeading(asks)
		p.Type("#confirm", password)
		p.Press("Continue")
	}, "Your new key")
	p.act("POST /console/{slug}/api-keys/{id}/revoke", "", func() {
		p.Click("tbody tr:first-child summary")
		p.Click("tbody tr:first-child button")
	}, "calls with it are refused from now on")
}

func (p *plain) endpoints(t *testing.T) {
	t.Helper()
	const page, route = "/console/north/webhooks/1/", "POST /console/{slug}/webhooks/{id}"
	p.act("POST /console/{slug}/webhooks", "/console/north/webhooks/", func() {
		p.Type("#url", "https://hooks.north-institute.org/in")
		p.Press("Add the URL")
	}, "The URL is added")
	p.act(route, page, p.press("Save"), "The settings are saved")
	p.act(route+"/send-test", page, p.press("Send test"), "A ping is on its way")
	p.act(route+"/rotate-secret", page, p.press("Replace the secret…", "Replace the secret"), "The new secret signs")
	p.exec(t, `UPDATE webhook_endpoints SET switched_on = false, switched_off_reason = '50 failed attempts in a row'`)
	p.act(route+"/turn-on", page, p.press("Turn on"), "The URL is on")
}

func (p *plain) deliveries(t *testing.T) {
	t.Helper()
	const page, route = "/console/north/webhooks/1/", "POST /console/{slug}/webhooks/{id}"
	p.fail(t)
	_, list, _ := p.signedIn(t, "adam").get(t, page+"deliveries/")
	p.act(route+"/deliveries/{delivery}/resend", regexp.MustCompile(page+`deliveries/dlv_[0-9a-f]+/`).FindString(list), p.press("Resend"), "The event is sent again")
	p.act(route+"/recover", page+"deliveries/", func() {
		p.Type("#since", "11212026\t0900AM")
		p.Press("Recover")
	}, "The recovery has begun")
	p.act(route+"/delete", page, p.press("Delete…", "Delete the URL"), "is deleted")
}

// runs approves a held import, takes it back, and discards it when it comes again.
func (p *plain) runs(t *testing.T, held string) {
	t.Helper()
	const route = "POST /console/{slug}/roster-runs/{id}"
	p.act(route+"/approve", held, p.press("Approve…", "Approve and apply"), "Take back")
	p.act(route+"/undo", held, p.press("Take the import back…", "Take the import back"), "Takes back import")
	p.act(route+"/discard", p.holdAgain(t), p.press("Discard…", "Discard the import"), "The import is discarded")
	file := filepath.Join(t.TempDir(), "people.csv")
	if err := os.WriteFile(file, []byte("person_external_id,email,first_name,last_name\nu1,u1@north-institute.org,Uma,One\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.act("POST /console/{slug}/roster-runs", "/console/north/roster-runs/", func() {
		p.Press("Send a file…")
		p.Type("#archive", file)
		p.Press("Send the file")
	}, "A preview, which writes nothing")
}

func (p *plain) settings(t *testing.T) {
	t.Helper()
	const page = "/console/north/settings/"
	p.act("POST /console/{slug}/settings", page, func() {
		p.Fill("#name", "The North")
		p.Press("Change the name")
	}, "The name is changed.")
	p.act("POST /console/{slug}/settings/defaults", "", func() {
		p.Fill("#months", "6")
		p.Press("Change the defaults")
	}, "The defaults are changed.")
	p.act("POST /console/{slug}/settings/language", "", p.press("Change the language"), "The language is changed.")
	file := filepath.Join(t.TempDir(), "logo.png")
	if err := os.WriteFile(file, picture(t, 40, 30), 0o600); err != nil {
		t.Fatal(err)
	}
	p.act("POST /console/{slug}/settings/logo", "", func() {
		p.Type("#file", file)
		p.Press("Use the picture")
	}, "The logo is changed.")
	p.act("POST /console/{slug}/settings/remove-logo", "", p.press("Remove the logo"), "The logo is removed.")
	p.act("POST /console/{slug}/mails", "/console/north/mails/", p.press("Save"), "Your choice is saved.")
	sub := email.Subscription{Organization: 1, User: id.User(p.userID(t, "olive")), Of: email.TypeRosterHeld}
	token, err := sub.Token(t.Context(), p.Box)
	check.NoError(check.Now(t), err, "the token")
	p.act("POST /unsubscribe/{token}", email.UnsubscribePath+token+"/", p.press("Stop these mails"), "These mails are stopped")
}

func (p *plain) lms(t *testing.T) {
	t.Helper()
	p.act("POST /console/{slug}/lms", "/console/north/lms/", func() {
		for field, text := range map[string]string{"name": "Our Canvas", "issuer": "https://canvas.instructure.com", "client": "1", "deployments": "1:a",
			"authorize": "https://sso.canvaslms.com/authorize", "token": "https://sso.canvaslms.com/token", "keys": "https://sso.canvaslms.com/keys"} {
			p.Type("#"+field, text)
		}
		p.Press("Register the LMS")
	}, "The LMS is registered.")
	p.act("POST /console/{slug}/lms/{id}", "/console/north/lms/1/", func() {
		p.Fill("#name", "Canvas")
		p.Press("Save the settings")
	}, "settings are changed.")
	p.act("POST /console/{slug}/lms/link", "/console/north/lms/", p.press("Make a registration link"), "It is shown this once")
	_, err := p.DB.Exec(t.Context(), `INSERT INTO lms_people (organization_id, registration_id, subject, user_id, created_at) SELECT 1, 1, '1', $1, now()`, p.userID(t, "olive"))
	check.NoError(check.Now(t), err, "a user of the LMS")
	p.act("POST /console/{slug}/lms/{id}/forget", "/console/north/lms/1/", func() {
		p.Type("#email", "olive@north-institute.org")
		p.Press("Forget the user")
	}, "next launch is taken")
	_, err = p.DB.Exec(t.Context(), `
		INSERT INTO lms_marks (organization_id, registration_id, line, user_id, line_item, item_id, score_e4, max_score_e4, scored_at, version, tries, attempts, updated_at)
		SELECT 1, 1, '', $1, '', min(id), 80000, 100000, now(), 1, 12, '[{"at": "2026-11-23T12:00:00Z", "status": 503, "cause": "The LMS answered 503."}]', now() FROM catalog_items`, p.userID(t, "olive"))
	check.NoError(check.Now(t), err, "a mark")
	p.act("POST /console/{slug}/lms/{id}/send-again", "/console/north/lms/1/", p.press("Send again what was given up"), "The marks are sent again.")
	p.noteLMSCourse(t)
	p.act("POST /console/{slug}/lms/{id}/courses/{course}", "/console/north/lms/1/", p.press("Turn on"), "is being pulled")
	p.act("POST /console/{slug}/lms/{id}/remove", "/console/north/lms/1/", p.press("Remove the LMS…", "Remove the LMS"), "opens nothing any more")
}

// staff has an app, and looks after the others.
func (p *plain) staff(t *testing.T) {
	t.Helper()
	const methods, staff = "/sign-in-methods/", "/console/north/staff/"
	p.addApp(t, p.signedIn(t, "adam"))
	p.act("POST /sign-in-methods/app", methods, p.press("Add an authenticator app"), "Scan this")
	secret := strings.ReplaceAll(p.TextOf(".copy"), " ", "")
	code := func() string {
		code, err := totp.GenerateCode(secret, p.Now())
		check.NoError(check.Now(t), err, "a code")
		return code
	}
	p.act("POST /sign-in-methods/app/add", "", func() {
		p.Type("#name", "Telephone")
		p.Type("#code", code())
		p.Press("Add the app")
	}, "Each signs you in once")
	p.act("POST /sign-in-methods/recovery-codes", methods, p.press("Make new ones…", "Make new codes"), "Each signs you in once")
	p.Press("Sign out")
	p.AwaitHeading("Sign in")
	p.Visit(p.URL() + "/console/")
	p.Type("#name", "olive@north-institute.org")
	p.Type("#password", password)
	p.Press("Sign in")
	p.AwaitHeading("Confirm that it is you")
	p.Advance(30 * time.Second)
	p.act("POST /sign-in/second", "", func() {
		p.Type("#code", code())
		p.Press("Continue")
	}, "Signed-in browsers")
	p.act("POST /console/{slug}/staff", staff, func() {
		p.Type("#email", "nina@north-institute.org")
		p.Type("#first", "Nina")
		p.Fill("#role", "teacher")
		p.Press("Invite")
	}, "A mail is on its way")
	p.act("POST /console/{slug}/staff/policy", staff, p.press("Save the policy"), "How the staff sign in is changed.")
	p.act("POST /console/{slug}/staff/{id}/reset-factors", staff, p.press("Lost…", "Remove them"), "1 second factors are removed")
	p.act("POST /console/{slug}/staff/{id}/role", staff, p.press("Change…", "Save the role"), "The role is admin now.")
	p.provider(t)
	p.act("POST /console/{slug}/staff/{id}/transfer", staff, p.press("Change…", "Hand the organization over"), "The organization is handed over.")
	p.exec(t, `UPDATE members SET role = 'owner' WHERE user_id = (SELECT id FROM accounts WHERE email = 'olive@north-institute.org')`)
	p.act("POST /console/{slug}/staff/{id}/deactivate", staff, p.press("Deactivate…", "Deactivate"), "The person is not on the staff any more.")
	p.act("POST /sign-in-methods/remove", methods, p.press("Remove…", "Remove it"), "is removed.")
}

// provider sets up an institute's own sign-in.
func (p *plain) provider(t *testing.T) {
	t.Helper()
	const path, route = "/console/north/staff/provider/", "POST /console/{slug}/staff/provider"
	p.act(route, path, func() {
		p.Type("#issuer", "https://login.invalid")
		p.Type("#client", "registrar")
		p.Type("#secret", "a secret")
		p.Press("Save the provider")
	}, "The settings are saved.")
	p.act(route+"/test", path, p.press("Test the provider"), "https://login.invalid")
	p.act(route+"/domains", path, func() {
		p.Type("#domain", "north-institute.org")
		p.Press("Add the domain")
	}, "Add the record below")
	p.act(route+"/domains/prove", path, p.press("Prove"), "There is no TXT record")
	p.act(route+"/policy", path, p.press("Save the policy"), "How the staff sign in is changed.")
	p.act(route+"/domains/remove", path, func() {
		p.Click("#domains ~ .scroll summary")
		p.Press("Remove the domain")
	}, "The domain is removed.")
	p.act(route+"/remove", path, func() {
		p.Click(".ways summary")
		p.Press("Remove the provider")
	}, "The provider is removed.")
}

func (p *plain) account(t *testing.T) {
	t.Helper()
	for route, page := range map[string]string{"POST /console/{slug}/sessions/end": "/console/north/sessions/", "POST /sessions/end": "/sessions/"} {
		p.signedIn(t, "olive")
		p.act(route, page, p.press("Sign out there"), "You are signed out in that browser.")
	}
	for route, page := range map[string]string{"POST /console/{slug}/sessions/end-others": "/console/north/sessions/", "POST /sessions/end-others": "/sessions/"} {
		p.signedIn(t, "olive")
		p.act(route, page, p.press("Sign out everywhere else"), "You are signed out in the other")
	}
	p.act("POST /change-password", "/change-password/", func() {
		p.Type("#current", password)
		p.Type("#password", "lantern orbit plum 43")
		p.Type("#again", "lantern orbit plum 43")
		p.Press("Change password")
	}, "Your new password is set")
}
