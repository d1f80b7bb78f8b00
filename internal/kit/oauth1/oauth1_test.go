package oauth1

import (
	"net/url"
	"strings"
	"testing"
)

func values(t *testing.T, query string) url.Values {
	t.Helper()
	v, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// OAuth Core 1.0 Revision A, appendix A.5.
func TestTheSpecificationsExample(t *testing.T) {
	t.Parallel()
	params := values(t, "file=vacation.jpg&size=original&oauth_consumer_key=dpf43f3p2l4k3l03&oauth_token=nnch734d00sl2jdk"+
		"&oauth_signature_method=HMAC-SHA1&oauth_timestamp=1191242096&oauth_nonce=kllo9940pd9333jh&oauth_version=1.0")
	const wantBase = "GET&http%3A%2F%2Fphotos.example.net%2Fphotos&file%3Dvacation.jpg%26oauth_consumer_key%3Ddpf43f3p2l4k3l03" +
		"%26oauth_nonce%3Dkllo9940pd9333jh%26oauth_signature_method%3DHMAC-SHA1%26oauth_timestamp%3D1191242096" +
		"%26oauth_token%3Dnnch734d00sl2jdk%26oauth_version%3D1.0%26size%3Doriginal"
	if got := base("get", "http://photos.example.net/photos", params); got != wantBase {
		t.Errorf("base string\n%s, want\n%s", got, wantBase)
	}
	const want = "tR3+Ty81lMeYAr/Fid0kMTYa/WM="
	if got := Sign("GET", "http://photos.example.net/photos", params, "kd94hf93k423kf44", "pfkkdhi9sl3r4s00"); got != want {
		t.Errorf("signature %s, want %s", got, want)
	}
}

// RFC 5849, section 3.4.1.1: repeated names, empty values and characters that need escaping.
func TestTheBaseStringOfRFC5849(t *testing.T) {
	t.Parallel()
	params := values(t, "b5=%3D%253D&a3=a&c%40=&a2=r%20b&c2=&a3=2+q&oauth_consumer_key=9djdj82h48djs9d2&oauth_token=kkk9d7dh3k39sjv7"+
		"&oauth_signature_method=HMAC-SHA1&oauth_timestamp=137131201&oauth_nonce=7d8f3e4a&oauth_signature=bYT5CMsGcbgUdFHObYMEfcx6bsw%3D")
	const want = "POST&http%3A%2F%2Fexample.com%2Frequest&a2%3Dr%2520b%26a3%3D2%2520q%26a3%3Da%26b5%3D%253D%25253D%26c%2540%3D%26c2%3D" +
		"%26oauth_consumer_key%3D9djdj82h48djs9d2%26oauth_nonce%3D7d8f3e4a%26oauth_signature_method%3DHMAC-SHA1" +
		"%26oauth_timestamp%3D137131201%26oauth_token%3Dkkk9d7dh3k39sjv7"
	if got := base("POST", "HTTP://EXAMPLE.com:80/request", params); got != want {
		t.Errorf("base string\n%s, want\n%s", got, want)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://Registrar.test:443/lti/quiz/7": "https://registrar.test/lti/quiz/7",
		"https://registrar.test:8443/lti/":      "https://registrar.test:8443/lti/",
		"http://registrar.test":                 "http://registrar.test/",
		"http://registrar.test:443/a%20b?x=y#z": "http://registrar.test:443/a%20b",
	} {
		if got := baseAddress(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

func TestEveryPartCounts(t *testing.T) {
	t.Parallel()
	params := values(t, "oauth_nonce=n&a=1&a=2")
	signature := Sign("POST", "https://registrar.test/lti", params, "secret", "")
	params.Set("oauth_signature", signature)
	if !Verify(signature, "POST", "https://registrar.test/lti", params, "secret", "") {
		t.Fatal("its own signature is refused")
	}
	for name, ok := range map[string]bool{
		"method":    Verify(signature, "GET", "https://registrar.test/lti", params, "secret", ""),
		"address":   Verify(signature, "POST", "https://registrar.test/lti2", params, "secret", ""),
		"parameter": Verify(signature, "POST", "https://registrar.test/lti", values(t, "oauth_nonce=n&a=1&a=3"), "secret", ""),
		"missing":   Verify(signature, "POST", "https://registrar.test/lti", values(t, "oauth_nonce=n&a=1"), "secret", ""),
		"secret":    Verify(signature, "POST", "https://registrar.test/lti", params, "secrets", ""),
		"token":     Verify(signature, "POST", "https://registrar.test/lti", params, "secret", "t"),
		"empty":     Verify("", "POST", "https://registrar.test/lti", params, "secret", ""),
		"case":      Verify(strings.ToLower(signature), "POST", "https://registrar.test/lti", params, "secret", ""),
	} {
		if ok {
			t.Errorf("a signature with another %s is taken", name)
		}
	}
}
