package egress

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Published reads the addresses that deliveries come from, as receivers put them on their
// allow-lists: addresses and networks, in order and each once.
func Published(texts []string) ([]string, error) {
	networks := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		network, err := parsePublished(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		networks = append(networks, network)
	}
	slices.SortFunc(networks, netip.Prefix.Compare)
	published := make([]string, 0, len(networks))
	for _, network := range slices.Compact(networks) {
		text := network.String()
		if network.IsSingleIP() {
			text = network.Addr().String()
		}
		published = append(published, text)
	}
	return published, nil
}

func parsePublished(text string) (netip.Prefix, error) {
	network, err := netip.ParsePrefix(text)
	if err != nil {
		var a netip.Addr
		if a, err = netip.ParseAddr(text); err == nil {
			network = netip.PrefixFrom(a, a.BitLen())
		}
	}
	a := network.Addr()
	switch {
	case err != nil || a.Zone() != "":
		return network, fmt.Errorf("%q is no address and no network; use such as 203.0.113.7 or 203.0.113.0/28", text)
	case a.Is4In6():
		return network, fmt.Errorf("%s: write an IPv4 address as one", text)
	case network != network.Masked():
		return network, fmt.Errorf("%s has bits beyond its length; the network is %s", text, network.Masked())
	case network.Bits() == 0 || a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast():
		return network, fmt.Errorf("nothing is delivered from %s", text)
	}
	return network, nil
}
