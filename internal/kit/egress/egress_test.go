package egress_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/registrar-dev/registrar/internal/kit/check"
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
		if got, err := p.CheckURL("url", raw); check.NoError(t, err, "%q = %q, %v; want %q", raw, got, err, want) {
			check.Equal(t, "got", got, want, "%q = %q, %v; want %q", raw, got, err, want)
		}
	}
}

// Reference: webhooks#webhook-urls.
// Hosts are those of hostile; these are what else a URL can have.
func TestCheckURLRefusals(t *testing.T) {
	p := egress.New(egress.Config{})
	for raw, code := range map[string]string{
		"":                                 "invalid_url",
		"hooks.example.com":                "invalid_url",
		"https://":                         "invalid_url",
		"https:///path":                    "invalid_url",
		"http://hooks.example.com/":        "https_required",
		"ftp://hooks.example.com/":         "https_required",
		"https://a:b@hooks.example.com/":   "credentials_in_url",
		"https://hooks.example.com/#x":     "fragment_in_url",
		"https://hooks.example.com:22/":    "port_not_allowed",
		"https://hooks.example.com:99999/": "port_not_allowed",
		"https://10.1.2.3/":                "address_not_public",
		"https://192.168.1.1:8443/":        "address_not_public",
		"https://[64:ff9b::7f00:1]/":       "address_not_public",
		"https://[fd00::1]/":               "address_not_public",
		"https://[::ffff:a00:1]/":          "address_not_public",
		"https://198.51.100.1/":            "address_not_public",
		"https://203.0.113.1/":             "address_not_public",
		"https://x.localhost./":            "address_not_public",
		"https://redis.:8443/":             "address_not_public",
	} {
		_, err := p.CheckURL("url", raw)
		if !fault.Has(err, code) {
			t.Errorf("%q: %v, want %s", raw, err, code)
		}
	}
}

func TestNamesOfAClusterLeadIntoAllowedNetworks(t *testing.T) {
	loose := egress.Config{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}}
	// A proxy does not know which addresses are allowed.
	behind := egress.New(loose)
	if err := behind.Through("http://proxy.example:3128"); err != nil {
		t.Fatal(err)
	}
	for _, receiver := range []string{"https://hooks.school.svc.cluster.local:8443/", "https://hooks:8443/"} {
		if _, err := egress.New(egress.Config{}).CheckURL("url", receiver); !fault.Has(err, "address_not_public") {
			t.Errorf("no network is allowed: %v", err)
		}
		if _, err := egress.New(loose).CheckURL("url", receiver); err != nil {
			t.Error(err)
		}
		if _, err := behind.CheckURL("url", receiver); !fault.Has(err, "address_not_public") {
			t.Errorf("through a proxy: %v", err)
		}
	}
}

// The names of a cluster's Services come of its search domains: postgres.data is one of them.
func TestNamesAreLookedUpAsTheyStandUnlessNetworksAreAllowed(t *testing.T) {
	for want, config := range map[string]egress.Config{
		"hooks.north-institute.org.": {},
		"hooks.north-institute.org":  {AllowNetworks: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}},
	} {
		var asked string
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{DNSStart: func(i httptrace.DNSStartInfo) { asked = i.Host }})
		dialer := egress.New(config).Dialer(time.Minute)
		dialer.Resolver = nameServer(t, "192.168.7.7")
		conn, err := dialer.DialContext(ctx, "tcp", "hooks.north-institute.org:443")
		if err == nil {
			_ = conn.Close()
		}
		if check.Equal(t, "asked", asked, want, "looked up %q, want %q; %v", asked, want, err) {
			check.True(t, "the address is refused", errors.Is(err, egress.ErrRefused), "looked up %q, want %q; %v", asked, want, err)
		}
	}
}

func TestTheDialerRefusesAtDialTime(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	closed := &http.Client{Transport: egress.New(egress.Config{}).Transport(time.Minute)}
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
	resp, err := (&http.Client{Transport: loose.Transport(time.Minute)}).Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

func TestEveryAllowedNetworkIsAllowed(t *testing.T) {
	policy := egress.New(egress.Config{AllowNetworks: []netip.Prefix{
		netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("fd01::/64"), netip.MustParsePrefix("fd02::/64")}})
	for address, allowed := range map[string]bool{"10.1.0.9": true, "10.2.0.9": true, "10.3.0.9": false, "[fd01::9]": true, "[fd02::9]": true, "[fd03::9]": false} {
		if _, err := policy.CheckURL("url", "https://"+address+"/"); (err == nil) != allowed {
			t.Errorf("%s: %v, want allowed: %t", address, err, allowed)
		}
	}
}

// nameServer answers every question for an address, each time with the next of answers, and
// then with the last. An answer is one address or several.
func nameServer(t *testing.T, answers ...string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buffer := make([]byte, 1500)
		for asked := 0; ; {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if err := m.Unpack(buffer[:n]); err != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			reply := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
			if q.Type == dnsmessage.TypeA {
				for _, a := range strings.Fields(answers[min(asked, len(answers)-1)]) {
					reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
						Body: &dnsmessage.AResource{A: netip.MustParseAddr(a).As4()}})
				}
				asked++
			}
			if packed, err := reply.Pack(); err == nil {
				_, _ = conn.WriteTo(packed, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func TestANameThatIsReboundIsRefusedWhenItIsDialled(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	// Looked up the first time, the name is public; afterwards it leads to this machine.
	resolver := nameServer(t, "93.184.216.34", "127.0.0.1")
	first, err := resolver.LookupNetIP(t.Context(), "ip4", "rebind.north-institute.org")
	check.NoError(check.Now(t), err, "the first lookup: %v, %v", first, err)
	check.True(check.Now(t), "the address is public", first[0].IsGlobalUnicast(), "the first lookup: %v, %v", first, err)
	policy := egress.New(egress.Config{})
	if _, err := policy.CheckURL("url", "https://rebind.north-institute.org/"); err != nil {
		t.Fatal(err)
	}
	dialer := policy.Dialer(time.Minute)
	dialer.Resolver = resolver
	conn, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort("rebind.north-institute.org", port))
	if !errors.Is(err, egress.ErrRefused) {
		if err == nil {
			_ = conn.Close()
		}
		t.Fatalf("err = %v, want refused", err)
	}
}

func TestAProxyCarriesRequestsAndLiteralAddressesStayRefused(t *testing.T) {
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.Host)
		w.WriteHeader(http.StatusForbidden)
	}))
	defer proxy.Close()
	policy := egress.New(egress.Config{})
	if err := policy.Through(proxy.URL); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: policy.Transport(time.Minute)}
	for url, refused := range map[string]bool{"https://hooks.north-institute.org/": false, "https://169.254.169.254/": true} {
		resp, err := client.Get(url)
		if err == nil {
			_ = resp.Body.Close()
		}
		if check.True(t, "there is an error", err != nil, "%s: %v", url, err) {
			check.Equal(t, "the address is refused", errors.Is(err, egress.ErrRefused), refused, "%s: %v", url, err)
		}
	}
	if check.Equal(t, "number of requests", len(asked), 1, "the proxy was asked for %v", asked) {
		check.Equal(t, "the first request", asked[0], "CONNECT hooks.north-institute.org:443", "the proxy was asked for %v", asked)
	}
	if err := policy.Through("socks5://proxy"); err == nil {
		t.Error("a proxy of another kind is accepted")
	}
	refused := func() error {
		resp, err := client.Get("https://hooks.north-institute.org/")
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	if err := refused(); !errors.Is(err, egress.ErrProxyRefused) {
		t.Errorf("a proxy that says no: %v", err)
	}
	proxy.Close()
	if err := refused(); !errors.Is(err, egress.ErrProxyAway) {
		t.Errorf("a proxy that is away: %v", err)
	}
}

// The public address is one that would be connected to: only the other one is in the way.
func TestANameWithOneAddressThatIsNotAllowedIsRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	policy := egress.New(egress.Config{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, AllowHTTP: true})
	for addresses, allowed := range map[string]bool{"127.0.0.1": true, "127.0.0.1 169.254.169.254": false, "10.0.0.8 127.0.0.1": false} {
		dialer := policy.Dialer(time.Minute)
		dialer.Resolver = nameServer(t, addresses)
		conn, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort("half.north-institute.org", port))
		if err == nil {
			_ = conn.Close()
		}
		if allowed {
			check.NoError(t, err, "%s", addresses)
		} else {
			check.True(t, "the connection is refused", errors.Is(err, egress.ErrRefused), "%s: %v", addresses, err)
		}
	}
}

// A server whose certificate nobody public has signed is called once its authority is known.
func TestAuthorities(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	var c egress.Config
	c.AllowNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	get := func() error {
		transport := egress.New(c).Transport(time.Second)
		defer transport.CloseIdleConnections()
		res, err := egress.Client(transport, 10*time.Second).Get(server.URL)
		if err == nil {
			_ = res.Body.Close()
		}
		return err
	}
	check.Equal(t, "unknown", egress.FailureOf(get()), egress.BadCertificate, "")
	check.True(t, "a file that is not there", c.CAFile.UnmarshalText([]byte(file)) != nil, "")
	check.NoError(t, os.WriteFile(file, []byte("nothing"), 0o600), "")
	check.Contains(t, "a file without any", fmt.Sprint(c.CAFile.UnmarshalText([]byte(file))), "holds no certificate in PEM", "")
	c.CAFile = authorityOf(t, server)
	check.NoError(t, get(), "known")
}

// authorityOf is the private authority that has signed the server's certificate.
func authorityOf(t *testing.T, server *httptest.Server) (a egress.Authorities) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	check.NoError(check.Now(t), os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600), "")
	check.NoError(check.Now(t), a.UnmarshalText([]byte(file)), "")
	return a
}

// The way to the proxy is encrypted, and the receivers' TLS goes through it. A private authority has signed both certificates.
func TestAProxyAtHTTPS(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) }))
	defer receiver.Close()
	proxy := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { tunnel(t, w, r, receiver.Listener.Addr().String()) }))
	defer proxy.Close()
	get := func(c egress.Config) (string, error) {
		policy := egress.New(c)
		check.NoError(check.Now(t), policy.Through(proxy.URL), "")
		transport := policy.Transport(time.Minute)
		defer transport.CloseIdleConnections()
		res, err := egress.Client(transport, time.Minute).Get("https://hooks.example.com/")
		if err != nil {
			return "", err
		}
		body, err := io.ReadAll(res.Body)
		return string(body), errors.Join(err, res.Body.Close())
	}
	_, err := get(egress.Config{})
	check.True(t, "a proxy whose certificate nobody known has signed cannot be reached", errors.Is(err, egress.ErrProxyAway), "%v", err)
	got, err := get(egress.Config{CAFile: authorityOf(t, proxy)})
	check.NoError(t, err, "")
	check.Equal(t, "the host that the receiver was asked for", got, "hooks.example.com", "")
	proxy.Close()
	_, err = get(egress.Config{CAFile: authorityOf(t, receiver)})
	check.True(t, "a proxy that is gone cannot be reached", errors.Is(err, egress.ErrProxyAway), "%v", err)
}

// tunnel answers a CONNECT, whatever name it has, with the way to an address.
func tunnel(t *testing.T, w http.ResponseWriter, r *http.Request, to string) {
	t.Helper()
	if r.Method != http.MethodConnect {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	there, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusOK)
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(errors.Join(err, there.Close()))
		return
	}
	go func() {
		_, _ = io.Copy(there, buffered) // the server may have read the first byte already
		_ = there.Close()
	}()
	go func() {
		_, _ = io.Copy(here, there)
		_ = here.Close()
	}()
}
