package provider

import (
	"errors"
	"net"
	"strings"

	"golang.org/x/net/idna"

	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// parseDomain is a domain as addresses have it: in small letters, in Punycode. Invalid on domain, also for
// those that everybody gets addresses at.
func parseDomain(text string) (string, error) {
	domain, err := idna.Lookup.ToASCII(strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "@"), ".")))
	if err != nil || !strings.Contains(domain, ".") || len(domain) > 253 || strings.ContainsAny(domain, "@ /:") || net.ParseIP(domain) != nil {
		return "", fault.Field("domain", "invalid", "domain: send one such as institute.org")
	}
	return domain, nil
}

func asDNS(err error, into **net.DNSError) bool { return errors.As(err, into) }
