package egress_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

func TestCheckURLAcceptsPublicHTTPS(t *testing.T) {
	p := egress.New(egress.Config{})
	for raw, want := range map[string]string{
		"https://Hooks.Example.com/a?b=c":  "https://hooks.example.com/a?b=c",
		" https://hooks.example.com ":      "https://hooks.example.com",
		"https://hooks.example.com:443/":   "https://hooks.example.com:443/",
		"https://hooks.example.com:8443/x": "https://hooks.example.com:8443/x",
		"https://93.184.216.34/":           "https://93.184.216.34/",
	} {
		if got, err := p.CheckURL("url", raw); err != nil || got != want {
			t.Errorf("%q = %q, %v; want %q", raw, got, err, want)
		}
	}
}

func TestCheckURLRefusals(t *testing.T) {
	p := egress.New(egress.Config{})
	for raw, code := range map[string]string{
		"":                                  "invalid_url",
		"hooks.example.com":                 "invalid_url",
		"https://":                          "invalid_url",
		"https:///path":                     "invalid_url",
		"http://hooks.example.com/":         "https_required",
		"ftp://hooks.example.com/":          "https_required",
		"https://a:b@hooks.example.com/":    "credentials_in_url",
		"https://hooks.example.com/#x":      "fragment_in_url",
		"https://hooks.example.com:22/":     "port_not_allowed",
		"https://hooks.example.com:99999/":  "port_not_allowed",
		"https://127.0.0.1/":                "address_not_public",
		"https://10.1.2.3/":                 "address_not_public",
		"https://172.16.0.1/":               "address_not_public",
		"https://192.168.1.1:8443/":         "address_not_public",
		"https://169.254.169.254/latest":    "address_not_public",
		"https://100.64.0.1/":               "address_not_public",
		"https://0.0.0.0/":                  "address_not_public",
		"https://[::1]/":                    "address_not_public",
		"https://[::ffff:127.0.0.1]/":       "address_not_public",
		"https://[64:ff9b::7f00:1]/":        "address_not_public",
		"https://[2002:7f00:1::]/":          "address_not_public",
		"https://[fe80::1]/":                "address_not_public",
		"https://[fd00::1]/":                "address_not_public",
		"https://2130706433/":               "address_not_public",
		"https://0x7f.1/":                   "address_not_public",
		"https://127.1/":                    "address_not_public",
		"https://localhost/":                "address_not_public",
		"https://x.localhost./":             "address_not_public",
		"https://metadata.google.internal/": "address_not_public",
	} {
		_, err := p.CheckURL("url", raw)
		if !fault.Has(err, code) {
			t.Errorf("%q: %v, want %s", raw, err, code)
		}
	}
}

func TestTheDialerRefusesAtDialTime(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	closed := &http.Client{Transport: egress.New(egress.Config{}).Transport(time.Second)}
	if resp, err := closed.Get(server.URL); !errors.Is(err, egress.ErrRefused) {
		if err == nil {
			_ = resp.Body.Close()
		}
		t.Fatalf("err = %v, want refused", err)
	}
	loose := egress.New(egress.Config{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true})
	if !loose.Loosened() {
		t.Fatal("a loosened policy does not say so")
	}
	resp, err := (&http.Client{Transport: loose.Transport(time.Second)}).Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}
