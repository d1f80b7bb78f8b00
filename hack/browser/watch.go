package main

import (
	"context"
	"net/url"
	"sync"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// watch collects what a browser complains of.
type watch struct {
	mu     sync.Mutex
	hosts  map[string]bool
	faults []string
	fault  chan struct{} // closed, and replaced, with every fault
}

func newWatch(ctx context.Context) (*watch, error) {
	w := &watch{hosts: map[string]bool{}, fault: make(chan struct{})}
	err := chromedp.Listen(ctx, func(event any) {
		w.add(event)
		if _, asks := event.(*page.EventJavascriptDialogOpening); asks {
			// The listener may not call the browser, and the page waits. The browser may be gone.
			go func() { _ = chromedp.Do(ctx, call(page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})) }()
		}
	})
	if err != nil {
		return nil, err
	}
	return w, chromedp.Do(ctx, call(network.Enable, network.EnableParams{}))
}

// take returns the faults so far, once.
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
	return w.fault
}

func (w *watch) trust(address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if u, err := url.Parse(address); err == nil {
		w.hosts[u.Host] = true
	}
}

func (w *watch) add(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if fault := w.faultOf(event); fault != "" {
		w.faults = append(w.faults, fault)
		close(w.fault)
		w.fault = make(chan struct{})
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
		// Refusals are answered with a 4xx, which the browser logs as errors of the network.
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
