package egress

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/registrar-dev/registrar/internal/kit/network"
)

// Published reads the addresses that deliveries come from, as receivers put them on their
// allow-lists: addresses and networks, in order and each once.
func Published(texts []string) ([]string, error) {
	networks := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		p, err := parsePublished(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		networks = append(networks, p)
	}
	slices.SortFunc(networks, netip.Prefix.Compare)
	published := make([]string, 0, len(networks))
	for _, p := range slices.Compact(networks) {
		published = append(published, network.Text(p))
	}
	return published, nil
}

func parsePublished(text string) (netip.Prefix, error) {
	p, err := network.Parse(text)
	if a := p.Addr(); err == nil && (a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast()) {
		return p, fmt.Errorf("nothing is delivered from %s", text)
	}
	return p, err
}
