package email

import "strings"

// Domains are mail domains in lower-case ASCII; each stands for itself and all below it.
type Domains []string

// reserved are the domains that nobody can receive mail at (RFC 2606, RFC 6761), where a
// try would only teach the mail server's neighbours that we send to wrong addresses.
var reserved = Domains{"test", "invalid", "localhost", "example"}

// match gives the domain of the list, or the reserved one, that the address lies in.
func (d Domains) match(address string) (string, bool) {
	host := strings.ToLower(strings.TrimSuffix(address[strings.LastIndexByte(address, '@')+1:], "."))
	if labels := strings.Split(host, "."); len(labels) >= 2 && labels[len(labels)-2] == "example" {
		return strings.Join(labels[len(labels)-2:], "."), true
	}
	for _, list := range []Domains{reserved, d} {
		for _, domain := range list {
			domain = strings.ToLower(strings.Trim(strings.TrimSpace(domain), "."))
			if domain != "" && (host == domain || strings.HasSuffix(host, "."+domain)) {
				return domain, true
			}
		}
	}
	return "", false
}
