package email_test

import (
	"html"
	"mime"
	netmail "net/mail"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/lang"
	"github.com/registrar-dev/registrar/internal/kit/mail/mailtest"
)

type letter struct {
	content email.Content
	secrets email.Secrets
}

// toStudents are mails of every type that students get, in every shape. What people typed has digits and the like alone, so
// that a test sees which letters are ours.
func toStudents() map[string]letter {
	link := email.Secrets{SetPasswordURL: "https://7.7/1"}
	s := email.Student{FirstName: "1", Organization: "22", Username: "3@3", LoginURL: "https://7.7/2"}
	two := s
	two.Courses = []email.Course{{Name: "4", EndDate: clock.DateOf(2027, time.May, 5)},
		{Name: "5", StartDate: clock.DateOf(2027, time.January, 4), EndDate: clock.DateOf(2027, time.July, 3)}}
	until, due := noon.AddDate(0, 0, 7), time.Date(2027, 3, 3, 18, 29, 59, 0, time.UTC)
	nobody := two
	nobody.FirstName = ""
	about := email.Preparation{FirstName: "1", Organization: "22", Exam: "66", Course: "4", Target: "6.5"}
	return map[string]letter{
		"welcome":       {email.Welcome{Student: two, LinkExpires: until}, link},
		"credentials":   {email.Credentials{Student: two, MustChangePassword: true}, email.Secrets{Password: "77-77", SetPasswordURL: link.SetPasswordURL}},
		"access":        {email.AccessUpdate{Student: nobody}, email.Secrets{}},
		"access_none":   {email.AccessUpdate{Student: s}, email.Secrets{}},
		"access_link":   {email.AccessUpdate{Student: two, LinkExpires: until}, link},
		"reset":         {email.PasswordReset{Student: s, LinkExpires: until}, link},
		"reset_of_site": {email.PasswordReset{Student: s, LinkExpires: until, OfSite: true}, link},
		"assigned": {email.TestAssigned{FirstName: "1", Organization: "22", Exam: "66", Title: "8", Due: due, TimeZone: "Asia/Kolkata",
			SafeBrowser: true, LoginURL: s.LoginURL}, email.Secrets{}},
		"plan": {email.PlanNotice{Preparation: about, ExamDate: clock.DateOf(2027, time.June, 1), LastDay: clock.DateOf(2027, time.May, 29), LoginURL: s.LoginURL}, email.Secrets{}},
		"open": {email.PlanTestOpen{Preparation: about, Test: "Skills check: Writing", Title: "8", TimeZone: "Asia/Kolkata", Due: due, SafeBrowser: true, LoginURL: s.LoginURL}, email.Secrets{}},
		"update": {email.PlanUpdate{Preparation: about, TimeZone: "Asia/Kolkata", LoginURL: s.LoginURL, Tasks: []email.PlanTask{
			{Test: "Mock exam", Title: "8", Due: due}, {Drill: "Reading", Title: "9", Due: due}}}, email.Secrets{}},
	}
}

func renderIn(t *testing.T, x *lang.Texts, l letter) email.Text {
	t.Helper()
	zone, err := time.LoadLocation("Asia/Kolkata")
	check.NoError(check.Now(t), err, "the zone")
	got, err := email.Render(l.content, l.secrets, email.Links{}, x, noon, zone)
	check.NoError(check.Now(t), err, "%s", l.content.Type())
	return got
}

func TestStudentsMailsReadAsTheyShouldInEveryLanguage(t *testing.T) {
	t.Parallel()
	for _, x := range lang.All() {
		if x.Code() == lang.English {
			continue // the other files are
		}
		for name, l := range toStudents() {
			got := renderIn(t, x, l)
			golden(t, x.Code()+"/"+name+".txt", "Subject: "+got.Subject+"\n\n"+got.Plain)
			golden(t, x.Code()+"/"+name+".html", got.HTML)
			check.Equal(t, "the language", got.Language, x.Code(), "%s", name)
			check.Contains(t, "the HTML", got.HTML, `<html lang="`+x.Code()+`" dir="`+x.Dir()+`">`, "%s", name)
			if x.RightToLeft() {
				check.Contains(t, "the HTML", got.HTML, `<table role="presentation" class="page" lang="ar" dir="rtl"`, "%s", name)
			}
		}
	}
}

var (
	markup = regexp.MustCompile(`(?s)<style>.*?</style>|<[^>]*>`)
	zoned  = regexp.MustCompile(`\(Asia/Kolkata\)|IST|https?://[^\s"<]*`)
)

func TestEveryWordOfAStudentsMailIsInACatalog(t *testing.T) {
	t.Parallel()
	for name, l := range toStudents() {
		got := renderIn(t, lang.Pseudo(), l)
		for part, text := range map[string]string{"subject": got.Subject, "text": got.Plain, "HTML": html.UnescapeString(markup.ReplaceAllString(got.HTML, " "))} {
			check.Contains(t, part, text, "⟦", "%s", name)
			left := zoned.ReplaceAllString(lang.Outside(text), "")
			check.False(t, "a word", strings.ContainsFunc(left, unicode.IsLetter), "%s: the %s says %q", name, part, strings.Join(strings.Fields(left), " "))
		}
	}
}

// A mail is in the language that the student chose, or else in the organization's; to staff it is in English.
func TestMailsAreInTheStudentsLanguage(t *testing.T) {
	t.Parallel()
	p := newPost(t, mailtest.Script{})
	f := flowtest.On(t, p.db)
	access := toStudents()["access"].content
	invitation := email.StaffInvitation{Organization: "Saffron School", Role: "admin", By: "Grace", LoginURL: "https://saffron.school/sign-in/"}
	for i, c := range []struct {
		organization, chosen string
		content              email.Content
		want, subject        string
	}{
		{"en", "", access, "en", "Your access to 22"},
		{"hi", "", access, "hi", "में आपकी पहुँच"},
		{"hi", "ar", access, "ar", "دخولك إلى"},
		{"hi", "en", access, "en", "Your access to 22"},
		{"hi", "ar", invitation, "en", "you are on the staff"},
		{"ar", "de", access, "en", "Your access to 22"}, // chosen when a program had more languages
	} {
		f.Exec(`UPDATE organizations SET language = $1`, c.organization)
		f.Exec(`UPDATE accounts SET language = nullif($1, '')`, c.chosen)
		p.queue(email.Message{Organization: p.org, User: p.user, Recipient: "ada@saffron.school", Content: c.content})
		p.deliver()
		sent := p.server.Messages()
		last, err := netmail.ReadMessage(strings.NewReader(sent[len(sent)-1]))
		check.NoError(check.Now(t), err, "%d", i)
		check.Equal(t, "the language", last.Header.Get("Content-Language"), c.want, "%d", i)
		subject, err := new(mime.WordDecoder).DecodeHeader(last.Header.Get("Subject"))
		check.NoError(check.Now(t), err, "%d", i)
		check.Contains(t, "the subject", subject, c.subject, "%d", i)
	}
}
