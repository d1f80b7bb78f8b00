package dynreg

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// What an address that somebody at an LMS chose may answer, and what is said about it.
func TestConfigurationsThatAreRefused(t *testing.T) {
	t.Parallel()
	local := egress.New(egress.Config{AllowHTTP: true, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	say := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(strings.ReplaceAll(text, "HOST", r.Host)))
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		policy *egress.Policy
		want   string
	}{
		"no page":           {http.NotFound, local, "answers 404"},
		"a page":            {say("<html>"), local, "no OpenID configuration"},
		"another shape":     {say(`{"issuer": 7}`), local, "no OpenID configuration"},
		"another issuer":    {say(`{"issuer": "http://lms.school", "registration_endpoint": "http://HOST/r"}`), local, "another host"},
		"an issuer's query": {say(`{"issuer": "http://HOST/?x", "registration_endpoint": "http://HOST/r"}`), local, "without a query"},
		"no issuer":         {say(`{}`), local, "issuer"},
		"no registrations":  {say(`{"issuer": "http://HOST"}`), local, "no registration_endpoint"},
		"too much":          {say(strings.Repeat(" ", largest+1)), local, "more than 256 KiB"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.2/", http.StatusFound)
		}, local, "redirects"},
		"this machine":        {func(http.ResponseWriter, *http.Request) { t.Error("a private address was called") }, egress.New(egress.Config{AllowHTTP: true}), "not a public address"},
		"without TLS":         {func(http.ResponseWriter, *http.Request) { t.Error("an address without TLS was called") }, egress.New(egress.Config{}), "only https"},
		"a header of a MB":    {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }, local, "cannot be reached"},
		"its client's shape":  {say(`{"issuer": "http://HOST", "registration_endpoint": "http://HOST/r", "client_id": 7}`), local, "no client_id"},
		"no client":           {say(`{"issuer": "http://HOST", "registration_endpoint": "http://HOST/r"}`), local, "no client_id"},
		"a private endpoint":  {say(`{"issuer": "http://HOST", "registration_endpoint": "http://169.254.169.254/r"}`), local, "not a public address"},
		"an endpoint of ours": {say(`{"issuer": "http://HOST", "registration_endpoint": "file:///etc/passwd"}`), local, "openid_configuration"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(c.answer)
			defer server.Close()
			client := New(c.policy)
			conf, err := client.Configuration(t.Context(), server.URL)
			if err == nil {
				_, err = client.Register(t.Context(), conf, "token", "North", lms.NewTool("https://registrar.example", "north"))
			}
			check.Equal(check.Now(t), "kind", fault.KindOf(err), fault.Invalid, "%v", err)
			check.Contains(t, "the fault", err.Error(), c.want, "")
		})
	}
}

// Whatever an LMS says of itself is of its own host, or refused.
func FuzzConfiguration(f *testing.F) {
	f.Add(`{"issuer": "https://lms.school", "registration_endpoint": "https://lms.school/r", "jwks_uri": null}`, "https://lms.school/x")
	f.Add(`{"issuer": "https://lms.school@evil.example"}`, "https://lms.school/x")
	f.Fuzz(func(t *testing.T, text, address string) {
		c, err := readConfiguration([]byte(text), address)
		if err != nil {
			check.Equal(t, "kind", fault.KindOf(err), fault.Invalid, "%v", err)
			return
		}
		issuer, err := url.Parse(c.Issuer)
		check.NoError(check.Now(t), err, "%q", c.Issuer)
		at, err := url.Parse(address)
		check.NoError(check.Now(t), err, "%q", address)
		check.True(t, "the host is the address's", issuer.Host != "" && strings.EqualFold(issuer.Host, at.Host) && issuer.User == nil, "%q %q", c.Issuer, address)
	})
}

// Whatever an LMS answers makes a registration that waits, of the LMS that was asked, or none.
func FuzzClient(f *testing.F) {
	f.Add(`{"client_id": "1", "https://purl.imsglobal.org/spec/lti-tool-configuration": {"deployment_id": "1:a"}}`)
	f.Add(`{"client_id": "1", "issuer": "https://other.school", "https://purl.imsglobal.org/spec/lti-tool-configuration": []}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := readClient([]byte(text), Configuration{Issuer: "https://lms.school"})
		if err != nil {
			check.Equal(t, "kind", fault.KindOf(err), fault.Invalid, "%v", err)
			return
		}
		check.True(t, "it waits", r.Waiting && r.ClientID != "" && r.Issuer == "https://lms.school" && len(r.Deployments) <= 1, "%q", text)
	})
}
