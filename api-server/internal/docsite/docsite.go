// Package docsite makes a site of the pages in docs and serves it at /docs/: a page for each Markdown file,
// with the list of all pages beside it, and a search that runs in the browser. Pages work without scripts, and
// with links that are relative, so that Write puts the same site anywhere.
package docsite

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/openapi"
	"github.com/registrar-dev/registrar/api-server/internal/pages"
	"github.com/registrar-dev/registrar/docs"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// policy lets a page load the scripts, styles and pictures of the site, and nothing else. The empty icon is a data: image.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// picturePolicy lets a picture that is opened by itself use its own styles.
const picturePolicy = "default-src 'none'; style-src 'unsafe-inline'"

// answer is a part of the site, as it is served.
type answer struct {
	content []byte
	tag     string
}

// served is the site as api-server has it, by path. It takes a good part of a second to make.
var served = sync.OnceValue(func() map[string]answer {
	site, err := build(docs.Files, "../api/v1/docs", "..")
	if err != nil {
		panic("docsite: an embedded page is broken: " + err.Error())
	}
	answers := make(map[string]answer, len(site))
	for name, content := range site {
		answers[name] = answer{content, edge.ETag(digest(content))}
	}
	return answers
})

// Prepare makes the site, so that its first reader need not wait.
func Prepare() { served() }

// Routes serves the site below /docs.
func Routes(r chi.Router) {
	r = r.With(edge.Compress)
	r.Get("/docs", pages.Handle(serve))
	r.Get("/docs/*", pages.Handle(serve))
}

func serve(w http.ResponseWriter, r *http.Request) error {
	name, below := strings.CutPrefix(r.URL.Path, "/docs/")
	if !below {
		w.Header().Set("Location", "docs/") // the links of the page are relative to it
		w.WriteHeader(http.StatusMovedPermanently)
		return nil
	}
	if name == "" {
		name = home
	}
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	if path.Ext(name) == ".svg" {
		h.Set("Content-Security-Policy", picturePolicy)
	}
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	a, ok := served()[name]
	if !ok {
		return fault.New(fault.NotFound, "no_such_route", "the documentation has no page %q", name)
	}
	h.Set("Content-Type", mediaType(name))
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Has(version) { // the address names the content
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	h.Set("ETag", a.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.content))
	return nil
}

// version is the query parameter by which the address of an asset names its content.
const version = "v"

func digest(content []byte) string { return edge.Digest(content, 9) }

func mediaType(name string) string {
	switch ext := path.Ext(name); ext {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".webp":
		return "image/webp"
	default:
		return mime.TypeByExtension(ext) // of .html and .css, which it knows everywhere
	}
}

// Write puts the site into a folder, with the API reference.
func Write(folder string) error {
	site, err := build(docs.Files, "api/index.html", "")
	if err != nil {
		return err
	}
	reference, err := openapi.Site(openapi.Partner())
	if err != nil {
		return err
	}
	for name, content := range reference {
		site["api/"+name] = content
	}
	for name, content := range site {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, content, 0o644); err != nil { //nolint:gosec // for everybody to read
			return fmt.Errorf("writing the site: %w", err)
		}
	}
	return nil
}
