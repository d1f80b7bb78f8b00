package limit

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// One caller has one key, however the address is written and whichever of a network's addresses it takes.
func TestClientsAreCountedByTheirNetwork(t *testing.T) {
	t.Parallel()
	proxies := Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for name, c := range map[string]struct{ remote, forwarded, want string }{
		"IPv4":                               {"192.0.2.7:5000", "", "192.0.2.7"},
		"IPv4 written as IPv6":               {"[::ffff:192.0.2.7]:5000", "", "192.0.2.7"},
		"IPv6":                               {"[2001:db8:1:2::7]:5000", "", "2001:db8:1:2::/64"},
		"IPv6, another address of its /64":   {"[2001:db8:1:2:ffff:ffff:ffff:ffff]:5000", "", "2001:db8:1:2::/64"},
		"IPv6, another /64":                  {"[2001:db8:1:3::7]:5000", "", "2001:db8:1:3::/64"},
		"IPv6 with a zone":                   {"[fe80::1%eth0]:5000", "", "fe80::/64"},
		"behind a proxy":                     {"10.1.1.1:5000", "192.0.2.7", "192.0.2.7"},
		"behind a proxy that is IPv6":        {"[fd00::1]:5000", "2001:db8:1:2::9", "2001:db8:1:2::/64"},
		"behind a proxy that writes ports":   {"10.1.1.1:5000", "192.0.2.7:6000", "192.0.2.7"},
		"the same, IPv6":                     {"10.1.1.1:5000", "[2001:db8:1:2::9]:6000", "2001:db8:1:2::/64"},
		"the same, IPv6 in brackets":         {"10.1.1.1:5000", "[2001:db8:1:2::9]", "2001:db8:1:2::/64"},
		"behind a proxy, mapped":             {"[::ffff:10.1.1.1]:5000", "::ffff:192.0.2.7", "192.0.2.7"},
		"behind two proxies":                 {"10.1.1.1:5000", "203.0.113.1, 192.0.2.7, 10.2.2.2", "192.0.2.7"},
		"a stranger who says to be a proxy":  {"192.0.2.7:5000", "203.0.113.1", "192.0.2.7"},
		"what a proxy did not want to say":   {"10.1.1.1:5000", "unknown", "unknown"},
		"what is no address":                 {"10.1.1.1:5000", "_hidden:x; DROP", "unknown"},
		"what is very long":                  {"10.1.1.1:5000", strings.Repeat("9", 10_000), "unknown"},
		"numbers that some read as IPv4":     {"10.1.1.1:5000", "0x7f000001", "unknown"},
		"IPv4 with leading zeros":            {"10.1.1.1:5000", "192.000.002.007", "unknown"},
		"empty hops":                         {"10.1.1.1:5000", ", ,", "10.1.1.1"},
		"a connection that has no port":      {"192.0.2.7", "", "192.0.2.7"},
		"only proxies":                       {"10.1.1.1:5000", "10.3.3.3", "10.3.3.3"},
		"a stranger with an unreadable past": {"10.1.1.1:5000", "x, 192.0.2.7", "192.0.2.7"},
	} {
		r := &http.Request{RemoteAddr: c.remote, Header: http.Header{}}
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		got := proxies.Client(r)
		check.Equal(t, "the client", got, c.want, "%s: got %q, want %q", name, got, c.want)
	}
}

// Whatever a client sends, its address is the one that the last of our own proxies saw.
func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{"", "192.0.2.1", "10.3.3.3", "10.3.3.3, 10.4.4.4", "unknown", ",", " , ,", "[::1]:80", "fe80::1%eth0", "::ffff:10.1.1.1", "0x7f000001",
		"127.1", "192.0.2.1\t", "\"192.0.2.1\"", "for=192.0.2.1;proto=https", "10.1.1.1:99999", "fd00::1", "a,b,c", "1.2.3.4.5", "\u0661.1.1.1"} {
		f.Add(seed)
	}
	proxies := Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	client := func(remote string, forwarded ...string) string {
		return proxies.Client(&http.Request{RemoteAddr: remote, Header: http.Header{"X-Forwarded-For": forwarded}})
	}
	f.Fuzz(func(t *testing.T, sent string) {
		check.Equal(t, "a stranger", client("192.0.2.7:5000", sent), "192.0.2.7", "%q", sent)
		check.Equal(t, "in the proxy's line", client("10.1.1.1:5000", sent+", 192.0.2.7"), "192.0.2.7", "%q", sent)
		check.Equal(t, "in a line before the proxy's", client("10.1.1.1:5000", sent, "192.0.2.7, 10.2.2.2"), "192.0.2.7", "%q", sent)
		got := client("10.1.1.1:5000", sent)
		_, notAddress := netip.ParseAddr(got)
		_, notNetwork := netip.ParsePrefix(got)
		check.True(t, "an address, a network or unknown", got == unreadable || notAddress == nil || notNetwork == nil, "%q gives %q", sent, got)
	})
}
