package client

import (
	"crypto/rand"
	"io"
	"math"
	mathrand "math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// attempts is how often a request is sent at most where nothing else is said.
const attempts = 5

// mostPause is how long is waited before another attempt, in seconds, unless the answer asks for more.
const mostPause = 30

// WithAttempts sets how often a request is sent at most: 5 without it, and 1 never repeats one. Give it after
// WithHTTPClient.
func WithAttempts(n int) ClientOption {
	return func(c *Client) error {
		c.Client = repeating{c.Client, max(1, n)}
		return nil
	}
}

// repeating sends a request again after a broken connection, 429 and 5xx. A change carries an Idempotency-Key, so
// that it is carried out once.
type repeating struct {
	next     HttpRequestDoer
	attempts int
}

// Do implements HttpRequestDoer.
func (d repeating) Do(r *http.Request) (*http.Response, error) {
	most := d.attempts
	if r.Body != nil && r.Body != http.NoBody && r.GetBody == nil { // it can be read once
		most = 1
	}
	if most > 1 && r.Method != http.MethodGet && r.Header.Get("Idempotency-Key") == "" {
		r.Header.Set("Idempotency-Key", rand.Text())
	}
	for attempt := 1; ; attempt++ {
		res, err := d.next.Do(r)
		if attempt >= most || !another(res, err, attempt) || r.Context().Err() != nil {
			return res, err
		}
		pause := pauseAfter(res, attempt)
		if deadline, ok := r.Context().Deadline(); ok && time.Until(deadline) <= pause { // what is known by now says more
			return res, err
		}
		if res != nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, mostOfFault)) // so that the connection is kept
			_ = res.Body.Close()
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-r.Context().Done():
			again.Stop()
			return nil, r.Context().Err()
		}
		if r.GetBody != nil {
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// another says whether one more attempt may help. 409 to a repeated change may say that the first one is still
// worked on.
func another(res *http.Response, err error, attempt int) bool {
	return err != nil || res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= http.StatusInternalServerError ||
		res.StatusCode == http.StatusConflict && attempt > 1
}

// pauseAfter is as long as the answer asks for, or a random time that grows with each attempt.
func pauseAfter(res *http.Response, attempt int) time.Duration {
	if res != nil {
		if asked := retryAfter(res); asked > 0 {
			return asked
		}
	}
	return time.Duration(mathrand.Float64() * min(mostPause, math.Exp2(float64(attempt))/4) * float64(time.Second))
}

// retryAfter is how long an answer asks to wait, 0 when it does not.
func retryAfter(res *http.Response) time.Duration {
	seconds, err := strconv.Atoi(res.Header.Get("Retry-After"))
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
