// Package chromium drives a real headless Chromium in tests.
//
//	b := chromium.Open(t)
//	b.Visit(url + "/sign-in/")
//	b.Type("#name", "ana@institute.org")
//	b.Press("Sign in")
//	b.Screenshot("signed-in")
//	b.Accessible("the page after signing in")
//
// The browser is the one at CHROMIUM, which `make test` sets. Screenshots are the test's
// artefacts: `go test -artifacts` keeps them, and so does the folder SCREENSHOTS.
//
// A browser is watched while it is open. A request to a host that the test did not visit,
// a breach of a page's content security policy, an uncaught exception, a dialog and an
// error on the console each fail the test.
package chromium

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/registrar-dev/registrar/hack/stack"
)

// limit is how long one step may take; it is no measure of speed.
const limit = 2 * time.Minute

// patience is how long a step may take before it is begun anew: one that waits for an element of
// a page that was replaced meanwhile would wait for ever.
const patience = 30 * time.Second

// Browser is one with a profile of its own.
type Browser struct {
	t     testing.TB
	ctx   context.Context //nolint:containedctx // it is the browser
	watch *watch
}

// Open starts a browser that ends with the test. Without CHROMIUM the test fails, or is
// skipped where there is none to be had (CHROMIUM is set and empty).
func Open(t testing.TB) *Browser {
	t.Helper()
	path, set := os.LookupEnv("CHROMIUM")
	switch {
	case !set:
		t.Fatal("CHROMIUM is not set: run `make test`, or `go run ./hack/test -- <packages>` for a part")
	case path == "":
		stack.NotTested(t, "there is no Chromium on this machine")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-dev-shm-usage", true))
	allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	ctx, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits until the browser has gone, so that its profile can go
		closeTab()
		stop()
	})
	if err := chromedp.Do(ctx); err != nil { // with the context that lasts: it owns the browser
		t.Fatal(err)
	}
	return &Browser{t, ctx, newWatch(t, ctx)}
}

// do runs the actions and stops the test when one fails.
func (b *Browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	var err error
	for again := true; again; {
		look, done := context.WithTimeout(ctx, patience)
		err = chromedp.Do(look, actions...)
		again = err != nil && ctx.Err() == nil && (replaced(err) || look.Err() != nil)
		done()
	}
	if err != nil {
		b.Screenshot("failed")
		b.t.Fatalf("%v; on the page %s", err, b.shown())
	}
}

// replaced says whether a step found its element, and then another page, or another look of this
// one, took its place before anything was done to it.
func replaced(err error) bool {
	return strings.Contains(err.Error(), "Could not find node with given id")
}

// shown is the address and the text of the page, as far as there is one.
func (b *Browser) shown() string {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	return text
}

// eval runs a script in the page, as a developer would in its console, and gives what it
// comes to.
func eval[T any](b *Browser, script string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	return value
}

// Visit opens the address; from then on, pages may also ask its host for things.
func (b *Browser) Visit(address string) {
	b.t.Helper()
	b.Trust(address)
	b.do(chromedp.Navigate(address))
}

// Trust lets pages ask the address's host for things, too.
func (b *Browser) Trust(address string) { b.watch.trust(address) }

// Back goes to the page before.
func (b *Browser) Back() { b.t.Helper(); b.do(chromedp.NavigateBack()) }

// Type types text into the field that the CSS selector finds, behind what is there.
func (b *Browser) Type(selector, text string) {
	b.t.Helper()
	b.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Fill replaces what is in the field that the CSS selector finds.
func (b *Browser) Fill(selector, text string) {
	b.t.Helper()
	b.do(chromedp.SetValue(chromedp.CSS(selector), text))
}

// Press clicks the button, link or summary that says exactly text.
func (b *Browser) Press(text string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.Search(`//*[self::a or self::button or self::summary][normalize-space()="`+text+`"]`), chromedp.NodeVisible))
}

// Click clicks what the CSS selector finds, once it can be seen.
func (b *Browser) Click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// Await waits until what the CSS selector finds can be seen.
func (b *Browser) Await(selector string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(chromedp.CSS(selector)))
}

// AwaitText waits until the page shows text; after a press that leads to another page of
// the same shape, it tells the two apart.
func (b *Browser) AwaitText(text string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(chromedp.Search(`//body//*[contains(normalize-space(), "` + text + `")]`)))
}

// AwaitHeading waits until the page's heading is text.
func (b *Browser) AwaitHeading(text string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible(chromedp.Search(`//h1[normalize-space()="` + text + `"]`)))
}

// Size makes the window as large as a desktop's or a telephone's.
func (b *Browser) Size(width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}

// Dark asks pages for their dark colours, or for their light ones.
func (b *Browser) Dark(on bool) {
	b.t.Helper()
	scheme := "light"
	if on {
		scheme = "dark"
	}
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	}))
}

// Scripts lets pages run their scripts, or not.
func (b *Browser) Scripts(on bool) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
		return err
	}))
}

// Zone puts the browser into a time zone.
func (b *Browser) Zone(name string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: name})
		return err
	}))
}

// Text is what the page shows.
func (b *Browser) Text() string { b.t.Helper(); return b.TextOf("body") }

// TextOf is what the element that the CSS selector finds shows.
func (b *Browser) TextOf(selector string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Text(chromedp.CSS(selector)))
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}

// Value is what the JavaScript expression gives, as a text.
func (b *Browser) Value(expression string) string { b.t.Helper(); return eval[string](b, expression) }

// Count is how many elements the CSS selector finds.
func (b *Browser) Count(selector string) int {
	b.t.Helper()
	return eval[int](b, `document.querySelectorAll(`+quote(selector)+`).length`)
}

// WiderThanWindow says whether the page can be scrolled sideways.
func (b *Browser) WiderThanWindow() bool {
	b.t.Helper()
	return eval[bool](b, `document.documentElement.scrollWidth > document.documentElement.clientWidth`)
}

// Location is the address of the page.
func (b *Browser) Location() string { b.t.Helper(); return eval[string](b, `location.href`) }

// Screenshot keeps a picture of the whole page as <name>.png.
func (b *Browser) Screenshot(name string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Logf("no screenshot of %s: %v", name, err)
		return
	}
	files := []string{filepath.Join(b.t.ArtifactDir(), name+".png")}
	if dir := os.Getenv("SCREENSHOTS"); dir != "" {
		files = append(files, filepath.Join(dir, strings.ReplaceAll(b.t.Name(), "/", "-")+"-"+name+".png"))
	}
	for _, file := range files {
		if err := os.WriteFile(file, picture, 0o600); err != nil {
			b.t.Log(err)
		}
	}
}
