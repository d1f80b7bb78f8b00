package names

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/flow/rosterimport"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/seal/sealtest"
	"github.com/registrar-dev/registrar/internal/kit/task"
	"github.com/registrar-dev/registrar/webhook-sender/internal/advantage"
)

var local = egress.New(egress.Config{AllowHTTP: true, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})

// school is an LMS with a course, and an organization that pulls it.
type school struct {
	*flowtest.Fixture
	*httptest.Server
	org      id.Organization
	service  lms.Service
	r        lms.Registration
	course   lms.Context
	puller   *Puller
	importer *rosterimport.Importer
	now      time.Time

	mu     sync.Mutex
	answer http.HandlerFunc // of the members
	scopes []string
	calls  int
}

var olive = audit.Actor{Kind: audit.Staff, ID: 1, Name: "Olive"}

func newSchool(t *testing.T) *school {
	t.Helper()
	l := &school{Fixture: flowtest.New(t), now: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if r.URL.Path == "/token" {
			l.scopes = append(l.scopes, r.PostFormValue("scope"))
			_, _ = fmt.Fprint(w, `{"access_token": "t", "expires_in": 3600}`)
			return
		}
		l.calls++
		check.Equal(t, "Accept", r.Header.Get("Accept"), mediaType, "")
		check.Equal(t, "Authorization", r.Header.Get("Authorization"), "Bearer t", "")
		l.answer(w, r)
	}))
	t.Cleanup(l.Close)
	l.org = l.Organization("north").ID
	l.service = lms.Service{DB: l.Database, Policy: local}
	db := pgtest.OpenAs(t, l.Database, "webhook-sender")
	keys := lms.Keys{DB: db, Box: sealtest.New(t)}
	l.puller = New(db, advantage.New(local, keys, l.clock), l.clock, slog.New(slog.NewTextHandler(io.Discard, nil)))
	l.puller.Poll = 5 * time.Millisecond
	l.importer = &rosterimport.Importer{DB: l.Database, Zone: time.UTC, Log: slog.New(slog.DiscardHandler), Clock: l.clock}
	var err error
	l.r, err = l.service.Add(t.Context(), audit.Platform, l.org, lms.Registration{Name: "Canvas", Issuer: "https://canvas.school", ClientID: "1", AuthorizeURL: l.URL,
		TokenURL: l.URL + "/token", KeysURL: l.URL, Deployments: []string{"1"}}, l.now)
	check.NoError(check.Now(t), err, "registering")
	l.course = l.note(t, "c-101", l.URL+"/members")
	return l
}

func (l *school) clock() time.Time { return l.now }

// note has a link opened in a course.
func (l *school) note(t *testing.T, course, address string) lms.Context {
	t.Helper()
	m := lms.Message{Deployment: "1", Course: lms.Course{ID: course, Title: "Biology " + course, MembershipsURL: address}}
	check.NoError(check.Now(t), l.service.Note(t.Context(), l.org, l.r.ID, m, l.now), "noting")
	all, err := lms.Contexts(t.Context(), l.Database, l.org, l.r.ID)
	check.NoError(check.Now(t), err, "the courses")
	for _, c := range all {
		if c.Course == course {
			return c
		}
	}
	check.True(check.Now(t), "the course is known", false, "%v", all)
	return lms.Context{}
}

func (l *school) answers(h http.HandlerFunc) { l.mu.Lock(); defer l.mu.Unlock(); l.answer = h }

type member = map[string]any

func learner(n int) member {
	return member{"user_id": fmt.Sprintf("u%d", n), "email": fmt.Sprintf("u%d@north-institute.org", n), "given_name": "Una", "family_name": fmt.Sprintf("N%d", n),
		"status": "Active", "roles": []string{"http://purl.imsglobal.org/vocab/lis/v2/membership#Learner"}}
}

func learners(n int) (all []member) {
	for i := range n {
		all = append(all, learner(i))
	}
	return all
}

// pages answers with so many members a page.
func pages(each int, members ...member) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var from int
		_, _ = fmt.Sscan(r.URL.Query().Get("from"), &from)
		to := min(from+each, len(members))
		if to < len(members) {
			w.Header().Add("Link", `<https://canvas.school/d>; rel="differences"`)
			w.Header().Add("Link", fmt.Sprintf(`<members?from=%d>; rel="next"`, to))
		}
		w.Header().Set("Content-Type", mediaType)
		_ = json.NewEncoder(w).Encode(map[string]any{"id": "x", "context": map[string]any{"id": "c-101"}, "members": members[from:to]})
	}
}

func (l *school) turnOn(t *testing.T) {
	t.Helper()
	_, err := l.service.SetPull(t.Context(), olive, l.org, l.r.ID, l.course.ID, true, l.now)
	check.NoError(check.Now(t), err, "turning it on")
}

func (l *school) allowSnapshots(t *testing.T) {
	t.Helper()
	_, err := roster.PutSource(t.Context(), l.Database, audit.Platform, l.org, l.course.Source(), func(s *roster.Settings) { s.AuthoritativeEnabled = true }, l.now)
	check.NoError(check.Now(t), err, "allowing snapshots")
}

// pull makes the pulls that are due, and gives the last attempt.
func (l *school) pull(t *testing.T) lms.PullAttempt {
	t.Helper()
	due, err := lms.DuePulls(t.Context(), l.Database, atOnce, l.now, lease)
	check.NoError(check.Now(t), err, "what is due")
	check.Equal(check.Now(t), "due pulls", len(due), 1, "")
	l.puller.attempt(t.Context(), due[0])
	c, err := lms.FindContext(t.Context(), l.Database, l.org, l.r.ID, l.course.ID)
	check.NoError(check.Now(t), err, "the course")
	check.True(check.Now(t), "an attempt is recorded", c.Last() != nil, "")
	return *c.Last()
}

func (l *school) ask(t *testing.T) lms.PullAttempt {
	t.Helper()
	_, err := l.service.AskPull(t.Context(), olive, l.org, l.r.ID, l.course.ID, l.now)
	check.NoError(check.Now(t), err, "asking")
	return l.pull(t)
}

// run carries a run out, as a worker does, and gives it as it is then.
func (l *school) run(t *testing.T, run id.RosterRun) roster.Run {
	t.Helper()
	for job := l.claim(t); len(job) > 0; job = l.claim(t) {
		for _, o := range job {
			check.NoError(check.Now(t), l.importer.Run(t.Context(), task.Outbox{Task: o.ID, Claim: o.Claim}), "the run")
		}
	}
	r, err := roster.Find(t.Context(), l.Database, l.org, run)
	check.NoError(check.Now(t), err, "the run")
	return r
}

func (l *school) claim(t *testing.T) []outbox.Task {
	t.Helper()
	job, err := outbox.Claim(t.Context(), l.Database, task.RosterRun, l.now, time.Minute, 10)
	check.NoError(check.Now(t), err, "claiming")
	return job
}

func (l *school) active() int {
	return l.Count("members WHERE role = 'member' AND status = 'active' AND organization_id = $1", l.org)
}

func (l *school) seats() int { return l.Count("roster_class_members WHERE active") }

func TestACourseIsARoster(t *testing.T) {
	t.Parallel()
	l := newSchool(t)
	people := learners(12)
	people[1]["roles"] = []string{"Learner"}
	people[2]["roles"] = []string{"http://purl.imsglobal.org/vocab/lis/v2/institution/person#Student", "http://purl.imsglobal.org/vocab/lis/v2/membership#Learner"}
	delete(people[3], "given_name")
	delete(people[3], "family_name")
	people[3]["name"] = "Una Maria N3"
	people = append(people,
		member{"user_id": "t1", "email": "t1@north-institute.org", "given_name": "Tara", "roles": []string{"http://purl.imsglobal.org/vocab/lis/v2/membership#Instructor"}},
		member{"user_id": "t2", "email": "t2@north-institute.org", "given_name": "Theo", "roles": []string{"http://purl.imsglobal.org/vocab/lis/v2/membership#Instructor",
			"http://purl.imsglobal.org/vocab/lis/v2/membership/Instructor#TeachingAssistant"}},
		member{"user_id": "m1", "email": "m1@north-institute.org", "given_name": "Max", "roles": []string{"http://purl.imsglobal.org/vocab/lis/v2/membership#Mentor"}},
		member{"user_id": "a1", "email": "a1@north-institute.org", "given_name": "Ada", "roles": []string{"http://purl.imsglobal.org/vocab/lis/v2/membership#Administrator"}},
		member{"user_id": "x1", "email": "x1@north-institute.org", "given_name": "Xi", "roles": []string{"Stargazer"}},
		member{"user_id": "n1", "given_name": "Nobody", "roles": []string{"Learner"}},
		member{"user_id": "g1", "email": "g1@north-institute.org", "given_name": "Gone", "status": "Deleted", "roles": []string{"Learner"}},
		member{"user_id": "g2", "email": "g2@north-institute.org", "given_name": "Gina", "status": "Inactive", "roles": []string{"Learner"}})
	l.answers(pages(5, people...))
	l.turnOn(t)
	a := l.pull(t)
	check.Equal(check.Now(t), "cause", a.Cause, "", "")
	check.Equal(t, "members", a.Members, len(people), "")
	check.Equal(t, "without an address", a.NoAddress, 1, "")
	check.Equal(t, "pages", l.calls, 4, "")
	check.Equal(t, "scopes", strings.Join(l.scopes, " "), lms.NamesScope, "asked for, once")
	r := l.run(t, a.Run)
	check.Equal(check.Now(t), "state", r.State, roster.Applied, "%s %v", r.Fault, r.Reasons)
	check.Equal(t, "who", r.RequestedBy, "Olive", "")
	check.Equal(t, "source", r.Source.Name, l.course.Source(), "")
	check.Equal(t, "created", r.Create, 12, "")
	check.Equal(t, "in the class", l.seats(), 12, "")
	check.Equal(t, "the class", l.Count("roster_classes WHERE external_id = 'c-101' AND name = 'Biology c-101'"), 1, "")
	check.Equal(t, "names", l.Count("accounts WHERE first_name = 'Una' AND last_name = 'Maria N3'"), 1, "")
	for code, n := range map[roster.Code]int{roster.TeacherReported: 3, roster.AdminRoleNotGranted: 1, roster.UnknownRole: 1, roster.MissingEmail: 1} {
		check.Equal(t, string(code), l.Count("roster_issues WHERE code = $1", code), n, "")
	}
	check.Equal(t, "the member without an address", l.Count("roster_issues WHERE code = 'missing_email' AND person_external_id = 'n1'"), 1, "")
	check.Equal(t, "audit", l.Count("audit_log WHERE action IN ('turned on roster of LMS course', 'submitted roster import') AND actor_name = 'Olive'"), 2, "")
	// The same again changes nothing, and it is undone as a file is.
	r = l.run(t, l.ask(t).Run)
	check.Equal(t, "what the same list changes", r.Create+r.Update+r.SeatsAdded+r.SeatsRemoved, 0, "%+v", r.Counts)
	undo, err := roster.Undo(t.Context(), l.Database, olive, l.org, a.Run, l.now)
	check.NoError(check.Now(t), err, "undoing")
	l.run(t, undo)
	check.Equal(t, "students after the undoing", l.active(), 0, "")
}

// Nobody leaves by what an LMS lists, unless the platform has allowed snapshots; then the guards hold what is implausible.
func TestWhoLeaves(t *testing.T) {
	t.Parallel()
	l := newSchool(t)
	l.answers(pages(50, learners(20)...))
	l.turnOn(t)
	l.run(t, l.pull(t).Run)
	l.answers(pages(50, learners(19)...))
	l.run(t, l.ask(t).Run)
	check.Equal(t, "students, without snapshots", l.active(), 20, "")
	l.allowSnapshots(t)
	l.run(t, l.ask(t).Run)
	check.Equal(t, "students, with them", l.active(), 19, "")
	check.Equal(t, "in the class", l.seats(), 19, "")
	for name, members := range map[string][]member{"nobody": {}, "few": learners(5), "a teacher": {{"user_id": "t", "email": "t@north-institute.org", "roles": []string{"Instructor"}}}} {
		l.answers(pages(50, members...))
		r := l.run(t, l.ask(t).Run)
		check.Equal(t, "state", r.State, roster.Held, "%s", name)
		check.Equal(t, "students", l.active(), 19, "%s", name)
		check.Equal(t, "in the class", l.seats(), 19, "%s", name)
		check.NoError(t, roster.Discard(t.Context(), l.Database, olive, l.org, r.ID, l.now), "discarding")
	}
	hidden := learners(19)
	for _, m := range hidden {
		delete(m, "email")
	}
	l.answers(pages(50, hidden...))
	r := l.run(t, l.ask(t).Run)
	check.Equal(t, "state, without any address", r.State, roster.Refused, "")
	check.Equal(t, "students", l.active(), 19, "")
	l.answers(pages(50, learners(5)...))
	held := l.run(t, l.ask(t).Run)
	check.NoError(check.Now(t), roster.Approve(t.Context(), l.Database, olive, l.org, held.ID, l.now), "approving")
	l.run(t, held.ID)
	check.Equal(t, "students, once it is approved", l.active(), 5, "")
}

// What a hostile or broken LMS may answer imports nothing, and says why.
func TestHostilePlatforms(t *testing.T) {
	t.Parallel()
	say := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "away", code) }
	}
	linked := func(next string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "<"+next+">; rel=next")
			_, _ = io.WriteString(w, `{"members": [{"user_id": "u1", "email": "u1@north-institute.org", "roles": ["Learner"]}]}`)
		}
	}
	n := 0
	l := newSchool(t)
	l.turnOn(t)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		cause  string
	}{
		"a page of another host":    {linked("http://127.0.0.2:9/"), "another host"},
		"a page within":             {linked("http://169.254.169.254/latest"), "another host"},
		"a page that cannot be":     {linked("http://[::1"), "cannot be used"},
		"the same page again":       {linked("/members"), "read before"},
		"endless pages":             {func(w http.ResponseWriter, r *http.Request) { n++; linked(fmt.Sprintf("/members?p=%d", n))(w, r) }, "more than 500 pages"},
		"a huge page":               {say(`{"members": [{"user_id": "` + strings.Repeat("x", largestPage)), "more than 4 MiB"},
		"a web page":                {say("<html>"), "no list of members"},
		"something else":            {say(`{"results": []}`), "has no members"},
		"a list that breaks off":    {say(`{"members": [{"user_id": "u1"`), "no list of members"},
		"members of another form":   {say(`{"members": [{"user_id": 7}]}`), "no list of members"},
		"a member without an id":    {say(`{"members": [{"email": "u1@north-institute.org"}]}`), "member 1 has no user_id"},
		"another course's":          {say(`{"context": {"id": "c-102"}, "members": []}`), "another course"},
		"a redirection":             {http.RedirectHandler("http://169.254.169.254/", http.StatusFound).ServeHTTP, "redirects"},
		"its token is not accepted": {status(401), "own token"},
		"it does not let us":        {status(403), "Allow Names and Role"},
		"no such course":            {status(404), "no such course"},
		"away":                      {status(503), "answered 503: away"},
	} {
		l.answers(c.answer)
		a := l.ask(t)
		check.Contains(t, "the cause", a.Cause, c.cause, "%s", name)
		check.Equal(t, "a run", a.Run, 0, "%s", name)
	}
	check.Equal(t, "runs", l.Count("roster_runs"), 0, "")
	check.Equal(t, "the address of a private network", l.Count("lms_contexts"), 1, "")
	strict := l.service
	strict.Policy = egress.New(egress.Config{})
	m := lms.Message{Deployment: "1", Course: lms.Course{ID: "c-9", MembershipsURL: "https://10.0.0.1/members"}}
	check.NoError(t, strict.Note(t.Context(), l.org, l.r.ID, m, l.now), "the launch is good all the same")
	check.Equal(t, "the address of a private network", l.Count("lms_contexts"), 1, "is not remembered")
	l.Exec(`UPDATE lms_contexts SET memberships_url = 'http://169.254.169.254/'`)
	check.Contains(t, "the cause", l.ask(t).Cause, "not a public address", "")
}

// A pull that breaks midway imports nothing; it is tried a few times with pauses, and then again in the night.
func TestAPullThatFails(t *testing.T) {
	t.Parallel()
	l := newSchool(t)
	good := pages(5, learners(12)...)
	broken := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("from") == "10" {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		good(w, r)
	}
	l.answers(broken)
	l.turnOn(t)
	for _, pause := range pausesOfTest {
		check.Contains(t, "the cause", l.pull(t).Cause, "answered 502", "")
		l.now = l.now.Add(pause)
	}
	check.Contains(t, "the cause", l.pull(t).Cause, "answered 502", "")
	check.Equal(t, "runs", l.Count("roster_runs"), 0, "")
	check.Equal(t, "due", l.Count("lms_contexts WHERE due_at IS NOT NULL"), 0, "it is given up")
	failing, err := lms.FailingPulls(t.Context(), l.Database)
	check.NoError(t, err, "counting")
	check.Equal(t, "failing", failing, 1, "")
	night := time.Date(2026, 11, 24, 1, 0, 0, 0, time.UTC)
	check.NoError(t, lms.SchedulePulls(t.Context(), l.Database, night, night), "the schedule")
	l.now = night.Add(4 * time.Hour)
	for range 2 {
		check.NoError(t, lms.SchedulePulls(t.Context(), l.Database, night, l.now), "the schedule")
	}
	l.answers(good)
	a := l.pull(t)
	r := l.run(t, a.Run)
	check.Equal(t, "created", r.Create, 12, "")
	check.Equal(t, "who", r.RequestedBy, audit.Scheduled.Name, "")
	check.NoError(t, lms.SchedulePulls(t.Context(), l.Database, night, l.now.Add(time.Hour)), "the schedule")
	check.Equal(t, "due", l.Count("lms_contexts WHERE due_at IS NOT NULL"), 0, "once a night")
}

var pausesOfTest = []time.Duration{5 * time.Minute, 30 * time.Minute, 2 * time.Hour}

// Several pullers make each pull once, one course of an LMS at a time; one that has lost its pull hands nothing over; an upload for the
// same source comes before or after.
func TestPullsAtOnce(t *testing.T) {
	t.Parallel()
	l := newSchool(t)
	l.answers(pages(50, learners(8)...))
	l.turnOn(t)
	var all []lms.Pull
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			due, err := lms.DuePulls(t.Context(), l.Database, atOnce, l.now, lease)
			check.NoError(t, err, "what is due")
			mu.Lock()
			defer mu.Unlock()
			all = append(all, due...)
		})
	}
	wg.Wait()
	check.Equal(check.Now(t), "handed out", len(all), 1, "of 8 at once")
	_, err := l.service.AskPull(t.Context(), olive, l.org, l.r.ID, l.course.ID, l.now)
	check.True(t, "it is being pulled", err != nil, "")
	l.now = l.now.Add(lease + time.Second) // its puller has died
	next, err := lms.DuePulls(t.Context(), l.Database, atOnce, l.now, lease)
	check.NoError(check.Now(t), err, "what is due")
	check.Equal(check.Now(t), "handed out again", len(next), 1, "")
	l.puller.attempt(t.Context(), all[0])
	check.Equal(t, "runs of the one that has lost it", l.Count("roster_runs"), 0, "")
	up, err := roster.Begin(t.Context(), l.Database, l.org, "key", l.now)
	check.NoError(check.Now(t), err, "an upload")
	size, err := roster.Store(t.Context(), l.Database, up, strings.NewReader("person_external_id,email\nu0,u0@north-institute.org\n"))
	check.NoError(check.Now(t), err, "an upload")
	wg.Go(func() { l.puller.attempt(context.WithoutCancel(t.Context()), next[0]) })
	wg.Go(func() {
		check.NoError(t, roster.Submit(t.Context(), l.Database, olive, l.org, up, roster.Draft{Source: roster.Source{Name: l.course.Source()}, Mode: roster.Additive, Size: size}, l.now), "an upload")
	})
	wg.Wait()
	check.Equal(check.Now(t), "runs", l.Count("roster_runs WHERE state = 'queued'"), 2, "")
	check.Equal(t, "tasks", l.Count("outbox_tasks WHERE kind = 'roster.run'"), 1, "one after the other")
	check.Equal(t, "state of the upload", l.run(t, up).State, roster.Applied, "")
	check.Equal(t, "runs", l.Count("roster_runs WHERE state = 'applied'"), 2, "")
	check.Equal(t, "students", l.active(), 8, "")
	// Whoever turns it off takes it from the puller.
	_, err = l.service.AskPull(t.Context(), olive, l.org, l.r.ID, l.course.ID, l.now)
	check.NoError(check.Now(t), err, "asking")
	due, err := lms.DuePulls(t.Context(), l.Database, atOnce, l.now, lease)
	check.NoError(check.Now(t), err, "what is due")
	_, err = l.service.SetPull(t.Context(), olive, l.org, l.r.ID, l.course.ID, false, l.now)
	check.NoError(check.Now(t), err, "turning it off")
	l.puller.attempt(t.Context(), due[0])
	check.Equal(t, "runs", l.Count("roster_runs"), 2, "")
}

// Several processes take turns at handing pulls out, so that no LMS is asked for two courses at once.
func TestOneCourseOfAnLMSAtATime(t *testing.T) {
	t.Parallel()
	l := newSchool(t)
	const courses = 12
	for n := range courses {
		c := l.note(t, fmt.Sprint("c-", n), l.URL+"/members")
		_, err := l.service.SetPull(t.Context(), olive, l.org, l.r.ID, c.ID, true, l.now)
		check.NoError(check.Now(t), err, "turning it on")
	}
	for range courses {
		got := make(chan []lms.Pull, 6)
		for range cap(got) {
			go func() {
				due, err := lms.DuePulls(t.Context(), l.Database, atOnce, l.now, lease)
				check.NoError(t, err, "what is due")
				got <- due
			}()
		}
		var all []lms.Pull
		for range cap(got) {
			all = append(all, <-got...)
		}
		check.Equal(check.Now(t), "handed out at once", len(all), 1, "%v", all)
		check.NoError(check.Now(t), lms.SettlePull(t.Context(), l.Database, all[0], lms.PullAttempt{At: l.now}), "settling")
	}
	due, err := lms.DuePulls(t.Context(), l.Database, atOnce, l.now, lease)
	check.NoError(t, err, "what is due")
	check.Equal(t, "left", len(due), 0, "%v", due)
}

// Lists that LMSes make as long as they may are in memory two at a time; an ordinary one passes them by.
func TestLongListsTakeTurns(t *testing.T) {
	t.Parallel()
	l := newSchool(t)
	l.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			_, _ = fmt.Fprint(w, `{"access_token": "t", "expires_in": 3600}`)
			return
		}
		var page int
		_, _ = fmt.Sscan(r.URL.Query().Get("page"), &page)
		if r.URL.Path == "/long" && page < 3 {
			w.Header().Set("Link", fmt.Sprintf(`</long?page=%d>; rel="next"`, page+1))
		}
		pad := ""
		if r.URL.Path == "/long" {
			pad = strings.Repeat("x", 2<<20)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"pad": pad, "members": []member{learner(page)}})
	})
	pull := func(address string) lms.Pull {
		return lms.Pull{Services: lms.Services{Registration: l.r.ID, Organization: l.org, ClientID: "1", TokenURL: l.URL + "/token"}, Course: "c-101", MembershipsURL: l.URL + address}
	}
	l.puller.long <- struct{}{} // two are being read
	l.puller.long <- struct{}{}
	short, err := l.puller.pull(t.Context(), pull("/short"))
	check.NoError(t, err, "an ordinary list")
	check.Equal(t, "cause", short.Cause, "", "")
	over, cancel := context.WithCancel(t.Context())
	ended := make(chan lms.PullAttempt)
	go func() {
		a, err := l.puller.pull(over, pull("/long"))
		check.NoError(t, err, "a long list")
		ended <- a
	}()
	cancel()
	check.True(t, "it does not go on without a place", strings.Contains((<-ended).Cause, "list"), "")
	check.Equal(t, "places taken", len(l.puller.long), 2, "")
	<-l.puller.long
	a, err := l.puller.pull(t.Context(), pull("/long"))
	check.NoError(t, err, "a long list")
	check.Equal(t, "cause", a.Cause, "", "%s", a.Cause)
	check.Equal(t, "places taken", len(l.puller.long), 1, "it gives its own back")
}

// The puller as it runs: an LMS that does not answer holds up no other.
func TestASlowLMSHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	l := newSchool(t)
	stall, stalled := make(chan struct{}), make(chan struct{}, 9)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stalled <- struct{}{}
		select {
		case <-stall:
		case <-r.Context().Done():
		}
	}))
	defer slow.Close()
	defer close(stall)
	l.answers(pages(50, learners(3)...))
	other, err := l.service.Add(t.Context(), audit.Platform, l.org, lms.Registration{Name: "Moodle", Issuer: "https://moodle.school", ClientID: "1", AuthorizeURL: slow.URL,
		TokenURL: slow.URL, KeysURL: slow.URL, Deployments: []string{"1"}}, l.now)
	check.NoError(check.Now(t), err, "registering")
	for _, course := range []string{"a", "b"} {
		m := lms.Message{Deployment: "1", Course: lms.Course{ID: course, MembershipsURL: slow.URL}}
		check.NoError(check.Now(t), l.service.Note(t.Context(), l.org, other.ID, m, l.now), "noting")
	}
	l.Exec(`UPDATE lms_contexts SET pulled = true, due_at = $1, asked_at = $1`, l.now)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.puller.Run(ctx) }()
	<-stalled
	for deadline := time.Now().Add(time.Minute); l.Count("lms_contexts WHERE pulled_at IS NOT NULL") == 0; time.Sleep(5 * time.Millisecond) {
		check.True(check.Now(t), "the other LMS's course is pulled", time.Now().Before(deadline), "within a minute")
	}
	check.Equal(t, "courses of the slow one in hand", l.Count("lms_contexts WHERE registration_id = $1 AND in_hand", other.ID), 1, "at a time")
	cancel()
	slow.CloseClientConnections()
	<-done
}

func FuzzNextPage(f *testing.F) {
	for _, seed := range []string{`<https://a/b?c=d>; rel="next"`, `<a>; rel=first, <b>; rel="prev next"; title="x"`, `<`, `<>;rel=next`, `<a>;rel="next`, `<a;b,c>; rel=next,`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		to, err := nextPage(http.Header{"Link": {header}}, "https://lms.school/members")
		if err == nil && to != nil && !strings.Contains(strings.ToLower(header), "next") {
			t.Errorf("%q leads to %s", header, to)
		}
	})
}
