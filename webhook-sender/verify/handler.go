package verify

import (
	"container/list"
	"errors"
	"net/http"
	"sync"
)

// Seen remembers events, so that a retry is taken once. A receiver that must not forget on
// a restart implements it over its database: a table with the event's id as its key.
type Seen interface {
	// Begin says whether the event is new, and from then on it is not.
	Begin(id string) (fresh bool, err error)
	// Forget undoes Begin, when the event could not be worked on: its retry is to be.
	Forget(id string) error
}

// Handler receives deliveries: it checks the signature (400 when it is missing or stale,
// 401 when it is wrong), answers 200 to an event that was seen before, and gives every
// other one to handle. An error of handle answers 500, and the event comes again.
//
// An answer is due within 10 seconds: handle should store the event and work on it later.
func Handler(seen Seen, handle func(Event) error, secrets ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "POST deliveries here", http.StatusMethodNotAllowed)
			return
		}
		e, err := Request(r, secrets...)
		switch {
		case errors.Is(err, ErrWrong):
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := once(seen, e, handle); err != nil {
			http.Error(w, "not taken; send it again", http.StatusInternalServerError)
		}
	})
}

func once(seen Seen, e Event, handle func(Event) error) error {
	fresh, err := seen.Begin(e.ID)
	if err != nil || !fresh {
		return err
	}
	if err := handle(e); err != nil {
		return errors.Join(err, seen.Forget(e.ID))
	}
	return nil
}

// Memory is a Seen that keeps the latest events of this process. Retries span about six
// hours, so size should hold what arrives in that time.
type Memory struct {
	mu    sync.Mutex
	size  int
	order *list.List // oldest first
	ids   map[string]*list.Element
}

// NewMemory keeps up to size events.
func NewMemory(size int) *Memory {
	return &Memory{size: size, order: list.New(), ids: map[string]*list.Element{}}
}

// Begin implements Seen.
func (m *Memory) Begin(id string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.ids[id]; known {
		return false, nil
	}
	m.ids[id] = m.order.PushBack(id)
	if m.order.Len() > m.size {
		oldest := m.order.Front()
		delete(m.ids, m.order.Remove(oldest).(string)) //nolint:forcetypeassert // only strings are put in
	}
	return true, nil
}

// Forget implements Seen.
func (m *Memory) Forget(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, known := m.ids[id]; known {
		m.order.Remove(e)
		delete(m.ids, id)
	}
	return nil
}
