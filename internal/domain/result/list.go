package result

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Filter chooses final results.
type Filter struct {
	Kinds  []string // nil: all
	Type   string   // of tests; "": any
	User   id.User  // 0: everybody's
	Course id.Course
	Since  time.Time // became final then or later; zero: ever
	Until  time.Time // became final before; zero: ever
	Today  clock.Date
}

// Listed is a result with what is shown of its student and item.
type Listed struct {
	Result
	Email, FirstName, LastName string
	ItemTitle                  string
}

// Latest gives the latest final results of one person in the organization, the last one
// first, whether the person is a student of it today or not.
func Latest(ctx context.Context, q pg.Querier, org id.Organization, user id.User, limit int) ([]Listed, error) {
	return selectLatest(ctx, q, org, user, limit)
}

// List gives up to limit final results of the organization's students, as they are today,
// whose position is above after, by position.
func List(ctx context.Context, q pg.Querier, org id.Organization, f Filter, after int64, limit int) ([]Listed, error) {
	var few []id.User
	if f.Course != 0 && f.User == 0 {
		var err error
		if few, err = selectFew(ctx, q, org, f.Course); err != nil {
			return nil, err
		}
	}
	if f.windowed() && f.User == 0 && few == nil {
		return listWindow(ctx, q, org, f, after, limit)
	}
	p := newPage(org, f, after, limit)
	p.few = few
	return selectPage(ctx, q, p)
}

// listWindow reads the stretches of the window one after the other, more and more of them
// at a time, until the page is full.
func listWindow(ctx context.Context, q pg.Querier, org id.Organization, f Filter, after int64, limit int) ([]Listed, error) {
	stretches, err := selectStretches(ctx, q, org, f, after)
	if err != nil {
		return nil, err
	}
	var found []Listed
	for n := 1; len(stretches) > 0 && len(found) < limit; n *= 4 {
		p := newPage(org, f, after, limit-len(found))
		p.stretches = stretches[:min(n, len(stretches))]
		stretches = stretches[len(p.stretches):]
		more, err := selectPage(ctx, q, p)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

// RebuildSpans makes the spans of an organization anew from its results. It is for loads
// that write results without Save, and holds the organization's counter.
func RebuildSpans(ctx context.Context, tx *pg.Tx, org id.Organization) error {
	return rebuildSpans(ctx, tx, org)
}
