// Package browsertest drives a real headless Chromium in tests.
//
//	b := browsertest.Open(t)
//	b.Visit(url + "/sign-in/")
//	b.Type("#name", "ana@institute.org")
//	b.Press("Sign in")
//	b.Screenshot("signed-in")
//
// The browser is the one at CHROMIUM, which `make test` sets. Screenshots are the test's
// artefacts: `go test -artifacts` keeps them.
package browsertest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// limit is how long one step may take; it is no measure of speed.
const limit = time.Minute

// Browser is one with a profile of its own.
type Browser struct {
	t   testing.TB
	ctx context.Context //nolint:containedctx // it is the browser
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
		t.Skip("there is no Chromium on this machine")
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
	return &Browser{t, ctx}
}

// do runs the actions and stops the test when one fails.
func (b *Browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.Screenshot("failed")
		b.t.Fatal(err)
	}
}

// Visit opens the address.
func (b *Browser) Visit(address string) { b.t.Helper(); b.do(chromedp.Navigate(address)) }

// Type types text into the field that the CSS selector finds, behind what is there.
func (b *Browser) Type(selector, text string) {
	b.t.Helper()
	b.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Press clicks the button, link or summary that says exactly text.
func (b *Browser) Press(text string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.Search(`//*[self::a or self::button or self::summary][normalize-space()="`+text+`"]`), chromedp.NodeVisible))
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

// Text is what the page shows.
func (b *Browser) Text() string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Text(chromedp.CSS("body")))
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}

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
	if err := os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), picture, 0o600); err != nil {
		b.t.Log(err)
	}
}

// Value is what the JavaScript expression gives, as a text.
func (b *Browser) Value(expression string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](expression))
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}

// Click clicks what the CSS selector finds, once it can be seen.
func (b *Browser) Click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}
