package console_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// tile reads a figure of the overview.
func tile(t *testing.T, page, which string) string {
	t.Helper()
	found := regexp.MustCompile(`/students/\?show=` + which + `"[^>]*><strong>([^<]+)</strong>`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("the page has no figure %s:\n%s", which, page)
	}
	return found[1]
}

// The overview's figures lead to lists of as many students, for all who may look students up.
func TestTheOverviewCountsStudents(t *testing.T) {
	t.Parallel()
	s := open(t)
	for i := range 3 {
		s.north.Full.Post(t, "provision/student/", fmt.Sprintf(`{"email": "s%d@north-institute.org", "first_name": "Given%[1]d", "courses": "ielts"}`, i)).Want(t, http.StatusCreated)
	}
	s.exec(t, `UPDATE enrollments SET end_date = (SELECT min(start_date) FROM enrollments) + 5, grace_period_end = end_date
		WHERE user_id = (SELECT id FROM accounts WHERE first_name = 'Given0')`)
	s.exec(t, `UPDATE members SET joined_at = joined_at - interval '8 days' WHERE user_id = (SELECT id FROM accounts WHERE first_name = 'Given2')`)
	want := map[string]string{"access": "3", "expiring": "1", "at_risk": "0", "joined": "2"}
	for _, who := range []string{"olive", "tariq"} {
		b := s.signedIn(t, who)
		status, page, _ := b.get(t, "/console/north/")
		check.Equal(t, "status", status, http.StatusOK, "%s", who)
		for which, n := range want {
			check.Equal(t, "figure "+which, tile(t, page, which), n, "%s", who)
			status, list, _ := b.get(t, "/console/north/students/?show="+which)
			check.Equal(t, "status", status, http.StatusOK, "%s", who)
			check.Equal(t, "students in the list "+which, fmt.Sprint(strings.Count(list, "Given")), n, "%s", who)
		}
	}
	_, page, _ := s.signedIn(t, "tariq").get(t, "/console/north/students/?show=joined&after=%00")
	check.Contains(t, "the page", page, "Given0", "a place that is none")
	_, page, _ = s.signedIn(t, "tariq").get(t, "/console/north/students/?show=everybody")
	check.Contains(t, "the page", page, "Given0", "a list that is none")
}

// Deliveries are drawn by the hour, and what is wrong stands above everything.
func TestTheOverviewShowsDeliveries(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.signedIn(t, "olive")
	_, page, _ := b.get(t, "/console/north/")
	check.Contains(t, "the page", page, "No URL receives events yet", "")
	for i, end := range []int{5, 40, 90, 200, 3} {
		s.north.Full.Post(t, "provision/student/", fmt.Sprintf(`{"email": "s%d@north-institute.org", "first_name": "Given%[1]d", "courses": "ielts"}`, 100+i)).Want(t, http.StatusCreated)
		s.exec(t, fmt.Sprintf(`UPDATE enrollments SET end_date = start_date + %d, grace_period_end = start_date + %[1]d WHERE id = (SELECT max(id) FROM enrollments)`, end))
	}
	for _, name := range []string{"in", "off"} {
		s.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/`+name+`"}`).Want(t, http.StatusCreated)
	}
	_, page, _ = b.get(t, "/console/north/")
	check.Contains(t, "the page", page, "Nothing was sent in the last 24 hours", "")
	hour := s.Now().UTC().Truncate(time.Hour)
	delivered, failed := 0, 0
	for ago := range 25 {
		d, f := 120+ago*53%97, 0
		if ago%8 == 5 {
			f = 1 + ago*2
		}
		s.exec(t, fmt.Sprintf(`INSERT INTO webhook_hours (organization_id, endpoint_id, hour, delivered, failed) VALUES (%d, 1, '%s', %d, %d)`,
			s.north.ID, hour.Add(-time.Duration(ago)*time.Hour).Format(time.RFC3339), d, f))
		if ago < 24 { // the last one is too long ago
			delivered, failed = delivered+d, failed+f
		}
	}
	all := fmt.Sprintf("%d,%03d delivered", delivered/1000, delivered%1000)
	s.exec(t, `UPDATE webhook_health SET consecutive_failures = 7, last_failure_at = now() WHERE endpoint_id = 1`)
	s.exec(t, `UPDATE webhook_endpoints SET switched_on = false, switched_off_reason = '50 failed attempts in a row' WHERE id = 2`)
	s.hold(t)
	_, page, _ = b.get(t, "/console/north/")
	for _, text := range []string{all, fmt.Sprintf("%d failed", failed), fmt.Sprintf("%.1f %%", float64(delivered*1000/(delivered+failed))/10), "is failing: 7 attempts in a row", "is switched off and receives nothing. 50 failed attempts in a row", "Roster import", "is held",
		"5 hours ago: 191 delivered, 11 failed", "This hour: 120 delivered, 0 failed", "Latest changes"} {
		check.Contains(t, "the page", page, text, "")
	}
	_, page, _ = b.get(t, "/console/north/webhooks/1/")
	check.Contains(t, "the URL's page", page, all, "")
	_, page, _ = b.get(t, "/console/north/webhooks/2/")
	check.Contains(t, "the other URL's page", page, "Nothing was sent in the last 24 hours", "")
	view := browsertest.Open(t)
	s.enter(view, "olive")
	for _, dark := range []bool{false, true} {
		view.Dark(dark)
		for _, width := range []int64{1280, 390} {
			view.Size(width, 900)
			view.Visit(s.URL() + "/console/north/")
			name := fmt.Sprintf("overview, dark %v, %d", dark, width)
			view.Screenshot(strings.ReplaceAll(name, ", ", "-"))
			check.False(t, "it scrolls sideways", view.WiderThanWindow(), "%s", name)
			if width == 1280 && !dark {
				view.Picture("../../../docs/pictures/console-overview.webp")
			}
			view.Accessible(name) // in both schemes
		}
	}
}
