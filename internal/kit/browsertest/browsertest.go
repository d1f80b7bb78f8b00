// Package browsertest drives a real headless Chromium in tests.
//
//	b := browsertest.Open(t)
//	b.Visit(url + "/sign-in/")
//	b.Type("#name", "ana@institute.org")
//	b.Press("Sign in")
//	b.Screenshot("signed-in")
//	b.Accessible("the page after signing in")
//
// The browser is the one at CHROMIUM, and a program of its own, at BROWSER_DRIVER, drives it:
// `make test` sets both. Screenshots are the test's artefacts: `go test -artifacts` keeps them, and
// so does the folder SCREENSHOTS. Pictures are those of docs.
//
// A browser is watched while it is open. A request to a host that the test did not visit,
// a breach of a page's content security policy, an uncaught exception, a dialog and an
// error on the console each fail the test.
package browsertest

import (
	"encoding/json"
	"flag"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/nottested"
)

// Browser is one with a profile of its own.
type Browser struct {
	t      testing.TB
	driver *rpc.Client
}

// Field is what to write into the field that a CSS selector finds.
type Field struct{ Selector, Text string }

// Window is a window's size in pixels.
type Window struct{ Width, Height int64 }

// Open starts a browser that ends with the test. Without CHROMIUM the test fails, or is
// skipped where there is none to be had (CHROMIUM is set and empty).
func Open(t testing.TB) *Browser {
	t.Helper()
	path, set := os.LookupEnv("CHROMIUM")
	switch {
	case !set || path != "" && os.Getenv("BROWSER_DRIVER") == "":
		t.Fatal("CHROMIUM or BROWSER_DRIVER is not set: run `make test ARGS=<packages>`")
	case path == "":
		nottested.Skip(t, "there is no Chromium on this machine")
	}
	driver := exec.Command(os.Getenv("BROWSER_DRIVER")) //nolint:gosec,noctx // the developer names it; it ends when its input is closed
	driver.Stderr = os.Stderr
	in, err := driver.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := driver.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Start(); err != nil {
		t.Fatal(err)
	}
	b := &Browser{t, rpc.NewClient(struct {
		io.Reader
		io.WriteCloser
	}{out, in})}
	t.Cleanup(func() {
		for _, fault := range b.faults(false) {
			t.Errorf("the browser: %s", fault)
		}
		_ = in.Close()
		if err := driver.Wait(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// do lets the driver do something, and stops the test when that fails.
func (b *Browser) do(method string, argument any) {
	b.t.Helper()
	var done bool
	if err := b.driver.Call("Browser."+method, argument, &done); err != nil {
		b.Screenshot("failed")
		b.t.Fatalf("%s %v: %v", method, argument, err)
	}
}

// ask lets the driver find something out.
func ask[T any](b *Browser, method string, argument any) (answer T) {
	b.t.Helper()
	if err := b.driver.Call("Browser."+method, argument, &answer); err != nil {
		b.t.Fatalf("%s %v: %v", method, argument, err)
	}
	return answer
}

// eval runs a script in the page, as a developer would in its console, and returns its value.
func eval[T any](b *Browser, script string) (value T) {
	b.t.Helper()
	if err := json.Unmarshal(ask[[]byte](b, "Evaluate", script), &value); err != nil {
		b.t.Fatal(err)
	}
	return value
}

// faults returns, once, what the browser has complained of; it can wait for the first.
func (b *Browser) faults(wait bool) (found []string) {
	b.t.Helper()
	if err := b.driver.Call("Browser.Faults", wait, &found); err != nil {
		b.t.Error(err)
	}
	return found
}

// Visit opens the address; from then on, pages may also ask its host for things.
func (b *Browser) Visit(address string) { b.t.Helper(); b.do("Visit", address) }

// Trust lets pages ask the address's host for things, too.
func (b *Browser) Trust(address string) { b.t.Helper(); b.do("Trust", address) }

// Back goes to the page before.
func (b *Browser) Back() { b.t.Helper(); b.do("Back", true) }

// Type types text into the field that the CSS selector finds, behind what is there.
func (b *Browser) Type(selector, text string) { b.t.Helper(); b.do("Type", Field{selector, text}) }

// Fill replaces what is in the field that the CSS selector finds.
func (b *Browser) Fill(selector, text string) { b.t.Helper(); b.do("Fill", Field{selector, text}) }

// Press clicks the button, link or summary that says exactly text.
func (b *Browser) Press(text string) {
	b.t.Helper()
	b.do("ClickFound", `//*[self::a or self::button or self::summary][normalize-space()="`+text+`"]`)
}

// Click clicks what the CSS selector finds, once it can be seen.
func (b *Browser) Click(selector string) { b.t.Helper(); b.do("Click", selector) }

// Await waits until what the CSS selector finds can be seen.
func (b *Browser) Await(selector string) { b.t.Helper(); b.do("Await", selector) }

// AwaitText waits until the page shows text; after a press that leads to another page of
// the same shape, it tells the two apart.
func (b *Browser) AwaitText(text string) {
	b.t.Helper()
	b.do("AwaitFound", `//body//*[contains(normalize-space(), "`+text+`")]`)
}

// AwaitHeading waits until the page's heading is text.
func (b *Browser) AwaitHeading(text string) {
	b.t.Helper()
	b.do("AwaitFound", `//h1[normalize-space()="`+text+`"]`)
}

// Size makes the window as large as a desktop's or a telephone's.
func (b *Browser) Size(width, height int64) { b.t.Helper(); b.do("Size", Window{width, height}) }

// Dark asks pages for their dark colours, or for their light ones.
func (b *Browser) Dark(on bool) { b.t.Helper(); b.do("Dark", on) }

// Scripts lets pages run their scripts, or not.
func (b *Browser) Scripts(on bool) { b.t.Helper(); b.do("Scripts", on) }

// Zone puts the browser into a time zone.
func (b *Browser) Zone(name string) { b.t.Helper(); b.do("Zone", name) }

// Passkeys gives the browser a device that makes and uses passkeys by itself, for as long as it is open.
func (b *Browser) Passkeys() { b.t.Helper(); b.do("Passkeys", true) }

// Text is what the page shows.
func (b *Browser) Text() string { b.t.Helper(); return b.TextOf("body") }

// TextOf is what the element that the CSS selector finds shows.
func (b *Browser) TextOf(selector string) string {
	b.t.Helper()
	return ask[string](b, "TextOf", selector)
}

// Value is what the JavaScript expression gives, as a text.
func (b *Browser) Value(expression string) string { b.t.Helper(); return eval[string](b, expression) }

// Count is how many elements the CSS selector finds.
func (b *Browser) Count(selector string) int {
	b.t.Helper()
	return eval[int](b, `document.querySelectorAll(`+quote(selector)+`).length`)
}

// quote writes text as a string of JavaScript.
func quote(text string) string {
	literal, err := json.Marshal(text)
	if err != nil {
		panic(err) // strings always encode
	}
	return string(literal)
}

// WiderThanWindow says whether the page can be scrolled sideways.
func (b *Browser) WiderThanWindow() bool {
	b.t.Helper()
	return eval[bool](b, `document.documentElement.scrollWidth > document.documentElement.clientWidth`)
}

// Location is the address of the page.
func (b *Browser) Location() string { b.t.Helper(); return eval[string](b, `location.href`) }

// Screenshot keeps a picture of the whole page as <name>.png, where somebody wants it: to take it costs as
// much as a few steps.
func (b *Browser) Screenshot(name string) {
	b.t.Helper()
	if artifacts := flag.Lookup("test.artifacts"); artifacts.Value.String() != "true" && os.Getenv("SCREENSHOTS") == "" {
		return
	}
	var picture []byte
	if err := b.driver.Call("Browser.Screenshot", true, &picture); err != nil {
		b.t.Logf("no screenshot of %s: %v", name, err)
		return
	}
	files := []string{filepath.Join(b.t.ArtifactDir(), name+".png")}
	if dir := os.Getenv("SCREENSHOTS"); dir != "" {
		files = append(files, filepath.Join(dir, strings.ReplaceAll(b.t.Name(), "/", "-")+"-"+name+".png"))
	}
	for _, file := range files {
		if err := os.WriteFile(file, picture, 0o600); err != nil { //nolint:gosec // the developer names the folder
			b.t.Log(err)
		}
	}
}

// largest is how many bytes a picture of docs may have.
const largest = 100 << 10

// Picture keeps what the window shows in the file, a picture of docs: the variable PICTURES=1 has it taken again. Otherwise
// the test fails where the file is not there.
func (b *Browser) Picture(file string) { b.t.Helper(); b.picture(file, fine) }

// Pictures keeps two pictures, of the page in light and in dark colours: name.webp and name-dark.webp. As there are many, they
// are coarse. See Picture.
func (b *Browser) Pictures(name string) {
	b.t.Helper()
	for suffix, dark := range map[string]bool{"": false, "-dark": true} {
		if os.Getenv("PICTURES") != "" {
			b.Dark(dark)
		}
		b.picture(name+suffix+".webp", coarse)
	}
	if os.Getenv("PICTURES") != "" {
		b.Dark(false)
	}
}

// Qualities of pictures.
const fine, coarse int64 = 80, 40

func (b *Browser) picture(file string, quality int64) {
	b.t.Helper()
	if os.Getenv("PICTURES") != "" {
		if err := os.WriteFile(file, ask[[]byte](b, "Picture", quality), 0o644); err != nil { //nolint:gosec // for everybody to see
			b.t.Error(err)
		}
	}
	switch kept, err := os.Stat(file); {
	case err != nil:
		b.t.Errorf("PICTURES=1 takes it: %v", err)
	case kept.Size() > largest:
		b.t.Errorf("%s has %d bytes, more than %d", file, kept.Size(), largest)
	}
}
