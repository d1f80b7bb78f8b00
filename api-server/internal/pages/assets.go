package pages

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// assets are the files that pages load, with their types; the console's pages load them, too.
var assets = map[string]string{
	"registrar.css": "text/css; charset=utf-8",
	"registrar.js":  "text/javascript; charset=utf-8",
	"passkey.js":    "text/javascript; charset=utf-8",
	"launch.js":     "text/javascript; charset=utf-8",
	"return.js":     "text/javascript; charset=utf-8",
	"close.js":      "text/javascript; charset=utf-8",
	"favicon.svg":   "image/svg+xml",
}

// addresses name the assets' content.
var addresses = func() map[string]string {
	all := map[string]string{}
	for name := range assets {
		text, err := static.ReadFile("static/" + name)
		if err != nil {
			panic(err) // it is embedded
		}
		all[name] = "/assets/" + name + "?v=" + edge.Digest(text, 9)
	}
	return all
}()

// Asset is the address of a file that pages load. It changes with what is in the file, so
// that browsers may keep the file for ever, and have the new one after an upgrade at once.
func Asset(name string) string { return addresses[name] }

func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := edge.Param(r, "file")
	mediaType, known := assets[name]
	text, err := static.ReadFile("static/" + name)
	if !known || err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(text) //nolint:gosec // an embedded file; the browser may be gone
}

// LogoPath is the address of an organization's logo of the digest, "" where it has none. As an asset's, it changes with the
// picture.
func LogoPath(o id.Organization, digest string) string {
	if digest == "" {
		return ""
	}
	return "/logos/" + strconv.FormatInt(int64(o), 10) + "/" + digest
}

func (s *Server) showLogo(w http.ResponseWriter, r *http.Request) error {
	which, err := edge.IDParam[id.Organization](r, "id")
	if err != nil {
		return err
	}
	picture, err := org.Logo(r.Context(), s.DB, which, edge.Param(r, "digest"))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "image/png")
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(picture))
	return nil
}
