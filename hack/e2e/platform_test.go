package e2e

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/nottested"
)

// providerVersion is of the npm package oidc-provider, a certified OpenID Provider.
const providerVersion = "9.13.3"

// platform is an LMS whose tokens, and checks of ours, are oidc-provider's.
type platform struct {
	h   *house
	url string
}

func (h *house) lmsOfOthers(clientID string) *platform {
	t := h.t
	t.Helper()
	modules, err := stack.EnsureNPM(t.Context(), os.Stderr, "oidc-provider", providerVersion)
	if err != nil {
		nottested.Skip(t, "oidc-provider cannot be had from npm: %v", err)
	}
	dir, number := t.TempDir(), port(t)
	program, err := os.ReadFile("lms/platform.mjs")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "platform.mjs"), program, 0o600))
	must(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	public := h.settings.PublicURL()
	cmd := command(t, "node", "platform.mjs", fmt.Sprint(number), clientID, public+"/lti/v1p3/launch/demo/", public+"/lti/v1p3/jwks")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stderr, os.Stderr
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p := &platform{h, fmt.Sprintf("http://127.0.0.1:%d", number)}
	until(t, "the LMS answers", func() bool { return h.succeeds(http.MethodGet, p.url+"/ready", "Accept", "*/*", "") })
	return p
}

// says sets what the LMS's messages about a user say beside what all say.
func (p *platform) says(user string, claims map[string]any) {
	p.h.t.Helper()
	const lti = "https://purl.imsglobal.org/spec/lti/claim/"
	all := map[string]any{"email": user + "@north-institute.org", "given_name": "Lena", "family_name": "Okri", lti + "version": "1.3.0", lti + "deployment_id": "1",
		lti + "context": map[string]any{"id": "c-1", "title": "Biology"},
		"https://purl.imsglobal.org/spec/lti-ags/claim/endpoint":          map[string]any{"scope": []string{"https://purl.imsglobal.org/spec/lti-ags/scope/score"}, "lineitem": p.url + "/line"},
		"https://purl.imsglobal.org/spec/lti-nrps/claim/namesroleservice": map[string]any{"context_memberships_url": p.url + "/members", "service_versions": []string{"2.0"}}}
	for name, value := range claims {
		if !strings.Contains(name, ":") {
			name = lti + name
		}
		all[name] = value
	}
	text, err := json.Marshal(all)
	must(p.h.t, err)
	check.True(check.Now(p.h.t), "the LMS knows the user", p.h.succeeds(http.MethodPut, p.url+"/say?user="+user, "Accept", "*/*", string(text)), "")
}

type heard struct {
	Scores []struct {
		Type     string  `json:"type"`
		User     string  `json:"userId"`
		Given    float64 `json:"scoreGiven"`
		Maximum  float64 `json:"scoreMaximum"`
		Progress string  `json:"gradingProgress"`
	} `json:"scores"`
	Choices []map[string]any `json:"choices"`
	Refused []string         `json:"refused"`
}

// heard is what the LMS's services were sent. Nothing may have been refused.
func (p *platform) heard() (all heard) {
	p.h.t.Helper()
	_, text := p.h.call(http.MethodGet, p.url+"/heard", "Accept", "application/json", "")
	must(p.h.t, json.Unmarshal(text, &all))
	check.Equal(check.Now(p.h.t), "refused by the LMS", len(all.Refused), 0, "%s", strings.Join(all.Refused, "\n"))
	return all
}

// person is a browser that is signed in at the LMS and follows its forms.
type person struct {
	t *testing.T
	http.Client
}

func (p *platform) signIn(user string) *person {
	p.h.t.Helper()
	jar, err := cookiejar.New(nil)
	must(p.h.t, err)
	b := &person{p.h.t, http.Client{Jar: jar, Timeout: limit}}
	b.visit(http.MethodGet, p.url+"/signin?user="+user, nil)
	return b
}

// visit goes to an address and gives the page on which it ends, and its address.
func (b *person) visit(method, address string, form url.Values) (page, at string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, address, strings.NewReader(form.Encode()))
	must(b.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Dest", "document")
	res, err := b.Do(r)
	must(b.t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	must(b.t, err)
	check.True(check.Now(b.t), "the page is good", res.StatusCode < 300, "%s %s: %d %s", method, address, res.StatusCode, text)
	return string(text), res.Request.URL.String()
}

var (
	formAction = regexp.MustCompile(`<form[^>]* action="([^"]+)"`)
	formField  = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)
)

// submit posts the form of a page, as its script does in a browser.
func (b *person) submit(page string) (next, at string) {
	b.t.Helper()
	action := formAction.FindStringSubmatch(page)
	check.True(check.Now(b.t), "the page has a form", action != nil, "%s", page)
	fields := url.Values{}
	for _, f := range formField.FindAllStringSubmatch(page, -1) {
		fields.Add(f[1], html.UnescapeString(f[2]))
	}
	return b.visit(http.MethodPost, html.UnescapeString(action[1]), fields)
}

// open opens a link in the LMS.
func (p *platform) open(b *person, user, target string) (page, at string) {
	p.h.t.Helper()
	q := url.Values{"iss": {p.url}, "client_id": {"tool"}, "login_hint": {user}, "target_link_uri": {target}, "lti_message_hint": {"m"}, "lti_deployment_id": {"1"}}
	page, _ = b.visit(http.MethodGet, p.h.settings.PublicURL()+"/lti/v1p3/login/demo/?"+q.Encode(), nil)
	return b.submit(page)
}

// A launch, a choice of items, a mark and a roster, with an LMS that others wrote: it is strict about what it is asked, about the
// requests that get a token, and about our signatures.
func TestACertifiedProviderAsTheLMS(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := h.lmsOfOthers("tool")
	var item struct {
		ID int64 `json:"item_id"`
	}
	h.platform(http.MethodPut, "organizations/demo/catalog/quizzes/q-1", `{"title": "Grammar"}`, &item)
	var registered struct {
		ID int64 `json:"id"`
	}
	h.platform(http.MethodPost, "organizations/demo/lti-registrations", fmt.Sprintf(`{"name": "Theirs", "issuer": %q, "client_id": "tool", "authorize_url": "%[1]s/auth",
		"token_url": "%[1]s/token", "keys_url": "%[1]s/jwks", "deployments": ["1"]}`, p.url), &registered)
	link := fmt.Sprintf("%s/lti/launch/quiz/%d", h.settings.PublicURL(), item.ID)
	const role = "http://purl.imsglobal.org/vocab/lis/v2/membership#"

	p.says("lena", map[string]any{"message_type": "LtiResourceLinkRequest", "target_link_uri": link, "resource_link": map[string]any{"id": "1"}, "roles": []string{role + "Learner"}})
	lena := p.signIn("lena")
	page, at := p.open(lena, "lena", link)
	check.True(t, "it leads to the work", strings.HasSuffix(at, "/my-courses/"), "%s", at)
	check.Contains(t, "the page", page, "Next: Grammar", "")

	p.says("tom", map[string]any{"message_type": "LtiDeepLinkingRequest", "roles": []string{role + "Instructor"},
		"https://purl.imsglobal.org/spec/lti-dl/claim/deep_linking_settings": map[string]any{"deep_link_return_url": p.url + "/chosen", "accept_types": []string{"ltiResourceLink"},
			"accept_presentation_document_targets": []string{"window"}, "data": "d"}})
	tom := p.signIn("tom")
	page, _ = p.open(tom, "tom", h.settings.PublicURL()+"/lti/v1p3/deep-link/demo/")
	secret := regexp.MustCompile(`name="choice" value="([^"]+)"`).FindStringSubmatch(page)
	check.True(check.Now(t), "the catalog is shown", secret != nil && strings.Contains(page, "Grammar"), "%s", page)
	page, _ = tom.visit(http.MethodPost, h.settings.PublicURL()+"/lti/v1p3/deep-link/demo/", url.Values{"choice": {secret[1]}, "item": {fmt.Sprint(item.ID)}, "do": {"add"}})
	tom.submit(page)
	choices := p.heard().Choices
	check.Equal(check.Now(t), "choices with a good signature", len(choices), 1, "")
	check.Contains(t, "the link", fmt.Sprint(choices[0]["https://purl.imsglobal.org/spec/lti-dl/claim/content_items"]), link, "")

	h.platform(http.MethodPut, "quiz-submissions/1", `{"state": "submitted", "score": 80}`, nil)
	until(t, "the mark is in the LMS", func() bool { return len(p.heard().Scores) > 0 })
	mark := p.heard().Scores[0]
	check.Equal(t, "the mark", fmt.Sprintf("%+v", mark), "{Type:application/vnd.ims.lis.v1.score+json User:lena Given:80 Maximum:100 Progress:FullyGraded}", "")

	var courses struct {
		Courses []struct {
			ID json.Number `json:"id"`
		} `json:"courses"`
	}
	path := fmt.Sprintf("organizations/demo/lti-registrations/%d/courses", registered.ID)
	h.platform(http.MethodGet, path, "", &courses)
	check.Equal(check.Now(t), "courses", len(courses.Courses), 1, "")
	p.says("ben", map[string]any{"roles": []string{role + "Learner"}})
	h.platform(http.MethodPatch, path+"/"+courses.Courses[0].ID.String(), `{"pulled": true}`, nil)
	until(t, "the course is a roster", func() bool { return h.userOf("ben@north-institute.org") != 0 })
	p.heard()
}

// userOf is the id of a student with the address; 0: there is none.
func (h *house) userOf(email string) int64 {
	h.t.Helper()
	status, text := h.call(http.MethodGet, h.settings.PublicURL()+"/api/v1/students/?email="+url.QueryEscape(email), "X-API-Key", h.key, "")
	var found struct {
		Student struct {
			UserID int64 `json:"user_id"`
		} `json:"student"`
	}
	if status == http.StatusOK {
		must(h.t, json.Unmarshal(text, &found))
	}
	return found.Student.UserID
}
