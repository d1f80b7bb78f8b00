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
	Types  []string // of items, such as ielts or quiz (catalog.TypesOf); nil: all
	User   id.User  // 0: everybody's
	Course id.Course
	Few    []id.User // the people of Course, where they are few (course.Few); nil: they are not
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

// Found is a piece of work that somebody may look at, final or not.
type Found struct {
	Listed
	Organization string // its name
}

// Visible finds the work of the ref that the viewer may see: their own, in whatever
// organization they are or were, and that of everybody in those whose staff they are. The
// same ref may be another piece of work in another organization. Their own comes first.
func Visible(ctx context.Context, q pg.Querier, ref string, viewer id.User, staffOf []id.Organization) ([]Found, error) {
	return selectVisible(ctx, q, ref, viewer, staffOf)
}

// List calls each with up to limit final results of the organization's students, as they
// are today, whose position is above after, by position. What each is given changes when it
// returns; its error ends the list.
func List(ctx context.Context, q pg.Querier, org id.Organization, f Filter, after int64, limit int, each func(*Listed) error) (err error) {
	switch {
	case f.User != 0 || f.Few != nil:
	case f.windowed():
		return listWindow(ctx, q, org, f, after, limit, each)
	case f.Course != 0:
		return listCourse(ctx, q, org, f, after, limit, each)
	}
	_, err = eachOf(ctx, q, newPage(org, f, after, limit), each)
	return err
}

// walk is the number of positions that are searched for results of a large course before
// its people are looked up after all: they may have no results for a long time.
const walk = 16 << 10

// listCourse lists those of a large course.
func listCourse(ctx context.Context, q pg.Querier, org id.Organization, f Filter, after int64, limit int, each func(*Listed) error) error {
	p := newPage(org, f, after, limit)
	p.stretches = []stretch{{after + 1, after + 1 + walk}}
	read := after
	n, err := eachOf(ctx, q, p, func(l *Listed) error { read = l.Position; return each(l) })
	if err != nil || n == limit {
		return err
	}
	if last, err := selectLast(ctx, q, org); err != nil || last <= after+walk {
		return err
	}
	// From what was read last on, and not from the end of the walk: before that, results may
	// have become final since.
	p = newPage(org, f, read, limit-n)
	p.byPerson = true
	_, err = eachOf(ctx, q, p, each)
	return err
}

// listWindow reads the stretches of the window one after the other, more and more of them
// at a time, until the page is full.
func listWindow(ctx context.Context, q pg.Querier, org id.Organization, f Filter, after int64, limit int, each func(*Listed) error) error {
	stretches, err := selectStretches(ctx, q, org, f, after)
	if err != nil {
		return err
	}
	for n := 1; len(stretches) > 0 && limit > 0; n *= 4 {
		p := newPage(org, f, after, limit)
		p.stretches = stretches[:min(n, len(stretches))]
		stretches = stretches[len(p.stretches):]
		read, err := eachOf(ctx, q, p, each)
		if err != nil {
			return err
		}
		limit -= read
	}
	return nil
}
