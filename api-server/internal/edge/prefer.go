package edge

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Wait reads how long the caller is ready to wait for an outcome, from the header
// `Prefer: wait=N` (RFC 7240) in seconds; at most most. What cannot be read is no
// preference: 0.
func Wait(r *http.Request, most time.Duration) time.Duration {
	for preference := range strings.SplitSeq(strings.Join(r.Header.Values("Prefer"), ","), ",") {
		preference, _, _ = strings.Cut(preference, ";")
		name, value, _ := strings.Cut(preference, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "wait") {
			continue
		}
		n, err := strconv.Atoi(strings.Trim(strings.TrimSpace(value), `"`))
		if err != nil || n < 0 {
			return 0
		}
		return min(time.Duration(min(n, 3600))*time.Second, most) // the first one counts
	}
	return 0
}

// Waited tells the caller how long a wait was granted.
func Waited(w http.ResponseWriter, d time.Duration) {
	w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(d/time.Second)))
}
