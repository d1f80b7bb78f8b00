package network_test

import (
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/network"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"203.0.113.7": "203.0.113.7", "203.0.113.7/32": "203.0.113.7", "10.0.0.0/8": "10.0.0.0/8",
		"2001:DB8::1": "2001:db8::1", "2001:db8:0::/48": "2001:db8::/48", "127.0.0.1": "127.0.0.1"} {
		p, err := network.Parse(text)
		if check.NoError(t, err, "%s", text) {
			check.Equal(t, "the network", network.Text(p), want, "%s", text)
		}
	}
	for _, text := range []string{"", " 203.0.113.7", "hooks.example.org", "203.0.113.7:443", "203.0.113.256", "203.0.113.0/33", "203.0.113.7/28",
		"203.0.113.00", "203.0.113.0/08", "fe80::1%eth0", "fe80::%eth0/64", "::ffff:203.0.113.7", "::ffff:203.0.113.0/120", "0.0.0.0/0", "::/0"} {
		p, err := network.Parse(text)
		check.True(t, "it is refused", err != nil, "%q: %v", text, p)
	}
}

// What is accepted is read again as the same, and holds what it names.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "203.0.113.7", "10.0.0.0/8", "::/1", "2001:db8::/48", "fe80::1%eth0", "::ffff:10.0.0.1/128", "1.2.3.4/", "/8", "٣.0.0.0/8"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := network.Parse(text)
		if err != nil {
			return
		}
		again, err := network.Parse(network.Text(p))
		check.NoError(check.Now(t), err, "%q becomes %s", text, p)
		check.Equal(t, "the network", again, p, "%q becomes %s", text, network.Text(p))
		check.True(t, "it is some addresses and not all", p.IsValid() && p.Bits() > 0 && p.Contains(p.Addr()), "%q becomes %s", text, p)
	})
}
