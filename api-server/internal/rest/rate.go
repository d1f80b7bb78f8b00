package rest

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/limit"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Rate is how often one key may call. The zero Rate is no limit.
type Rate struct {
	PerSecond int
	Burst     int
}

// mayCall counts a call of the key, and answers one that comes too soon.
func (s *Server) mayCall(w http.ResponseWriter, r *http.Request, key id.APIKey) bool {
	if s.Rate.PerSecond == 0 {
		return true
	}
	rule := limit.Rule{Name: "api_key", Rate: s.Rate.PerSecond, Period: time.Second, Burst: s.Rate.Burst}
	v := s.Limits.Take(r.Context(), rule, strconv.FormatInt(int64(key), 10))
	if v.Counted {
		h := w.Header()
		h.Set("RateLimit-Limit", strconv.Itoa(s.Rate.Burst))
		h.Set("RateLimit-Remaining", strconv.Itoa(v.Remaining))
		h.Set("RateLimit-Reset", strconv.Itoa(int(math.Ceil(v.ResetAfter.Seconds()))))
		// The same as draft-ietf-httpapi-ratelimit-headers-10 has it: so many in a window of so many seconds.
		h.Set("RateLimit-Policy", fmt.Sprintf(`"key";q=%d;w=%d`, s.Rate.Burst, (s.Rate.Burst+s.Rate.PerSecond-1)/s.Rate.PerSecond))
		h.Set("RateLimit", fmt.Sprintf(`"key";r=%d;t=%d`, v.Remaining, int(math.Ceil(v.ResetAfter.Seconds()))))
	}
	if !v.Allowed {
		edge.RetryAfter(w, v.RetryAfter)
		edge.Refuse(w, r, http.StatusTooManyRequests, "rate_limited", fmt.Sprintf(
			"too many requests with this API key; it may make %d a second. Send the same request again after the time in Retry-After", s.Rate.PerSecond))
	}
	return v.Allowed
}
