package pages_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"net/url"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// The pages on the way in, and a result, show the institute's name and logo; others show nobody's.
func TestPagesShowWhoseTheyAre(t *testing.T) {
	t.Parallel()
	w := openWork(t)
	w.report(t, "north", "s1", w.ana, scored)
	p := image.NewRGBA(image.Rect(0, 0, 96, 96))
	fill := func(c color.Color, x, y, width, height int) {
		draw.Draw(p, image.Rect(x, y, x+width, y+height), image.NewUniform(c), image.Point{}, draw.Src)
	}
	fill(color.RGBA{16, 94, 98, 255}, 0, 0, 96, 96) // a white N
	fill(color.White, 22, 20, 12, 56)
	fill(color.White, 62, 20, 12, 56)
	for y := range 56 {
		fill(color.White, 24+y*36/56, 20+y, 12, 1)
	}
	var file bytes.Buffer
	check.NoError(check.Now(t), png.Encode(&file, p), "the picture")
	check.NoError(check.Now(t), org.PutLogo(t.Context(), w.DB, audit.Scheduled, w.north.ID, file.Bytes(), w.Now()), "the logo")
	link, err := url.Parse(w.link)
	check.NoError(check.Now(t), err, "the link")
	const name, logo = `Institute north</p>`, `<img class="logo" src="/logos/`
	for path, shows := range map[string]bool{"/sign-in/": false, "/sign-in/?at=north": true, "/sign-in/?at=nobody": false, "/sign-in/?next=%2Fconsole%2Fnorth%2Fplans%2F": true,
		"/sign-in/?next=%2Fconsole%2F": false, "/sign-in/?next=%2Fmy-courses%2F": false, link.Path: true} {
		page := w.browser(t).do(t, path, nil)
		check.Equal(t, "status", page.status, 200, "%s", path)
		check.Equal(t, "whether it has the name", strings.Contains(page.body, name), shows, "%s: %s", path, page.body)
		check.Equal(t, "whether it has the logo", strings.Contains(page.body, logo), shows, "%s", path)
	}
	page := w.browser(t).do(t, "/sign-in/", url.Values{"name": {"ana@institute.org"}, "password": {"wrong"}, "at": {"north"}})
	check.Contains(t, "after a wrong password", page.body, name, "")
	w.Organization(t, "south")
	_, err = w.DB.Exec(t.Context(), `UPDATE organizations SET erased_at = now() WHERE slug = 'south'`)
	check.NoError(check.Now(t), err, "the erasure")
	check.Lacks(t, "an erased organization's page", w.browser(t).do(t, "/sign-in/?at=south", nil).body, "Institute south", "")

	b := browsertest.Open(t)
	look := func(what string) {
		t.Helper()
		for _, width := range []int64{1280, 390} {
			for _, dark := range []bool{false, true} {
				b.Size(width, 844)
				b.Dark(dark)
				b.Screenshot(fmt.Sprintf("%s-%d-dark-%t", what, width, dark))
				check.False(t, "it scrolls sideways", b.WiderThanWindow(), "%s at %d", what, width)
				check.Equal(t, "pictures that show", b.Value(`String([...document.images].filter(i => i.naturalWidth > 0).length)`), "1", "%s", what)
			}
			b.Accessible(what)
			b.Pictures(fmt.Sprintf("../../../docs/console/%s%s", what, map[int64]string{390: "-telephone"}[width]))
		}
	}
	b.Visit(w.url + link.Path)
	look("set-password")
	b.Type("#password", password)
	b.Type("#again", password)
	b.Press("Set password")
	b.AwaitHeading("Your password is set")
	look("password-set")
	b.Press("Sign in")
	b.AwaitHeading("Sign in")
	look("sign-in")
	b.Type("#name", "ana@institute.org")
	b.Type("#password", password)
	b.Press("Sign in")
	b.AwaitHeading("My courses")
	b.Visit(w.url + "/results/test:s1")
	look("result")
}
