package rest_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/lti"
	"github.com/registrar-dev/registrar/internal/flow/launch"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/page"
)

// ids reads a page of students and returns them with the next cursor.
func studentsAfter(t *testing.T, c *apitest.Client, cursor string) ([]int64, string) {
	t.Helper()
	var p studentPage
	c.Get(t, "students/?limit=500&cursor="+url.QueryEscape(cursor)).Want(t, 200).Into(t, &p)
	return p.ids(), p.NextCursor
}

// Somebody with an account from long ago who comes into the organization now is behind every stored
// cursor, in whatever way they come.
// Reference: students#student-list.
func TestAStoredCursorFindsOldAccountsThatComeLater(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, come func(t *testing.T, s *school, email string, user int64)
	}{
		"by provisioning": {come: func(t *testing.T, s *school, email string, _ int64) {
			provision(t, s.Organization, email, `"courses": ["ielts"]`)
		}},
		"by a roster": {come: func(t *testing.T, s *school, email string, _ int64) {
			s.ImportRosters(t)
			s.importFile(t, "additive_only", rosterHead+"9,"+email+",Old,One,student\n")
		}},
		"by a launch": {come: func(t *testing.T, s *school, email string, _ int64) {
			s.launch(t, email, s.quiz)
		}},
		"again, after the membership was removed": {
			before: func(t *testing.T, s *school, email string, user int64) {
				provision(t, s.Organization, email)
				s.Platform.Delete(t, fmt.Sprintf("organizations/north/members/%d", user)).Want(t, 200)
			},
			come: func(t *testing.T, s *school, email string, _ int64) { provision(t, s.Organization, email) },
		},
		"as staff who become a student": {
			before: func(t *testing.T, s *school, email string, user int64) {
				s.Platform.Put(t, "organizations/north/staff/"+email, `{"role": "teacher"}`)
				s.Platform.Patch(t, fmt.Sprintf("organizations/north/members/%d", user), `{"status": "inactive"}`).Want(t, 200)
			},
			come: func(t *testing.T, s *school, email string, _ int64) {
				provision(t, s.Organization, email, `"courses": ["ielts"]`)
			},
		},
		"as staff who are enrolled and leave the staff": {
			before: func(t *testing.T, s *school, email string, _ int64) {
				provision(t, s.Organization, email, `"courses": ["ielts"]`)
				s.Platform.Put(t, "organizations/north/staff/"+email, `{"role": "teacher"}`).Want(t, 200)
			},
			come: func(t *testing.T, s *school, _ string, user int64) {
				s.Platform.Delete(t, fmt.Sprintf("organizations/north/members/%d", user)).Want(t, 200)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := apitest.New(t)
			south := e.Organization(t, "south")
			old := provision(t, south, "old@school.example")
			s := &school{Env: e, Organization: e.Organization(t, "north")}
			s.ana = provision(t, s.Organization, "ana@school.example", `"courses": ["ielts"]`)
			s.quiz = item(t, e, "organizations/north/catalog/quizzes/q1", `{"title": "Grammar"}`)
			if c.before != nil {
				c.before(t, s, "old@school.example", old)
			}
			first, cursor := studentsAfter(t, s.ReadOnly, "")
			check.True(t, "first", slices.Equal(first, []int64{s.ana}), "the list is %v, want ana %d alone", first, s.ana)
			c.come(t, s, "old@school.example", old)
			more, cursor := studentsAfter(t, s.ReadOnly, cursor)
			check.True(t, "more", slices.Equal(more, []int64{old}), "behind the cursor are %v, want %d", more, old)
			end, _ := studentsAfter(t, s.ReadOnly, cursor)
			check.Equal(t, "rows at the end", len(end), 0, "%v", end)
		})
	}
}

// Who stays on the list keeps the place: changes of the membership move nobody.
// Reference: students#student-list.
func TestStudentsKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	_, cursor := studentsAfter(t, s.ReadOnly, "")
	s.member(t, "inactive")
	s.member(t, "active")
	s.removeMember(t) // Ana is enrolled
	provision(t, s.Organization, "ana@school.example", `"courses": ["toefl"]`)
	all, _ := studentsAfter(t, s.ReadOnly, "")
	check.True(t, "the list", slices.Equal(all, []int64{s.ana, s.bo}), "%v, want %v", all, []int64{s.ana, s.bo})
	more, _ := studentsAfter(t, s.ReadOnly, cursor)
	check.Equal(t, "rows behind the cursor", len(more), 0, "%v", more)
}

// Cursors of versions that ordered the list by account are good for a walk from the beginning.
// Reference: students#student-list.
func TestAnOldCursorOfStudentsBeginsAgain(t *testing.T) {
	t.Parallel()
	s := newSchool(t)
	old, err := page.New(s.DB, s.Box).Encode(t.Context(), page.List{Organization: s.ID, Name: "students"}, page.Position{s.bo})
	check.NoError(check.Now(t), err, "%v", err)
	all, _ := studentsAfter(t, s.ReadOnly, old)
	check.True(t, "the list", slices.Equal(all, []int64{s.ana, s.bo}), "%v, want %v", all, []int64{s.ana, s.bo})
}

// launch opens the link of a quiz in the LMS of north.
func (s *school) launch(t *testing.T, email string, item int64) launch.Visitor {
	t.Helper()
	v, err := s.tryLaunch(t, email, item)
	check.NoError(check.Now(t), err, "a launch: %v", err)
	return v
}

func (s *school) tryLaunch(t *testing.T, email string, item int64) (launch.Visitor, error) {
	service := &launch.Service{DB: s.DB, Clock: s.Now, Zone: time.UTC}
	return service.Take(t.Context(), lti.Launch{Organization: s.ID, Email: email, FirstName: "Old"}, catalog.Quiz, id.Item(item))
}

// guest is somebody who comes to north and leaves it in every way there is, and works there.
type guest struct {
	*school
	tests  []int64
	n      int
	email  string
	user   int64
	random *rand.Rand
	round  int
}

// act does something at random. Much of it is refused, as the guest is not there or on the staff.
func (g *guest) act(t *testing.T) {
	g.round++
	north := "organizations/north/"
	var a *apitest.Answer
	switch g.random.IntN(14) {
	case 0, 1:
		a = g.Full.Post(t, "provision/student/", fmt.Sprintf(
			`{"email": %q, "first_name": "Gus", "send_welcome_email": false, "courses": [%s]}`, g.email, []string{"", `"ielts"`, `"sat"`}[g.random.IntN(3)]))
	case 2:
		a = g.Platform.Delete(t, fmt.Sprintf(north+"members/%d", g.user))
	case 3, 4:
		a = g.Platform.Patch(t, fmt.Sprintf(north+"members/%d", g.user), fmt.Sprintf(`{"status": %q}`, []string{"active", "inactive"}[g.random.IntN(2)]))
	case 5:
		a = g.Platform.Put(t, north+"staff/"+g.email, `{"role": "teacher"}`)
	case 6:
		if _, err := g.tryLaunch(t, g.email, g.quiz); fault.KindOf(err) == fault.Internal && err != nil {
			t.Errorf("a launch: %v", err)
		}
		return
	case 7:
		var which int64
		if g.DB.QueryRow(t.Context(), `SELECT id FROM enrollments WHERE user_id = $1 LIMIT 1`, g.user).Scan(&which) != nil {
			return
		}
		a = g.Platform.Patch(t, fmt.Sprintf(north+"enrollments/%d", which), fmt.Sprintf(`{"state": %q}`, []string{"running", "dropped"}[g.random.IntN(2)]))
	case 8:
		a = g.Full.With("Content-Type", "text/csv").With("X-Roster-Source", "sis").Post(t, "roster/import/",
			rosterHead+fmt.Sprintf("g%d,%s,Gus,Guest,student\nn%d-%d,new%d-%d@school.example,New,One,student\n", g.n, g.email, g.n, g.round, g.n, g.round))
	case 9, 10:
		g.give(t, g.user, g.tests[g.round%len(g.tests)]) // also to whoever is not there
		return
	default: // often of somebody who is not in scope
		a = g.session(t, fmt.Sprintf("%d-%d", g.n, g.round), `"user_id": %d, "item_id": %d, "state": "finished", "score": 6`, g.user, g.ielts)
	}
	if a.Status >= http.StatusInternalServerError {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// comeBack makes the guest a student with access.
func (g *guest) comeBack(t *testing.T) {
	t.Helper()
	g.Platform.Delete(t, fmt.Sprintf("organizations/north/members/%d", g.user)) // of the staff, perhaps
	provision(t, g.Organization, g.email, `"courses": ["ielts"]`)
}

// Whatever others do at the same time, a job that stores its cursors has seen everything that the lists
// show in the end, once everybody is back: students, assignments and results.
// Reference: students#student-list, assignments#assignment-list, results#order.
func TestStoredCursorsMissNothing(t *testing.T) {
	t.Parallel()
	const guests, rounds = 6, 40
	e := apitest.New(t)
	e.ImportRosters(t)
	south := e.Organization(t, "south")
	s := &school{Env: e, Organization: e.Organization(t, "north")}
	s.ielts = item(t, e, "catalog/tests/i1", `{"title": "IELTS 1", "type": "ielts"}`)
	s.quiz = item(t, e, "organizations/north/catalog/quizzes/q1", `{"title": "Grammar", "retake": true}`)
	var tests []int64
	for n := range 12 {
		tests = append(tests, item(t, e, fmt.Sprintf("catalog/tests/t%d", n), `{"title": "IELTS", "type": "ielts"}`))
	}
	var all []*guest
	for n := range guests {
		email := fmt.Sprintf("g%d@school.example", n)
		all = append(all, &guest{school: s, tests: tests, n: n, email: email, user: provision(t, south, email), random: rand.New(rand.NewPCG(uint64(n), 11))})
	}
	var acting sync.WaitGroup
	for _, g := range all {
		acting.Go(func() {
			for range rounds {
				g.act(t)
			}
			g.comeBack(t)
		})
	}
	ended := make(chan struct{})
	go func() { acting.Wait(); close(ended) }()
	lists := []string{"students/", "assignments/", "results/"}
	seen, cursors := map[string]bool{}, map[string]string{}
	for over := false; !over; {
		select {
		case <-ended:
			over = true
		default:
		}
		for _, list := range lists {
			for _, row := range rowsAfter(t, s.ReadOnly, list, cursors) {
				seen[row] = true
			}
		}
	}
	for _, list := range lists {
		there := rowsAfter(t, s.ReadOnly, list, map[string]string{})
		for _, row := range there {
			check.True(t, "seen", seen[row], "%s shows %s, which the reader has not seen", list, row)
		}
		check.True(t, "rows", len(there) >= 2*guests, "%s has %d: the guests did too little", list, len(there))
	}
}

// rowsAfter reads a list from its cursor to its end, and stores the cursor.
func rowsAfter(t *testing.T, c *apitest.Client, list string, cursors map[string]string) (rows []string) {
	t.Helper()
	for {
		var p listPage
		var people studentPage
		c.Get(t, list+"?limit=5&cursor="+url.QueryEscape(cursors[list])).Want(t, 200).Into(t, &p).Into(t, &people)
		rows = append(rows, p.ids()...)
		for _, user := range people.ids() {
			rows = append(rows, fmt.Sprint("student ", user))
		}
		cursors[list] = p.NextCursor
		if !p.HasMore {
			return rows
		}
	}
}
