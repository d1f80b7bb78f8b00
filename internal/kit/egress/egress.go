// Package egress decides which addresses Registrar may call on behalf of others.
//
// A receiver URL is chosen by a customer, so it must not become a way into the network
// that Registrar runs in. The decision is made on the resolved address at dial time, on
// every connection: a name that was public when the URL was added may not be later.
package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
	"golang.org/x/net/idna"

	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// Config is part of the configuration of the programs that take or call receiver URLs.
type Config struct {
	AllowNetworks []netip.Prefix `env:"WEBHOOK_ALLOW_NETWORKS" help:"networks (CIDR, comma-separated) that receivers may be in though they are not public"`
	AllowHTTP     bool           `env:"WEBHOOK_ALLOW_HTTP" help:"accept http:// receivers; for local use alone"`
	CAFile        Authorities    `env:"WEBHOOK_CA_FILE" help:"PEM file of certificate authorities of receivers, LMSes and the proxy, to trust beside the system's"`
}

// Authorities are who signs certificates that are trusted; the zero value is the system's.
type Authorities struct{ pool *x509.CertPool }

// UnmarshalText reads them from the PEM file of this name, beside the system's.
func (a *Authorities) UnmarshalText(file []byte) error {
	text, err := os.ReadFile(string(file))
	if err != nil {
		return err
	}
	if a.pool, err = x509.SystemCertPool(); err != nil {
		a.pool = x509.NewCertPool()
	}
	if !a.pool.AppendCertsFromPEM(text) {
		return fmt.Errorf("%s holds no certificate in PEM", file)
	}
	return nil
}

// Policy says which URLs and addresses are allowed.
type Policy struct {
	guard     *ssrf.Guardian
	allowHTTP bool
	networks  bool           // some are allowed that are not public
	proxy     *url.URL       // nil: receivers are called directly
	roots     *x509.CertPool // nil: the system's
}

// New makes the policy. The zero Config allows public https addresses alone.
func New(c Config) *Policy {
	var v4, v6 []netip.Prefix // together: each option replaces what one like it said before
	for _, p := range c.AllowNetworks {
		if p.Addr().Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}
	guard := ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...),
		ssrf.WithDeniedV4Prefixes(ofTheCloud...))
	return &Policy{guard: guard, allowHTTP: c.AllowHTTP, networks: len(c.AllowNetworks) > 0, roots: c.CAFile.pool}
}

// ofTheCloud are addresses that look public and reach the provider's own services from its machines.
// The metadata addresses of the others (169.254.0.0/16, 100.100.100.200, 192.0.0.192, fd00:ec2::254,
// fd20:ce::254) are in ranges that are never public.
var ofTheCloud = []netip.Prefix{
	netip.MustParsePrefix("168.63.129.16/32"), // Azure: machine agent, DNS, health
	netip.MustParsePrefix("161.26.0.0/16"),    // IBM Cloud: services of the platform
	netip.MustParsePrefix("166.8.0.0/14"),     // IBM Cloud: endpoints of services
}

// Loosened says whether the policy allows more than public https addresses, for a
// warning at start.
func (p *Policy) Loosened() bool { return p.allowHTTP || p.networks }

// ErrRefused marks a connection that the policy did not allow.
var ErrRefused = errors.New("the address is not public")

// Dialer checks every address that a name resolves to, on every connection, and connects to
// none of them unless all are allowed: a name that is half inside has no business outside.
type Dialer struct {
	net.Dialer
	policy *Policy
}

// Dialer makes a dialer that gives up on a connection after timeout.
func (p *Policy) Dialer(timeout time.Duration) *Dialer {
	return &Dialer{policy: p, Dialer: net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second, ControlContext: p.control}}
}

// lookup is what a connection's name resolved to that is not allowed.
type lookup struct{ refused error }

type lookupKey struct{}

// DialContext is net.Dialer's, with ErrRefused for what the policy does not allow.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if err := d.policy.checkHost(host); err != nil {
		return nil, err
	}
	found := new(lookup)
	if !d.policy.networks {
		host = rooted(host)
	}
	ctx = httptrace.WithClientTrace(context.WithValue(ctx, lookupKey{}, found), &httptrace.ClientTrace{
		DNSDone: func(done httptrace.DNSDoneInfo) { found.refused = d.policy.checkAll(done.Addrs) },
	})
	return d.Dialer.DialContext(ctx, network, net.JoinHostPort(host, port))
}

// rooted keeps the resolver from trying a name with the search domains of the network that
// we are in, which turn customers' names into those of its services.
func rooted(host string) string {
	if _, err := netip.ParseAddr(host); err == nil || strings.HasSuffix(host, ".") {
		return host
	}
	return host + "."
}

func (p *Policy) checkAll(resolved []net.IPAddr) error {
	for _, r := range resolved {
		a, ok := netip.AddrFromSlice(r.IP)
		if !ok {
			return fmt.Errorf("%w: %s", ErrRefused, r.IP)
		}
		if err := p.checkAddr(a); err != nil {
			return err
		}
	}
	return nil
}

func (p *Policy) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	if found, ok := ctx.Value(lookupKey{}).(*lookup); ok && found.refused != nil {
		return found.refused
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s", ErrRefused, address)
	}
	return p.checkAddr(at.Addr())
}

func (p *Policy) checkAddr(a netip.Addr) error {
	// An IPv4 address in IPv6 clothes is judged as what it reaches.
	if err := p.guard.SafeAddr(a.WithZone("").Unmap()); err != nil {
		return fmt.Errorf("%w: %s", ErrRefused, a)
	}
	return nil
}

// Through makes transports call receivers over the HTTP proxy at raw ("" for none). The
// proxy sees the names and looks them up, so it has to guard the addresses; literal ones
// are still refused here.
func (p *Policy) Through(raw string) error {
	if raw == "" {
		return nil
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return errors.New("the proxy has to be an http:// or https:// address")
	}
	p.proxy = u
	return nil
}

// Proxied says whether transports call receivers over a proxy.
func (p *Policy) Proxied() bool { return p.proxy != nil }

// ErrProxyAway marks a request that did not get as far as the proxy of Through, and
// ErrProxyRefused one whose way to the receiver the proxy did not open.
var (
	ErrProxyAway    = errors.New("the proxy cannot be reached")
	ErrProxyRefused = errors.New("the proxy did not open the connection")
)

// Transport is an http.Transport that only reaches what the policy allows, never through
// a proxy of the environment. A proxy of its own has to take a connection in half of
// dialTimeout, so that its silence is not taken for the receiver's.
func (p *Policy) Transport(dialTimeout time.Duration) *http.Transport {
	secure := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: p.roots}
	if p.proxy == nil {
		return &http.Transport{Proxy: nil, DialContext: p.Dialer(dialTimeout).DialContext, TLSClientConfig: secure}
	}
	dialer := &net.Dialer{Timeout: dialTimeout / 2, KeepAlive: 30 * time.Second}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrProxyAway, err)
		}
		return conn, nil
	}
	return &http.Transport{
		TLSClientConfig: secure,
		Proxy:           func(r *http.Request) (*url.URL, error) { return p.proxy, p.checkHost(r.URL.Hostname()) },
		DialContext:     dial,
		// Of a proxy at https://: the receivers' TLS is inside what it carries.
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTimeout/2)
			defer cancel()
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			over := tls.Client(conn, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: p.roots, ServerName: p.proxy.Hostname()})
			if err := over.HandshakeContext(ctx); err != nil {
				return nil, errors.Join(fmt.Errorf("%w: %w", ErrProxyAway, err), conn.Close())
			}
			return over, nil
		},
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
			if answer.StatusCode != http.StatusOK {
				return fmt.Errorf("%w: it answered %s", ErrProxyRefused, answer.Status)
			}
			return nil
		},
	}
}

// longest is a receiver URL's length in bytes, as it was sent and as it is kept.
const (
	longest = 2000
	tooLong = "longer than 2,000 characters"
)

// CheckURL judges what can be judged of a receiver URL without calling it: form, scheme,
// port and a literal address. It returns the normalised text. Faults are Invalid, on
// field.
func (p *Policy) CheckURL(field, raw string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	refuse := func(code, format string, args ...any) (string, error) {
		return "", fault.Field(field, code, field+": "+format, args...)
	}
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return refuse("invalid_url", "not an absolute URL; send one such as https://hooks.example.com/registrar")
	case len(raw) > longest:
		return refuse("invalid_url", tooLong)
	case u.Scheme != "https" && (u.Scheme != "http" || !p.allowHTTP):
		return refuse("https_required", "only https:// addresses are accepted")
	case u.User != nil:
		return refuse("credentials_in_url", "a user name or password in the URL is not accepted; check the request's signature instead")
	case u.Fragment != "" || strings.HasSuffix(raw, "#"):
		return refuse("fragment_in_url", "a fragment (#…) never reaches the server; leave it out")
	}
	if err := checkPort(u); err != nil {
		return refuse("port_not_allowed", "%v", err)
	}
	if err := toASCII(u); err != nil {
		return refuse("invalid_url", "%s is no name of a host: %v", u.Hostname(), err)
	}
	if err := p.checkHost(u.Hostname()); err != nil {
		return refuse("address_not_public", "%s is not a public address; use one such as hooks.example.com", u.Hostname())
	}
	u.Host = strings.ToLower(u.Host)
	text := u.String()
	if len(text) > longest { // characters beyond ASCII take up more room
		return refuse("invalid_url", tooLong)
	}
	return text, nil
}

func checkPort(u *url.URL) error {
	if u.Port() == "" {
		return nil
	}
	var port int
	if _, err := fmt.Sscanf(u.Port(), "%d", &port); err != nil || port > 65535 || (port != 443 && port < 1024 && (u.Scheme != "http" || port != 80)) {
		return fmt.Errorf("port %s is not allowed; use 443 or one from 1024 to 65535", u.Port())
	}
	return nil
}

// toASCII writes the host of u as DNS and a proxy are asked for it.
func toASCII(u *url.URL) error {
	host, err := ascii(u.Hostname())
	if err != nil || host == u.Hostname() {
		return err
	}
	if port := u.Port(); port != "" {
		host = net.JoinHostPort(host, port)
	}
	u.Host = host
	return nil
}

// ascii is the name that net/http asks for when it is given host (UTS 46): names in other scripts in
// Punycode, and characters that stand for digits, letters and dots as what they stand for.
func ascii(host string) (string, error) {
	for i := range len(host) {
		if host[i] >= 0x80 {
			return idna.Lookup.ToASCII(host)
		}
	}
	return host, nil
}

// checkHost refuses literal private addresses, in every form that a resolver would
// take for one, and names that can only be local: but where networks are allowed that are not
// public, names of a cluster's Services lead into them, and the dialer judges the address.
func (p *Policy) checkHost(host string) error {
	host, err := ascii(host)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return p.checkAddr(a)
	}
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	if strings.Contains("."+name+".", "..") {
		return fmt.Errorf("%w: %s", ErrRefused, name) // resolvers differ on what 127.0.0.1.. is
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return p.checkAddr(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	}
	if last := name[strings.LastIndexByte(name, '.')+1:]; last != "" && strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return fmt.Errorf("%w: %s", ErrRefused, name) // 2130706433, 0x7f.1, 127.1: numbers in disguise
	}
	local := !strings.Contains(name, ".") || strings.HasSuffix(name, ".internal") || strings.HasSuffix(name, ".local")
	if local && (!p.networks || p.proxy != nil) {
		return fmt.Errorf("%w: %s", ErrRefused, name)
	}
	return nil
}
