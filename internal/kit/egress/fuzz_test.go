package egress_test

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/egress"
)

// What is accepted is a plain https URL that is accepted again as it is, and no private address.
func FuzzCheckURL(f *testing.F) {
	for _, s := range []string{"", "https://hooks.example.com/a?b=c", " HTTPS://Hooks.Example.com:443/ ", "http://hooks.example.com/", "https://a:b@hooks.example.com/", "https://hooks.example.com/#x",
		"https://127.0.0.1/", "https://[::ffff:10.0.0.1]/", "https://2130706433/", "https://0x7f.1/", "https://[fe80::1%25eth0]/", "https://localhost./", "https://hooks.example.com:022/",
		"https://metadata.google.internal/", "https://1.1.1.1:8443/x?y#", "https://ex%61mple.com/", "https://ünïcode.example/", "//x", "https:opaque", "https://[::1"} {
		f.Add(s)
	}
	f.Add("https://" + strings.Repeat("\xf5", 500)) // what it becomes is too long
	p := egress.New(egress.Config{})
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := p.CheckURL("url", raw)
		if err != nil {
			return
		}
		u, err := url.Parse(got)
		check.NoError(check.Now(t), err, "%q becomes %q: %v", raw, got, err)
		check.Equal(check.Now(t), "u.Scheme", u.Scheme, "https", "%q becomes %q: %v", raw, got, err)
		check.True(check.Now(t), "there is a host", u.Hostname() != "", "%q becomes %q: %v", raw, got, err)
		check.True(check.Now(t), "there is no user", u.User == nil, "%q becomes %q: %v", raw, got, err)
		check.Equal(check.Now(t), "u.Fragment", u.Fragment, "", "%q becomes %q: %v", raw, got, err)
		if a, err := netip.ParseAddr(u.Hostname()); err == nil {
			if a = a.Unmap().WithZone(""); check.False(t, "the address is private", a.IsPrivate(), "%q is accepted", raw) &&
				check.False(t, "the address is of this machine", a.IsLoopback(), "%q is accepted", raw) &&
				check.False(t, "the address is of this link", a.IsLinkLocalUnicast(), "%q is accepted", raw) &&
				check.False(t, "the address is for many", a.IsMulticast(), "%q is accepted", raw) {
				check.False(t, "the address is unspecified", a.IsUnspecified(), "%q is accepted", raw)
			}
		}
		if again, err := p.CheckURL("url", got); check.NoError(t, err, "%q becomes %q and then %q, %v", raw, got, again, err) {
			check.Equal(t, "again", again, got, "%q becomes %q and then %q, %v", raw, got, again, err)
		}
	})
}
