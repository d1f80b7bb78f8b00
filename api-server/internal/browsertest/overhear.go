package browsertest

import (
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Overheard is what a browser has asked for and complained of since Overhear.
type Overheard struct {
	mu         sync.Mutex
	requests   []string
	complaints []string
}

// Overhear listens to the browser from now on.
func (b *Browser) Overhear() *Overheard {
	b.t.Helper()
	o := &Overheard{}
	if err := chromedp.Listen(b.ctx, o.hear); err != nil {
		b.t.Fatal(err)
	}
	return o
}

func (o *Overheard) hear(event any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		o.requests = append(o.requests, e.Request.URL)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			o.complaints = append(o.complaints, string(e.Entry.Source)+": "+e.Entry.Text+" "+e.Entry.URL)
		}
	case *runtime.EventExceptionThrown:
		o.complaints = append(o.complaints, "exception: "+exception(e.ExceptionDetails))
	}
}

// Abroad are the addresses that pages asked for and that do not begin with home. What a
// page holds in itself (data:, blob:) is no request.
func (o *Overheard) Abroad(home string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(o.requests), func(address string) bool {
		return strings.HasPrefix(address, home) || strings.HasPrefix(address, "data:") || strings.HasPrefix(address, "blob:")
	})
}

// Complaints are the browser's errors and warnings: of its security policies, of loading
// and of scripts.
func (o *Overheard) Complaints() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.complaints)
}

func exception(d *runtime.ExceptionDetails) string {
	if d.Exception == nil {
		return d.Text
	}
	return d.Text + " " + d.Exception.Description
}
