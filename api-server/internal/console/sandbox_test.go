package console_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/server"
	"github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/flow/simulate"
	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// withSandboxes is a site with sandboxes, whose clocks nobody moves (arrive).
func withSandboxes(t *testing.T) func(*server.Deps) {
	return func(d *server.Deps) {
		var err error
		d.Sandboxes, err = simulate.New(pgtest.Server(t), d.DB, d.Clock, slog.New(slog.DiscardHandler))
		check.NoError(check.Now(t), err, "%v", err)
	}
}

// sandboxed is the site of an organization with a sandbox.
type sandboxed struct {
	*site
	made *simulate.Service
	test apitest.Organization // with a key of the sandbox
}

func openSandbox(t *testing.T) *sandboxed {
	t.Helper()
	with, s := withSandboxes(t), &sandboxed{}
	s.site = open(t, with, func(d *server.Deps) { s.made = d.Sandboxes })
	for n := range 4 {
		s.Platform.Put(t, fmt.Sprintf("organizations/north/catalog/tests/mock-%d", n), fmt.Sprintf(`{"title": "Mock %d", "type": "ielts"}`, n)).Want(t, http.StatusCreated)
	}
	s.Platform.Put(t, "organizations/north/sandbox", nil).Want(t, http.StatusCreated)
	made := s.Platform.Post(t, "organizations/north/api-keys", `{"name": "Sandbox", "access": "full", "sandbox": true}`).Want(t, http.StatusCreated).Object(t)
	s.test = s.north
	s.test.Full = s.Partner(made["key"].(string))
	return s
}

func (s *sandboxed) inside(t *testing.T, do func(*pg.DB)) {
	t.Helper()
	found, err := sandbox.Find(t.Context(), s.made.DB, s.north.ID)
	check.NoError(check.Now(t), err, "%v", err)
	db, err := s.made.Open(t.Context(), found)
	check.NoError(check.Now(t), err, "%v", err)
	defer db.Close()
	do(db)
}

// pass lets time pass in the sandbox, where a worker would have done what is due meanwhile.
func (s *sandboxed) pass(t *testing.T, d time.Duration) {
	t.Helper()
	s.inside(t, func(db *pg.DB) {
		c, err := sandbox.Read(t.Context(), db, s.north.ID)
		check.NoError(check.Now(t), err, "%v", err)
		check.NoError(check.Now(t), sandbox.Set(t.Context(), db, sandbox.Mover{Organization: s.north.ID}, c.Now.Add(d), true), "")
	})
}

// A sandbox's clock is moved on its page, which follows it, and shows the life of a student as a picture.
func TestTheSandboxInABrowser(t *testing.T) {
	t.Parallel()
	s := openSandbox(t)
	s.test.Full.Post(t, "provision/student/", `{"email": "asha@anywhere.example", "first_name": "Asha", "last_name": "Rao", "courses": ["ielts"], "tenure_months": 3}`).Want(t, 201)
	var catalog struct {
		Items []struct {
			ID int64 `json:"item_id"`
		}
	}
	s.test.Full.Get(t, "catalog/").Want(t, 200).Into(t, &catalog)
	for n, item := range catalog.Items {
		s.pass(t, time.Duration(4+5*n)*24*time.Hour)
		var given struct{ Assignment struct{ ID string } }
		s.test.Full.Post(t, "assignments/", fmt.Sprintf(`{"email": "asha@anywhere.example", "kind": "test", "item_id": %d, "due_date": "2027-02-20"}`, item.ID)).Want(t, 201).Into(t, &given)
		s.pass(t, 70*time.Hour)
		s.test.Full.Post(t, "sandbox/act/", fmt.Sprintf(`{"assignment_id": %q, "seed": %d}`, given.Assignment.ID, n)).Want(t, 200)
	}
	b := browsertest.Open(t)
	s.enter(b, "olive")
	b.Size(1280, 900)
	b.Press("Sandbox")
	b.AwaitText("What happens next")
	b.Accessible("a sandbox")
	b.Press("Asha Rao")
	b.Await("svg.life")
	b.Press("To what happens next")
	b.AwaitText("is moved to")
	b.Accessible("a sandbox whose clock is moved")
	b.Screenshot("sandbox-moved")
	s.pass(t, 10*24*time.Hour)
	b.AwaitText("A month")
	b.Accessible("a student's life")
	b.Screenshot("sandbox")
	b.Pictures("../../../docs/console/sandbox")
	if n := b.Count("svg.life circle"); n < 10 {
		t.Errorf("the picture has %d marks", n)
	}
	check.Equal(t, "times with access", b.Count("svg.life rect.access"), 1, "")
	b.Size(390, 844)
	b.Accessible("a student's life on a telephone")
	check.False(t, "it scrolls sideways", b.WiderThanWindow(), "")
	b.Screenshot("sandbox-telephone")
	b.Pictures("../../../docs/console/sandbox-telephone")
}

// What is of the real organization is not on the page, and the other way round; a clock that is moved is not moved
// again.
func TestTheSandboxsPage(t *testing.T) {
	t.Parallel()
	s := openSandbox(t)
	s.test.Full.Post(t, "provision/student/", `{"email": "asha@anywhere.example", "first_name": "Asha"}`).Want(t, 201)
	s.north.Full.Post(t, "provision/student/", `{"email": "ben@north-institute.org", "first_name": "Ben"}`).Want(t, 201)
	b := s.signedIn(t, "adam")
	_, page, _ := b.get(t, "/console/north/sandbox/")
	check.Contains(t, "the sandbox", page, "asha@anywhere.example", "")
	check.Lacks(t, "the sandbox", page, "ben@", "")
	_, page, _ = b.get(t, "/console/north/students/")
	check.Lacks(t, "the students", page, "asha@", "")
	step := func(form url.Values, says string) {
		t.Helper()
		status, _, header := b.post(t, "/console/north/sandbox/advance/", form)
		check.Equal(t, "status", status, http.StatusSeeOther, "")
		_, page, _ := b.get(t, header.Get("Location"))
		check.Contains(t, "the page", page, says, "after %v", form)
	}
	step(url.Values{"by": {"a while"}}, "is no duration")
	step(url.Values{"by": {"P9Y"}}, "by 2 years at most")
	step(url.Values{"by": {"P1D"}, "receiver": {"fails"}}, "The clock is moved.")
	s.inside(t, func(db *pg.DB) {
		c, err := sandbox.Read(t.Context(), db, s.north.ID)
		check.NoError(t, err, "%v", err)
		check.Equal(t, "the receiver", c.Receiver, sandbox.Fails, "")
		check.True(t, "it is moved by a day", c.Target != nil && c.Target.Equal(c.Now.AddDate(0, 0, 1)), "%+v", c)
	})
	step(url.Values{"by": {"P1D"}}, "is being moved")
}

// Staff need nobody for a sandbox: they make it and a key of it, which reaches nothing else.
func TestASandboxIsMadeInTheConsole(t *testing.T) {
	t.Parallel()
	s := open(t, withSandboxes(t))
	b := s.signedIn(t, "adam")
	form := url.Values{"name": {"Try-out"}, "access": {"full"}, "sandbox": {"yes"}}
	_, page, _ := b.get(t, "/console/north/api-keys/")
	check.Lacks(t, "the form", page, `name="sandbox"`, "there is none")
	status, page, _ := b.post(t, "/console/north/api-keys/", form)
	want(t, "a key of no sandbox", status, page, http.StatusBadRequest, "has no sandbox", "Try-out")
	for range 2 { // the second one finds it
		status, _, _ = b.post(t, "/console/north/sandbox/", nil)
		check.Equal(t, "status", status, http.StatusSeeOther, "")
	}
	_, page, _ = b.get(t, "/console/north/sandbox/")
	check.Contains(t, "the page", page, "The clock shows", "")
	_, page, _ = b.get(t, "/console/north/api-keys/")
	check.Contains(t, "the form", page, `name="sandbox"`, "there is one")
	status, page, _ = b.post(t, "/console/north/api-keys/", form)
	want(t, "a key of the sandbox", status, page, http.StatusCreated, "Your new key", "It reaches the sandbox alone.")
	key := regexp.MustCompile(`reg_test_[\w-]{43}`).FindString(page)
	s.Partner(key).Get(t, "sandbox/").Want(t, http.StatusOK)
	done := s.did(t, "adam")
	check.Equal(t, "commands", len(done), 2, "%q", done)
	check.Equal(t, "the first one", strings.TrimSpace(done[len(done)-1]), "created sandbox", "%q", done)
}

// An installation without sandboxes says so.
func TestThereAreNoSandboxes(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.signedIn(t, "adam")
	for _, path := range []string{"", "advance/", "wipe/"} {
		status, _, header := b.post(t, "/console/north/sandbox/"+path, url.Values{"by": {"P1D"}})
		check.Equal(t, "status", status, http.StatusSeeOther, "of %s", path)
		status, page, _ := b.get(t, header.Get("Location"))
		want(t, path, status, page, http.StatusOK, "This installation has no sandboxes")
		check.Lacks(t, "the page", page, "Make the sandbox", "")
	}
}

func (p *plain) sandbox(t *testing.T) {
	t.Helper()
	const page, route = "/console/north/sandbox/", "POST /console/{slug}/sandbox"
	p.act(route, page, p.press("Make the sandbox"), "The sandbox is there")
	p.act(route+"/advance", page, p.press("A day"), "The clock is moved")
	p.act(route+"/wipe", page, p.press("Wipe…", "Wipe the sandbox"), "The sandbox is empty")
}
