package pages_test

import (
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	advantage "github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

const (
	teacher = "http://purl.imsglobal.org/vocab/lis/v2/membership#Instructor"
	learner = "http://purl.imsglobal.org/vocab/lis/v2/membership#Learner"
	dl      = "https://purl.imsglobal.org/spec/lti-dl/claim/"
)

// asks are the claims of a message with which a teacher chooses; settings change what the LMS asks for, and nil leaves it out.
func (l *school) asks(question url.Values, settings ...any) map[string]any {
	claims := l.says(question, "tom@school.example")
	delete(claims, claim+"resource_link")
	delete(claims, claim+"target_link_uri")
	claims[claim+"message_type"], claims[claim+"roles"] = advantage.Chooses, []string{teacher}
	asked := map[string]any{"deep_link_return_url": "https://lms.school/return?course=7", "accept_types": []string{"link", "ltiResourceLink"},
		"accept_presentation_document_targets": []string{"iframe", "window"}, "accept_multiple": true, "accept_lineitem": true, "data": "csrf <&> \u2028 7"}
	for i := 0; i < len(settings); i += 2 {
		if name := settings[i].(string); strings.HasPrefix(name, "http") {
			claims[name] = settings[i+1]
		} else if asked[name] = settings[i+1]; settings[i+1] == nil {
			delete(asked, name)
		}
	}
	claims[dl+"deep_linking_settings"] = asked
	return claims
}

// choose begins a choice within the LMS's page.
func (l *school) choose(t *testing.T, b *browser, settings ...any) page {
	t.Helper()
	question := l.begin(t, b)
	return l.post(t, b, advantage.MessagePath+l.slug+"/", l.sign(t, question, l.asks(question, settings...)), "iframe")
}

var (
	choiceField = regexp.MustCompile(`name="choice" value="([^"]+)"`)
	itemField   = regexp.MustCompile(`name="item" value="(\d+)"( checked)?> <span>([^<]+)<`)
	answerField = regexp.MustCompile(`name="JWT" value="([^"]+)"`)
	hiddenPage  = regexp.MustCompile(`name="page" value="(\d+)"`)
)

// choice is the secret of a page.
func choice(t *testing.T, p page) string {
	t.Helper()
	found := choiceField.FindStringSubmatch(p.body)
	check.True(check.Now(t), "it is a page of a choice", p.status == 200 && found != nil, "%d %s", p.status, p.body)
	return found[1]
}

// offered are the ids of the items on a page, by their titles.
func offered(p page) map[string]string {
	all := map[string]string{}
	for _, found := range itemField.FindAllStringSubmatch(p.body, -1) {
		all[html.UnescapeString(found[3])] = found[1]
	}
	return all
}

// answer reads what goes back to the LMS, and checks it as an LMS does.
func (s *site) answer(t *testing.T, p page) map[string]any {
	t.Helper()
	found := answerField.FindStringSubmatch(p.body)
	check.True(check.Now(t), "it is an answer", p.status == 200 && found != nil, "%d %s", p.status, p.body)
	token, err := jwt.ParseSigned(html.UnescapeString(found[1]), []jose.SignatureAlgorithm{jose.RS256})
	check.NoError(check.Now(t), err, "the answer")
	var set jose.JSONWebKeySet
	check.NoError(check.Now(t), json.Unmarshal([]byte(s.browser(t).do(t, advantage.KeysPath, nil).body), &set), "our keys")
	var standard jwt.Claims
	claims := map[string]any{}
	check.NoError(check.Now(t), token.Claims(set, &claims, &standard), "our signature")
	check.NoError(t, standard.ValidateWithLeeway(jwt.Expected{Issuer: "client-1", AnyAudience: jwt.Audience{"https://lms.north.school"}, Time: s.Now()}, 0), "the claims")
	check.True(t, "it has a nonce", claims["nonce"] != "", "%v", claims)
	check.Equal(t, "message_type", claims[claim+"message_type"], any("LtiDeepLinkingResponse"), "")
	check.Equal(t, "version", claims[claim+"version"], any("1.3.0"), "")
	check.Equal(t, "deployment", claims[claim+"deployment_id"], any("1:a"), "")
	return claims
}

func (s *site) put(t *testing.T, slug string, titles ...string) {
	t.Helper()
	for i, title := range titles {
		s.Platform.Put(t, fmt.Sprintf("organizations/%s/catalog/quizzes/%s-%d", slug, strings.ToLower(strings.Fields(title)[0]), i), fmt.Sprintf(`{"title": %q}`, title)).Want(t, 201)
	}
}

// A teacher chooses two items with their columns of marks, and a learner opens the work by the link that the LMS has made of one.
func TestATeacherChoosesItems(t *testing.T) {
	t.Parallel()
	s := open(t)
	l, b := s.school(t, "north", s.north), s.browser(t)
	s.put(t, "north", "Algebra <1>")
	p := l.choose(t, b)
	token, items := choice(t, p), offered(p)
	check.Contains(t, "the policy", p.header.Get("Content-Security-Policy"), "frame-ancestors *", "it may stand in the LMS's page")
	check.Equal(t, "items", len(items), 2, "%s", p.body)
	check.Equal(t, "signed in", b.cookie(t), "", "nobody is")
	p = b.do(t, advantage.DeepLinkPath+"north/", url.Values{"choice": {token}, "item": {items["Algebra <1>"], items["Grammar & more"]}, "do": {"add"}})
	check.Contains(t, "the policy", p.header.Get("Content-Security-Policy"), "form-action https://lms.school;", "")
	check.Contains(t, "it goes", p.body, `action="https://lms.school/return?course=7"`, "")
	claims := s.answer(t, p)
	check.Equal(t, "data", claims[dl+"data"], any("csrf <&> \u2028 7"), "untouched")
	links := claims[dl+"content_items"].([]any)
	check.Equal(check.Now(t), "links", len(links), 2, "%v", links)
	first := links[0].(map[string]any)
	check.Equal(t, "type", first["type"], any("ltiResourceLink"), "")
	check.Equal(t, "url", first["url"], any(s.url+l.link), "")
	check.Equal(t, "title", first["title"], any("Grammar & more"), "")
	line := first["lineItem"].(map[string]any)
	check.Equal(t, "scoreMaximum", line["scoreMaximum"], any(100.0), "%v", line)
	check.True(t, "it may open both ways", first["iframe"] != nil && first["window"] != nil, "%v", first)
	name := first["custom"].(map[string]any)["registrar_item"]
	check.Equal(t, "the parameter", name, any("quiz/"+items["Grammar & more"]), "")
	for where, target := range map[string]string{"the link's address": s.url + l.link, "one address for all links": s.url + advantage.MessagePath + "north/"} {
		p = l.launch(t, b, "lena@school.example", claim+"target_link_uri", target, claim+"custom", map[string]any{"registrar_item": name, "other": 7})
		check.Equal(t, "status", p.status, 303, "%s: %s", where, p.body)
	}
	check.Contains(t, "the page", b.do(t, "/my-courses/", nil).body, "Grammar &amp; more", "")
	check.Equal(t, "assignments", s.count(t, `SELECT count(*) FROM assignments`), 1, "")
	check.Equal(t, "what is left", s.count(t, `SELECT count(*) FROM lms_choices`), 0, "")
}

// What an LMS accepts is what it gets.
func TestWhatAnLMSAccepts(t *testing.T) {
	t.Parallel()
	s := open(t)
	l, b := s.school(t, "north", s.north), s.browser(t)
	s.put(t, "north", "Algebra")
	for name, c := range map[string]struct {
		settings []any
		want     string // of the link's properties
	}{
		"everything":           {nil, "iframe window lineItem"},
		"no columns":           {[]any{"accept_lineitem", false}, "iframe window"},
		"columns unsaid":       {[]any{"accept_lineitem", nil}, "iframe window lineItem"},
		"a window alone":       {[]any{"accept_presentation_document_targets", []string{"window"}}, "window lineItem"},
		"a frame alone":        {[]any{"accept_presentation_document_targets", []string{"embed", "iframe"}}, "iframe lineItem"},
		"no data":              {[]any{"data", nil}, "iframe window lineItem"},
		"data that is no text": {[]any{"data", map[string]any{"n": 1.5}}, "iframe window lineItem"},
	} {
		p := l.choose(t, b, c.settings...)
		items := offered(p)
		claims := s.answer(t, b.do(t, advantage.DeepLinkPath+"north/", url.Values{"choice": {choice(t, p)}, "item": {items["Algebra"]}, "do": {"add"}}))
		link := claims[dl+"content_items"].([]any)[0].(map[string]any)
		var has []string
		for _, property := range []string{"iframe", "window", "lineItem"} {
			if link[property] != nil {
				has = append(has, property)
			}
		}
		check.Equal(t, name, strings.Join(has, " "), c.want, "%v", link)
		asked := l.asks(url.Values{}, c.settings...)[dl+"deep_linking_settings"].(map[string]any)
		check.Equal(t, "data", fmt.Sprint(claims[dl+"data"]), fmt.Sprint(asked["data"]), "%s", name)
	}
	p := l.choose(t, b, "accept_multiple", nil)
	token, items := choice(t, p), offered(p)
	check.Contains(t, "one alone", p.body, `type="radio"`, "")
	two := url.Values{"choice": {token}, "item": {items["Algebra"], items["Grammar & more"]}, "do": {"add"}}
	p = b.do(t, advantage.DeepLinkPath+"north/", two)
	check.Equal(t, "two of one", p.status, 400, "%s", p.body)
	check.Contains(t, "the page", p.body, "at most 1", "")
	two.Del("item")
	p = b.do(t, advantage.DeepLinkPath+"north/", two)
	check.Contains(t, "nothing", p.body, "Choose something first", "%d", p.status)
	two.Set("do", "cancel")
	claims := s.answer(t, b.do(t, advantage.DeepLinkPath+"north/", two))
	check.Equal(t, "links", len(claims[dl+"content_items"].([]any)), 0, "%v", claims)
	check.Equal(t, "msg", claims[dl+"msg"], any("Nothing was chosen."), "")
	check.Equal(t, "data", claims[dl+"data"], any("csrf <&> \u2028 7"), "")
}

// What was chosen stays chosen while the person looks for more.
func TestLookingThroughTheCatalog(t *testing.T) {
	t.Parallel()
	s := open(t)
	l, b := s.school(t, "north", s.north), s.browser(t)
	var titles []string
	for i := range 30 {
		titles = append(titles, fmt.Sprintf("Quiz %02d", i))
	}
	s.put(t, "north", titles...)
	s.Platform.Put(t, "catalog/tests/mock", `{"title": "Mock", "type": "ielts"}`).Want(t, 201)
	p := l.choose(t, b)
	token, path := choice(t, p), advantage.DeepLinkPath+"north/"
	check.Equal(t, "a page", len(offered(p)), 20, "")
	check.Lacks(t, "the first page", p.body, `value="previous"`, "")
	step := url.Values{"choice": {token}, "page": {hiddenPage.FindStringSubmatch(p.body)[1]}, "item": {offered(p)["Quiz 03"]}, "do": {"next"}}
	p = b.do(t, path, step)
	check.Equal(t, "the next page, and what is chosen", len(offered(p)), 13, "%s", p.body)
	check.Contains(t, "the last page", p.body, `value="previous"`, "")
	check.Lacks(t, "the last page", p.body, `value="next"`, "")
	check.Contains(t, "what is chosen", p.body, `checked> <span>Quiz 03`, "")
	for search, want := range map[string]string{"quiz 07": "Quiz 07", "IELTS": "Mock", "  GRAMMAR  more ": "Grammar & more", "%": "", "quiz grammar": "", "\x00": "Quiz 00", strings.Repeat("x ", 500): ""} {
		p = b.do(t, path, url.Values{"choice": {token}, "page": {"2"}, "search": {search}, "do": {"search"}})
		check.Equal(check.Now(t), "status", p.status, 200, "%q: %s", search, p.body)
		_, found := offered(p)[want]
		check.Equal(t, "found", found, want != "", "%q: %v", search, offered(p))
	}
	for _, number := range []string{"", "-1", "x", "999999999999999999999", "0"} {
		p = b.do(t, path, url.Values{"choice": {token}, "page": {number}, "do": {"next"}})
		check.Equal(t, "a page of any number", p.status, 200, "%q: %s", number, p.body)
	}
}

// What a hostile LMS, its users or others may try.
func TestChoicesThatAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	south := s.Organization(t, "south")
	l, other := s.school(t, "north", s.north), s.school(t, "south", south)
	s.Platform.Put(t, "organizations/north/catalog/quizzes/old", `{"title": "Old", "active": false}`).Want(t, 201)
	for name, c := range map[string]struct {
		settings []any
		status   int
		text     string
	}{
		"a learner":                  {[]any{claim + "roles", []string{learner}}, 403, "as a teacher or administrator"},
		"nobody in particular":       {[]any{claim + "roles", []string{}}, 403, "as a teacher or administrator"},
		"an LMS that takes no links": {[]any{"accept_types", []string{"link", "html"}}, 400, "accept_types lack"},
		"no address":                 {[]any{"deep_link_return_url", nil}, 400, "deep_link_return_url is required"},
		"without TLS, and a file":    {[]any{"deep_link_return_url", "file:///etc/passwd"}, 400, "deep_link_return_url"},
		"a script as the address":    {[]any{"deep_link_return_url", "javascript:alert(1)"}, 400, "deep_link_return_url"},
		"a private address":          {[]any{"deep_link_return_url", "https://10.0.0.1/"}, 400, "not a public address"},
		"an address with a policy":   {[]any{"deep_link_return_url", "https://a;script-src*.b/"}, 400, "no address of a site"},
		"another policy":             {[]any{"deep_link_return_url", "https://a,b'.c/"}, 400, "no address of a site"},
		"a user in the address":      {[]any{"deep_link_return_url", "https://a:b@lms.school/"}, 400, "deep_link_return_url"},
		"settings of another shape":  {[]any{"accept_multiple", "yes"}, 400, "not of the types"},
		"another deployment":         {[]any{claim + "deployment_id", "3:c"}, 400, "deployment_id"},
	} {
		p := l.choose(t, s.browser(t), c.settings...)
		check.Equal(t, "status", p.status, c.status, "%s: %s", name, p.body)
		check.Contains(t, "the page", html.UnescapeString(p.body), c.text, "%s", name)
	}
	check.Equal(t, "choices", s.count(t, `SELECT count(*) FROM lms_choices`), 0, "of refused messages")
	b, path := s.browser(t), advantage.DeepLinkPath+"north/"
	question := l.begin(t, b)
	message := l.sign(t, question, l.asks(question))
	p := l.post(t, b, advantage.MessagePath+"north/", message, "iframe")
	token := choice(t, p)
	p = l.post(t, b, advantage.MessagePath+"north/", message, "iframe")
	check.Equal(t, "the message again", p.status, 400, "%s", p.body)
	mine, theirs := offered(l.choose(t, b))["Grammar & more"], offered(other.choose(t, b))["Grammar & more"]
	old := fmt.Sprint(s.count(t, `SELECT id FROM catalog_items WHERE code = 'old'`))
	check.True(check.Now(t), "both have an item", mine != "" && theirs != "" && mine != theirs, "%q %q", mine, theirs)
	for name, c := range map[string]struct {
		path   string
		form   url.Values
		status int
	}{
		"another organization's item": {path, url.Values{"choice": {token}, "item": {theirs}, "do": {"add"}}, 404},
		"one beside its own":          {path, url.Values{"choice": {token}, "item": {mine, theirs}, "do": {"search"}}, 404},
		"an inactive item":            {path, url.Values{"choice": {token}, "item": {old}, "do": {"add"}}, 404},
		"nobody's item":               {path, url.Values{"choice": {token}, "item": {"999"}, "do": {"add"}}, 404},
		"no number":                   {path, url.Values{"choice": {token}, "item": {"x"}, "do": {"add"}}, 404},
		"very many":                   {path, url.Values{"choice": {token}, "item": strings.Split(strings.Repeat(mine+" ", 200)+mine, " "), "do": {"add"}}, 404},
		"at another organization's":   {advantage.DeepLinkPath + "south/", url.Values{"choice": {token}, "item": {theirs}, "do": {"add"}}, 400},
		"another secret":              {path, url.Values{"choice": {"x"}, "item": {mine}, "do": {"add"}}, 400},
		"no secret":                   {path, url.Values{"item": {mine}, "do": {"add"}}, 400},
	} {
		p := b.do(t, c.path, c.form)
		check.Equal(t, "status", p.status, c.status, "%s: %s", name, p.body)
		check.Lacks(t, "the page", p.body, `name="JWT"`, "%s", name)
	}
	good := url.Values{"choice": {token}, "item": {mine}, "do": {"add"}}
	p = l.post(t, b, path, good, "iframe")
	check.Equal(t, "posted by another site", p.status, 403, "%s", p.body)
	var taken atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if p := b.do(t, path, good); p.status == 200 && answerField.MatchString(p.body) {
				taken.Add(1)
			} else {
				check.Contains(t, "the page", p.body, "sent already", "%d", p.status)
			}
		})
	}
	wg.Wait()
	check.Equal(t, "answers", taken.Load(), 1, "of 8 at once")
	late := choice(t, l.choose(t, b))
	s.Advance(2*time.Hour + time.Second)
	p = b.do(t, path, url.Values{"choice": {late}, "do": {"cancel"}})
	check.Equal(t, "too late", p.status, 400, "%s", p.body)
	check.Equal(t, "by whoever opens the address", b.do(t, path, nil).status, 405, "")
	check.Equal(t, "accounts", s.count(t, `SELECT count(*) FROM accounts WHERE created_via = 'lti'`), 0, "a teacher gets none")
}

// A real browser, in a window of its own: the page is one for everybody, and the answer goes back to the LMS's origin.
func TestChoosingInABrowser(t *testing.T) {
	t.Parallel()
	b := browsertest.Open(t)
	s := open(t)
	l := s.school(t, "north", s.north)
	s.put(t, "north", "Algebra", "Geometry")
	answers := make(chan string, 1)
	outer := template.Must(template.New("").Parse(`<!doctype html><html lang="en"><title>LMS</title><link rel="icon" href="data:,"><h1>Course</h1>
		<form id="f" method="post" action="{{.Action}}">{{range $name, $value := .Form}}<input type="hidden" name="{{$name}}" value="{{$value}}">{{end}}</form>
		<script>document.getElementById("f").submit()</script></html>`))
	inner := template.Must(template.New("").Parse(`<!doctype html><title>LMS</title><form id="f" method="post" action="{{.Action}}">
		{{range $name, $values := .Form}}<input type="hidden" name="{{$name}}" value="{{index $values 0}}">{{end}}</form><script>document.getElementById("f").submit()</script>`))
	var address string
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/authorize"):
			q := r.URL.Query()
			_ = inner.Execute(w, map[string]any{"Action": q.Get("redirect_uri"), "Form": l.sign(t, q, l.asks(q, "deep_link_return_url", address+"/return"))})
		case strings.HasPrefix(r.URL.Path, "/return"):
			answers <- r.FormValue("JWT")
			_, _ = w.Write([]byte(`<!doctype html><html lang="en"><title>LMS</title><link rel="icon" href="data:,"><h1>The links are in the course</h1></html>`))
		default:
			_ = outer.Execute(w, map[string]any{"Action": s.url + advantage.LoginPath + "north/", "Form": map[string]string{"iss": l.registration.Issuer,
				"client_id": l.registration.ClientID, "login_hint": "hint", "target_link_uri": s.url + advantage.DeepLinkPath + "north/"}})
		}
	}))
	t.Cleanup(pages.Close)
	address = pages.URL // another origin, but of one site with ours: without TLS, browsers send no cookies from others
	changed := l.registration
	changed.AuthorizeURL = address + "/authorize"
	_, err := advantage.Service{DB: s.DB, Policy: local}.Change(t.Context(), audit.Platform, l.organization, changed, s.Now())
	check.NoError(check.Now(t), err, "the addresses of this LMS")
	b.Trust(s.url)
	b.Size(1000, 800)
	b.Visit(address)
	b.AwaitHeading("Choose work for your course")
	b.Accessible("choose")
	b.Pictures("../../../docs/console/choose")
	b.Click(`input[name=item]`)
	b.Type("#search", "geometry")
	b.Press("Search")
	b.Await("fieldset + fieldset")
	check.Contains(t, "the page", b.TextOf("main"), "Geometry", "")
	b.Click(`fieldset + fieldset input[name=item]`)
	b.Accessible("choose-found")
	b.Size(390, 800)
	b.Pictures("../../../docs/console/choose-telephone")
	check.False(t, "it scrolls sideways on a telephone", b.WiderThanWindow(), "")
	b.Press("Add to the course")
	b.AwaitHeading("The links are in the course")
	select {
	case token := <-answers:
		check.Equal(t, "parts of the token", strings.Count(token, "."), 2, "%s", token)
	default:
		t.Error("no answer has come")
	}
	check.Equal(t, "choices", s.count(t, `SELECT count(*) FROM lms_choices`), 0, "")
}
