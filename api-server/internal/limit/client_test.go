package limit

import (
	"net/http"
	"net/netip"
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
