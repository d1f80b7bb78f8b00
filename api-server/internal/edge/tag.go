package edge

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// Tagged answers 200 with body and a tag of its content, and 304 without it to a caller who has it already
// (reference: conventions#tags).
func Tagged(w http.ResponseWriter, r *http.Request, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	tag := ETag(Digest(text, 12))
	describe(w)
	h := w.Header()
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", tag)
	if known(r.Header.Values("If-None-Match"), tag) {
		h.Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(text) // a client that has gone is no fault
	return nil
}

// Digest names a content by so many bytes of its SHA-256: for tags, and for addresses that change with what is there.
func Digest(content []byte, size int) string {
	sum := sha256.Sum256(content)
	return base64.RawURLEncoding.EncodeToString(sum[:size])
}

// ETag is the header of a content with the digest. It is weak: the same content may be packed or not.
func ETag(digest string) string { return `W/"` + digest + `"` }

// known says whether the tag is among those of If-None-Match.
func known(values []string, tag string) bool {
	for _, value := range values {
		for one := range strings.SplitSeq(value, ",") {
			one = strings.TrimSpace(one)
			if one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
				return true
			}
		}
	}
	return false
}
