package email_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/lang"
)

var update = flag.Bool("update", false, "write the golden files again")

func render(t *testing.T, c email.Content, s email.Secrets) email.Text {
	t.Helper()
	zone, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	got, err := email.Render(c, s, email.Links{}, lang.Of(lang.English), noon, zone)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; look at it and run the test with -update:\n%s", path, got)
	}
}

func TestMailsReadAsTheyShould(t *testing.T) {
	t.Parallel()
	m := welcome(1, 2, "ada@saffron.school")
	w, _ := m.Content.(email.Welcome)
	two := w.Student
	two.Courses = append(two.Courses, email.Course{
		Name: "Spoken English, evening batch", StartDate: clock.DateOf(2027, time.January, 4), EndDate: clock.DateOf(2027, time.July, 3)})
	none := w.Student
	none.Courses = nil
	ofSite := none
	ofSite.Organization = "learn.saffron.school"
	assigned := email.TestAssigned{FirstName: "Ada", LastName: "Lovelace", Organization: "Saffron School", Exam: "IELTS Academic", Title: "IELTS 7",
		Due: time.Date(2027, 3, 3, 18, 29, 59, 0, time.UTC), TimeZone: "Asia/Kolkata", LoginURL: "https://saffron.school/sign-in/"}
	anyTime := assigned
	anyTime.Due, anyTime.SafeBrowser = time.Time{}, true
	for name, c := range map[string]struct {
		content email.Content
		secrets email.Secrets
	}{
		"welcome":                   {w, m.Secrets},
		"credentials_generated":     {email.Credentials{Student: two, MustChangePassword: true}, email.Secrets{Password: "tiger-Violin-42", SetPasswordURL: m.Secrets.SetPasswordURL}},
		"credentials_set":           {email.Credentials{Student: none}, email.Secrets{Password: "tiger  violin <42>"}},
		"access_update":             {email.AccessUpdate{Student: two}, email.Secrets{}},
		"access_update_no_course":   {email.AccessUpdate{Student: none}, email.Secrets{}},
		"access_update_no_password": {email.AccessUpdate{Student: two, LinkExpires: w.LinkExpires}, m.Secrets},
		"password_reset":            {email.PasswordReset{Student: none, LinkExpires: w.LinkExpires}, m.Secrets},
		"password_reset_of_site":    {email.PasswordReset{Student: ofSite, LinkExpires: w.LinkExpires, OfSite: true}, m.Secrets},
		"security_notice_device": {email.SecurityNotice{Notice: email.NoticeNewDevice, Site: "learn.saffron.school", Account: "ada@saffron.school",
			At: noon, Browser: "Firefox on Linux", From: "203.0.113.7", URL: "https://learn.saffron.school/sessions/"}, email.Secrets{}},
		"security_notice_key": {email.SecurityNotice{Notice: email.NoticeKeyCreated, Site: "learn.saffron.school", Account: "ada@saffron.school",
			Organization: "Saffron School", Subject: "Student system", By: "grace@saffron.school", At: noon, URL: "https://learn.saffron.school/console/saffron/api-keys/"}, email.Secrets{}},
		"test_assigned":          {assigned, email.Secrets{}},
		"test_assigned_any_time": {anyTime, email.Secrets{}},
	} {
		got := render(t, c.content, c.secrets)
		golden(t, name+".txt", "Subject: "+got.Subject+"\n\n"+got.Plain)
		golden(t, name+".html", got.HTML)
	}
}

func TestEveryValueIsEscaped(t *testing.T) {
	t.Parallel()
	const evil = "<script>alert(1)</script>\r\n\r\n-- \"'{{.Password}} & <b>"
	student := email.Student{FirstName: evil, LastName: evil, Organization: evil, Username: evil, LoginURL: "javascript:alert(1)",
		Courses: []email.Course{{Name: evil, StartDate: clock.DateOf(2027, time.May, 1), EndDate: clock.DateOf(2027, time.June, 1)}}}
	for _, c := range []email.Content{email.Welcome{Student: student}, email.Credentials{Student: student}, email.AccessUpdate{Student: student},
		email.PasswordReset{Student: student}, email.TestAssigned{FirstName: evil, Organization: evil, Exam: evil, Title: evil, LoginURL: "javascript:alert(1)"},
		email.StaffInvitation{FirstName: evil, LastName: evil, Organization: evil, Role: evil, By: evil, LoginURL: "javascript:alert(1)"},
		email.Alert{Of: email.TypeURLSwitchedOff, FirstName: evil, LastName: evil, Organization: evil, URL: evil, Cause: evil, Page: "javascript:alert(1)"},
		email.Alert{Of: email.TypeRosterHeld, FirstName: evil, Organization: evil, Source: evil, Reasons: []string{evil}, Page: "javascript:alert(1)"},
		email.SecurityNotice{Notice: email.NoticeKeyCreated, Site: evil, Account: evil, Organization: evil, Subject: evil, By: evil, Browser: evil, From: evil, URL: "javascript:alert(1)"}} {
		got := render(t, c, email.Secrets{Password: "<i>P</i>", SetPasswordURL: "javascript:alert(2)"})
		if check.Lacks(t, "HTML", got.HTML, "<script", "%s: unescaped HTML:\n%s", c.Type(), got.HTML) &&
			check.Lacks(t, "HTML", got.HTML, "<i>", "%s: unescaped HTML:\n%s", c.Type(), got.HTML) {
			check.Lacks(t, "HTML", got.HTML, `href="javascript`, "%s: unescaped HTML:\n%s", c.Type(), got.HTML)
		}
		for l := range strings.Lines(got.Plain) {
			if strings.HasPrefix(strings.TrimSpace(l), `-- "`) {
				t.Errorf("%s: a value broke out of its line: %q", c.Type(), l)
			}
		}
	}
}

func TestPlanMailsReadAsTheyShould(t *testing.T) {
	t.Parallel()
	about := email.Preparation{Organization: "Saffron School", Exam: "IELTS Academic", Course: "Morning batch", Target: "7"}
	toAda := about
	toAda.FirstName = "Ada"
	result := email.PlanResult{Preparation: about, Student: "Ada Lovelace", Test: "Mock exam", Title: "Paper 7", Score: "Band 6.5",
		Sections: []email.SectionMark{{Name: "Listening", Score: "7"}, {Name: "Writing", Score: "6"}}}
	linked := result
	linked.ResultURL = "https://saffron.school/results/test:7"
	corrected := result
	corrected.Score, corrected.Was = "Band 7.0", "Band 6.5"
	corrected.Sections = []email.SectionMark{{Name: "Listening", Score: "7"}, {Name: "Writing", Score: "7", Was: "6"}}
	due := time.Date(2027, 3, 7, 18, 29, 0, 0, time.UTC)
	drills := []email.PlanTask{{Drill: "Reading", Title: "Reading 4", Due: due}, {Drill: "Writing", Title: "Writing 2", Due: due}}
	moved := []email.PlanTask{{Test: "Mock exam", Title: "Paper 7", Due: due}}
	for name, content := range map[string]email.Content{
		"plan_notice": email.PlanNotice{Preparation: toAda, ExamDate: clock.DateOf(2027, time.June, 1), LastDay: clock.DateOf(2027, time.May, 29),
			LoginURL: "https://saffron.school/sign-in/"},
		"plan_test_open": email.PlanTestOpen{Preparation: toAda, Test: "Skills check: Writing", Title: "Paper 7", TimeZone: "Asia/Kolkata",
			Due: time.Date(2027, 3, 3, 18, 29, 0, 0, time.UTC), SafeBrowser: true, LoginURL: "https://saffron.school/sign-in/"},
		"plan_result":         linked,
		"plan_summary":        result,
		"plan_alert_risk":     email.PlanAlert{Preparation: about, Student: "Ada Lovelace", Reason: email.AlertAtRisk, Page: "https://saffron.school/console/saffron/plans/7/"},
		"plan_alert_unfilled": email.PlanAlert{Preparation: about, Student: "Ada Lovelace", Reason: email.AlertUnfilled, Test: "Mock exam", Page: "https://saffron.school/console/saffron/plans/7/"},
		"plan_alert_unfilled_section": email.PlanAlert{Preparation: about, Student: "Ada Lovelace", Reason: email.AlertUnfilled,
			Test: "Skills check: Listening", Section: "listening"},
		"plan_summary_corrected": corrected,
		"plan_update":            email.PlanUpdate{Preparation: toAda, Tasks: drills, TimeZone: "Asia/Kolkata", LoginURL: "https://saffron.school/sign-in/"},
		"plan_update_moved":      email.PlanUpdate{Preparation: toAda, Tasks: append(moved, drills...), TimeZone: "Asia/Kolkata", LoginURL: "https://saffron.school/sign-in/"},
	} {
		got := render(t, content, email.Secrets{})
		golden(t, name+".txt", "Subject: "+got.Subject+"\n\n"+got.Plain)
		golden(t, name+".html", got.HTML)
		if strings.Contains(got.Plain+got.HTML, "/results/") != (name == "plan_result") {
			t.Errorf("%s: a result link where none belongs, or none where one does", name)
		}
	}
}

func TestAlertsReadAsTheyShould(t *testing.T) {
	t.Parallel()
	about := email.Alert{FirstName: "Grace", LastName: "Hopper", Organization: "Saffron School", Since: noon,
		Page: "https://learn.saffron.school/console/saffron/webhooks/7/", URL: "https://hooks.saffron.school/in"}
	off, failing, held := about, about, about
	off.Of, off.Waiting = email.TypeURLSwitchedOff, 1
	off.Cause = "50 failed attempts in a row, the last at 2027-03-01 12:00:00 UTC: The receiver answered 500: it failed; look into its log."
	failing.Of, failing.Cause, failing.Failures, failing.Waiting = email.TypeURLFailing, "The receiver answered 500: it failed; look into its log.", 12, email.MostWaiting
	held.Of, held.URL, held.Page, held.Source = email.TypeRosterHeld, "", "https://learn.saffron.school/console/saffron/roster-runs/9/", "sis <1>"
	held.Reasons = []string{"40 of 60 active people of the source would be deactivated", "enrollments.csv is missing, though the source has sent it before"}
	for _, a := range []email.Alert{off, failing, held} {
		zone, err := time.LoadLocation("Asia/Kolkata")
		check.NoError(check.Now(t), err, "the zone")
		links := email.Links{Logo: "https://learn.saffron.school/logos/1/0123", Unsubscribe: "https://learn.saffron.school/unsubscribe/abc/"}
		got, err := email.Render(a, email.Secrets{}, links, lang.Of("ar"), noon, zone) // staff read English
		check.NoError(check.Now(t), err, "%s", a.Of)
		golden(t, string(a.Of)+".txt", "Subject: "+got.Subject+"\n\n"+got.Plain)
		golden(t, string(a.Of)+".html", got.HTML)
	}
	for _, of := range email.Alerts() {
		check.True(t, "it says what it is about", of.When() != "", "%s", of)
	}
	check.False(t, "a student's mail can be ended", email.TypeWelcome.Optional(), "")
}
