package pages_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

func TestAStudentsWayInABrowser(t *testing.T) {
	t.Parallel()
	b := browsertest.Open(t)
	s := open(t)
	s.north.Full.Post(t, "provision/student/", `{"email": "ana@institute.org", "first_name": "Ana", "courses": "ielts, toefl"}`).Want(t, 200)
	s.exec(t, `UPDATE enrollments SET state = 'suspended' WHERE course_id = (SELECT id FROM courses WHERE course_type = 'toefl')`)
	link, err := url.Parse(s.link)
	if err != nil {
		t.Fatal(err)
	}
	snapshot := func(name string) {
		t.Helper()
		b.Screenshot(name)
		b.Accessible(name)
	}
	b.Size(1000, 800)
	b.Visit(s.url + link.Path)
	b.AwaitHeading("Set your password")
	snapshot("set-password")
	b.Type("#password", password)
	b.Type("#again", password+"x")
	b.Press("Set password")
	if text := b.TextOf(".fault"); !strings.Contains(text, "not the same") {
		t.Errorf("fault %q", text)
	}
	snapshot("set-password-refused")
	b.Type("#password", password)
	b.Type("#again", password)
	b.Press("Set password")
	b.AwaitHeading("Your password is set")
	snapshot("password-set")
	b.Press("Sign in")
	b.AwaitHeading("Sign in")
	snapshot("sign-in")
	b.Type("#name", "ana@institute.org")
	b.Type("#password", "wrong")
	b.Press("Sign in")
	b.Await(".fault")
	snapshot("sign-in-refused")
	b.Type("#password", password)
	b.Press("Sign in")
	b.AwaitHeading("My courses")
	courses := b.TextOf("main")
	for _, want := range []string{"Institute north", "IELTS Academic", "Access until 21 February 2027", "Paused"} {
		if !strings.Contains(courses, want) {
			t.Errorf("the page lacks %q:\n%s", want, courses)
		}
	}
	snapshot("my-courses")
	b.Size(390, 800)
	b.Screenshot("my-courses-phone")
	if b.WiderThanWindow() {
		t.Error("the page scrolls sideways on a telephone")
	}
	b.Dark(true)
	b.Screenshot("my-courses-dark")
	b.Press("Change password")
	b.AwaitHeading("Choose your own password")
	snapshot("change-password")
	b.Back()
	b.AwaitHeading("My courses")
	b.Press("Sign out")
	b.AwaitHeading("Sign in")
	b.Visit(s.url + "/my-courses/")
	b.AwaitHeading("Sign in")
	if where := b.Location(); !strings.HasSuffix(where, "/sign-in/?next=%2Fmy-courses%2F") {
		t.Errorf("signed out, the browser is at %s", where)
	}
	b.Visit(s.url + link.Path)
	b.AwaitHeading("This link cannot be used any more")
	snapshot("link-over")
}

func TestAResultInABrowser(t *testing.T) {
	t.Parallel()
	b := browsertest.Open(t)
	w := openWork(t)
	w.report(t, "north", "a long name/of a session?", w.ana, scored)
	w.setPassword(t)
	b.Size(1000, 800)
	b.Visit(w.url + links(t, w.north)[0])
	b.AwaitHeading("Sign in")
	b.Type("#name", "ana@institute.org")
	b.Type("#password", password)
	b.Press("Sign in")
	b.AwaitHeading("Result")
	if text := b.TextOf("main"); check.Contains(t, "the text", text, "Mock <1>", "the page shows\n%s", text) {
		check.Contains(t, "the text", text, "Band 6.5", "the page shows\n%s", text)
	}
	b.Screenshot("result")
	b.Accessible("result")
	b.Size(390, 800)
	if b.WiderThanWindow() {
		t.Error("the page scrolls sideways on a telephone")
	}
}
