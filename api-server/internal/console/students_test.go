package console_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

func TestStudentsAreFound(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.signedIn(t, "tariq")
	status, page, _ := b.get(t, "/console/north/students/")
	want(t, "no students", status, page, http.StatusOK, "There are no students yet")
	for i := range 55 {
		s.north.Full.Post(t, "provision/student/", fmt.Sprintf(`{"email": "s%02d@north-institute.org", "first_name": "Given%02d", "last_name": "Family"}`, i, i)).Want(t, 201)
	}
	s.ImportRosters(t)
	s.north.Full.With("Content-Type", "text/csv").Post(t, "roster/import/", "person_external_id,email,first_name,last_name\nEXT-7,ext@north-institute.org,Ext,Ernal\n").Want(t, 200)
	status, page, _ = b.get(t, "/console/north/students/")
	want(t, "everybody", status, page, http.StatusOK, "Ext Ernal", "Given48 Family", ">More</a>")
	if check.Lacks(t, "the page", page, "Given49", "the page is too long, or has staff in it") {
		check.Lacks(t, "the page", page, "tariq@north-institute.org</td>", "the page is too long, or has staff in it")
	}
	more := regexp.MustCompile(`href="(\?[^"]*after=[^"]*)">More`).FindStringSubmatch(page)[1]
	status, page, _ = b.get(t, "/console/north/students/"+strings.ReplaceAll(more, "&amp;", "&"))
	want(t, "the next page", status, page, http.StatusOK, "Given49 Family", "Given54 Family")
	if check.Lacks(t, "the page", page, "Given48", "the next page repeats somebody, or is not the last") {
		check.Lacks(t, "the page", page, ">More</a>", "the next page repeats somebody, or is not the last")
	}
	for text, found := range map[string]string{"given07": "Given07", "family, given08": "Given08", "S09@NORTH": "Given09", "EXT-7": "Ext Ernal", "ern": "Ext Ernal", "fam GIVEN1 givén10": "Given10"} {
		status, page, _ = b.get(t, "/console/north/students/?q="+url.QueryEscape(text))
		want(t, text, status, page, http.StatusOK, found)
		if n := strings.Count(page, "<tr><td>"); n != 1 {
			t.Errorf("%q finds %d", text, n)
		}
	}
	status, page, _ = b.get(t, "/console/north/students/?q=%00%ff&after=x-y")
	want(t, "rubbish", status, page, http.StatusOK)
	status, page, _ = b.get(t, "/console/north/students/?q=nobody")
	want(t, "nobody", status, page, http.StatusOK, "begins so", "Show everybody", "0 students for “nobody”")
}

// students are the addresses in a downloaded file, in their order.
func (b *browser) students(t *testing.T, query string) (all []string) {
	t.Helper()
	status, file, header := b.get(t, "/console/north/students.csv"+query)
	want(t, query, status, file, http.StatusOK, "user_id,email,first_name")
	check.Equal(t, "its type", header.Get("Content-Type"), "text/csv; charset=utf-8", "%s", query)
	rows, err := csv.NewReader(strings.NewReader(file)).ReadAll()
	check.NoError(check.Now(t), err, "%s", file)
	for _, row := range rows[1:] {
		all = append(all, row[1])
	}
	return all
}

// A list is chosen by state and course, says how many there are, and comes as a file with all of them.
func TestStudentsAreChosenAndDownloaded(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, body := range []string{
		`"asha@north-institute.org", "first_name": "=Asha", "courses": "ielts"`, `"binod@north-institute.org", "first_name": "Binod", "courses": "toefl"`,
		`"cleo@north-institute.org", "first_name": "Cleo"`, `"dev@north-institute.org", "first_name": "Dev", "courses": "ielts, toefl"`,
	} {
		s.north.Full.Post(t, "provision/student/", `{"email": `+body+`}`).Want(t, http.StatusCreated)
	}
	s.exec(t, `UPDATE enrollments SET state = 'suspended' WHERE user_id = (SELECT id FROM accounts WHERE first_name = 'Dev') AND course_id = (SELECT min(id) FROM courses)`)
	s.exec(t, `UPDATE accounts SET last_login = '2026-09-05T20:07:00Z' WHERE first_name <> 'Cleo'`)
	b := s.signedIn(t, "olive")
	_, page, _ := b.get(t, "/console/north/students/")
	course := regexp.MustCompile(`<option value="(\d+)">IELTS`).FindStringSubmatch(page)[1]
	for query, want := range map[string]string{
		"": "asha binod cleo dev", "?show=access": "asha binod dev", "?show=never": "cleo", "?show=suspended": "dev", "?course=" + course: "asha dev",
		"?show=access&course=" + course: "asha", "?show=suspended&course=" + course: "dev", "?show=completed": "", "?q=dev": "dev",
		"?course=999999": "", "?course=x": "asha binod cleo dev", "?show=joined&course=" + course: "dev cleo binod asha",
	} {
		found := b.students(t, query)
		for i := range found {
			found[i], _, _ = strings.Cut(found[i], "@")
		}
		if !strings.HasPrefix(query, "?show=joined") {
			slices.Sort(found)
		}
		check.Equal(t, "the file", strings.Join(found, " "), want, "%s", query)
		_, page, _ := b.get(t, "/console/north/students/"+query)
		check.Equal(t, "the page", strings.Count(page, "<tr><td>"), len(found), "%s", query)
		check.Contains(t, "the number", page, fmt.Sprintf("%d student", len(found)), "%s", query)
	}
	_, file, _ := b.get(t, "/console/north/students.csv")
	check.Contains(t, "the file", file, "'=Asha", "a formula is no cell")
	s.exec(t, `WITH a AS (INSERT INTO accounts (email, username, first_name, last_name, created_via, created_at, updated_at)
			SELECT 'p' || n || '@north.org', 'p' || n, 'Given', 'Family', 'api', now(), now() FROM generate_series(1, 501) AS n RETURNING id)
		INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
		SELECT (SELECT id FROM organizations WHERE slug = 'north'), id, 'member', 'active', 'api', now(), now() FROM a`) // more than are read at a time
	all := b.students(t, "")
	slices.Sort(all)
	check.Equal(t, "students in the file", len(slices.Compact(all)), 505, "")
	if status, page, _ := s.signedIn(t, "tariq").get(t, "/console/north/students/"); status == http.StatusOK {
		check.Lacks(t, "a teacher's page", page, "students.csv", "")
	}
}

func TestAStudentsPage(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/in"}`).Want(t, 201)
	s.prepare(t)
	ofPlan := s.Platform.Get(t, "plans?organization=north").Want(t, 200).Object(t)["plans"].([]any)[0].(map[string]any)
	path := fmt.Sprintf("/console/north/students/%v/", ofPlan["user_id"])
	common := []string{"Ana Rao", "ana@institute.org", "IELTS Academic", "target 7", "of 9", "Mock", "2027"}
	for name, manages := range map[string]bool{"olive": true, "adam": true, "elena": false, "tariq": false} {
		status, page, _ := s.signedIn(t, name).get(t, path)
		want(t, name, status, page, http.StatusOK, common...)
		for _, text := range []string{"assignment.created", "/webhooks/1/deliveries/dlv_", "/console/north/plans/", "What happened, and why", "Mail “plan test open”"} {
			if strings.Contains(page, text) != manages {
				t.Errorf("%s and %q on the page", name, text)
			}
		}
	}
	olive := s.signedIn(t, "olive")
	_, page, _ := olive.get(t, path)
	for _, link := range regexp.MustCompile(`href="(/console/[^"]+)"`).FindAllStringSubmatch(page, -1) {
		if status, _, _ := olive.get(t, link[1]); status != http.StatusOK {
			t.Errorf("the link to %s: %d", link[1], status)
		}
	}
	first := timelineOf(page)
	for seen := map[string]bool{}; ; {
		for _, entry := range timelineOf(page) {
			check.False(t, "the entry was on an earlier page", seen[entry], "%s", entry)
			seen[entry] = true
		}
		earlier := regexp.MustCompile(`href="(\?before=[^"#]+)#timeline"`).FindStringSubmatch(page)
		if earlier == nil {
			check.True(t, "the last page shows how it began", strings.Contains(page, "Became a student"), "%s", page)
			check.True(t, "there are several pages", len(seen) > len(first), "%d entries", len(seen))
			break
		}
		var status int
		status, page, _ = olive.get(t, path+earlier[1])
		want(t, "earlier", status, page, http.StatusOK)
	}
	for _, before := range []string{"x", "-1", "1-x", "99999999999999999999-1", "9223372036854775807-0", "1-99999999"} {
		status, page, _ := olive.get(t, path+"?before="+before)
		want(t, before, status, page, http.StatusOK, "What happened, and why")
	}
	staffID := 1
	for _, none := range []string{fmt.Sprint(staffID), "999999", "x", "0", "-1", "99999999999999999999"} {
		if status, _, _ := olive.get(t, "/console/north/students/"+none+"/"); status != http.StatusNotFound {
			t.Errorf("student %s: %d", none, status)
		}
	}
}

// timelineOf are the entries of what happened, each with its text as it is.
func timelineOf(page string) []string {
	_, timeline, _ := strings.Cut(page, `id="timeline"`)
	return regexp.MustCompile(`(?s)<tr><td class="url">.*?</tr>`).FindAllString(timeline, -1)
}
