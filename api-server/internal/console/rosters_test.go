package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/hack/chromium"
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
	b := chromium.Open(t)
	b.Size(1200, 900)
	b.Visit(s.URL() + path)
	b.Type("#name", "olive@north-institute.org")
	b.Type("#password", password)
	b.Press("Sign in")
	b.AwaitText("Why it was held")
	for _, want := range []string{"7 of 8 active people", "Deactivated: 7", "Added: 1", "s3@north-institute.org", "suspicious_value"} {
		if !strings.Contains(b.Text(), want) {
			t.Errorf("the page lacks %q:\n%s", want, b.Text())
		}
	}
	b.Screenshot("roster-held")
	b.Press("Approve and apply")
	b.AwaitText("The import is applied")
	b.Screenshot("roster-applied")
	b.Press("Take the import back")
	b.AwaitText("Takes back import")
	b.Press("Roster imports")
	b.AwaitText("undone")
	b.Screenshot("roster-imports")
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
	if status, page, _ := adam.get(t, path+"issues.csv"); status != 200 || !strings.Contains(page, "suspicious_value") {
		t.Errorf("issues.csv: %d %s", status, page)
	}
	if status, page, _ := adam.post(t, path+"discard", nil); status != 303 {
		t.Errorf("discard: %d %s", status, page)
	}
	if _, page, _ := adam.get(t, path); !strings.Contains(page, "discarded") || strings.Contains(page, "Approve and apply") {
		t.Errorf("after discarding:\n%s", page)
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
		if strings.Contains(page, "Approve and apply") || strings.Contains(page, "Take the import back") {
			t.Errorf("%s: the page offers what cannot be done:\n%s", state, page)
		}
	}
}
