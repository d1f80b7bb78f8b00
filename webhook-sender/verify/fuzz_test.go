package verify_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/webhook-sender/verify"
)

// Whatever the header is, it is taken only when it holds the digest of this time and body.
func FuzzSignature(f *testing.F) {
	now := time.Unix(1_800_000_000, 0)
	digest := func(t string, body []byte) string {
		mac := hmac.New(sha256.New, []byte("whsec_fuzz"))
		fmt.Fprintf(mac, "%s.%s", t, body)
		return hex.EncodeToString(mac.Sum(nil))
	}
	right := digest("1800000000", []byte(`{}`))
	for _, header := range []string{"", "t=1800000000,v1=" + right, "v1=" + right + ", t=1800000000", "t=1800000000,t=1,v1=" + right,
		"t=,v1=", "t=1800000000,v1=zz", "t=-1,v1=" + right, "t=99999999999999999999,v1=" + right, strings.Repeat("t=1,", 100)} {
		f.Add(header, []byte(`{}`))
	}
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		if verify.Signature(header, body, now, "whsec_fuzz") != nil {
			return
		}
		for part := range strings.SplitSeq(header, ",") {
			if at, ok := strings.CutPrefix(strings.TrimSpace(part), "t="); ok && strings.Contains(strings.ToLower(header), "v1="+digest(at, body)) {
				return
			}
		}
		t.Errorf("%q is taken for %q", header, body)
	})
}
