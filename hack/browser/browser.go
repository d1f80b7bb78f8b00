// Command browser drives a headless Chromium for package browsertest: it is called over standard
// input and output, by net/rpc, and ends with the browser when its input ends. It is a program of
// its own so that the product's module does not need what it is built from.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"github.com/registrar-dev/registrar/internal/kit/browsertest"
)

// limit is how long one step may take; it is no measure of speed.
const limit = 2 * time.Minute

// patience is how long a step may take before it is tried again: one that waits for an element of
// a page that was replaced meanwhile would wait for ever.
const patience = 30 * time.Second

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		os.Exit(1)
	}
}

func run() error {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(os.Getenv("CHROMIUM")), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-dev-shm-usage", true))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, closeTab := chromedp.NewContext(allocator)
	defer closeTab()
	if err := chromedp.Do(ctx); err != nil { // with the context that lasts: it owns the browser
		return err
	}
	defer func() { _ = chromedp.Cancel(ctx) }() // waits until the browser is gone, and its profile with it
	watch, err := newWatch(ctx)
	if err != nil {
		return err
	}
	if err := rpc.Register(&Browser{ctx, watch}); err != nil {
		return err
	}
	rpc.ServeConn(struct {
		io.Reader
		io.WriteCloser
	}{os.Stdin, os.Stdout})
	return nil
}

// Browser is what is called; package browsertest documents the methods of the same names.
type Browser struct {
	ctx   context.Context //nolint:containedctx // it is the browser
	watch *watch
}

// do runs the action. Its error says what page is shown.
func (b *Browser) do(action chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	var err error
	for again := true; again; {
		try, done := context.WithTimeout(ctx, patience)
		err = chromedp.Do(try, action)
		again = err != nil && ctx.Err() == nil && (replaced(err) || try.Err() != nil)
		done()
	}
	if err != nil {
		return fmt.Errorf("%w; on the page %s", err, b.shown())
	}
	return nil
}

// replaced says whether a step found its element, and the page was replaced before anything was
// done to it.
func replaced(err error) bool {
	return strings.Contains(err.Error(), "Could not find node with given id")
}

// shown is the address and the text of the page, as far as there is one.
func (b *Browser) shown() string {
	text, _ := get(b.ctx, patience, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	return text
}

func get[T any](ctx context.Context, within time.Duration, action chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return chromedp.Run(ctx, action)
}

func (b *Browser) Visit(address string, _ *bool) error {
	b.watch.trust(address)
	return b.do(chromedp.Navigate(address))
}

func (b *Browser) Trust(address string, _ *bool) error { //nolint:unparam // net/rpc wants an error
	b.watch.trust(address)
	return nil
}

func (b *Browser) Back(bool, *bool) error { return b.do(chromedp.NavigateBack()) }

func (b *Browser) Type(f browsertest.Field, _ *bool) error {
	return b.do(chromedp.SendKeys(chromedp.CSS(f.Selector), f.Text))
}

func (b *Browser) Fill(f browsertest.Field, _ *bool) error {
	return b.do(chromedp.SetValue(chromedp.CSS(f.Selector), f.Text))
}

func (b *Browser) Click(selector string, _ *bool) error {
	return b.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// ClickFound clicks what the XPath finds.
func (b *Browser) ClickFound(xpath string, _ *bool) error {
	return b.do(chromedp.Click(chromedp.Search(xpath), chromedp.NodeVisible))
}

func (b *Browser) Await(selector string, _ *bool) error {
	return b.do(chromedp.WaitVisible(chromedp.CSS(selector)))
}

// AwaitFound waits for what the XPath finds.
func (b *Browser) AwaitFound(xpath string, _ *bool) error {
	return b.do(chromedp.WaitVisible(chromedp.Search(xpath)))
}

func (b *Browser) Size(s browsertest.Window, _ *bool) error {
	return b.do(chromedp.EmulateViewport(s.Width, s.Height))
}

func (b *Browser) Dark(on bool, _ *bool) error {
	scheme := "light"
	if on {
		scheme = "dark"
	}
	return b.do(call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}))
}

func (b *Browser) Scripts(on bool, _ *bool) error {
	return b.do(call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on}))
}

func (b *Browser) Zone(name string, _ *bool) error {
	return b.do(call(emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: name}))
}

// Passkeys gives the browser a device that makes and uses passkeys by itself, as if its owner's finger were on it.
func (b *Browser) Passkeys(bool, *bool) error {
	if err := b.do(call(webauthn.Enable, webauthn.EnableParams{})); err != nil {
		return err
	}
	return b.do(call(webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
		HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true}}))
}

func (b *Browser) TextOf(selector string, text *string) (err error) {
	*text, err = get(b.ctx, limit, chromedp.Text(chromedp.CSS(selector)))
	return err
}

// Evaluate runs a script in the page and returns its value as JSON.
func (b *Browser) Evaluate(script string, value *[]byte) error {
	raw, err := get(b.ctx, limit, chromedp.Evaluate[json.RawMessage](script, chromedp.EvalAwaitPromise))
	*value = raw
	return err
}

func (b *Browser) Screenshot(_ bool, picture *[]byte) (err error) {
	*picture, err = get(b.ctx, limit, chromedp.FullScreenshot(100))
	return err
}

// Picture is what the window shows, as WebP of the quality, from 0 to 100.
func (b *Browser) Picture(quality int64, picture *[]byte) (err error) {
	*picture, err = get(b.ctx, limit, chromedp.Action[[]byte](func(ctx context.Context, tab *chromedp.Target) ([]byte, error) {
		shot, err := cdp.Call(ctx, tab, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatWebp, Quality: &quality})
		if err != nil {
			return nil, err
		}
		return shot.Data, nil
	}))
	return err
}

// Faults returns, once, what the browser has complained of; it can wait for the first.
func (b *Browser) Faults(wait bool, faults *[]string) error {
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	for {
		more := b.watch.more()
		if *faults = b.watch.take(); len(*faults) > 0 || !wait {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// call sends the page a command of the developer tools' protocol.
func call[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, command, params)
		return err
	})
}
