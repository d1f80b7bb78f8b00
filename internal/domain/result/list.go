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

// Listed is a result with its student and item, as lists show them.
type Listed struct {
	Result
	Email, FirstName, LastName string
	ItemTitle                  string
}

// Found is a piece of work that a person may see, final or not.
type Found struct {
	Listed
	OrganizationID id.Organization
	Organization   string // its name
}

// List calls each with up to limit final results of people who are students of the organization today,
// with positions above after, by position. The Listed that each gets changes after each returns. An
// error of each ends the list.
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

// walk is how many positions are searched for results of a large course before the search goes on person
// by person: the course may have had no results for a long time.
const walk = 16 << 10

// listCourse lists the results of a large course.
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
	// It goes on after the last result that was read, and not after the walk, where results may have
	// become final since.
	p = newPage(org, f, read, limit-n)
	p.byPerson = true
	_, err = eachOf(ctx, q, p, each)
	return err
}

// listWindow reads the stretches of the time window, more of them in each statement, until the page is
// full.
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
