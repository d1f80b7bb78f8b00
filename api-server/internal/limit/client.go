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
func (p Proxies) Client(r *http.Request) string { return network(p.host(r)) }

// Address is the address of Client itself; invalid where a proxy sent something else.
func (p Proxies) Address(r *http.Request) netip.Addr {
	a, err := address(p.host(r))
	if err != nil {
		return netip.Addr{}
	}
	return a
}

func (p Proxies) host(r *http.Request) string {
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
	return host
}

func (p Proxies) contain(host string) bool {
	a, err := address(host)
	return err == nil && slices.ContainsFunc(p, func(n netip.Prefix) bool { return n.Contains(a) })
}

// unreadable are all addresses that are none, as one: who may write them could have any number, and
// of any length.
const unreadable = "unknown"

// network stands for all addresses that one caller can easily have: a /64 of IPv6.
func network(host string) string {
	a, err := address(host)
	if err != nil {
		return unreadable
	}
	if a.Is4() {
		return a.String()
	}
	n, err := a.Prefix(64)
	if err != nil {
		return unreadable
	}
	return n.String()
}

// address reads an address in the one form that it has: some proxies write its port behind it, and
// IPv4 may be written as IPv6.
func address(host string) (netip.Addr, error) {
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		var withPort netip.AddrPort
		if withPort, err = netip.ParseAddrPort(host); err != nil {
			return netip.Addr{}, err
		}
		a = withPort.Addr()
	}
	return a.WithZone("").Unmap(), nil
}
