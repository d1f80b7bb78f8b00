package egress_test

import (
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/egress"
)

func TestPublishedAddressesAreInOrderAndEachOnce(t *testing.T) {
	t.Parallel()
	got, err := egress.Published([]string{"2001:db8:1::/48", " 203.0.113.7 ", "198.51.100.0/28", "203.0.113.7/32", "10.0.0.9", "2001:DB8::1"})
	check.NoError(check.Now(t), err, "%v", got)
	check.Slices(t, "the addresses", got, []string{"10.0.0.9", "198.51.100.0/28", "203.0.113.7", "2001:db8::1", "2001:db8:1::/48"}, "as receivers read them")
	none, err := egress.Published(nil)
	check.NoError(t, err, "none")
	check.Equal(t, "addresses", len(none), 0, "%v", none)
}

func TestPublishedAddressesThatWillNotDo(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "hooks.example.org", "203.0.113.7:443", "203.0.113.256", "203.0.113.0/33", "203.0.113.7/28", "203.0.113.00", "fe80::1%eth0",
		"::ffff:203.0.113.7", "::ffff:203.0.113.0/120", "0.0.0.0/0", "::/0", "0.0.0.0", "127.0.0.1", "::1", "224.0.0.1", "169.254.0.1"} {
		got, err := egress.Published([]string{"203.0.113.7", text})
		check.True(t, "it is refused", err != nil, "%q: %v", text, got)
	}
}
