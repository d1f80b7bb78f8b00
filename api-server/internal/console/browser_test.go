package console_test

import (
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/browsertest"
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
	b.Type("#name", "Student system")
	b.Press("Create the key")
	b.Await(".secret")
	b.Screenshot("api-key-created")

	b.Press("Webhooks")
	b.Type("#url", "https://hooks.north-institute.org/in")
	b.Screenshot("webhooks-empty")
	b.Press("Add the URL")
	b.Await(".secret")
	b.Screenshot("webhook-added")
	if !strings.Contains(b.Text(), "whsec_") {
		t.Error("the secret is not shown")
	}
	b.Press("Send test")
	b.Await("[role=status]")
	b.Press("Replace the secret…")
	b.Press("Replace the secret")
	b.Await(".secret")
	b.Dark(true)
	b.Screenshot("webhook-secret-replaced-dark")
	b.Press("Audit log")
	b.Await("table")
	b.Screenshot("audit-log-dark")

	b.Dark(false)
	b.Size(390, 800)
	b.Press("API keys")
	b.Await("table")
	b.Screenshot("api-keys-telephone")
	b.Press("Sign out")
	b.Await("#password")
}
