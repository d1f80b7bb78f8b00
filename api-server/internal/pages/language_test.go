package pages_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/registrar-dev/registrar/api-server/internal/pages"
	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/lang"
)

// speaking is a browser that asks for languages, or where somebody has chosen one.
type speaking struct{ accepts, chosen string }

func (s speaking) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if s.accepts != "" {
		r.Header.Set("Accept-Language", s.accepts)
	}
	if s.chosen != "" {
		r.AddCookie(&http.Cookie{Name: "registrar_language", Value: s.chosen})
	}
	r.Header.Set("Accept", "text/html")
	return http.DefaultTransport.RoundTrip(r)
}

func (s *site) speaking(t *testing.T, accepts, chosen string) *browser {
	t.Helper()
	b := s.browser(t)
	b.Transport = speaking{accepts, chosen}
	return b
}

var (
	action  = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	element = regexp.MustCompile(`(?s)<[^>]*>`)
	said    = regexp.MustCompile(`(?:aria-label|placeholder|alt|title)="([^"]*)"`)
)

// No template says anything by itself. Pages that a mail to staff leads to are in its language.
func TestEveryWordOfATemplateIsInACatalog(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("static/*.html")
	check.NoError(check.Now(t), err, "the templates")
	for _, file := range files {
		if strings.Contains(file, "unsubscribe") {
			continue
		}
		text, err := os.ReadFile(file)
		check.NoError(check.Now(t), err, "%s", file)
		plain := action.ReplaceAllString(string(text), "")
		words := regexp.MustCompile(` data-[a-z-]+=""`).ReplaceAllString(element.ReplaceAllString(plain, " "), "")
		for _, found := range said.FindAllStringSubmatch(plain, -1) {
			words += " " + found[1]
		}
		check.False(t, "it says something", strings.ContainsFunc(words, unicode.IsLetter), "%s: %q", file, strings.Join(strings.Fields(words), " "))
	}
}

// typed is what people, catalogs of tests, PostgreSQL and browsers call things, and what is in English for administrators.
var typed = regexp.MustCompile(`ana@institute\.org|\bAna\b|dee@institute\.org|\bDee\b|Institute north|Mock <1>|IELTS Academic|Words|Later|Asia/Kolkata|\bUTC\b|[A-Z2-7]{4}(?: [A-Z2-7]{4})+|nobody@institute\.org|` +
	`English|हिन्दी|العربية|Go-http-client`)

// outside is what a page in the pseudo-language says that is in no catalog.
func outside(page string) string {
	page = regexp.MustCompile(`(?s)<option.*?>|<p lang="en".*?</p>|<script.*?</script>`).ReplaceAllString(page, "")
	words := element.ReplaceAllString(page, " ")
	for _, found := range said.FindAllStringSubmatch(page, -1) {
		words += " " + found[1]
	}
	return strings.Join(strings.Fields(typed.ReplaceAllString(lang.Outside(html.UnescapeString(words)), "")), " ")
}

// What programs write on pages is in the catalogs, too: in a pseudo-language everything that is, is marked.
func TestEveryWordOfAPageIsInACatalog(t *testing.T) {
	t.Parallel()
	w := openWork(t)
	link, err := url.Parse(w.link)
	check.NoError(check.Now(t), err, "the link")
	b := w.speaking(t, "", lang.Pseudo().Code())
	see := func(what, path string, form url.Values, status int) string {
		t.Helper()
		p := b.do(t, path, form)
		check.Equal(t, "the status", p.status, status, "%s: %s", what, p.to)
		check.Contains(t, what, p.body, "⟦", "%s", path)
		left := outside(p.body)
		check.False(t, "a word that is in no catalog", strings.ContainsFunc(left, unicode.IsLetter), "%s: %q", what, left)
		return p.body
	}
	see("the sign-in", "/sign-in/", nil, 200)
	see("a wrong password", "/sign-in/", url.Values{"name": {"ana@institute.org"}, "password": {"wrong"}}, 401)
	see("a forgotten password", "/forgot-password/", nil, 200)
	see("no address", "/forgot-password/", url.Values{"email": {"77"}}, 400)
	see("a link that was asked for", "/forgot-password/", url.Values{"email": {"nobody@institute.org"}}, 200)
	see("an institute", "/sign-in/institute/", nil, 200)
	see("no institute", "/sign-in/institute/?email=nobody%40institute.org", nil, 200)
	see("an answer that nobody asked for", "/sign-in/answer/north/", nil, 401)
	see("a second factor of nobody", "/sign-in/second/", nil, 200)
	see("a link from elsewhere", fmt.Sprintf("/lti/launch/test/%d", w.item), nil, 405)
	see("a launch", fmt.Sprintf("/lti/launch/test/%d", w.item), url.Values{"oauth_consumer_key": {"7"}}, 400)
	see("a first password", link.Path, nil, 200)
	for _, bad := range []string{"short", strings.Repeat("x1", 70), " blank at the start", "12345678", "aaaabbbb", "password1", "ana@institute.org", "a\x01bcdefghi"} {
		see("a password that is refused", link.Path, twice(bad), 400)
	}
	see("two passwords", link.Path, url.Values{"password": {password}, "again": {"7"}}, 400)
	see("a password that is set", link.Path, twice(password), 200)
	see("a link that is over", link.Path, nil, 410)
	b.signIn(t, "ana@institute.org", password)
	see("no courses", "/my-courses/", nil, 200)
	w.north.Full.Post(t, "provision/student/", `{"email": "ana@institute.org", "first_name": "Ana", "courses": "ielts", "target_score_plan": {"target_score": 7, "test_plan": true, "timezone": "Asia/Kolkata"}}`).Want(t, 200)
	for _, kind := range []string{"words", "later"} {
		w.Platform.Put(t, "organizations/north/catalog/quizzes/"+kind, fmt.Sprintf(`{"title": %q}`, strings.ToUpper(kind[:1])+kind[1:])).Want(t, 201)
	}
	for _, i := range w.north.Full.Get(t, "catalog/").Want(t, 200).Object(t)["items"].([]any) {
		if i.(map[string]any)["title"] != "Mock <1>" {
			w.north.Full.Post(t, "assignments/", map[string]any{"user_id": w.ana, "kind": "quiz", "item_id": i.(map[string]any)["item_id"], "due_date": "2030-01-01"}).Want(t, 201)
		}
	}
	see("work and no score", "/my-courses/", nil, 200)
	w.report(t, "north", "s0", w.ana, strings.ReplaceAll(scored, "6.5", "5.5"))
	w.Advance(10 * time.Minute)
	w.report(t, "north", "s1", w.ana, scored)
	w.report(t, "north", "s2", w.ana, `"state": "started"`)
	for what, state := range map[string]string{"a suspended course": "suspended", "a course that was left": "dropped", "a finished course": "completed"} {
		w.exec(t, fmt.Sprintf(`UPDATE enrollments SET state = '%s'`, state))
		see(what, "/my-courses/", nil, 200)
	}
	for what, dates := range map[string]string{"a course that begins": "'2031-01-01', end_date = '2031-05-01', grace_period_end = '2031-05-01'",
		"a course that ends": "'2020-01-01', end_date = '2026-11-01', grace_period_end = '2031-05-01'", "a course that is over": "'2020-01-01', end_date = '2020-05-01', grace_period_end = '2020-05-01'"} {
		w.exec(t, `UPDATE enrollments SET state = 'running', start_date = `+dates)
		see(what, "/my-courses/", nil, 200)
	}
	for _, session := range []string{"s0", "s1", "s2"} {
		see("a result", "/results/test:"+session, nil, 200)
	}
	see("no result", "/results/test:none", nil, 404)
	see("a zone", "/time-zone/", nil, 200)
	see("no zone", "/time-zone/", url.Values{"zone": {"7"}}, 400)
	b.do(t, "/time-zone/", url.Values{"zone": {"Asia/Kolkata"}})
	see("the chosen zone", "/my-courses/", nil, 200)
	see("browsers", "/sessions/", nil, 200)
	b.do(t, "/sessions/end-others/", url.Values{})
	see("no other browser", "/sessions/", nil, 200)
	see("a password to change", "/change-password/", nil, 200)
	see("the wrong password", "/change-password/", url.Values{"current": {"7"}, "password": {"x"}, "again": {"x"}}, 400)
	see("the same password", "/change-password/", url.Values{"current": {password}, "password": {password}, "again": {password}}, 400)
	see("ways to sign in, of who has shown no mailbox", "/sign-in-methods/", nil, 403)
	w.exec(t, `UPDATE accounts SET proven_password = true`)
	b.signIn(t, "ana@institute.org", password)
	see("ways to sign in", "/sign-in-methods/", nil, 200)
	see("an app", "/sign-in-methods/app/", url.Values{}, 200)
	see("a wrong code", "/sign-in-methods/app/add/", url.Values{"name": {"7"}, "code": {"000"}}, 400)
	see("no method", "/sign-in-methods/remove/", url.Values{"method": {"7"}}, 400)
	see("codes of nobody", "/sign-in-methods/recovery-codes/", url.Values{}, 400)
	w.Advance(11 * time.Minute)
	see("a question", "/sign-in-methods/app/", url.Values{}, 200)
	see("no language", "/language/", url.Values{"language": {"tlh"}}, 400)
}

// A page is in the language that its reader chose for the account, in the browser, or in its settings; else in that of the
// organization whose page it is.
func TestPagesAreInTheLanguageOfTheirReader(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.setPassword(t)
	in := func(want string, b *browser, path, why string) {
		t.Helper()
		p := b.do(t, path, nil)
		x := lang.Of(want)
		check.Contains(t, why, p.body, fmt.Sprintf(`<html lang="%s"`, want), "%s", path)
		check.Equal(t, why, strings.Contains(p.body, ` dir="rtl">`+"\n<head>"), x.RightToLeft(), "%s", path)
		check.Equal(t, why, p.header.Get("Content-Language"), want, "%s", path)
	}
	in("en", s.browser(t), "/sign-in/", "for who asks for nothing")
	in("hi", s.speaking(t, "de, hi-IN;q=0.9, en;q=0.8", ""), "/sign-in/", "as the browser asks")
	in("ar", s.speaking(t, "hi", "ar"), "/sign-in/", "as it was chosen in the browser")
	in("hi", s.speaking(t, "hi", "tlh"), "/sign-in/", "after a choice that means nothing")
	s.Platform.Put(t, "organizations/north", `{"language": "hi"}`).Want(t, 200)
	in("hi", s.browser(t), "/sign-in/?at=north", "as the organization has it")
	in("en", s.browser(t), "/sign-in/", "where it is nobody's page")
	in("ar", s.speaking(t, "ar", ""), "/sign-in/?at=north", "as the browser asks at an organization")
	for path, want := range map[string]string{"/nowhere/": "ar", "/console/": "en", "/docs/nowhere/": "en"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Header.Set("Accept", "text/html")
		r.Header.Set("Accept-Language", "ar-EG")
		w := httptest.NewRecorder()
		check.True(t, "a page answers", pages.Stray(w, r, fault.New(fault.NotFound, "not_found", "there is no such page")), "%s", path)
		check.Contains(t, "where there is no page", w.Body.String(), `<html lang="`+want+`"`, "%s", path)
	}

	b := s.browser(t)
	b.signIn(t, "ana@institute.org", password)
	in("hi", b, "/my-courses/", "as the student's organization has it")
	p := b.do(t, "/language/", url.Values{"language": {"ar"}, "next": {"/sessions/?a=b"}})
	check.Equal(t, "the way back", p.to, "/sessions/?a=b", "%d", p.status)
	in("ar", b, "/sessions/", "as it was chosen")
	other := s.speaking(t, "en", "en")
	other.signIn(t, "ana@institute.org", password)
	in("ar", other, "/my-courses/", "as it was chosen for the account in another browser")
	check.Equal(t, "a way back to another site", b.do(t, "/language/", url.Values{"language": {"hi"}, "next": {"https://evil.test/"}}).to, "/", "")
	in("hi", other, "/my-courses/", "as it was chosen at last")

	// What was chosen before the sign-in is the account's from then on.
	s.exec(t, `UPDATE accounts SET language = NULL`)
	early := s.browser(t)
	early.do(t, "/language/", url.Values{"language": {"ar"}, "next": {"/sign-in/?at=north"}})
	in("ar", early, "/sign-in/?at=north", "as it was chosen without a sign-in")
	early.signIn(t, "ana@institute.org", password)
	fresh := s.browser(t)
	fresh.signIn(t, "ana@institute.org", password)
	in("ar", fresh, "/my-courses/", "as it was chosen before the sign-in in another browser")
	check.Lacks(t, "a page that only a form opens", fresh.do(t, "/sign-in/passkey/", url.Values{}).body, "/language/", "")
}

// A student's way in Arabic and Hindi.
func TestPagesFromRightToLeftAndInDevanagari(t *testing.T) {
	t.Parallel()
	w := openWork(t)
	w.Platform.Put(t, "catalog/tests/m1", `{"title": "Mock exam 7", "launch_url": "https://learn.institute.org/mock"}`).Want(t, 200)
	made := w.north.Full.Post(t, "provision/student/", `{"email": "dee@institute.org", "first_name": "Dee", "courses": "ielts, toefl",
		"password_mode": "set", "password": "`+password+`", "must_change_password": false,
		"target_score_plan": {"course": "ielts", "target_score": 7, "test_plan": true, "timezone": "Asia/Kolkata"}}`).Want(t, 201).Object(t)
	dee := int64(made["user_id"].(float64))
	given := w.north.Full.Get(t, "assignments/?email=dee@institute.org").Want(t, 200).Object(t)["assignments"].([]any)
	for i, score := range []string{"5.5", "6.5"} {
		body := `"state": "finished", "score": ` + score + `, "sections": {"listening": ` + score + `, "reading": ` + score + `, "writing": ` + score + `, "speaking": ` + score + `}`
		if i == 0 {
			body += `, "assignment_id": "` + given[0].(map[string]any)["id"].(string) + `"`
		}
		w.report(t, "north", "dee-"+score, dee, body)
		w.Advance(10 * time.Minute)
	}
	w.DecidePlans(t)
	w.north.Full.Post(t, "assignments/", map[string]any{"user_id": dee, "kind": "test", "item_id": w.item, "due_date": "2031-01-01T02:30:00Z"})
	link, err := url.Parse(w.link)
	check.NoError(check.Now(t), err, "the link")
	b := browsertest.Open(t)
	b.Zone("Asia/Kolkata")
	b.Visit(w.url + "/sign-in/")
	b.Press("العربية")
	b.AwaitHeading("تسجيل الدخول")
	look := func(code, name, path string) {
		t.Helper()
		b.Visit(w.url + path)
		for _, width := range []int64{1280, 390} {
			b.Size(width, 844)
			for _, dark := range []bool{false, true} {
				b.Dark(dark)
				b.Screenshot(fmt.Sprintf("%s-%s-%d-dark-%t", code, name, width, dark))
				b.Accessible(code + " " + name)
			}
			b.Dark(false)
			check.Equal(t, "the room on both sides", b.Value(`String(Math.round((r => innerWidth - r.left - r.right)(document.querySelector("main").getBoundingClientRect())))`), "0", "%s %s at %d", code, name, width)
			check.False(t, "it scrolls sideways", b.WiderThanWindow(), "%s %s at %d", code, name, width)
			check.Equal(t, "the language", b.Value(`document.documentElement.lang`), code, "%s", name)
			b.Pictures(fmt.Sprintf("../../../docs/console/%s-%s%s", name, code, map[int64]string{390: "-telephone"}[width]))
			check.Equal(t, "the direction", b.Value(`getComputedStyle(document.body).direction`), lang.Of(code).Dir(), "%s", name)
		}
	}
	look("ar", "sign-in", "/sign-in/?at=north")
	look("ar", "set-password", link.Path)
	b.Visit(w.url + "/sign-in/?at=north")
	b.Type("#name", "dee@institute.org")
	b.Type("#password", password)
	b.Press("تسجيل الدخول")
	b.AwaitHeading("دوراتي")
	look("ar", "my-courses", "/my-courses/")
	b.AwaitText("Asia/Kolkata")
	look("ar", "result", "/results/test:dee-6.5")
	b.Press("हिन्दी")
	b.AwaitHeading("परिणाम")
	look("hi", "result", "/results/test:dee-6.5")
	look("hi", "my-courses", "/my-courses/")
	b.Visit(w.url + "/my-courses/")
	b.Press("साइन आउट करें")
	b.AwaitHeading("साइन इन करें")
	look("hi", "sign-in", "/sign-in/?at=north")
	look("hi", "set-password", link.Path)
}
