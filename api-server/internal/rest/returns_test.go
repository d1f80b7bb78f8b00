package rest_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/flow/enrollment"
	"github.com/registrar-dev/registrar/internal/flow/work"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// runCalendar does what a worker does about the calendar.
func (s *school) runCalendar(t *testing.T) {
	t.Helper()
	if _, err := (&enrollment.Service{DB: s.DB, Clock: s.Now, Zone: time.UTC}).Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (s *school) member(t *testing.T, status string) {
	t.Helper()
	s.Platform.Patch(t, fmt.Sprintf("organizations/north/members/%d", s.ana), map[string]any{"status": status}).Want(t, 200)
}

func (s *school) enrollment(t *testing.T, body string) {
	t.Helper()
	var which int64
	if err := s.DB.QueryRow(t.Context(), `SELECT id FROM enrollments WHERE user_id = $1`, s.ana).Scan(&which); err != nil {
		t.Fatal(err)
	}
	s.Platform.Patch(t, fmt.Sprintf("organizations/north/enrollments/%d", which), body).Want(t, 200)
}

// leave ends Ana's access and her membership.
func (s *school) leave(t *testing.T) {
	t.Helper()
	s.enrollment(t, `{"state": "dropped"}`)
	s.member(t, "inactive")
}

func (s *school) removeMember(t *testing.T) {
	t.Helper()
	s.Platform.Delete(t, fmt.Sprintf("organizations/north/members/%d", s.ana)).Want(t, 200)
}

func (s *school) importFile(t *testing.T, mode, csv string) {
	t.Helper()
	s.Full.With("Content-Type", "text/csv").With("X-Roster-Mode", mode).With("X-Roster-Source", "sis").Post(t, "roster/import/", csv).Want(t, 200)
}

const (
	rosterHead = "person_external_id,email,first_name,last_name,role\n"
	rosterBo   = "2,bo@school.example,Ana,Lopez,student\n"
	rosterAna  = "1,ana@school.example,Ana,Lopez,student\n"
)

// A job that has stored its cursors gets every result and assignment, whatever becomes of the students in
// between: also what was final or assigned before its student left and had not been read. It is there at the
// moment at which the student is back, and not before it has its new position.
// Reference: results#order, assignments#assignment-list.
func TestAStoredCursorLosesNothingOfWhoLeavesAndComesBack(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		before, leave, back func(t *testing.T, s *school)
		early               func(t *testing.T, s *school) // the calendar has brought the student back, unnoticed
	}{
		"a membership made inactive and active again": {
			leave: func(t *testing.T, s *school) { s.leave(t) },
			back:  func(t *testing.T, s *school) { s.member(t, "active") },
		},
		"an enrollment dropped and running again": {
			before: func(t *testing.T, s *school) { s.member(t, "inactive") },
			leave:  func(t *testing.T, s *school) { s.enrollment(t, `{"state": "dropped"}`) },
			back:   func(t *testing.T, s *school) { s.enrollment(t, `{"state": "running"}`) },
		},
		"a membership removed and made again": {
			before: func(t *testing.T, s *school) { s.enrollment(t, `{"state": "dropped"}`) },
			leave:  func(t *testing.T, s *school) { s.removeMember(t) },
			back:   func(t *testing.T, s *school) { provision(t, s.Organization, "ana@school.example") },
		},
		"an inactive membership that a call makes active": {
			before: func(t *testing.T, s *school) { s.enrollment(t, `{"state": "dropped"}`) },
			leave:  func(t *testing.T, s *school) { s.member(t, "inactive") },
			back: func(t *testing.T, s *school) {
				provision(t, s.Organization, "ana@school.example", `"courses": ["toefl"]`)
			},
		},
		"staff and student again": {
			leave: func(t *testing.T, s *school) {
				s.Platform.Put(t, "organizations/north/staff/ana@school.example", `{"role": "teacher"}`).Want(t, 200)
			},
			back: func(t *testing.T, s *school) { s.removeMember(t) }, // the enrollment runs on
		},
		"an end of access that an extension takes back": {
			before: func(t *testing.T, s *school) { s.member(t, "inactive") },
			leave:  func(_ *testing.T, s *school) { s.Advance(200 * day) },
			back: func(t *testing.T, s *school) {
				s.enrollment(t, fmt.Sprintf(`{"end_date": %q}`, s.Now().AddDate(0, 1, 0).Format(time.DateOnly)))
			},
		},
		"an enrollment that begins again by the calendar": {
			before: func(t *testing.T, s *school) { s.member(t, "inactive") },
			leave: func(t *testing.T, s *school) {
				s.enrollment(t, fmt.Sprintf(`{"start_date": %q}`, s.Now().AddDate(0, 0, 2).Format(time.DateOnly)))
			},
			early: func(_ *testing.T, s *school) { s.Advance(2 * day) },
			back:  func(t *testing.T, s *school) { s.runCalendar(t) },
		},
		"an enrollment that began unnoticed before a call": {
			before: func(t *testing.T, s *school) { s.member(t, "inactive") },
			leave: func(t *testing.T, s *school) {
				s.enrollment(t, fmt.Sprintf(`{"start_date": %q}`, s.Now().AddDate(0, 0, 2).Format(time.DateOnly)))
			},
			early: func(_ *testing.T, s *school) { s.Advance(2 * day) },
			back: func(t *testing.T, s *school) {
				provision(t, s.Organization, "ana@school.example", `"courses": ["ielts"]`)
				s.runCalendar(t)
			},
		},
		"a roster without the student and one with": {
			before: func(t *testing.T, s *school) {
				s.ImportRosters(t)
				s.Platform.Put(t, "organizations/north/roster-sources/sis", `{"authoritative_enabled": true}`).Want(t, 200)
				s.removeMember(t)
				s.enrollment(t, `{"state": "dropped"}`)
				s.importFile(t, "additive_only", rosterHead+rosterAna+rosterBo+"3,c@school.example,C,C,student\n")
			},
			leave: func(t *testing.T, s *school) {
				s.importFile(t, "authoritative_snapshot", rosterHead+rosterBo+"3,c@school.example,C,C,student\n")
			},
			back: func(t *testing.T, s *school) { s.importFile(t, "additive_only", rosterHead+rosterAna) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSchool(t)
			done := func(name string, user int64) {
				t.Helper()
				s.session(t, name, `"user_id": %d, "item_id": %d, "state": "finished", "score": 6`, user, s.ielts).Want(t, 201)
			}
			if c.before != nil {
				c.before(t, s)
			}
			done("a1", s.ana)
			first, second := s.give(t, s.ana, s.ielts), s.give(t, s.ana, s.sat)
			c.leave(t, s)
			done("a2", s.ana)
			done("b1", s.bo)
			others := s.give(t, s.bo, s.ielts)
			var before, work listPage
			s.Full.Get(t, "results/").Want(t, 200).Into(t, &before)
			if got := before.ids(); !slices.Equal(got, []string{"test:b1"}) {
				t.Fatalf("%v", got)
			}
			s.Full.Get(t, "assignments/").Want(t, 200).Into(t, &work)
			if got := work.ids(); !slices.Equal(got, []string{others}) {
				t.Fatalf("%v", got)
			}
			if a := s.Full.Get(t, "results/?user_id="+fmt.Sprint(s.ana)); a.Status == 200 {
				check.Equal(t, "number of results", a.Object(t)["count"], any(0.0), "of a student who left: %s", a.Body)
			}
			if notified := events(t, s.Env, "north", "result.final"); len(notified) != 2 {
				t.Errorf("%d events", len(notified))
			}
			if c.early != nil {
				c.early(t, s)
				if got := walk(t, s.Full, "results/"); !slices.Equal(got, []string{"test:b1"}) {
					t.Errorf("results are shown before they have their positions: %v", got)
				}
			}
			c.back(t, s)
			for list, behind := range map[string]struct {
				cursor     string
				want, seen []string
			}{
				"results/":     {before.NextCursor, []string{"test:a1", "test:a2"}, []string{"test:b1"}},
				"assignments/": {work.NextCursor, []string{first, second}, []string{others}},
			} {
				var after listPage
				s.Full.Get(t, list+"?cursor="+behind.cursor).Want(t, 200).Into(t, &after)
				if got := after.ids(); !slices.Equal(got, behind.want) {
					t.Errorf("%s behind the cursor: %v, want %v", list, got, behind.want)
				}
				if got, want := walk(t, s.Full, list), slices.Concat(behind.seen, behind.want); !slices.Equal(got, want) {
					t.Errorf("%s: %v, want %v", list, got, want)
				}
			}
		})
	}
}

// Students come and go while their work becomes final, others report theirs and a job
// follows the list.
func TestAReaderFollowsWhileStudentsComeAndGo(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.enrollment(t, `{"state": "dropped"}`)
	const rounds = 30
	var others sync.WaitGroup
	others.Go(func() {
		for range rounds {
			s.member(t, "inactive")
			s.member(t, "active")
		}
	})
	for _, user := range []int64{s.ana, s.bo} {
		others.Go(func() {
			for n := range rounds {
				s.session(t, fmt.Sprintf("%d-%d", user, n), `"user_id": %d, "item_id": %d, "state": "finished", "score": 6`, user, s.ielts).Want(t, 201)
			}
		})
	}
	ended := make(chan struct{})
	go func() { others.Wait(); close(ended) }()
	seen, cursor := map[string]bool{}, ""
	read := func() {
		var p listPage
		s.Full.Get(t, "results/?limit=500&cursor="+cursor).Want(t, 200).Into(t, &p)
		cursor = p.NextCursor
		for _, ref := range p.ids() {
			seen[ref] = true
		}
	}
	for over := false; !over; {
		select {
		case <-ended:
			over = true
		default:
		}
		read()
	}
	if len(seen) != 2*rounds {
		t.Errorf("the job saw %d results, want %d", len(seen), 2*rounds)
	}
}

// Nobody gets a row twice of a student who has had access all the time.
func TestResultsOfWhoStaysKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.session(t, "a1", `"user_id": %d, "item_id": %d, "state": "finished", "score": 6`, s.ana, s.ielts).Want(t, 201)
	s.session(t, "b1", `"user_id": %d, "item_id": %d, "state": "finished", "score": 6`, s.bo, s.ielts).Want(t, 201)
	provision(t, s.Organization, "ana@school.example", `"courses": ["toefl"]`)
	s.enrollmentOf(t, "ielts", `{"state": "dropped"}`)
	s.member(t, "inactive") // TOEFL runs on
	s.member(t, "active")
	s.Advance(time.Hour)
	s.runCalendar(t)
	if got := walk(t, s.Full, "results/"); !slices.Equal(got, []string{"test:a1", "test:b1"}) {
		t.Errorf("%v", got)
	}
}

// A program of the version before, which is still running during an update, leaves the positions to the worker.
func TestReturnsOfAnEarlierVersionGetTheirPositions(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	s.session(t, "a1", `"user_id": %d, "item_id": %d, "state": "finished", "score": 6`, s.ana, s.ielts).Want(t, 201)
	s.session(t, "b1", `"user_id": %d, "item_id": %d, "state": "finished", "score": 6`, s.bo, s.ielts).Want(t, 201)
	sql(t, s.Env, `INSERT INTO result_returns (organization_id, user_id, due_at) VALUES ($1, $2, $3)`, s.ID, s.ana, s.Now())
	for range 2 {
		if err := (&work.Service{DB: s.DB, Clock: s.Now, Zone: time.UTC}).Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := walk(t, s.Full, "results/"); !slices.Equal(got, []string{"test:b1", "test:a1"}) {
			t.Errorf("%v", got)
		}
	}
}

// give assigns a test, whether the student has access or not.
func (s *school) give(t *testing.T, user, item int64) (ref string) {
	t.Helper()
	err := s.DB.InTx(t.Context(), func(tx *pg.Tx) error {
		a, _, err := assignment.Assign(t.Context(), tx, s.ID, assignment.Draft{User: id.User(user), Item: id.Item(item), Kind: string(catalog.Test),
			Source: assignment.ViaApp}, s.Now())
		ref = a.Ref()
		return err
	})
	check.NoError(check.Now(t), err, "%v", err)
	return ref
}

func (s *school) enrollmentOf(t *testing.T, typ, body string) {
	t.Helper()
	var which int64
	if err := s.DB.QueryRow(t.Context(), `SELECT e.id FROM enrollments e JOIN courses c ON c.id = e.course_id
		WHERE e.user_id = $1 AND c.course_type = $2`, s.ana, typ).Scan(&which); err != nil {
		t.Fatal(err)
	}
	s.Platform.Patch(t, fmt.Sprintf("organizations/north/enrollments/%d", which), body).Want(t, 200)
}
