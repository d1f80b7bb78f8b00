package console_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/roster/rostertest"
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
	for i, name := range []string{"Priya,Sharma", "Omar,Haddad", "Nguyễn,Thị Minh", "Zoë,Müller", "Kofi,Mensah", "Lucía,García", "Arjun,Patel", "Mei,Tanaka"} {
		rows += fmt.Sprintf("s%d,s%d@north-institute.org,%s\n", i, i, name)
	}
	send.Post(t, "roster/import/", rows).Want(t, 200)
	return s.holdAgain(t)
}

// holdAgain sends the snapshot of which most are missing, once more.
func (s *site) holdAgain(t *testing.T) string {
	t.Helper()
	send := s.north.Full.With("Content-Type", "text/csv").With("X-Roster-Mode", "authoritative_snapshot")
	held := send.Post(t, "roster/import/", "person_external_id,email,first_name,last_name\ns0,s0@north-institute.org,Priya,Sharma\nnew,new@north-institute.org,=New,One\n").
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
	if text := b.TextOf("details[open] form"); !strings.Contains(text, "Adds 1 and changes 7. Of these, 7 become inactive. They keep their account, their work and their courses;") {
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

// Dates of classes are in the answer, on the page and in its CSV file.
func TestAnImportSaysTheDatesOfClasses(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.ImportRosters(t)
	adam := s.signedIn(t, "adam")
	for _, c := range []struct{ sessions, said, text, row string }{
		{"t1,2026-08-01,2026-12-20\n", `{"create":1,"rename":0,"reschedule":0,"add":0,"remove":0}`, "a new class, Math, from 1 August 2026 to 20 December 2026", "create,c1,Math,,,2026-08-01,2026-12-20,,"},
		{"t1,2027-01-08,2027-06-30\n", `{"create":0,"rename":0,"reschedule":1,"add":0,"remove":0}`,
			"is from 8 January 2027 to 30 June 2027, and was from 1 August 2026 to 20 December 2026", "reschedule,c1,Math,,,2027-01-08,2027-06-30,2026-08-01,2026-12-20"},
	} {
		file := rostertest.Archive("manifest.csv", "propertyName,value\n", "users.csv", "sourcedId,role,email\nu1,student,asha@north-institute.org\n",
			"classes.csv", "sourcedId,title,termSourcedIds\nc1,Math,t1\n", "academicSessions.csv", "sourcedId,startDate,endDate\n"+c.sessions)
		answer := s.north.Full.With("Content-Type", "application/zip").Post(t, "roster/import/", string(file))
		check.Contains(t, "the answer", string(answer.Body), c.said, "")
		path := fmt.Sprintf("/console/north/roster-runs/%d/", int64(answer.Object(t)["run_id"].(float64)))
		status, page, _ := adam.get(t, path)
		want(t, "the import", status, page, 200, c.text)
		status, page, _ = adam.get(t, path+"changes/classes.csv")
		want(t, "its file", status, page, 200, c.row)
	}
}

// A group that is too long for a page has more pages, and is downloaded whole.
func TestTheChangesOfALargeImportAreReadPageByPage(t *testing.T) {
	t.Parallel()
	s := open(t)
	path := s.hold(t)
	if _, err := s.DB.Exec(t.Context(), `
		INSERT INTO roster_changes (run_id, n, line, action, effects, external_id, email, first_name, last_name)
		SELECT r.id, 100 + n, n, a, 0, 'x' || n, a || n || '@north-institute.org', '=Given', 'Family' || n
		FROM roster_runs r, generate_series(1, 450) AS n, unnest(ARRAY['create', 'deactivate']) AS a
		WHERE r.state = 'held' AND (n % 2 = 0) = (a = 'create')`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DB.Exec(t.Context(), `
		WITH classes AS (
			INSERT INTO roster_class_changes (run_id, n, action, class_external_id, person_external_id)
			SELECT id, n, 'remove', 'c1', 'x' || n FROM roster_runs, generate_series(1, 450) AS n WHERE state = 'held')
		UPDATE roster_runs SET created = created + 225, deactivated = deactivated + 225, updated = updated + 225, seats_removed = 450
		WHERE state = 'held'`); err != nil {
		t.Fatal(err)
	}
	adam := s.signedIn(t, "adam")
	for _, c := range []struct {
		group, title, first string
		total, pages        int
	}{
		{"deactivated", "Deactivated: 232", "s1@", 232, 2},
		{"added", "Added: 226", "new@", 226, 2},
		{"classes", "Classes: 450", "x1 loses", 450, 3},
	} {
		status, page, _ := adam.get(t, path)
		want(t, "the review", status, page, 200, c.title, path+"changes/"+c.group+".csv", path+"changes/"+c.group+"/?after=", "The first 50 are shown.")
		at, rows := path+"changes/"+c.group+"/", 0
		for n := range c.pages {
			status, page, _ := adam.get(t, at)
			want(t, at, status, page, 200, c.title)
			rows += strings.Count(page, "<tr><td>")
			next := strings.Index(page, "?after=")
			check.Equal(check.Now(t), "whether there is another page", next >= 0, n < c.pages-1, "page %d of %s:\n%s", n+1, c.group, page)
			if next >= 0 {
				at = path + "changes/" + c.group + "/" + page[next:next+strings.IndexByte(page[next:], '"')]
			}
		}
		check.Equal(t, "rows", rows, c.total, "the pages of %s have %d rows", c.group, rows)
		status, file, _ := adam.get(t, path+"changes/"+c.group+".csv")
		check.Equal(t, "status", status, 200, "%s.csv: %d", c.group, status)
		check.Equal(t, "lines", strings.Count(file, "\n"), c.total+1, "%s.csv:\n%.500s", c.group, file)
		check.False(t, "a formula", strings.Contains(file, ",=Given"), "%s.csv:\n%.500s", c.group, file)
	}
	for query, rows := range map[string]int{"added/?q=NEW": 1, "added/?q=x122+family122": 1, "added/?q=family12+nobody": 0, "deactivated/?q=s3%40north": 1, "deactivated/?q=x": 200,
		"deactivated/?q=kofi": 1, "classes/?q=x450": 1, "classes/?q=C1": 200, "classes/?q=%25": 0} {
		status, page, _ := adam.get(t, path+"changes/"+query)
		want(t, query, status, page, 200)
		check.Equal(t, "rows found", strings.Count(page, "<tr><td>"), rows, "%s:\n%s", query, page)
		check.Equal(t, "whether it goes on", strings.Contains(page, "Search on"), rows == 200, "%s", query)
	}
	status, page, _ := adam.get(t, path+"changes/classes/?q=C1&after=200")
	want(t, "the next of what was found", status, page, 200, "x201 loses", `href="?q=C1&amp;after=400"`)
	status, _, _ = adam.get(t, path+"changes/everything/")
	check.Equal(t, "status", status, 404, "a group that there is not: %d", status)
	b := browsertest.Open(t)
	b.Visit(s.URL() + path + "changes/classes/")
	b.Type("#name", "olive@north-institute.org")
	b.Type("#password", password)
	b.Press("Sign in")
	b.AwaitHeading("Classes: 450")
	for _, width := range []int64{1280, 390} {
		b.Size(width, 900)
		b.Visit(s.URL() + path)
		b.AwaitText("Why it was held")
		b.Screenshot(fmt.Sprintf("roster-review-long-%d", width))
		b.Accessible(fmt.Sprintf("the review at %d", width))
		b.Visit(s.URL() + path + "changes/deactivated/")
		b.AwaitHeading("Deactivated: 232")
		b.Screenshot(fmt.Sprintf("roster-changes-%d", width))
		b.Accessible(fmt.Sprintf("the changes at %d", width))
		b.Press("The next")
		b.AwaitText("From the beginning")
		b.Screenshot(fmt.Sprintf("roster-changes-last-%d", width))
	}
}

// A held import that a newer one of its source has overtaken is no longer anybody's to approve.
func TestAnOutdatedImportIsNotOffered(t *testing.T) {
	t.Parallel()
	s := open(t)
	path := s.hold(t)
	adam := s.signedIn(t, "adam")
	status, page, _ := adam.get(t, "/console/north/")
	want(t, "the overview", status, page, 200, path)
	newer := s.north.Full.With("Content-Type", "text/csv").Post(t, "roster/import/", "person_external_id,email\nlate,late@north-institute.org\n").Want(t, 200).Object(t)["run_id"]
	status, page, _ = adam.get(t, "/console/north/")
	want(t, "the overview", status, page, 200)
	check.False(t, "the run", strings.Contains(page, path), "the overview still has the run:\n%s", page)
	status, page, _ = adam.get(t, path)
	want(t, "the review", status, page, 200, fmt.Sprintf(">%v</a> of the same source is newer", newer), "Discard the import")
	check.False(t, "Approve", strings.Contains(page, "Approve"), "the page offers what cannot be done:\n%s", page)
	lag, err := roster.Measure(t.Context(), s.DB, s.Now())
	check.NoError(t, err, "%v", err)
	check.Equal(t, "held runs that wait", lag.Held, 0, "%+v", lag)
	b := browsertest.Open(t)
	b.Visit(s.URL() + path)
	b.Type("#name", "olive@north-institute.org")
	b.Type("#password", password)
	b.Press("Sign in")
	b.AwaitText("This one is out of date")
	for _, width := range []int64{1280, 390} {
		b.Size(width, 900)
		b.Visit(s.URL() + path)
		b.AwaitText("This one is out of date")
		b.Screenshot(fmt.Sprintf("roster-outdated-%d", width))
	}
	status, page, _ = adam.post(t, path+"discard", nil)
	check.Equal(t, "status", status, 303, "discarding it: %d %s", status, page)
	// Nor is a run to be taken back that a newer one has built on.
	first := strings.Replace(path, formatRun(path), formatRun(path, -1), 1)
	status, page, _ = adam.get(t, first)
	want(t, "the first import", status, page, 200, "cannot be taken back any more")
	check.False(t, "Take back", strings.Contains(page, "Take the import back"), "the page offers what cannot be done:\n%s", page)
}

// formatRun is the number of the run in the path of its page, or one beside it.
func formatRun(path string, beside ...int) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	n, _ := strconv.Atoi(parts[len(parts)-1])
	for _, b := range beside {
		n += b
	}
	return strconv.Itoa(n)
}

func TestAnImportWaitsInSightHoweverManyComeAfterIt(t *testing.T) {
	t.Parallel()
	s := open(t)
	path := s.hold(t)
	if _, err := s.DB.Exec(t.Context(), `
		INSERT INTO roster_runs (organization_id, source_id, state, requested_by, created_at, updated_at)
		SELECT organization_id, NULL, 'refused', requested_by, created_at, updated_at FROM roster_runs, generate_series(1, 60) WHERE state = 'held'`); err != nil {
		t.Fatal(err)
	}
	b := s.signedIn(t, "adam")
	status, page, _ := b.get(t, "/console/north/")
	want(t, "the overview", status, page, 200, path, "is held: 1 would be added, 7 changed, of whom 7 deactivated.")
}

// A file that is sent on the page is shown first, then imported, or refused in words.
func TestARosterIsSentFromTheConsole(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.ImportRosters(t)
	b := s.signedIn(t, "adam")
	const path, people = "/console/north/roster-runs/", "person_external_id,email,first_name,last_name\nu1,u1@north-institute.org,Uma,One\n"
	count := func() (n int) {
		t.Helper()
		if err := s.DB.QueryRow(t.Context(), `SELECT count(*) FROM accounts WHERE email = 'u1@north-institute.org'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	ends := func(fields map[string]string, state string) {
		t.Helper()
		status, page, header := b.sendFile(t, path, fields, "archive", "people.csv", people)
		want(t, "sending", status, page, http.StatusSeeOther)
		for end := time.Now().Add(time.Minute); time.Now().Before(end); { // a slow machine takes longer than the page waits
			_, page, _ = b.get(t, header.Get("Location"))
			if strings.Contains(page, "Uma One") && !strings.Contains(page, "data-live") {
				break
			}
		}
		want(t, state, http.StatusOK, page, http.StatusOK, "Uma One", "sent by adam@north-institute.org", state)
	}
	ends(map[string]string{"dry_run": "true", "mode": "additive_only", "source": "SIS"}, "A preview, which writes nothing")
	check.Equal(t, "accounts after the preview", count(), 0, "")
	ends(map[string]string{"dry_run": "false", "mode": "additive_only", "source": "SIS"}, "applied")
	check.Equal(t, "accounts after the import", count(), 1, "")
	status, page, _ := b.get(t, path)
	want(t, "the list", status, page, http.StatusOK, `<option value="SIS">`)
	for name, c := range map[string]struct {
		fields map[string]string
		says   string
	}{
		"a snapshot":    {map[string]string{"mode": "authoritative_snapshot", "source": "SIS"}, "snapshot"},
		"a strange one": {map[string]string{"mode": "all"}, "mode: send"},
	} {
		status, page, _ := b.sendFile(t, path, c.fields, "archive", "people.csv", people+strings.Repeat("u2,u2@north-institute.org,Una,Two\n", 100_000))
		want(t, name, status, page, http.StatusBadRequest, c.says, `role="alert"`)
	}
	status, page, _ = b.post(t, path, url.Values{"mode": {"additive_only"}})
	want(t, "no file", status, page, http.StatusBadRequest, `role="alert"`)
	if status, _, _ := s.signedIn(t, "elena").sendFile(t, path, nil, "archive", "people.csv", people); status != http.StatusForbidden {
		t.Errorf("an examiner sends a roster: %d", status)
	}
	c := browsertest.Open(t)
	s.enter(c, "olive")
	for _, width := range []int64{1280, 390} {
		c.Size(width, 900)
		c.Visit(s.URL() + path)
		c.Press("Send a file…")
		c.Accessible("the form")
		c.Screenshot(fmt.Sprintf("roster-upload-%d", width))
		check.False(t, "the page scrolls sideways", c.WiderThanWindow(), "at %d", width)
	}
}
