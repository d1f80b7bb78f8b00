// Package auditlog answers with the audit log as JSON lines.
package auditlog

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Entries of an answer, at most and where the call does not say; settles is how old an entry is when it is
// exported: by then every one with a smaller id is there, too, so that a reader who goes on behind the last one
// misses nothing.
const (
	Most    = 100_000
	Usual   = 10_000
	settles = time.Minute
)

// Span reads since and until, days in zone of which the second is inside, and after, the id that the
// span begins behind.
func Span(q *edge.Query, now time.Time, zone *time.Location) audit.Span {
	s := audit.Span{Until: now, After: q.ID("after")}
	if first := q.Day("since"); !first.IsZero() {
		s.Since = clock.DayStart(first, zone)
	}
	if last := q.Day("until"); !last.IsZero() {
		s.Until = clock.DayStart(last.AddDays(1), zone)
	}
	return s
}

// Write answers with the entries of the span as JSON lines.
func Write(w http.ResponseWriter, r *http.Request, q pg.Querier, s audit.Span, most int, now time.Time) error {
	if settled := now.Add(-settles); s.Until.After(settled) {
		s.Until = settled
	}
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Cache-Control", "no-store")
	lines := json.NewEncoder(w)
	return audit.Export(r.Context(), q, s, most, func(e audit.Entry) error { return lines.Encode(wire.NewAuditEntry(e)) })
}
