package egress_test

import (
	"net/netip"
	"net/url"
	"slices"
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

// However a host is written, what is accepted is a public name in ASCII, and the same written in wide
// characters, which resolvers and proxies are asked for in ASCII, is that name too or is refused.
func FuzzHost(f *testing.F) {
	for _, host := range hostile {
		f.Add(host)
	}
	for _, host := range []string{"hooks.example.com", "schüler.example.org", "xn--schler-5ya.example.org", "hooks.example.com.", "a..b", ".", "1.1.1.1", "[2606:4700::1]", "x.0x", "a.127"} {
		f.Add(host)
	}
	p := egress.New(egress.Config{})
	accepted := func(host string) (string, bool) {
		text, err := p.CheckURL("url", "https://"+host+"/")
		if err != nil {
			return "", false
		}
		u, err := url.Parse(text)
		return u.Hostname(), err == nil && u.Path == "/" && u.RawQuery == ""
	}
	f.Fuzz(func(t *testing.T, host string) {
		name, ok := accepted(host)
		if !ok {
			return
		}
		if slices.Contains(hostile, host) {
			t.Errorf("%q is accepted", host)
		}
		if strings.IndexFunc(name, func(r rune) bool { return r >= 0x80 }) >= 0 {
			t.Errorf("%q is asked for as %q", host, name)
		}
		if _, err := netip.ParseAddr(name); err == nil {
			return // judged by FuzzCheckURL
		}
		labels := strings.Split(strings.TrimSuffix(name, "."), ".")
		last := labels[len(labels)-1]
		if len(labels) < 2 || slices.Contains([]string{"localhost", "internal", "local"}, last) || strings.Trim(last, "0123456789") == "" {
			t.Errorf("%q is accepted as %q, which only this network knows", host, name)
		}
		wide := strings.Map(func(r rune) rune {
			if r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' {
				return r - ' ' + '\uff00'
			}
			return r
		}, name)
		if again, ok := accepted(wide); ok && again != name {
			t.Errorf("%q is %q, and written wide %q", host, name, again)
		}
	})
}
