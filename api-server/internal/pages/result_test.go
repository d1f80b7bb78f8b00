package pages_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// work is a site where Ana's work is reported.
type work struct {
	*site
	ana, item int64
}

func openWork(t *testing.T) *work {
	t.Helper()
	w := &work{site: open(t)}
	w.Platform.Put(t, "catalog/tests/m1", `{"title": "Mock <1>", "type": "ielts"}`).Want(t, 201)
	var listed struct {
		Items []struct {
			ID int64 `json:"item_id"`
		} `json:"items"`
	}
	w.north.Full.Get(t, "catalog/").Want(t, 200).Into(t, &listed)
	w.item = listed.Items[0].ID
	w.ana = int64(w.provision(t)["user_id"].(float64))
	return w
}

// report reports a session of an organization's student.
func (w *work) report(t *testing.T, slug, session string, user int64, rest string) {
	t.Helper()
	w.Platform.Put(t, "test-sessions/"+url.PathEscape(session), fmt.Sprintf(`{"organization": %q, "user_id": %d, "item_id": %d, %s}`, slug, user, w.item, rest)).Want(t, 201)
}

const scored = `"state": "finished", "score": 6.5, "started_at": "2026-11-20T08:00:00Z", "completed_at": "2026-11-20T10:45:00Z",
	"sections": {"listening": 6.5, "reading": 7, "writing": 6, "speaking": 6.5}`

const staffPassword = "correct horse battery"

// staffOf makes somebody staff of an organization and signs them in.
func (w *work) staffOf(t *testing.T, slug, name, role string) *browser {
	t.Helper()
	address := name + "@" + slug + ".institute.org"
	w.Platform.Put(t, "organizations/"+slug+"/staff/"+address, fmt.Sprintf(`{"first_name": %q, "role": %q, "password": %q}`, name, role, staffPassword)).Want(t, 201)
	b := w.browser(t)
	if p := b.signIn(t, address, staffPassword); p.status != 303 {
		t.Fatalf("%d %s", p.status, p.body)
	}
	return b
}

// links are the result_url of the list, as paths.
func links(t *testing.T, o apitest.Organization) (paths []string) {
	t.Helper()
	var list struct {
		Results []struct {
			URL string `json:"result_url"`
		} `json:"results"`
	}
	o.Full.Get(t, "results/").Want(t, 200).Into(t, &list)
	for _, r := range list.Results {
		path, ours := strings.CutPrefix(r.URL, apitest.PublicURL)
		if !ours {
			t.Errorf("%s leads elsewhere", r.URL)
		}
		paths = append(paths, path)
	}
	return paths
}

func TestAResultIsShownToItsStudentAndTheStaff(t *testing.T) {
	t.Parallel()
	w := openWork(t)
	w.Organization(t, "south")
	w.report(t, "north", "s1", w.ana, scored)
	path := links(t, w.north)[0]
	if path != "/results/test:s1" {
		t.Errorf("the link is %s", path)
	}
	w.setPassword(t)
	ana := w.browser(t)
	p := ana.do(t, path, nil)
	check.Equal(check.Now(t), "p.status", p.status, 303, "nobody: %d to %q", p.status, p.to)
	check.Equal(check.Now(t), "p.to", p.to, "/sign-in/?next="+url.QueryEscape(path), "nobody: %d to %q", p.status, p.to)
	p = ana.do(t, "/sign-in/", url.Values{"name": {"ana@institute.org"}, "password": {password}, "next": {path}})
	check.Equal(check.Now(t), "p.status", p.status, 303, "after the sign-in: %d to %q", p.status, p.to)
	check.Equal(check.Now(t), "p.to", p.to, path, "after the sign-in: %d to %q", p.status, p.to)
	viewers := map[string]*browser{"the student": ana}
	for _, role := range []string{"owner", "admin", "examiner", "teacher"} {
		viewers[role] = w.staffOf(t, "north", role, role)
	}
	for who, b := range viewers {
		for _, at := range []string{path, path + "/"} {
			p := b.do(t, at, nil)
			for _, want := range []string{"Mock &lt;1&gt;", "Ana", "Institute north", "Band 6.5", "6.5 of 9", "72.22 %", "Final", "IELTS Academic, practice",
				"20 November 2026, 10:45 UTC", "listening", "speaking"} {
				if check.Equal(t, "p.status", p.status, 200, "%s at %s: %d without %q\n%s", who, at, p.status, want, p.body) {
					check.Contains(t, "the page", p.body, want, "%s at %s: %d without %q\n%s", who, at, p.status, want, p.body)
				}
			}
		}
	}
	for _, other := range []string{"/results/test:s2", "/results/test", "/results/%00", "/results/%ff"} {
		if p := ana.do(t, other, nil); p.status != 404 {
			t.Errorf("%s: %d", other, p.status)
		}
	}
}

func TestAResultIsNobodyElsesToSee(t *testing.T) {
	t.Parallel()
	w := openWork(t)
	w.Organization(t, "south")
	w.report(t, "north", "s1", w.ana, scored)
	strangers := map[string]*browser{"another's owner": w.staffOf(t, "south", "sam", "owner"), "staff who left": w.staffOf(t, "north", "gone", "owner"),
		"another student": w.browser(t)}
	w.exec(t, `UPDATE members SET status = 'inactive' WHERE user_id = (SELECT id FROM accounts WHERE email = 'gone@north.institute.org')`)
	w.north.Full.Post(t, "provision/student/", `{"email": "cy@institute.org", "first_name": "Cy", "password_mode": "set", "password": "`+password+`",
		"must_change_password": false}`).Want(t, 201)
	strangers["another student"].signIn(t, "cy@institute.org", password)
	for who, b := range strangers {
		if p := b.do(t, "/my-courses/", nil); p.status != 200 {
			t.Errorf("%s is not signed in: %d", who, p.status)
		}
		if p := b.do(t, "/results/test:s1", nil); check.Equal(t, "p.status", p.status, 404, "%s: %d\n%s", who, p.status, p.body) {
			check.Lacks(t, "the page", p.body, "Mock", "%s: %d\n%s", who, p.status, p.body)
		}
	}
}

// An engine calls its sessions what it likes, and the link holds.
func TestTheLinkOfAResultHoldsAnyName(t *testing.T) {
	t.Parallel()
	w := openWork(t)
	names := []string{"a b", "what?x=1&y", "1#2", "a/b//c/", "..", "100%", "%2F", "ü→😀", `"<b>`, "a;b,c+d"}
	for _, name := range names {
		w.report(t, "north", name, w.ana, scored)
	}
	w.setPassword(t)
	ana, nobody := w.browser(t), w.browser(t)
	ana.signIn(t, "ana@institute.org", password)
	paths := links(t, w.north)
	if len(paths) != len(names) {
		t.Fatalf("%d links", len(paths))
	}
	for i, path := range paths {
		if p := ana.do(t, path, nil); check.Equal(t, "p.status", p.status, 200, "%q at %s: %d", names[i], path, p.status) {
			check.Contains(t, "the page", p.body, "Band 6.5", "%q at %s: %d", names[i], path, p.status)
		}
		to, err := url.Parse(nobody.do(t, path, nil).to)
		if check.NoError(t, err, "%q: the sign-in leads back to %v, %v", names[i], to, err) {
			check.Equal(t, "the page that follows", to.Query().Get("next"), path, "%q: the sign-in leads back to %v, %v", names[i], to, err)
		}
	}
}

// What lists do not show yet is shown without its score.
func TestWorkThatIsNotFinalHasNoScore(t *testing.T) {
	t.Parallel()
	w := openWork(t)
	w.report(t, "north", "begun", w.ana, `"state": "started"`)
	w.report(t, "north", "held", w.ana, `"state": "held", "score": 6.5, "sections": {"listening": 6.5}`)
	w.setPassword(t)
	ana := w.browser(t)
	ana.signIn(t, "ana@institute.org", password)
	for who, b := range map[string]*browser{"the student": ana, "staff": w.staffOf(t, "north", "tia", "teacher")} {
		for path, want := range map[string]string{"/results/test:held": "Under review", "/results/test:begun": "Not finished"} {
			if p := b.do(t, path, nil); check.Equal(t, "p.status", p.status, 200, "%s at %s: %d\n%s", who, path, p.status, p.body) &&
				check.Contains(t, "the page", p.body, want, "%s at %s: %d\n%s", who, path, p.status, p.body) &&
				check.Lacks(t, "the page", p.body, "6.5", "%s at %s: %d\n%s", who, path, p.status, p.body) {
				check.Lacks(t, "the page", p.body, "Band", "%s at %s: %d\n%s", who, path, p.status, p.body)
			}
		}
	}
}

// The same name of a session is another piece of work in another organization.
func TestAResultIsThatOfTheViewersOrganization(t *testing.T) {
	t.Parallel()
	w := openWork(t)
	south := w.Organization(t, "south")
	var bo struct {
		ID int64 `json:"user_id"`
	}
	south.Full.Post(t, "provision/student/", `{"email": "bo@institute.org", "first_name": "Bo"}`).Want(t, 201).Into(t, &bo)
	w.report(t, "north", "s1", w.ana, scored)
	w.report(t, "south", "s1", bo.ID, scored)
	elsewhere := w.staffOf(t, "south", "sue", "teacher")
	for who, c := range map[string]struct {
		*browser
		shows, hides string
	}{"north": {w.staffOf(t, "north", "nia", "teacher"), "Institute north", "Institute south"}, "south": {elsewhere, "Institute south", "Institute north"}} {
		if p := c.do(t, "/results/test:s1", nil); check.Equal(t, "p.status", p.status, 200, "%s: %d\n%s", who, p.status, p.body) &&
			check.Contains(t, "the page", p.body, c.shows, "%s: %d\n%s", who, p.status, p.body) {
			check.Lacks(t, "the page", p.body, c.hides, "%s: %d\n%s", who, p.status, p.body)
		}
	}
	w.Platform.Put(t, "organizations/north/staff/sue@south.institute.org", `{"role": "teacher", "password": "`+staffPassword+`"}`).Want(t, 201)
	elsewhere.signIn(t, "sue@south.institute.org", staffPassword) // a password from the platform signs out
	if p := elsewhere.do(t, "/results/test:s1", nil); strings.Count(p.body, "Band 6.5") != 2 {
		t.Errorf("staff of both:\n%s", p.body)
	}
}
