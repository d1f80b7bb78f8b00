// Package network reads the networks that people write into settings.
package network

import (
	"fmt"
	"net/netip"
)

// Parse reads an address, which is a network of one, or a network in CIDR notation. IPv4 is
// accepted only as such, and a network only without bits beyond its length: both are more often a
// mistake than meant.
func Parse(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		var a netip.Addr
		if a, err = netip.ParseAddr(text); err == nil && a.Zone() == "" {
			p = netip.PrefixFrom(a, a.BitLen())
		}
	}
	switch {
	case err != nil || !p.IsValid():
		return netip.Prefix{}, fmt.Errorf("%.100q is no address and no network; use such as 203.0.113.7 or 203.0.113.0/28", text)
	case p.Addr().Is4In6():
		return netip.Prefix{}, fmt.Errorf("%s: write an IPv4 address as one", text)
	case p != p.Masked():
		return netip.Prefix{}, fmt.Errorf("%s has bits beyond its length; the network is %s", text, p.Masked())
	case p.Bits() == 0:
		return netip.Prefix{}, fmt.Errorf("%s is every address", text)
	}
	return p, nil
}

// Text writes a network as Parse reads it; one of a single address as that address.
func Text(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}
