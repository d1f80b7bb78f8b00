package id_test

import (
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Whatever is taken for an id is written again as it came, but for the case of its digits.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "evt_", "dlv_", "evt_01a1fe95bc757c30b7fbfd4e5bd65e1f", "dlv_01A1FE95BC757C30B7FBFD4E5BD65E1F", "evt_01a1fe95-bc75-7c30-b7fb-fd4e5bd65e1f",
		"dlv_{1a1fe95bc757c30b7fbfd4e5bd65e1f", "01a1fe95bc757c30b7fbfd4e5bd65e1f", "evt_0000000000000000000000000000000g", "evt_urn:uuid:1a1fe95bc757c30b7fbfd4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := id.ParseDelivery(text); err == nil {
			check.Equal(t, "the id written again", d.String(), strings.ToLower(text), "%q", text)
		}
	})
}
