package deliver_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/nottested"
	"github.com/registrar-dev/registrar/webhook-sender/verify"
)

// runtimes say how a program of docs/webhooks.md is run, by the language of its block.
var runtimes = map[string]struct {
	command []string
	file    string
}{
	"python":     {[]string{"python3"}, "verify.py"},
	"javascript": {[]string{"node"}, "verify.js"},
	"php":        {[]string{"php"}, "verify.php"},
	"java":       {[]string{"java"}, "Verify.java"},
	"sh":         {[]string{"sh"}, "verify.sh"},
}

var block = regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```")

func TestTheDocumentedProgramsVerifyARealDelivery(t *testing.T) {
	t.Parallel()
	var in inbox
	server := httptest.NewTLSServer(&in)
	defer server.Close()
	h := newHouse(t, trusting(t, caFile(t, server)))
	_, secret := h.addURL(t, server.URL+"/hook")
	h.record(t, 1)
	h.handle(t, h.lease(t, time.Second))
	header, body := in.requests[0].Header, in.bodies[0]
	signature := "SIGNATURE=" + header.Get("X-Service-Signature")
	standard := []string{"WEBHOOK_ID=" + header.Get("webhook-id"), "WEBHOOK_TIMESTAMP=" + header.Get("webhook-timestamp"),
		"WEBHOOK_SIGNATURE=" + header.Get("webhook-signature")}
	const chosen = "whsec_chosen-by-somebody-else"
	at := time.Now()
	event := id.NewEvent(at)
	raw := []string{"WEBHOOK_ID=" + event.String(), fmt.Sprint("WEBHOOK_TIMESTAMP=", at.Unix()),
		"WEBHOOK_SIGNATURE=" + webhook.SignStandard(event, at, body, chosen)}

	text, err := os.ReadFile("../../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string]string{}
	for _, m := range block.FindAllSubmatch(text, -1) {
		programs[string(m[1])] = string(m[2])
	}
	for language, how := range runtimes {
		t.Run(language, func(t *testing.T) {
			program, ok := programs[language]
			if !ok {
				t.Fatal("docs/webhooks.md has no such program")
			}
			if _, err := exec.LookPath(how.command[0]); err != nil {
				nottested.Skip(t, "%s is not on this machine", how.command[0])
			}
			file := filepath.Join(t.TempDir(), how.file)
			if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
				t.Fatal(err)
			}
			verify := func(secret string, body []byte, headers ...string) bool {
				cmd := exec.CommandContext(t.Context(), how.command[0], append(how.command[1:], file)...)
				cmd.Env = slices.Concat(os.Environ(), headers, []string{"SIGNING_SECRET=" + secret})
				cmd.Stdin = bytes.NewReader(body)
				out, err := cmd.CombinedOutput()
				if len(out) > 0 {
					t.Errorf("it says: %s", out)
				}
				return err == nil
			}
			for what, right := range map[string]bool{
				"a real delivery":                            verify(secret, body, signature),
				"a real delivery's standard headers":         verify(secret, body, standard...),
				"the standard headers under a chosen secret": verify(chosen, body, raw...),
				"the old secret, of two":                     verify(secret, body, "SIGNATURE="+webhook.Sign(at, body, chosen, secret)),
				"the new secret, of two":                     verify(secret, body, "SIGNATURE="+webhook.Sign(at, body, secret, chosen)),
				"the old secret, of two standard ones":       verify(secret, body, raw[0], raw[1], "WEBHOOK_SIGNATURE="+webhook.SignStandard(event, at, body, chosen, secret)),
				"the new secret, of two standard ones":       verify(secret, body, raw[0], raw[1], "WEBHOOK_SIGNATURE="+webhook.SignStandard(event, at, body, secret, chosen)),
			} {
				if !right {
					t.Errorf("%s does not verify", what)
				}
			}
			other, changed := webhook.NewSecret(), append(bytes.Clone(body), ' ')
			for what, wrong := range map[string]bool{
				"another body":           verify(secret, changed, signature),
				"another secret":         verify(other, body, signature),
				"an old time":            verify(secret, body, regexp.MustCompile(`t=\d+`).ReplaceAllString(signature, "t=1700000000")),
				"no digest":              verify(secret, body, strings.Split(signature, ",")[0]),
				"neither of two secrets": verify(other, body, "SIGNATURE="+webhook.Sign(at, body, secret, chosen)),
				"neither of two, by the standard headers":   verify(other, body, raw[0], raw[1], "WEBHOOK_SIGNATURE="+webhook.SignStandard(event, at, body, secret, chosen)),
				"another body, by the standard headers":     verify(secret, changed, standard...),
				"another secret, by the standard headers":   verify(other, body, standard...),
				"an old time, by the standard headers":      verify(secret, body, standard[0], "WEBHOOK_TIMESTAMP=1700000000", standard[2]),
				"another id, by the standard headers":       verify(secret, body, "WEBHOOK_ID=evt_other", standard[1], standard[2]),
				"an empty signature in the standard header": verify(secret, body, standard[0], standard[1], "WEBHOOK_SIGNATURE="),
			} {
				if wrong {
					t.Errorf("%s verifies", what)
				}
			}
		})
	}
}

// A receiver that has not got the new secret yet takes a real delivery, by either header, and one that refuses it gets it again.
func TestARotationWithAnOverlapLosesNothing(t *testing.T) {
	t.Parallel()
	var in inbox
	server := httptest.NewServer(&in)
	defer server.Close()
	h := newHouse(t, loopback)
	e, before := h.addURL(t, server.URL)
	_, after, err := h.webhooks.Rotate(t.Context(), audit.Platform, h.org, e.ID, "", time.Hour, time.Now())
	check.NoError(check.Now(t), err, "rotating")
	h.record(t, 1)
	h.handle(t, h.lease(t, time.Second))
	header, body := in.requests[0].Header, in.bodies[0]
	for which, secret := range map[string]string{"before": before, "after": after} {
		check.NoError(t, verify.Signature(header.Get(verify.HeaderSignature), body, time.Now(), secret), "the secret %s", which)
		check.NoError(t, verify.Standard(header.Get(verify.HeaderStandardID), header.Get(verify.HeaderStandardTimestamp),
			header.Get(verify.HeaderStandardSignature), body, time.Now(), secret), "the secret %s, by the standard headers", which)
	}
	signed, _, _ := strings.Cut(header.Get(verify.HeaderSignature), ",v1=")
	seconds, err := strconv.ParseInt(strings.TrimPrefix(signed, "t="), 10, 64)
	check.NoError(check.Now(t), err, "%s", signed)
	check.Equal(t, "the header", header.Get(verify.HeaderSignature), webhook.Sign(time.Unix(seconds, 0), body, after, before), "the new secret is first")

	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer refusing.Close()
	for overlap, status := range map[time.Duration]string{time.Hour: "waiting", 0: "declined"} {
		h := newHouse(t, loopback)
		e, _ := h.addURL(t, refusing.URL)
		_, _, err := h.webhooks.Rotate(t.Context(), audit.Platform, h.org, e.ID, "", overlap, time.Now())
		check.NoError(check.Now(t), err, "rotating")
		h.record(t, 1)
		h.handle(t, h.lease(t, time.Second))
		check.Equal(t, "status", h.firstAttempt(t).deliveryStatus, status, "with an overlap of %s", overlap)
	}
}

func TestTheVerifyPackageTakesARealDelivery(t *testing.T) {
	t.Parallel()
	var taken []verify.Event
	var secrets []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		verify.Handler(verify.NewMemory(10), func(e verify.Event) error { taken = append(taken, e); return nil }, secrets...).ServeHTTP(w, r)
	}))
	defer server.Close()
	h := newHouse(t, loopback)
	_, secret := h.addURL(t, server.URL)
	secrets = []string{secret}
	h.record(t, 1)
	h.handle(t, h.lease(t, time.Second))
	if a := h.firstAttempt(t); check.Equal(check.Now(t), "a.deliveryStatus", a.deliveryStatus, "delivered", "recorded %+v, taken %+v", a, taken) &&
		check.Equal(check.Now(t), "number of events", len(taken), 1, "recorded %+v, taken %+v", a, taken) &&
		check.Equal(check.Now(t), "the first event's type", taken[0].Type, "student.joined", "recorded %+v, taken %+v", a, taken) {
		check.Equal(check.Now(t), "the first event's slug", taken[0].Organization.Slug, "demo", "recorded %+v, taken %+v", a, taken)
	}
}
