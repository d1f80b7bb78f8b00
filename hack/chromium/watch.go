package chromium

import (
	"context"
	"encoding/json"
	"net/url"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// watch hears what a browser complains of. What is wrong is told when the browser is
// closed: events come on a goroutine of its own, which must not be kept.
type watch struct {
	mu     sync.Mutex
	hosts  map[string]bool
	faults []string
	heard  chan struct{} // closed, and replaced, with every fault
}

func newWatch(t testing.TB, ctx context.Context) *watch {
	t.Helper()
	w := &watch{hosts: map[string]bool{}, heard: make(chan struct{})}
	err := chromedp.Listen(ctx, func(event any) {
		w.hear(event)
		if _, asks := event.(*page.EventJavascriptDialogOpening); asks {
			go dismiss(ctx) // the listener may not call the browser, and the page stands still
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	enable := chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, network.Enable, network.EnableParams{})
		return err
	})
	if err := chromedp.Do(ctx, enable); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, fault := range w.take() {
			t.Errorf("the browser: %s", fault)
		}
	})
	return w
}

func dismiss(ctx context.Context) {
	_ = chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
		return err // the browser may be gone
	}))
}

// take gives the faults so far, once.
func (w *watch) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	faults := w.faults
	w.faults = nil
	return faults
}

// more is closed when the next fault is there.
func (w *watch) more() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heard
}

func (w *watch) trust(address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if u, err := url.Parse(address); err == nil {
		w.hosts[u.Host] = true
	}
}

func (w *watch) hear(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if fault := w.faultOf(event); fault != "" {
		w.faults = append(w.faults, fault)
		close(w.heard)
		w.heard = make(chan struct{})
	}
}

// faultOf says what is wrong with the event, "" for nothing.
func (w *watch) faultOf(event any) string {
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		if err != nil || u.Host != "" && !w.hosts[u.Host] {
			return "a request to " + e.Request.URL
		}
	case *log.EventEntryAdded:
		// Refusals are told with a 4xx, which the browser logs as errors of the network.
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork || e.Entry.Source == log.EntrySourceSecurity {
			return "log: " + e.Entry.Text
		}
	case *runtime.EventExceptionThrown:
		return "an exception: " + exception(e.ExceptionDetails)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			return "console.error"
		}
	case *page.EventJavascriptDialogOpening:
		return "a dialog: " + e.Message
	}
	return ""
}

func exception(d *runtime.ExceptionDetails) string {
	if d.Exception == nil {
		return d.Text
	}
	return d.Text + " " + d.Exception.Description
}

// quote writes text as a string of JavaScript.
func quote(text string) string {
	literal, err := json.Marshal(text)
	if err != nil {
		panic(err) // strings always encode
	}
	return string(literal)
}
