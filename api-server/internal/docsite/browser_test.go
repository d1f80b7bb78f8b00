package docsite

import (
	"net/http/httptest"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

func TestTheSiteInABrowser(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(router())
	t.Cleanup(server.Close)
	b := browsertest.Open(t) // which fails the test for requests to other hosts and for whatever the browser complains of
	at := func(page string) { b.Visit(server.URL + "/docs/" + page) }
	for _, width := range []int64{1280, 390} {
		b.Size(width, 844)
		for _, page := range []string{"", "quickstart.html", "webhooks.html", "events.html", "benchmarks.html", "database-roles.html",
			"reference/conventions.html", "runbooks/RegistrarAPISlow.html"} {
			at(page)
			b.Await("h1")
			b.Accessible(page)
			check.False(t, "it is wider than the window", b.WiderThanWindow(), "%s at %d", page, width)
		}
	}
	at("webhooks.html")
	b.Screenshot("telephone")
	b.Size(1280, 900)

	// The search finds sections, by the beginning of words and in spite of a slip, and leads to them.
	b.Type("#_query", "signing secre")
	b.Await("#_search li a")
	b.Accessible("the search")
	b.Screenshot("search")
	at("webhooks.html")
	b.Type("#_query", "switchng off")
	b.Await(`#_search a[href$="reference/webhooks.html#switching-off"]`)
	b.Click(`#_search a[href$="reference/webhooks.html#switching-off"]`)
	b.AwaitHeading("Webhooks")
	check.Contains(t, "the address", b.Location(), "/docs/reference/webhooks.html#switching-off", "")

	// A reader's choices hold on the next page.
	at("webhooks.html")
	b.Click("#_theme")
	b.Await("[data-theme=dark]")
	b.Click("label[for=tab-1-php]")
	b.Await("#tab-1-php + label + .panel pre")
	b.Screenshot("dark")
	at("webhooks.html")
	b.Await("[data-theme=dark]")
	b.Await("#tab-1-php + label + .panel pre")
	b.Click("#_theme")
	b.Await("[data-theme=light]")
	check.Equal(t, "number of programs shown at a time", b.Value(`"" + [...document.querySelectorAll(".tabs:first-of-type .panel")].filter(p => p.offsetHeight > 0).length`), "1", "")
	check.Equal(t, "blocks of code without a button", b.Count(".code:not(:has(button))"), 0, "")

	// Without scripts everything is there but what needs them.
	b.Scripts(false)
	at("webhooks.html")
	b.Await("h1")
	check.Equal(t, "buttons and fields", b.Count("button:not([hidden]), form:not([hidden])"), 0, "")
	b.Click("label[for=tab-1-java]")
	b.Await("#tab-1-java + label + .panel pre")
	b.Click(`#_pages a[href="events.html"]`)
	b.AwaitHeading("Events")
}

// What docs shows of the site itself.
func TestPicturesOfTheSite(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(router())
	t.Cleanup(server.Close)
	b := browsertest.Open(t)
	for name, size := range map[string]browsertest.Window{"docs": {Width: 1280, Height: 844}, "docs-telephone": {Width: 390, Height: 844}} {
		b.Size(size.Width, size.Height)
		for end, dark := range map[string]bool{"": false, "-dark": true} {
			b.Dark(dark)
			b.Visit(server.URL + "/docs/quickstart.html")
			b.Await("h1")
			b.Picture("../../../docs/pictures/" + name + end + ".webp")
		}
	}
}
