package openapi

import (
	"bytes"
	"compress/gzip"
	"embed"
	"html/template"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
)

// viewer holds the page that shows a document, and Swagger UI, which renders it:
// hack/update-embedded takes it from npm. Its licence and its parts' are beside it.
//
//go:embed viewer
var viewer embed.FS

// viewerPolicy lets the page load its own scripts, styles and document, and call the API
// beside it; no other host, nothing inline and no evaluated text. Swagger UI's icons are
// data: images.
const viewerPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

var viewerPage = template.Must(template.ParseFS(viewer, "viewer/page.html"))

// frame is what a page knows, addresses as it has them.
type frame struct {
	Document string
	Guides   string // "": there are none beside it
	Calls    bool   // readers can try calls
	assets   string
}

// page shows a document. Addresses of assets name their content, so that a browser may keep them for ever.
func page(title string, f frame) []byte {
	address := func(asset string) string {
		return f.assets + asset + "?v=" + edge.Digest(mustRead(asset), 9)
	}
	var out bytes.Buffer
	err := viewerPage.Execute(&out, map[string]any{"Title": title, "Frame": f,
		"Bundle": address("swagger-ui-bundle.js"), "Start": address("start.js"),
		"Style": address("swagger-ui.css"), "Own": address("page.css")})
	if err != nil {
		panic("openapi: the page cannot be rendered: " + err.Error())
	}
	return out.Bytes()
}

// Site is the page of a document and all that it loads, by path, for a web server that knows nothing of the API:
// readers cannot try calls there. The documentation is in the folder above.
func Site(document []byte) (map[string][]byte, error) {
	asJSON := toJSON(document)
	site := map[string][]byte{"index.html": page(title(asJSON), frame{Document: "openapi.json", Guides: "../index.html"}), "openapi.json": asJSON}
	for asset := range assets {
		text, err := io.ReadAll(unpacked(mustRead(asset)))
		if err != nil {
			return nil, err
		}
		site[asset] = text
	}
	return site, nil
}

// showViewer answers the page of the document at base + "/openapi.json".
func showViewer(title func() string, base, guides string) http.HandlerFunc {
	text := sync.OnceValue(func() []byte {
		return page(title(), frame{Document: base + "/openapi.json", Guides: guides, Calls: true, assets: base + "/docs/"})
	})
	return func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", viewerPolicy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		_, _ = w.Write(text()) // the browser may be gone
	}
}

// mustRead is an asset as it is embedded: compressed, where there is a file of that name
// with .gz.
func mustRead(asset string) []byte {
	text, err := viewer.ReadFile("viewer/" + asset + ".gz")
	if err != nil {
		text, err = viewer.ReadFile("viewer/" + asset)
	}
	if err != nil {
		panic("openapi: an asset is missing: " + err.Error())
	}
	return text
}

// assets are what the page loads, with their types.
var assets = map[string]string{
	"swagger-ui-bundle.js": "text/javascript; charset=utf-8",
	"start.js":             "text/javascript; charset=utf-8",
	"swagger-ui.css":       "text/css; charset=utf-8",
	"page.css":             "text/css; charset=utf-8",
}

func assetRoutes(r chi.Router) {
	for asset, mediaType := range assets {
		r.Get(path.Join("/docs", asset), serveAsset(mediaType, mustRead(asset)))
	}
}

func serveAsset(mediaType string, text []byte) http.HandlerFunc {
	packed := bytes.HasPrefix(text, magic)
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", mediaType)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		body := io.Reader(bytes.NewReader(text))
		if packed {
			h.Set("Vary", "Accept-Encoding")
			if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				h.Set("Content-Encoding", "gzip")
			} else {
				body = unpacked(text)
			}
		}
		_, _ = io.Copy(w, body) // the browser may be gone
	}
}

// magic begins what is packed.
var magic = []byte("\x1f\x8b")

// unpacked reads an asset as it is before it is compressed.
func unpacked(text []byte) io.Reader {
	if !bytes.HasPrefix(text, magic) {
		return bytes.NewReader(text)
	}
	reader, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		panic("openapi: an asset is broken: " + err.Error())
	}
	return reader
}
