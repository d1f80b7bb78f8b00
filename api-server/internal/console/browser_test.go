package console_test

import (
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/browsertest"
)

func TestTheConsoleInABrowser(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := browsertest.Open(t)
	b.Size(1200, 900)
	b.Visit(s.URL() + "/console/")
	b.Type("#name", "olive@north-institute.org")
	b.Type("#password", "wrong password")
	b.Press("Sign in")
	b.Await("[role=alert]")
	b.Type("#password", password)
	b.Press("Sign in")
	b.Await("nav[aria-label=Console]")
	b.Screenshot("overview")

	b.Press("API keys")
	b.AwaitText("Create a key")
	b.Type("#name", "Student system")
	b.Press("Create the key")
	b.AwaitText("Your new key")
	b.Screenshot("api-key-created")

	b.Press("Webhooks")
	b.AwaitText("Add a URL")
	b.Type("#url", "https://hooks.north-institute.org/in")
	b.Screenshot("webhooks-empty")
	b.Press("Add the URL")
	b.AwaitText("The URL is added")
	b.Screenshot("webhook-added")
	if !strings.Contains(b.Text(), "whsec_") {
		t.Error("the secret is not shown")
	}
	b.Press("Send test")
	b.AwaitText("A ping is on its way")
	b.Press("Replace the secret…")
	b.Press("Replace the secret")
	b.AwaitText("The new secret signs")
	b.Dark(true)
	b.Screenshot("webhook-secret-replaced-dark")
	b.Press("Audit log")
	b.AwaitText("replaced signing secret")
	b.Screenshot("audit-log-dark")

	b.Dark(false)
	s.north.Full.Post(t, "provision/student/", `{"email": "asha@north-institute.org", "first_name": "Asha"}`).Want(t, 201)
	s.fail(t)
	b.Press("Webhooks")
	b.AwaitText("Add a URL")
	b.Press("https://hooks.north-institute.org/in")
	b.AwaitText("failing")
	b.Press("Deliveries")
	b.AwaitText("there is nothing at this path")
	b.Screenshot("deliveries")
	b.Picture("../../../docs/pictures/console-deliveries.webp")
	b.Press("student.joined")
	b.AwaitText("First byte")
	b.Screenshot("delivery")
	b.Press("Resend")
	b.AwaitText("The event is sent again")

	b.Size(390, 800)
	b.Press("API keys")
	b.AwaitText("Create a key")
	b.Screenshot("api-keys-telephone")
	b.Press("Sign out")
	b.Await("#password")
}
