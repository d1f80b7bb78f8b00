package console_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// The log is narrowed by event, state, day, student and cause, and says where it stopped looking.
func TestDeliveriesAreChosen(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/in"}`).Want(t, http.StatusCreated)
	for _, body := range []string{`"asha@north-institute.org", "first_name": "Asha", "courses": "ielts"`, `"binod@north-institute.org", "first_name": "Binod"`} {
		s.north.Full.Post(t, "provision/student/", `{"email": `+body+`}`).Want(t, http.StatusCreated)
	}
	s.fail(t)
	s.north.Full.Post(t, "provision/student/", `{"email": "cleo@north-institute.org", "first_name": "Cleo"}`).Want(t, http.StatusCreated)
	b := s.signedIn(t, "olive")
	const page = "/console/north/webhooks/1/deliveries/"
	found := regexp.MustCompile(`<tr><td><a href="` + page + `dlv_[0-9a-f]+/"><code>([a-z.]+)`)
	day := func(days int) string { return s.Now().UTC().AddDate(0, 0, days).Format(time.DateOnly) }
	for query, want := range map[string]int{
		"": 4, "?event=student.joined": 3, "?event=enrollment.created": 1, "?event=ping": 0, "?event=x": 4,
		"?status=waiting": 1, "?status=declined": 3, "?status=delivered": 0, "?cause=404": 3, "?cause=http_404": 3, "?cause=500": 0, "?cause=timeout": 0,
		"?event=student.joined&cause=404": 2, "?day=" + day(0): 4, "?day=" + day(-1): 0, "?day=" + day(1): 0, "?day=soon": 4, "?day=" + day(0) + "&zone=Mars": 4,
		"?student=asha%40north-institute.org": 2, "?student=ASHA%40north-institute.org&event=student.joined": 1, "?student=binod%40north-institute.org&cause=404": 1,
		"?student=binod%40north-institute.org&status=waiting": 0, "?student=cleo%40north-institute.org&status=waiting": 1, "?student=cleo%40north-institute.org&cause=404": 0,
		"?student=asha%40north-institute.org&day=" + day(-1): 0, "?student=asha%40north-institute.org&day=" + day(0): 2,
		"?student=nobody%40north-institute.org": 0, "?student=%00": 4,
	} {
		status, text, _ := b.get(t, page+query)
		if check.Equal(t, "status", status, http.StatusOK, "%s", query) {
			check.Equal(t, "deliveries", len(found.FindAllString(text, -1)), want, "%s", query)
		}
	}
	_, text, _ := b.get(t, page+"?event=student.joined&cause=404&status=declined&student=asha%40north-institute.org")
	for _, kept := range []string{"<option selected>student.joined", `value="declined" selected`, `value="asha@north-institute.org"`, `value="404"`} {
		check.Contains(t, "the form", text, kept, "")
	}

	// Of many it looks through some, and goes on from there.
	s.record(t, journal.MostLooked+20)
	_, text, _ = b.get(t, page+"?event=enrollment.created")
	want(t, "beyond what is looked at", http.StatusOK, text, http.StatusOK, "Nothing of this kind is among", "Look further back")
	more := regexp.MustCompile(`href="(\?event=enrollment.created&amp;before=dlv_[0-9a-f]+)"`).FindStringSubmatch(text)
	check.True(check.Now(t), "it goes on", more != nil, "%s", text)
	_, text, _ = b.get(t, page+strings.ReplaceAll(more[1], "&amp;", "&"))
	check.Equal(t, "deliveries", len(found.FindAllString(text, -1)), 1, "further back")
	check.Lacks(t, "the last page", text, "Look further back", "")
	seen := map[string]bool{}
	for at, pages := page, 0; at != "" && pages < 30; pages++ {
		_, text, _ = b.get(t, at)
		for _, one := range regexp.MustCompile(`/(dlv_[0-9a-f]+)/"><code>`).FindAllStringSubmatch(text, -1) {
			check.False(t, "it was on an earlier page", seen[one[1]], "%s", one[1])
			seen[one[1]] = true
		}
		at = ""
		if older := regexp.MustCompile(`href="(\?before=dlv_[0-9a-f]+)"`).FindStringSubmatch(text); older != nil {
			at = page + older[1]
		}
	}
	check.Equal(t, "deliveries on all pages", len(seen), journal.MostLooked+24, "")
}

// A delivery shows what is sent, about whom, and never promises an attempt in the past.
func TestADeliverysPage(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/in"}`).Want(t, http.StatusCreated)
	s.north.Full.Post(t, "provision/student/", `{"email": "asha@north-institute.org", "first_name": "Asha"}`).Want(t, http.StatusCreated)
	b := s.signedIn(t, "olive")
	_, list, _ := b.get(t, "/console/north/webhooks/1/deliveries/")
	path := regexp.MustCompile(`/console/north/webhooks/1/deliveries/dlv_[0-9a-f]+/`).FindString(list)
	status, page, _ := b.get(t, path)
	want(t, "at once", status, page, http.StatusOK, "as soon as a sender is free", "data-live", "&#34;email&#34;: &#34;asha@north-institute.org&#34;", "?student=asha")
	s.Advance(time.Hour)
	_, page, _ = b.get(t, path)
	check.Contains(t, "an hour later", page, "as soon as a sender is free", "")
	check.Lacks(t, "an hour later", page, "data-live", "nobody waits for ever")
	s.exec(t, fmt.Sprintf(`UPDATE webhook_queue SET due_at = '%s'`, s.Now().Add(90*time.Second).Format(time.RFC3339)))
	_, page, _ = b.get(t, path)
	check.Contains(t, "with a later attempt", page, s.Now().Add(90*time.Second).UTC().Format("15:04:05"), "")
	s.exec(t, fmt.Sprintf(`UPDATE webhook_queue SET due_at = '%s'`, s.Now().Format(time.RFC3339)))
	s.fail(t)
	_, page, _ = b.get(t, path)
	want(t, "after an attempt", http.StatusOK, page, http.StatusOK, `class="attempt declined"`, "12.3 ms")
	_, page, _ = b.get(t, "/console/north/webhooks/1/?chart=30-days")
	want(t, "the chart of a month", http.StatusOK, page, http.StatusOK, "Attempts in the last 30 days", "0 delivered", "1 failed", "30 days ago", "Today: 0 delivered, 1 failed")
}

// What is resent is followed by its page until the receiver has answered.
func TestAResendIsFollowed(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.Platform.Post(t, "organizations/north/webhook-endpoints", `{"url": "https://hooks.north-institute.org/in"}`).Want(t, http.StatusCreated)
	s.north.Full.Post(t, "provision/student/", `{"email": "asha@north-institute.org", "first_name": "Asha"}`).Want(t, http.StatusCreated)
	s.fail(t)
	b := browsertest.Open(t)
	s.enter(b, "olive")
	b.Visit(s.URL() + "/console/north/webhooks/1/deliveries/")
	b.Press("student.joined")
	b.AwaitText("Payload")
	b.Press("Resend")
	b.AwaitText("An attempt is under way")
	b.Accessible("an attempt under way")
	b.Screenshot("delivery-live")
	s.fail(t)
	b.Await("section[aria-label='Attempt 2']")
	b.Screenshot("delivery-resent")
}
