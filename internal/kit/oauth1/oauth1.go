// Package oauth1 makes the HMAC-SHA1 signatures of OAuth 1.0a (RFC 5849, section 3.4), which LTI
// 1.1 launches carry.
package oauth1

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the protocol's own; HMAC does not need collision resistance
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
)

// Sign is the signature, in base64, of a request to address (without its query) with the
// parameters of query and form together. An oauth_signature among them is left out.
func Sign(method, address string, params url.Values, consumerSecret, tokenSecret string) string {
	mac := hmac.New(sha1.New, []byte(escape(consumerSecret)+"&"+escape(tokenSecret)))
	mac.Write([]byte(base(method, address, params)))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Verify says whether signature is that of the request, in a time that does not depend on
// where it differs.
func Verify(signature, method, address string, params url.Values, consumerSecret, tokenSecret string) bool {
	want := Sign(method, address, params, consumerSecret, tokenSecret)
	return hmac.Equal([]byte(want), []byte(signature))
}

// base is the signature base string.
func base(method, address string, params url.Values) string {
	return strings.ToUpper(method) + "&" + escape(baseAddress(address)) + "&" + escape(normalize(params))
}

// baseAddress has scheme and host in lower case and no port that goes without saying.
func baseAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if usual := map[string]string{"http": ":80", "https": ":443"}[scheme]; usual != "" {
		host = strings.TrimSuffix(host, usual)
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	return scheme + "://" + host + path
}

// normalize sorts the escaped pairs by name and then value.
func normalize(params url.Values) string {
	type pair struct{ name, value string }
	var pairs []pair
	for name, values := range params {
		if name == "oauth_signature" {
			continue
		}
		for _, v := range values {
			pairs = append(pairs, pair{escape(name), escape(v)})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return strings.Compare(a.value, b.value)
	})
	texts := make([]string, len(pairs))
	for i, p := range pairs {
		texts[i] = p.name + "=" + p.value
	}
	return strings.Join(texts, "&")
}

// escape is the percent-encoding of RFC 5849, section 3.6: all but letters, digits and
// "-", ".", "_", "~", with hexadecimal digits in upper case.
func escape(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}
