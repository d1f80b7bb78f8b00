package console_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// hold sends a snapshot of which most are missing, and gives the path of its review page.
func (s *site) hold(t *testing.T) string {
	t.Helper()
	s.ImportRosters(t)
	s.Platform.Put(t, "organizations/north/roster-sources/default", map[string]any{"authoritative_enabled": true}).Want(t, 200)
	send := s.north.Full.With("Content-Type", "text/csv").With("X-Roster-Mode", "authoritative_snapshot")
	rows := "person_external_id,email,first_name,last_name\n"
	for i := range 8 {
		rows += fmt.Sprintf("s%d,s%d@north-institute.org,Given%d,Family\n", i, i, i)
	}
	send.Post(t, "roster/import/", rows).Want(t, 200)
	return s.holdAgain(t)
}

// holdAgain sends the snapshot of which most are missing, once more.
func (s *site) holdAgain(t *testing.T) string {
	t.Helper()
	send := s.north.Full.With("Content-Type", "text/csv").With("X-Roster-Mode", "authoritative_snapshot")
	held := send.Post(t, "roster/import/", "person_external_id,email,first_name,last_name\ns0,s0@north-institute.org,Given0,Family\nnew,new@north-institute.org,=New,One\n").
		Want(t, 202).Object(t)
	_, path, found := strings.Cut(held["review_url"].(string), "registrar.test")
	if !found {
		t.Fatal(held["review_url"])
	}
	return path
}

func TestAHeldImportIsReviewedInABrowser(t *testing.T) {
	t.Parallel()
	s := open(t)
	path := s.hold(t)
	b := browsertest.Open(t)
	b.Size(1200, 900)
	b.Visit(s.URL() + path)
	b.Type("#name", "olive@north-institute.org")
	b.Type("#password", password)
	b.Press("Sign in")
	b.AwaitText("Why it was held")
	for _, want := range []string{"7 of 8 active people", "add 1 and change 7", "Deactivated: 7", "Added: 1", "s3@north-institute.org", "suspicious_value"} {
		if !strings.Contains(b.Text(), want) {
			t.Errorf("the page lacks %q:\n%s", want, b.Text())
		}
	}
	b.Screenshot("roster-held")
	b.Press("Approve…")
	b.Screenshot("roster-approve-asks")
	if text := b.TextOf("details[open] form"); !strings.Contains(text, "Adds 1 and changes 7; 7 of these lose their access") {
		t.Errorf("before approving, the page says %q", text)
	}
	b.Press("Approve and apply")
	b.Await("#undo")
	b.Screenshot("roster-applied")
	b.Press("Take the import back…")
	if text := b.TextOf("details[open] form"); !strings.Contains(text, "1 added by it: inactive again. 7 deactivated by it: active again.") {
		t.Errorf("before taking back, the page says %q", text)
	}
	b.Press("Take the import back")
	b.AwaitText("Takes back import")
	b.Press("Roster imports")
	b.AwaitText("undone")
	b.Screenshot("roster-imports")
}

// archive is a roster of both sections.
func archive(t *testing.T, people, seats string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range map[string]string{"people.csv": "person_external_id,email,first_name\n" + people, "enrollments.csv": "person_external_id,class_external_id,class_name\n" + seats} {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(f, text)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A page says of every person and class what the import changes.
func TestAnImportSaysWhatItChanges(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.ImportRosters(t)
	s.Platform.Put(t, "organizations/north/roster-sources/default", map[string]any{"authoritative_enabled": true}).Want(t, 200)
	s.north.Full.Post(t, "provision/student/", `{"email": "asha@north-institute.org", "first_name": "Asha"}`).Want(t, 201)
	adam := s.signedIn(t, "adam")
	page := func(people, seats string) string {
		t.Helper()
		answer := s.north.Full.With("Content-Type", "application/zip").With("X-Roster-Mode", "authoritative_snapshot").Post(t, "roster/import/", archive(t, people, seats))
		status, page, _ := adam.get(t, fmt.Sprintf("/console/north/roster-runs/%d/", int64(answer.Object(t)["run_id"].(float64))))
		want(t, "the import", status, page, 200)
		return page
	}
	ben, cy, dee := "s2,ben@north-institute.org,Ben\n", "s3,cy@north-institute.org,Cy\n", "s4,dee@north-institute.org,Dee\n"
	for _, c := range []struct {
		people, seats string
		texts         []string
	}{
		{"s1,asha@north-institute.org,Asha\n" + ben + cy + dee, "s1,c1,One\ns2,c1,One\n",
			[]string{"Added: 3", "a new account", "a student already, and known by this id from now on", "Classes: 3", "a new class, One", "s2 gets a place"}},
		{"s1,asha@north-institute.org,Asha\n" + "s2,benjamin@north-institute.org,Benjamin\n" + dee, "s1,c1,Uno\n",
			[]string{"the email was ben@north-institute.org; the name was Ben", "becomes inactive", "is called Uno, and was One", "s2 loses the place"}},
		{"s1,asha@north-institute.org,Asha\n" + "s9,benjamin@north-institute.org,Benjamin\n" + cy + dee, "s1,c1,Uno\n",
			[]string{"the id was s2", "active again"}},
	} {
		got := page(c.people, c.seats)
		for _, text := range c.texts {
			if !strings.Contains(got, text) {
				t.Errorf("the page lacks %q:\n%s", text, got)
			}
		}
	}
}

func TestOnlyOwnersAndAdminsReviewImports(t *testing.T) {
	t.Parallel()
	s := open(t)
	path := s.hold(t)
	for _, name := range []string{"examiner", "teacher"} {
		b := s.signedIn(t, map[string]string{"examiner": "elena", "teacher": "tariq"}[name])
		if status, _, _ := b.get(t, path); status < 400 {
			t.Errorf("%s sees it: %d", name, status)
		}
		if status, _, _ := b.post(t, path+"approve", nil); status < 400 {
			t.Errorf("%s approves: %d", name, status)
		}
	}
	adam := s.signedIn(t, "adam")
	if status, page, _ := adam.get(t, path+"issues.csv"); check.Equal(t, "status", status, 200, "issues.csv: %d %s", status, page) {
		check.Contains(t, "the page", page, "suspicious_value", "issues.csv: %d %s", status, page)
	}
	if status, page, _ := adam.post(t, path+"discard", nil); status != 303 {
		t.Errorf("discard: %d %s", status, page)
	}
	if _, page, _ := adam.get(t, path); check.Contains(t, "the page", page, "discarded", "after discarding:\n%s", page) {
		check.Lacks(t, "the page", page, "Approve and apply", "after discarding:\n%s", page)
	}
}

func TestARunningImportShowsHowFarItIs(t *testing.T) {
	t.Parallel()
	s := open(t)
	path := s.hold(t)
	b := s.signedIn(t, "adam")
	for state, text := range map[string]string{"queued": "waits for its turn", "applying": "3 of 8 changes are carried out"} {
		if _, err := s.DB.Exec(t.Context(), `UPDATE roster_runs SET state = $1, people_done = 3 WHERE state IN ('held', 'queued', 'applying')`, state); err != nil {
			t.Fatal(err)
		}
		status, page, _ := b.get(t, path)
		want(t, state, status, page, 200, text, "Look again")
		if check.Lacks(t, "the page", page, "Approve and apply", "%s: the page offers what cannot be done:\n%s", state, page) {
			check.Lacks(t, "the page", page, "Take the import back", "%s: the page offers what cannot be done:\n%s", state, page)
		}
	}
}

func TestAnImportWaitsInSightHoweverManyComeAfterIt(t *testing.T) {
	t.Parallel()
	s := open(t)
	path := s.hold(t)
	if _, err := s.DB.Exec(t.Context(), `
		INSERT INTO roster_runs (organization_id, source_id, state, requested_by, created_at, updated_at)
		SELECT organization_id, source_id, 'applied', requested_by, created_at, updated_at FROM roster_runs, generate_series(1, 60) WHERE state = 'held'`); err != nil {
		t.Fatal(err)
	}
	b := s.signedIn(t, "adam")
	status, page, _ := b.get(t, "/console/north/")
	want(t, "the overview", status, page, 200, path, "is held: 1 would be added, 7 changed, of whom 7 deactivated.")
}
