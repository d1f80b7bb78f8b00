package pages_test

import (
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/queue/queuetest"
)

// shared is Ana, whom north made with a password and who signed in with it; then south enrolled her.
// She has a course and a result at both.
type shared struct {
	*work
	south apitest.Organization
	b     *browser // in which she signed in before south came
}

func openShared(t *testing.T) *shared {
	t.Helper()
	s := &shared{work: openWork(t)}
	s.south = s.Organization(t, "south")
	give := func(o apitest.Organization, rest string, status int) {
		o.Full.Post(t, "provision/student/", `{"email": "ana@institute.org", "first_name": "Ana"`+rest+`}`).Want(t, status)
	}
	give(s.north, `, "courses": "ielts", "password": "`+password+`"`, 200)
	s.b = s.browser(t)
	if p := s.b.signIn(t, "ana@institute.org", password); p.status != 303 {
		t.Fatalf("%d\n%s", p.status, p.body)
	}
	give(s.south, `, "courses": "toefl"`, 200)
	s.report(t, "north", "of-north", s.ana, scored)
	s.report(t, "south", "of-south", s.ana, scored)
	return s
}

// sees checks what a browser shows of each organization: its name, course and result page.
func (s *shared) sees(t *testing.T, b *browser, what string, north, south bool) {
	t.Helper()
	courses := b.do(t, "/my-courses/", nil)
	check.Equal(t, "status", courses.status, 200, "%s", what)
	for text, want := range map[string]bool{"Institute north": north, "IELTS": north, "Institute south": south, "TOEFL": south,
		"Another institute has courses for you": !north || !south} {
		check.Equal(t, "shows "+text, strings.Contains(courses.body, text), want, "%s: %s", what, courses.body)
	}
	for ref, want := range map[string]bool{"of-north": north, "of-south": south} {
		p := b.do(t, "/results/test:"+ref, nil)
		check.Equal(t, "shows the result", p.status == 200 && strings.Contains(p.body, "Band 6.5"), want, "%s: %d %s", what, p.status, p.body)
	}
}

// A provisions an address with a password and signs in; then B enrolls the same person.
func TestASignInShowsNothingOfAnotherInstitute(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	s.sees(t, s.b, "the session from before", true, false)
	again := s.browser(t)
	again.signIn(t, "ana@institute.org", password)
	s.sees(t, again, "the password", true, false)
	// Whether there is such a result makes no difference, so nobody finds out.
	there, nowhere := again.do(t, "/results/test:of-south", nil), again.do(t, "/results/test:of-nobody", nil)
	check.Equal(t, "status", there.status, 404, "%s", there.body)
	check.Equal(t, "the page", strings.ReplaceAll(there.body, "of-south", "of-nobody"), nowhere.body, "of a result elsewhere, and of none, but for its own address")
	// The password that is chosen with what north gave is north's, too.
	if p := again.do(t, "/change-password/", change(password, another)); p.status != 303 {
		t.Fatalf("%d\n%s", p.status, p.body)
	}
	s.sees(t, again, "a changed password", true, false)
}

// The pages offer one button; the link that it sends makes the session and the password the mailbox's.
func TestALinkToTheMailboxOpensAllThatThePersonHas(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	arrived := s.mailbox(t)
	if p := s.b.do(t, "/send-link/", url.Values{}); p.status != 200 || !strings.Contains(p.body, "Look into your mailbox") {
		t.Fatalf("%d\n%s", p.status, p.body)
	}
	link := resetLink.FindString(await(t, arrived, "ana@institute.org"))
	mailed := s.browser(t)
	path := strings.TrimPrefix(link, s.url)
	for range 2 { // a scanner opens it, too, and is nobody
		scanner := s.browser(t)
		check.Equal(t, "status", scanner.do(t, path, nil).status, 200, "")
		check.Equal(t, "cookie", scanner.cookie(t), "", "of a visit that only opens the link")
	}
	p := mailed.do(t, path, twice(password))
	check.Equal(t, "status", p.status, 400, "keeping the password that north knows: %s", p.body)
	check.True(t, "says why", strings.Contains(p.body, "institute may know this password"), "%s", p.body)
	p = mailed.do(t, path, twice(another))
	check.Equal(t, "status", p.status, 200, "%s", p.body)
	s.sees(t, mailed, "the session that the link began", true, true)
	again := s.browser(t)
	again.signIn(t, "ana@institute.org", another)
	s.sees(t, again, "the password", true, true)
	check.Equal(t, "status", s.b.do(t, "/my-courses/", nil).status, 303, "the session of before goes on")
	check.Equal(t, "status", s.browser(t).signIn(t, "ana@institute.org", password).status, 401, "the password that north knew")
	// A password that proves the mailbox may be confirmed.
	confirmed := s.browser(t)
	p = confirmed.do(t, s.mailed(t), twice(another))
	check.Equal(t, "status", p.status, 200, "confirming: %s", p.body)
	s.sees(t, confirmed, "the confirmed password", true, true)
}

func TestOneIsSentFewLinks(t *testing.T) {
	t.Parallel()
	s := openWith(t, queuetest.New(t))
	s.setPassword(t)
	b := s.browser(t)
	b.signIn(t, "ana@institute.org", password)
	for i := range 5 {
		want := 200
		if i >= 3 {
			want = 429
		}
		check.Equal(t, "status", b.do(t, "/send-link/", url.Values{}).status, want, "link %d", i)
	}
	check.Equal(t, "status", s.browser(t).do(t, "/send-link/", url.Values{}).status, 303, "nobody")
}

// Who learns with one institute never notices.
func TestWhoLearnsWithOneInstituteIsOfferedNothing(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.setPassword(t)
	b := s.browser(t)
	b.signIn(t, "ana@institute.org", password)
	p := b.do(t, "/my-courses/", nil)
	check.False(t, "offers a link", strings.Contains(p.body, "Send me a link"), "%s", p.body)
	check.Equal(t, "status", b.do(t, "/results/test:none", nil).status, 404, "")
}

// The console needs proof of the mailbox. Without it there is a link to be had, whether the person is
// staff or not.
func TestTheConsoleNeedsProofOfTheMailbox(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.setPassword(t) // over a link that north was given
	s.north.Full.Post(t, "provision/student/", `{"email": "ben@institute.org", "first_name": "Ben", "password": "`+password+`"}`).Want(t, 201)
	s.Platform.Put(t, "organizations/north/staff/ana@institute.org", `{"role": "owner"}`).Want(t, 200)
	var shown []string
	for _, name := range []string{"ana", "ben"} {
		b := s.browser(t)
		p := b.signIn(t, name+"@institute.org", password)
		check.Equal(t, "leads to", p.to, "/my-courses/", "%s", name)
		for _, path := range []string{"/console", "/guarded/north"} {
			p := b.do(t, path, nil)
			check.Equal(t, "status", p.status, 403, "%s at %s: %s", name, path, p.body)
			check.True(t, "offers a link", strings.Contains(p.body, "Send me a link"), "%s at %s: %s", name, path, p.body)
			shown = append(shown, p.body)
		}
		b.do(t, s.mailed(t), twice(another)) // of Ana alone
		if name == "ana" {
			check.Equal(t, "status", b.do(t, "/guarded/north", nil).status, 200, "with the mailbox")
		}
	}
	check.Equal(t, "staff and students", shown[0], shown[2], "are told the same")
}

// A flag that comes with the password which one organization had drawn keeps nobody from another's
// pages.
func TestADrawnPasswordDoesNotBlockALaunchOfAnother(t *testing.T) {
	t.Parallel()
	s := open(t)
	south := s.Organization(t, "south")
	south.Full.Post(t, "provision/student/", `{"email": "ben@institute.org", "first_name": "Ben", "password_mode": "generate"}`).Want(t, 201)
	l, b := s.lms(t, "north", s.north), s.browser(t)
	l.launch(t, b, l.form("ben@institute.org", "Learner"))
	check.Equal(t, "status", b.do(t, "/my-courses/", nil).status, 200, "asked for another's password")
	a := s.north.Full.Post(t, "provision/student/", `{"email": "ben@institute.org", "first_name": "Ben"}`).Want(t, 200).Object(t)
	credentials := a["credentials"].(map[string]any)
	check.Equal(t, "must_change_password", credentials["must_change_password"], any(false), "%v", a)
}

// Organizations call, and the person signs in, all at once: what each session shows never changes.
func TestSessionsShowTheirOwnWhileOrganizationsCall(t *testing.T) {
	t.Parallel()
	s := openShared(t)
	mine := s.browser(t)
	mine.do(t, s.mailed(t), twice(another))
	l := s.lms(t, "north", s.north)
	of := s.browser(t)
	l.launch(t, of, l.form("ana@institute.org", "Learner"))
	var all sync.WaitGroup
	for _, o := range []apitest.Organization{s.north, s.south} {
		for range 3 {
			all.Go(func() {
				o.Full.Post(t, "provision/student/", `{"email": "ana@institute.org", "first_name": "Ana", "resend_welcome_email": true, "password": "`+password+`"}`)
			})
		}
	}
	for range 3 {
		all.Go(func() { s.sees(t, mine, "the mailbox's", true, true) })
		all.Go(func() { s.sees(t, of, "the LMS's", true, false) })
	}
	all.Wait()
}

// Two people of north, one of whom south takes in, in every way: north's calls are answered alike.
// Reference: provisioning#existing-accounts.
func TestARepeatAnswersAsIfNoOtherOrganizationExisted(t *testing.T) {
	t.Parallel()
	s := open(t)
	south := s.Organization(t, "south")
	l := s.lms(t, "south", south)
	s.north.Full.Post(t, "provision/student/", `{"email": "first@institute.org", "first_name": "A", "username": "taken"}`).Want(t, 201)
	calls := []string{``, `, "courses": "ielts"`, `, "resend_welcome_email": true`, `, "username": "NAME.x", "password": "` + password + `"`,
		`, "username": "NAME.x", "password": "` + password + `"`, `, "password_mode": "generate"`, `, "username": "taken"`, ``}
	call := func(o apitest.Organization, name, rest string) string {
		body := `{"email": "NAME@institute.org", "first_name": "Ana"` + rest + `}`
		a := o.Full.Post(t, "provision/student/", strings.ReplaceAll(body, "NAME", name))
		return varying.ReplaceAllString(strings.ReplaceAll(string(a.Body), name, "NAME"), `"$1":0`)
	}
	said := map[string][]string{}
	for _, name := range []string{"both", "here"} {
		for i, rest := range calls {
			said[name] = append(said[name], call(s.north, name, rest))
			if name == "here" {
				continue
			}
			if i == 0 {
				p := l.launch(t, s.browser(t), l.form("both@institute.org", "Learner"))
				check.Equal(t, "status", p.status, 303, "the launch: %s", p.body)
			}
			for _, other := range calls {
				call(south, name, other)
			}
			s.Platform.Put(t, "organizations/south/staff/both@institute.org", `{"role": "teacher"}`)
		}
	}
	for i := range calls {
		check.Equal(t, "answer", said["both"][i], said["here"][i], "call %d", i)
	}
	check.True(t, "a link", strings.Contains(said["both"][7], `"set_password_url":0`), "%s", said["both"][7])
	check.True(t, "a refusal", strings.Contains(said["both"][6], "username_taken"), "%s", said["both"][6])
}

// varying is what differs between two people.
var varying = regexp.MustCompile(`"(user_id|enrollment_id|set_password_url)": ?(?:\d+|"[^"]*")`)
