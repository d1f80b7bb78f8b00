package oauth1

import (
	"net/url"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// Whatever is signed, its own signature verifies, and that of another request does not.
func FuzzVerify(f *testing.F) {
	for _, seed := range [][4]string{
		{"POST", "https://registrar.example/lti/launch/test/7", "oauth_nonce=1&user_id=a b", "secret"},
		{"get", "HTTP://EXAMPLE.com:80", "b5=%3D%253D&a3=a&c%40=&a2=r%20b", "&="},
		{"", "::%", "oauth_signature=x&=", ""},
		{"POST", "https://[::1]:443/%2F?x=1", "a=\x00&a=\xff", "ü"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, method, address, form, secret string) {
		params, err := url.ParseQuery(form)
		if err != nil {
			return
		}
		signature := Sign(method, address, params, secret, "")
		if !Verify(signature, method, address, params, secret, "") {
			t.Fatal("its own signature does not verify")
		}
		params.Add("one_more", "parameter")
		if check.False(t, "it verifies with another secret", Verify(signature, method, address, params, secret, ""), "the signature of another request verifies") {
			check.False(t, "it verifies for another address", Verify(signature, method, address+"x", params, secret, ""), "the signature of another request verifies")
		}
	})
}
