package wake

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Watch lets many requests wait for rows to change, over one subscription. The payload of the
// channel's wake-ups names the row. Without Run, or when a wake-up is lost, waiting requests
// notice changes by polling.
type Watch struct {
	bus     *Bus
	channel string

	mu      sync.Mutex
	waiting map[string][]chan struct{}
}

const (
	// watchPoll is how soon a change is noticed when its wake-up was lost.
	watchPoll = time.Second
	// firstPoll is the first pause where nobody sends wake-ups. Each is a quarter longer than the one before, up to
	// watchPoll: a change is noticed a quarter too late at most.
	firstPoll = 5 * time.Millisecond
)

// NewWatch makes a watch of the channel.
func NewWatch(bus *Bus, channel string) *Watch {
	return &Watch{bus: bus, channel: channel, waiting: map[string][]chan struct{}{}}
}

// Run is subscribed until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	w.bus.Subscribe(ctx, w.onNotification, w.channel)
	return nil
}

func (w *Watch) onNotification(n Notification) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for row, all := range w.waiting {
		if n.Reset || row == n.Payload {
			for _, c := range all {
				select {
				case c <- struct{}{}:
				default: // it is woken already
				}
			}
		}
	}
}

// Until calls snapshot, now and whenever the row may have changed, until it returns enough or
// an error. It ends with ctx, and with context.DeadlineExceeded after the limit.
func (w *Watch) Until(ctx context.Context, row string, limit time.Duration, snapshot func(context.Context) (enough bool, err error)) error {
	woken := make(chan struct{}, 1)
	w.join(row, woken)
	defer w.leave(row, woken)
	pause := watchPoll
	if w.bus == nil {
		pause = firstPoll
	}
	over, look := time.NewTimer(limit), time.NewTimer(pause)
	defer over.Stop()
	defer look.Stop()
	for {
		if enough, err := snapshot(ctx); enough || err != nil {
			return err
		}
		select {
		case <-woken:
		case <-look.C:
			pause = min(pause+pause/4, watchPoll)
			look.Reset(pause)
		case <-over.C:
			return context.DeadlineExceeded
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *Watch) join(row string, c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting[row] = append(w.waiting[row], c)
}

func (w *Watch) leave(row string, c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := slices.DeleteFunc(w.waiting[row], func(other chan struct{}) bool { return other == c })
	if w.waiting[row] = rest; len(rest) == 0 {
		delete(w.waiting, row)
	}
}
