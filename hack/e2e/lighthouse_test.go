package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/nottested"
)

// judgedPage is what Lighthouse says of a page.
type judgedPage struct {
	URL    string
	Error  string
	Scores map[string]float64
	Below  []string // audits that take something off a score
	Bytes  float64  // of all that the page loads
}

// lightPage is how many bytes a page may load, with its stylesheet, scripts and pictures.
const lightPage = 100_000

// Lighthouse finds nothing to mend on the pages that people use most. How fast it finds them depends on the machine, and is only
// written down.
func TestLighthouse(t *testing.T) {
	t.Parallel()
	chromium, set := os.LookupEnv("CHROMIUM")
	if !set {
		t.Fatal("CHROMIUM is not set: run `make test ARGS=<packages>`")
	}
	modules, err := stack.EnsureLocked(t.Context(), os.Stderr, "lighthouse")
	if err != nil || chromium == "" {
		nottested.Skip(t, "there is no Chromium on this machine, or Lighthouse cannot be had from npm: %v", err)
	}
	h := newHouse(t)
	db := connect(t, h)
	h.fillCatalog()
	h.fillPlans(db)
	h.fillRoster(db)
	h.fillWebhooks(db)
	address := ""
	for n := 1; address == ""; n++ { // of several mails one is the welcome mail
		address = link.FindString(strings.ReplaceAll(string(h.awaitMail("asha@north-institute.org", n)[n-1].Data), "=\r\n", ""))
	}
	jar, err := cookiejar.New(nil)
	must(t, err)
	student := &http.Client{Jar: jar}
	h.submit(student, strings.TrimPrefix(address, h.settings.PublicURL()), url.Values{"password": {filledPassword}, "again": {filledPassword}})
	nobody, err := cookiejar.New(nil)
	must(t, err)
	type person struct {
		Cookie string   `json:"cookie"`
		Pages  []string `json:"pages"`
	}
	var people []person
	var want []string
	for _, p := range []struct {
		browser *http.Client
		paths   []string
	}{
		{&http.Client{Jar: nobody}, []string{"/sign-in"}},
		{student, []string{"/my-courses", "/results/test:s1"}},
		{h.ownersBrowser(), []string{"/console/demo/", "/console/demo/students/", "/console/demo/webhooks/", "/console/demo/roster-runs/", "/console/demo/settings/"}},
	} {
		site, err := url.Parse(h.settings.PublicURL())
		must(t, err)
		var cookies []string
		for _, c := range p.browser.Jar.Cookies(site) {
			cookies = append(cookies, c.String())
		}
		one := person{Cookie: strings.Join(cookies, "; ")}
		for _, path := range p.paths {
			one.Pages = append(one.Pages, site.String()+path)
		}
		people, want = append(people, one), append(want, one.Pages...)
	}
	pages := judge(t, modules, map[string]any{"chromium": chromium, "people": people})
	check.Equal(check.Now(t), "pages", len(pages), len(want), "%v", pages)
	for i, page := range pages {
		check.Equal(t, "the page", page.URL, want[i], "%s", page.Error)
		check.Equal(t, "accessibility", page.Scores["accessibility"], 1, "%s: %q", page.URL, page.Below)
		check.Equal(t, "best practices", page.Scores["best-practices"], 1, "%s: %q", page.URL, page.Below)
		check.True(t, "the page is light", page.Bytes > 0 && page.Bytes <= lightPage, "%s loads %.0f bytes", page.URL, page.Bytes)
		t.Logf("%s: performance %.0f, %.0f bytes", page.URL, 100*page.Scores["performance"], page.Bytes)
	}
}

func judge(t *testing.T, modules string, request any) (pages []judgedPage) {
	t.Helper()
	program := filepath.Join(filepath.Dir(modules), "judge.mjs") // where it finds what it imports
	text, err := os.ReadFile("lighthouse/judge.mjs")
	must(t, err)
	must(t, os.WriteFile(program, text, 0o600))
	input, err := json.Marshal(request)
	must(t, err)
	cmd := command(t, "node", program)
	cmd.Stdin = bytes.NewReader(input)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.Bytes())
	}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var page judgedPage
		must(t, json.Unmarshal(lines.Bytes(), &page))
		pages = append(pages, page)
	}
	return pages
}
