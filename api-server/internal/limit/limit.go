// Package limit bounds how often something may be done, with counters in Redis that all
// replicas share.
//
// A limit protects; it is not worth an outage. While Redis is away everything is allowed,
// which is logged once and counted each time, and Redis is asked again after a second, so
// that a frozen one does not slow every request.
package limit

import (
	"context"
	"encoding/hex"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Rule is a limit: so many a period on the average, and a burst at once.
type Rule struct {
	Name   string // in metrics and counters' names
	Rate   int
	Period time.Duration
	Burst  int
}

// Verdict is what a Rule says of one more time. The zero Verdict refuses.
type Verdict struct {
	Allowed    bool
	Counted    bool          // false while Redis is away; then the rest is zero
	Remaining  int           // how many would be allowed at once now
	ResetAfter time.Duration // until the whole burst is there again
	RetryAfter time.Duration // until one is allowed; 0 when it was
}

// Limiter applies rules. The nil Limiter allows everything.
type Limiter struct {
	redis   *redis_rate.Limiter
	wait    time.Duration // for an answer
	log     *slog.Logger
	refused *prometheus.CounterVec
	open    *prometheus.CounterVec
	blind   atomic.Int64 // until then Redis is not asked; Unix nanoseconds
}

// Patience is how long a program waits for an answer, blindness how long Redis is then left alone.
const (
	Patience  = 250 * time.Millisecond
	blindness = time.Second
)

// New makes a limiter over Redis, which may take that long to answer; without one (nil) there are
// no limits.
func New(rdb redis.UniversalClient, wait time.Duration, reg prometheus.Registerer, log *slog.Logger) *Limiter {
	if rdb == nil {
		return nil
	}
	l := &Limiter{redis: redis_rate.NewLimiter(rdb), wait: wait, log: log,
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "registrar_rate_limit_refusals_total",
			Help: "What was refused because it came too often, by rule."}, []string{"rule"}),
		open: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "registrar_rate_limit_unchecked_total",
			Help: "What was allowed unchecked because Redis did not answer, by rule."}, []string{"rule"})}
	reg.MustRegister(l.refused, l.open)
	return l
}

// Take counts one more time for key. The key's text is not stored.
func (l *Limiter) Take(ctx context.Context, r Rule, key string) Verdict {
	if l == nil {
		return Verdict{Allowed: true}
	}
	if time.Now().UnixNano() < l.blind.Load() {
		l.open.WithLabelValues(r.Name).Inc()
		return Verdict{Allowed: true}
	}
	asking, cancel := context.WithTimeout(ctx, l.wait)
	defer cancel()
	res, err := l.redis.Allow(asking, r.Name+":"+hex.EncodeToString(seal.Hash(key)[:16]),
		redis_rate.Limit{Rate: r.Rate, Period: r.Period, Burst: r.Burst})
	if err != nil {
		l.lookAway(ctx, r, err)
		return Verdict{Allowed: true}
	}
	v := Verdict{Allowed: res.Allowed > 0, Counted: true, Remaining: res.Remaining, ResetAfter: res.ResetAfter}
	if !v.Allowed {
		v.RetryAfter = res.RetryAfter
		l.refused.WithLabelValues(r.Name).Inc()
	}
	return v
}

func (l *Limiter) lookAway(ctx context.Context, r Rule, err error) {
	l.open.WithLabelValues(r.Name).Inc()
	if ctx.Err() != nil {
		return // the caller has gone, which says nothing of Redis
	}
	if before := l.blind.Swap(time.Now().Add(blindness).UnixNano()); time.Since(time.Unix(0, before)) > time.Minute {
		l.log.WarnContext(ctx, "rate limits are not applied: Redis does not answer", "error", err)
	}
}
