package egress_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// hostile are hosts that lead, or may lead, into the network of whoever calls them.
var hostile = []string{
	// This machine and its networks.
	"127.0.0.1", "127.1.2.3", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255",
	"192.168.0.1", "192.168.255.255", "100.64.0.1", "100.127.255.255", "169.254.0.1", "192.0.0.1", "192.0.0.8", "192.0.2.1",
	"192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.250", "240.0.0.1",
	"255.255.255.255", "[::]", "[::1]", "[fe80::1]", "[fec0::1]", "[fc00::1]", "[fdff::1]", "[ff02::1]", "[ff05::2]", "[100::1]",
	"[2001:db8::1]", "[2001:2::1]", "[3fff::1]",
	// IPv4 within IPv6.
	"[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[::127.0.0.1]", "[::7f00:1]",
	"[64:ff9b::127.0.0.1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::a00:1]", "[2002:7f00:1::]", "[2002:a9fe:a9fe::1]", "[2001::7f00:1]",
	"[::ffff:0:127.0.0.1]",
	// Services that clouds have for their machines.
	"169.254.169.254", "169.254.169.253", "169.254.169.123", "169.254.170.2", "169.254.170.23", "169.254.0.23", "169.254.42.42",
	"168.63.129.16", "100.100.100.200", "192.0.0.192", "161.26.0.10", "166.9.14.9", "[fd00:ec2::254]", "[fd00:ec2::23]",
	"[fd20:ce::254]", "[fd00:42::42]", "[::ffff:168.63.129.16]", "metadata.google.internal", "metadata.google.internal.",
	"metadata", "instance-data.ec2.internal", "api.metadata.cloud.internal",
	// Numbers in other clothes.
	"2130706433", "017700000001", "0x7f000001", "0x7f.1", "127.1", "127.0.1", "0177.0.0.1", "0x7f.0x0.0x0.0x1", "127.0.0.1.",
	"3232235521", "0", "127.0.0.1..", "0..", "localhost..", ".localhost", "metadata.google.internal..", "127..1",
	// Names that only a resolver near the caller knows.
	"localhost", "localhost.", "LOCALHOST", "api.localhost", "redis", "redis.", "kubernetes", "printer.local", "vault.internal",
	"db.svc.cluster.local",
	// Signs that stand for digits, letters and dots.
	"①⑥⑨.②⑤④.①⑥⑨.②⑤④", "１２７.０.０.１", "127。0。0。1", "127．0．0．1", "127｡0｡0｡1", "¹²⁷.⁰.⁰.¹", "①②⑦.1", "𝟏𝟐𝟕.𝟎.𝟎.𝟏",
	"ｌｏｃａｌｈｏｓｔ", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "local\u00adhost", "LOCALHOſT", "metadata.google.ⓘnternal", "０x7f.１",
}

// Directly or through a proxy, when a URL is added and when it is called: the same hosts are refused.
func TestTheSameHostsAreRefusedDirectlyAndThroughAProxy(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	trap := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer trap.Close()
	direct, proxied := egress.New(egress.Config{}), egress.New(egress.Config{})
	check.NoError(check.Now(t), proxied.Through(trap.URL), "the trap as a proxy")
	resolver := nameServer(t, "127.0.0.1") // knows every name
	dialer := direct.Dialer(time.Minute)
	dialer.Resolver = resolver
	ways := map[string]*http.Client{
		"directly":        {Transport: &http.Transport{DialContext: dialer.DialContext}},
		"through a proxy": {Transport: proxied.Transport(time.Minute)},
	}
	_, port, err := net.SplitHostPort(trap.Listener.Addr().String())
	check.NoError(check.Now(t), err, "the trap's port")
	for _, host := range hostile {
		for name, p := range map[string]*egress.Policy{"direct": direct, "proxied": proxied} {
			_, err := p.CheckURL("url", "https://"+host+"/")
			check.True(t, "refused as not public", fault.Has(err, "address_not_public"), "%s, %s: %v", host, name, err)
		}
		for way, client := range ways {
			resp, err := client.Get("http://" + host + ":" + port + "/")
			if err == nil {
				_ = resp.Body.Close()
			}
			check.True(t, "the call is refused", errors.Is(err, egress.ErrRefused), "%s, %s: %v", host, way, err)
		}
	}
	check.True(t, "at least 100 hosts", len(hostile) >= 100, "%d", len(hostile))
	check.Equal(t, "requests that arrived", reached.Load(), 0, "hosts %q", hostile)
}

func TestANameInAnotherScriptIsKeptAsItIsAskedFor(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://schüler.example.org/a":        "https://xn--schler-5ya.example.org/a",
		"https://Ｈooks.example.org:8443/":      "https://hooks.example.org:8443/",
		"https://hooks。example。org/":           "https://hooks.example.org/",
		"https://xn--schler-5ya.example.org/":  "https://xn--schler-5ya.example.org/",
		"https://hooks_1.example.org/":         "https://hooks_1.example.org/",
		"https://例え.example.org:443/?q=%E4%BE": "https://xn--r8jz45g.example.org:443/?q=%E4%BE",
	} {
		got, err := egress.New(egress.Config{}).CheckURL("url", raw)
		check.NoError(t, err, "%s", raw)
		check.Equal(t, "the URL", got, want, "%s", raw)
	}
}
