package feed_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/feed"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/page"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// fill records events with the sequences from first to last, in ascending ids that end at the given time.
func fill(f *flowtest.Fixture, o flowtest.Organization, first, last int, kind webhook.Type, end time.Time) {
	f.Exec(`INSERT INTO webhook_events (id, organization_id, user_id, type, created_at, data, sequence)
		SELECT uuid7_floor($5::timestamptz - ($3 - n) * interval '1 millisecond'), $1, 7, $4, $5::timestamptz, '{}', n
		FROM generate_series($2::integer, $3::integer) AS n`, o.ID, first, last, kind, end)
	f.Exec(fmt.Sprintf(`SELECT setval('positions_%d', %d)`, o.ID, last))
}

// A page passes over so many events of other types and no more, and the next one goes on behind them.
func TestAPageIsBoundedWhateverItPassesOver(t *testing.T) {
	t.Parallel()
	f := flowtest.New(t)
	one := f.Organization("one")
	now := time.Now()
	fill(f, one, 1, 45_000, webhook.ResultFinal, now.Add(-time.Hour))
	fill(f, one, 45_001, 45_001, webhook.StudentLeft, now)
	left := feed.Filter{Types: []webhook.Type{webhook.StudentLeft}}
	read := func(filter feed.Filter, after page.Position) feed.Page {
		t.Helper()
		p, err := feed.Read(t.Context(), pg.ReadPrimary(f.Database), one.ID, filter, after, 10, now)
		check.NoError(check.Now(t), err, "%v", err)
		return p
	}
	var after page.Position
	for _, end := range []int64{20_000, 40_000} {
		p := read(left, after)
		check.Equal(t, "events", len(p.Events), 0, "%+v", p)
		check.True(t, "it stopped", p.Stopped, "%+v", p)
		check.Equal(t, "end", p.End.At(0), end, "%+v", p)
		after = p.End
	}
	p := read(left, after)
	check.False(t, "it stopped", p.Stopped, "%+v", p)
	check.Equal(t, "end", p.End.At(0), 45_001, "%+v", p)
	if check.Equal(t, "events", len(p.Events), 1, "%+v", p) {
		check.Equal(t, "sequence", p.Events[0].Sequence, 45_001, "%+v", p)
	}
	left.User = 7
	p = read(left, nil)
	check.Equal(t, "events about the person", len(p.Events), 1, "%+v", p)
	p = read(feed.Filter{}, nil)
	check.Equal(t, "events", len(p.Events), 10, "%+v", p)
}

// An event whose transaction took long has an older id than those before it, and another machine's
// clock may differ.
func TestIdsNeedNotBeInOrder(t *testing.T) {
	t.Parallel()
	f := flowtest.New(t)
	one := f.Organization("one")
	now := time.Now()
	fill(f, one, 1, 1, webhook.ResultFinal, now.AddDate(0, 0, -20))
	fill(f, one, 2, 2, webhook.ResultFinal, now.Add(time.Hour))
	fill(f, one, 3, 3, webhook.ResultFinal, now.Add(-20*time.Hour))
	var read []int64
	for after := (page.Position{}); ; {
		p, err := feed.Read(t.Context(), pg.ReadPrimary(f.Database), one.ID, feed.Filter{}, after, 1, now)
		check.NoError(check.Now(t), err, "%v", err)
		if len(p.Events) == 0 {
			break
		}
		read, after = append(read, p.Events[0].Sequence), feed.PositionOf(p.Events[0])
	}
	check.Slices(t, "sequences", read, []int64{1, 2, 3}, "%v", read)
	p, err := feed.Read(t.Context(), pg.ReadPrimary(f.Database), one.ID, feed.Filter{Since: now.Add(-time.Minute)}, nil, 9, now)
	check.NoError(check.Now(t), err, "%v", err)
	check.Equal(t, "events since a minute", len(p.Events), 1, "%+v", p)
}
