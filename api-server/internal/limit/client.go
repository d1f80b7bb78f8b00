package limit

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the networks of our own proxies, whose X-Forwarded-For is believed.
type Proxies []netip.Prefix

// Client is the address that the request came from: the connection's, or behind our own
// proxies the last one in X-Forwarded-For that is not theirs.
func (p Proxies) Client(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		hop = strings.TrimSpace(hop)
		if hop == "" || !p.contain(host) {
			break
		}
		host = hop
	}
	return network(host)
}

func (p Proxies) contain(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && slices.ContainsFunc(p, func(n netip.Prefix) bool { return n.Contains(a.Unmap()) })
}

// network stands for all addresses that one caller can easily have: a /64 of IPv6.
func network(host string) string {
	a, err := netip.ParseAddr(host)
	if err != nil || a.Unmap().Is4() {
		return host
	}
	n, err := a.WithZone("").Prefix(64)
	if err != nil {
		return host
	}
	return n.String()
}
