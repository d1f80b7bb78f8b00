package progress

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Filter chooses results.
type Filter struct {
	From, To clock.Date     // days in Zone, both inclusive
	Zone     *time.Location // in which a result's day is the one of its completion
	User     id.User        // 0: everybody
	Course   id.Course      // enrolled in it, whatever the enrollment's status; 0: any
	Few      []id.User      // the people of Course, where they are few (course.Few); nil: they are not
	Kinds    []string       // none: all
	Type     string         // a test type; "": any
	Today    clock.Date     // the platform's day on which people have to be students
}

// Stream calls do with each row, ordered by date, user, kind and type. All rows are of one moment and of
// people who are students of the organization today. An error of do ends it.
func Stream(ctx context.Context, db *pg.DB, org id.Organization, f Filter, do func(Row) error) error {
	return inSnapshot(ctx, db, func(q pg.Querier) error {
		s := &stream{q: q, org: org, filter: f, do: do, students: map[id.User]*Student{}}
		s.begin(f.From)
		if err := eachResult(ctx, q, org, f, clock.DayStart(f.From, f.Zone), clock.DayStart(f.To.AddDays(1), f.Zone), s.add); err != nil {
			return err
		}
		return s.flush(ctx)
	})
}

// stream collects the results of one day.
type stream struct {
	q      pg.Querier
	org    id.Organization
	filter Filter
	do     func(Row) error

	day      clock.Date
	end      time.Time // of the day
	results  []Result
	students map[id.User]*Student // nil: out of scope
}

func (s *stream) begin(day clock.Date) {
	s.day, s.end = day, clock.DayStart(day.AddDays(1), s.filter.Zone)
}

func (s *stream) add(ctx context.Context, completed time.Time, r Result) error {
	if !completed.Before(s.end) {
		if err := s.flush(ctx); err != nil {
			return err
		}
		s.begin(clock.DateIn(completed, s.filter.Zone))
	}
	s.results = append(s.results, r)
	return nil
}

// maxStudents limits how many students are kept in memory from day to day.
const maxStudents = 20_000

func (s *stream) flush(ctx context.Context) error {
	rows := Sum(s.day, s.results)
	s.results = s.results[:0]
	if err := s.loadStudents(ctx, rows); err != nil {
		return err
	}
	for _, row := range rows {
		who := s.students[row.Student.User]
		if who == nil {
			continue
		}
		row.Student = *who
		if err := s.do(row); err != nil {
			return err
		}
	}
	return nil
}

// loadStudents reads the students of the rows that are not in memory.
func (s *stream) loadStudents(ctx context.Context, rows []Row) error {
	if len(s.students) > maxStudents {
		clear(s.students)
	}
	var unknown []id.User
	for _, r := range rows {
		if _, ok := s.students[r.Student.User]; !ok {
			s.students[r.Student.User] = nil
			unknown = append(unknown, r.Student.User)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	found, err := selectStudents(ctx, s.q, s.org, unknown, s.filter)
	for _, who := range found {
		s.students[who.User] = &who
	}
	return err
}
