package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/check"
	ids "github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/nottested"
)

// standardVersion is of the npm package standardwebhooks.
const standardVersion = "1.1.1"

// signedRequest is what a published library is given.
type signedRequest struct {
	Secret  string            `json:"secret"`
	Raw     bool              `json:"raw"` // the secret's text is the key
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// Reference: webhooks#standard-webhooks.
func TestPublishedLibrariesVerifyARealDelivery(t *testing.T) {
	t.Parallel()
	verify := map[string]func(*testing.T, signedRequest) bool{"Go": verifiedByGo}
	if modules, err := stack.EnsureNPM(t.Context(), os.Stderr, "standardwebhooks", standardVersion); err == nil {
		verify["Node"] = func(t *testing.T, r signedRequest) bool { t.Helper(); return verifiedByNode(t, modules, r) }
	}
	h := newHouse(t) // now, since the libraries take what was signed just now
	h.provision("asha@north-institute.org", http.StatusCreated)
	real := h.awaitEvents("asha@north-institute.org", 2)[0]
	chosen, event, at := "whsec_chosen-by-somebody-else", ids.NewEvent(time.Now()), time.Now()
	for _, library := range []string{"Go", "Node"} {
		t.Run(library, func(t *testing.T) {
			if verify[library] == nil {
				nottested.Skip(t, "standardwebhooks cannot be had from npm")
			}
			r := signedRequest{Secret: h.secrets[0], Headers: real.Headers, Body: real.Body}
			check.True(t, "a real delivery verifies", verify[library](t, r), "%v", r.Headers)
			r.Body += " "
			check.False(t, "another body verifies", verify[library](t, r), "%v", r.Headers)
			r.Body, r.Secret = real.Body, webhook.NewSecret()
			check.False(t, "it verifies with another secret", verify[library](t, r), "%v", r.Headers)
			r = signedRequest{Secret: chosen, Raw: true, Body: real.Body, Headers: map[string]string{
				"Webhook-Id": event.String(), "Webhook-Timestamp": strconv.FormatInt(at.Unix(), 10),
				"Webhook-Signature": webhook.SignStandard(event, at, []byte(real.Body), chosen)}}
			check.True(t, "a chosen secret verifies as a raw key", verify[library](t, r), "%v", r.Headers)
		})
	}
}

func verifiedByGo(t *testing.T, r signedRequest) bool {
	t.Helper()
	wh, err := standardwebhooks.NewWebhook(r.Secret)
	if r.Raw {
		wh, err = standardwebhooks.NewWebhookRaw([]byte(r.Secret))
	}
	must(t, err)
	headers := http.Header{}
	for name, value := range r.Headers {
		headers.Set(name, value)
	}
	return wh.Verify([]byte(r.Body), headers) == nil
}

func verifiedByNode(t *testing.T, modules string, r signedRequest) bool {
	t.Helper()
	program := filepath.Join(t.TempDir(), "verify.js")
	must(t, os.WriteFile(program, []byte(`
const { Webhook, WebhookVerificationError } = require("standardwebhooks");
const r = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
try {
  new Webhook(r.secret, r.raw ? { format: "raw" } : {}).verify(r.body, r.headers);
  console.log("verified");
} catch (e) {
  if (!(e instanceof WebhookVerificationError)) throw e;
}
`), 0o600))
	request, err := json.Marshal(r)
	must(t, err)
	cmd := command(t, "node", program)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	cmd.Stdin = strings.NewReader(string(request))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(string(out)) == "verified"
}
