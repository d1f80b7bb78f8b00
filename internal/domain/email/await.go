package email

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Watch lets requests wait for what becomes of a mail. One connection listens for all of
// them; without Run, or when a notification is lost, they find out by polling.
type Watch struct {
	db *pg.DB

	mu      sync.Mutex
	waiting map[id.Email][]chan struct{}
}

// pollInterval is the net under lost notifications.
const pollInterval = time.Second

// NewWatch makes a watch that nobody waits at yet.
func NewWatch(db *pg.DB) *Watch { return &Watch{db: db, waiting: map[id.Email][]chan struct{}{}} }

// Run listens until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	pg.Listen(ctx, w.db, w.hear, Channel)
	return nil
}

func (w *Watch) hear(n pg.Notification) {
	mail, err := strconv.ParseInt(n.Payload, 10, 64)
	w.mu.Lock()
	defer w.mu.Unlock()
	for waited, all := range w.waiting {
		if n.Reset || err == nil && waited == id.Email(mail) {
			for _, c := range all {
				wake(c)
			}
		}
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is woken already
	}
}

// Final waits until the mail's status is final, for the time limit at most, and gives the
// record as it is then.
func (w *Watch) Final(ctx context.Context, org id.Organization, mail id.Email, limit time.Duration) (Record, error) {
	woken := make(chan struct{}, 1)
	w.join(mail, woken)
	defer w.leave(mail, woken)
	over, tick := time.NewTimer(limit), time.NewTicker(pollInterval)
	defer over.Stop()
	defer tick.Stop()
	for {
		r, err := Find(ctx, w.db, org, mail)
		if err != nil || r.Status.Final() {
			return r, err
		}
		select {
		case <-woken:
		case <-tick.C:
		case <-over.C:
			return Find(ctx, w.db, org, mail)
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
}

func (w *Watch) join(mail id.Email, c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting[mail] = append(w.waiting[mail], c)
}

func (w *Watch) leave(mail id.Email, c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := slices.DeleteFunc(w.waiting[mail], func(other chan struct{}) bool { return other == c })
	if w.waiting[mail] = rest; len(rest) == 0 {
		delete(w.waiting, mail)
	}
}
