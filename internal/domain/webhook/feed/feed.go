// Package feed reads an organization's events in the order of their sequence, for partners who
// fetch them instead of, or besides, having them delivered.
package feed

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/page"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Filter narrows the feed; the zero Filter keeps everything.
type Filter struct {
	Types []webhook.Type
	User  id.User   // whom events are about
	Since time.Time // not those that were created before
}

// stretch is how many events one page passes over at most.
const stretch = 20_000

// margin is by how much the times in the ids of events may differ from the order of their sequence:
// an event is created before the transaction that records it draws its place, and machines' clocks
// differ. What is older than the margin is not searched.
const margin = 24 * time.Hour

// Page is a part of the feed.
type Page struct {
	Events []webhook.Stored
	// End is where the page ends that has no further event. Nothing will be recorded up to there any
	// more.
	End page.Position
	// Stopped says that the search ended there because it had passed over so much, and that more may
	// follow.
	Stopped bool
}

// Read reads up to limit events behind the position, which is zero, PositionOf an event or a Page.End.
// What is committed after a page was read follows it. Pings are not in the feed, nor are events about
// people who were erased.
func Read(ctx context.Context, reads *pg.Reads, org id.Organization, f Filter, after page.Position, limit int, now time.Time) (p Page, err error) {
	p.Events, err = page.Settled(ctx, reads, org, limit, func(db *pg.DB, until int64) (_ []webhook.Stored, err error) {
		s := search{after: after.At(0), until: until, from: earliest(after, f.Since)}
		last, err := selectStretch(ctx, db, org, f, s)
		if p.Stopped = err == nil; p.Stopped {
			s.until, p.End = last.Sequence, PositionOf(last)
		} else if p.End = (page.Position{max(until, s.after), now.UnixMilli()}); !pg.None(err) {
			return nil, err
		}
		return selectEvents(ctx, db, org, f, s, limit)
	})
	return p, err
}

// PositionOf is the position behind the event.
func PositionOf(e webhook.Stored) page.Position {
	return page.Position{e.Sequence, int64(binary.BigEndian.Uint64(e.ID[:8]) >> 16)}
}

// search is where events are looked for: behind a place and up to another, and not among lesser ids.
type search struct {
	after, until int64
	from         id.Event
}

// earliest is the least id that an event can have behind a position, whose second number is a time in
// milliseconds. It lets PostgreSQL leave out the partitions of earlier days.
func earliest(after page.Position, since time.Time) (from id.Event) {
	ms := max(after.At(1), since.UnixMilli()) - margin.Milliseconds()
	binary.BigEndian.PutUint64(from[:], uint64(max(0, ms))<<16)
	return from
}
