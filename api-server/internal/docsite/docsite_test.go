package docsite

import (
	"bytes"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-chi/chi/v5"
	"golang.org/x/net/html"

	"github.com/registrar-dev/registrar/api-server/internal/openapi"
	"github.com/registrar-dev/registrar/docs"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// linked is what a page of the site has of anchors, and of links to others.
type linked struct {
	anchors map[string]int
	links   []string
}

func read(t *testing.T, page []byte) linked {
	t.Helper()
	tree, err := html.Parse(bytes.NewReader(page))
	check.NoError(check.Now(t), err, "%v", err)
	l := linked{anchors: map[string]int{}}
	for n := range tree.Descendants() {
		for _, a := range n.Attr {
			switch a.Key {
			case "id":
				l.anchors[a.Val]++
			case "href", "src", "data-engine", "data-index":
				l.links = append(l.links, a.Val)
			}
		}
	}
	return l
}

// Every link and anchor of the site leads somewhere: to a page, to a file of the repository, or to one of the few
// other sites.
func TestEveryLinkOfTheSiteLeadsSomewhere(t *testing.T) {
	t.Parallel()
	site, err := build(docs.Files, "../api/v1/docs", "..")
	check.NoError(check.Now(t), err, "%v", err)
	pages := map[string]linked{}
	for name := range site {
		if path.Ext(name) == ".html" {
			pages[name] = read(t, site[name])
		}
	}
	check.True(t, "at least 50 pages are there", len(pages) >= 50, "%d", len(pages))
	count, calls := 0, map[string]bool{}
	for name, page := range pages {
		for anchor, times := range page.anchors {
			check.Equal(t, "number of elements with the id", times, 1, "%s#%s", name, anchor)
		}
		for _, link := range page.links {
			count++
			if address := path.Join("/docs", path.Dir(name), link); strings.HasPrefix(address, "/api/") {
				if !calls[address] {
					calls[address] = check.Equal(t, "status", get(t, address).Code, http.StatusOK, "%s links to %s", name, link)
				}
				continue
			}
			if why := wrong(name, link, site, pages); why != "" {
				t.Errorf("%s links to %s: %s", name, link, why)
			}
		}
	}
	check.True(t, "at least 3,000 links are followed", count >= 3000, "%d", count)
	check.True(t, "the reference, the document and the schemas of all events are linked", len(calls) >= 3+len(webhook.Types()), "%v", calls)
}

// others are the sites that pages may link to beside the repository.
var others = []string{
	"https://docs.sigstore.dev/cosign/", "https://github.com/catalyst/", "https://github.com/frain-dev/convoy", "https://github.com/hibiken/asynq",
	"https://github.com/hookdeck/outpost", "https://github.com/instructure/canvas-lms", "https://github.com/kubernetes-sigs/", "https://github.com/oat-sa/",
	"https://github.com/panva/", "https://github.com/svix/svix-webhooks",
	"https://github.com/registrar-dev/registrar/issues/", "https://in-toto.io", "https://semver.org", "https://slsa.dev", "https://www.imsglobal.org/spec/",
	"https://www.rfc-editor.org/", "https://www.standardwebhooks.com",
}

// wrong says why a link leads nowhere; "" when it leads somewhere.
func wrong(from, link string, site map[string][]byte, pages map[string]linked) string {
	if file, ok := strings.CutPrefix(link, repository); ok {
		file, _, _ = strings.Cut(file, "#")
		if _, err := os.Stat(filepath.Join("..", "..", "..", file)); err != nil {
			return err.Error()
		}
		return ""
	}
	if strings.Contains(link, ":") {
		if link == "data:," || slices.ContainsFunc(others, func(o string) bool { return strings.HasPrefix(link, o) }) {
			return ""
		}
		return "it leads out of the site"
	}
	address, fragment, _ := strings.Cut(link, "#")
	address, _, _ = strings.Cut(address, "?")
	to := from
	if address != "" {
		to = path.Join(path.Dir(from), address)
	}
	if _, ok := site[to]; !ok {
		return "there is no " + to
	}
	if _, ok := pages[to].anchors[fragment]; fragment != "" && !ok {
		return "there is no such anchor"
	}
	return ""
}

// The list beside the pages has every page once.
func TestEveryPageIsListed(t *testing.T) {
	t.Parallel()
	source, err := fs.ReadFile(docs.Files, list)
	check.NoError(check.Now(t), err, "%v", err)
	_, tree, err := render(list, source, "")
	check.NoError(check.Now(t), err, "%v", err)
	times := map[string]int{}
	for _, g := range listed(tree, source) {
		for _, e := range g.Entries {
			times[e.Path]++
		}
	}
	err = fs.WalkDir(docs.Files, ".", func(file string, entry fs.DirEntry, err error) error {
		if path.Ext(file) == ".md" && file != list {
			check.Equal(t, "times that docs/README.md lists it", times[target(list, file)], 1, "%s", file)
		}
		return err
	})
	check.NoError(t, err, "%v", err)
}

func made(t *testing.T, files fstest.MapFS) map[string][]byte {
	t.Helper()
	site, err := build(files, "reference.html", "../..")
	check.NoError(check.Now(t), err, "%v", err)
	return site
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestPagesAreRendered(t *testing.T) {
	t.Parallel()
	site := made(t, fstest.MapFS{
		"README.md": file("# All\n\n## Guides\n\n- [One](one.md): first\n- [Two](reference/README.md)\n\n## Elsewhere\n\n- [Three](three.md)\n"),
		"one.md": file("# One\n\n## The `first` thing: it's here\n\n## Twice\n\n## Twice\n\nSee [two](reference/README.md#b), [code](../internal/x.go#L3),\n" +
			"[here](#twice-1), [there](https://semver.org) and ![a picture](p.svg).\n\n| | b |\n|--:|---|\n| 1 | 2 |\n\n" +
			"Python:\n\n```python\nprint(\"<&>\")  # says\n```\n\nGo:\n\n```go\nvar x = 1\n```\n\nIn Go:\n\n```go\nvar y = 1\n```\n"),
		"three.md":            file("# Three\n\nJava:\n\n```java\nint x;\n```\n\n```\nno <language>\n```\n"),
		"reference/README.md": file("# Two\n\n## b\n\nBack to [one](../one.md), or `/api/v1/openapi.yaml`.\n"),
		"p.svg":               file("<svg/>"),
	})
	one, two, three := string(site["one.html"]), string(site["reference/index.html"]), string(site["three.html"])
	for _, c := range []struct{ page, want string }{
		{one, `<title>One · Registrar</title>`},
		{one, `<h2 id="the-first-thing-its-here">`},
		{one, `<h2 id="twice-1">`},
		{one, `<a href="reference/index.html#b">two</a>`},
		{one, `<a href="https://github.com/registrar-dev/registrar/blob/main/internal/x.go#L3">code</a>`},
		{one, `<a href="#twice-1">here</a>`},
		{one, `<a href="https://semver.org">there</a>`},
		{one, `<img src="p.svg" alt="a picture">`},
		{one, `<td align="right">1</td>`},
		{one, `<input type="radio" name="tabs-1" id="tab-1-python" value="Python" checked><label for="tab-1-python">Python</label>`},
		{one, `<input type="radio" name="tabs-1" id="tab-1-go" value="Go"><label for="tab-1-go">Go</label>`},
		{one, `<span class="s">&#34;&lt;&amp;&gt;&#34;</span>`},
		{one, `<p>In Go:</p>`},
		{one, `<a href="one.html" aria-current="page">One</a>`},
		{one, `<a class="on" href="reference/index.html">Two →</a>`},
		{two, `<a href="../one.html">one</a>`},
		{two, `<a href="../one.html">← One</a>`},
		{two, `<a href="../reference.html">API reference</a>`},
		{two, `<a href="../../../api/v1/openapi.yaml"><code>/api/v1/openapi.yaml</code></a>`},
		{three, `<p>Java:</p>`},
		{three, `no &lt;language&gt;`},
	} {
		check.Contains(t, "the page", c.page, c.want, "")
	}
	check.False(t, "one program alone is no choice", strings.Contains(three, "tabs"), "%s", three)
	check.False(t, "a heading without text is there", strings.Contains(one, "></th>"), "%s", one)
	check.Contains(t, "the index", string(site["assets/index.js"]), `{"page":"one.html","title":"One","anchor":"twice-1","heading":"Twice","text":"See two, code, here, there and a picture.`, "")
}

func get(t *testing.T, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	router().ServeHTTP(w, r)
	return w
}

// router serves the site and what its pages link to.
var router = sync.OnceValue(func() *chi.Mux {
	r := chi.NewRouter()
	Routes(r)
	r.Route("/api/v1", func(r chi.Router) {
		openapi.Routes(r, "/api/v1", openapi.Partner, "https://registrar.example")
		openapi.EventRoutes(r, "https://registrar.example")
	})
	return r
})

func TestTheSiteIsServed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, kind string
		status     int
	}{
		{"/docs", "", 301},
		{"/docs/", "text/html; charset=utf-8", 200},
		{"/docs/index.html", "text/html; charset=utf-8", 200},
		{"/docs/reference/index.html", "text/html; charset=utf-8", 200},
		{"/docs/data-flow.svg", "image/svg+xml", 200},
		{"/docs/assets/docs.css", "text/css; charset=utf-8", 200},
		{"/docs/assets/index.js", "text/javascript; charset=utf-8", 200},
		{"/docs/nothing.html", "text/html; charset=utf-8", 404},
		{"/docs/docs.go", "text/html; charset=utf-8", 404},
		{"/docs/../go.mod", "text/html; charset=utf-8", 404},
	} {
		w := get(t, c.path)
		check.Equal(t, "status", w.Code, c.status, "%s", c.path)
		check.Equal(t, "Content-Type", w.Header().Get("Content-Type"), c.kind, "%s", c.path)
	}
	check.Equal(t, "Location", get(t, "/docs").Header().Get("Location"), "docs/", "")

	plain, packed := get(t, "/docs/webhooks.html"), get(t, "/docs/webhooks.html", "Accept-Encoding", "gzip")
	check.Equal(t, "Content-Encoding", packed.Header().Get("Content-Encoding"), "gzip", "")
	check.True(t, "the packed page is shorter", 2*packed.Body.Len() < plain.Body.Len(), "%d bytes of %d", packed.Body.Len(), plain.Body.Len())
	for _, header := range []string{"", "gzip"} {
		again := get(t, "/docs/webhooks.html", "If-None-Match", plain.Header().Get("ETag"), "Accept-Encoding", header)
		check.Equal(t, "status of what the caller has", again.Code, 304, "%q", header)
	}
	policy := plain.Header().Get("Content-Security-Policy")
	for _, word := range []string{"unsafe", "http:", "https:", "*"} {
		check.False(t, "the policy has it", strings.Contains(policy, word), "%s in %s", word, policy)
	}
}

// No page takes 20 ms. The quickest of some answers is what a page costs; the others show what else the machine does.
func TestPagesAreQuick(t *testing.T) {
	t.Parallel()
	Prepare()
	for _, name := range slices.Sorted(maps.Keys(served())) {
		if path.Ext(name) != ".html" {
			continue
		}
		best := time.Hour
		for try := 0; try < 5 || try < 50 && best >= 20*time.Millisecond; try++ {
			began := time.Now()
			get(t, "/docs/"+name, "Accept-Encoding", "gzip")
			best = min(best, time.Since(began))
		}
		check.True(t, "it is answered within 20 ms", best < 20*time.Millisecond, "%s took %v", name, best)
	}
}

func TestTheSiteIsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	err := Write(dir)
	check.NoError(check.Now(t), err, "%v", err)
	for _, name := range []string{"index.html", "reference/index.html", "runbooks/RegistrarAPISlow.html", "assets/docs.css", "benchmarks/reading.svg", "api/index.html", "api/openapi.json"} {
		_, err := os.Stat(filepath.Join(dir, name))
		check.NoError(t, err, "%v", err)
	}
}
