package verify

import (
	"encoding/json"
	"strings"
	"sync"
)

// Subject names what the event is about: a result, an assignment, an enrollment or a student. It is
// "" for a ping. Of two events with one subject, the one with the greater Sequence has its state.
func (e Event) Subject() string {
	kind, _, _ := strings.Cut(e.Type, ".")
	var data struct {
		ID         json.RawMessage `json:"id"`
		UserID     json.RawMessage `json:"user_id"`
		Enrollment struct {
			ID json.RawMessage `json:"enrollment_id"`
		} `json:"enrollment"`
	}
	if json.Unmarshal(e.Data, &data) != nil {
		return ""
	}
	id := map[string]json.RawMessage{"result": data.ID, "assignment": data.ID, "enrollment": data.Enrollment.ID, "student": data.UserID}[kind]
	if len(id) == 0 {
		return ""
	}
	return kind + " " + string(id)
}

// Applied remembers the newest event that was applied to each subject. A receiver that must not
// forget on a restart implements it over its database, in the transaction of apply: a row for each
// subject with the sequence, which is locked first.
type Applied interface {
	// Apply calls apply and remembers the sequence, unless one that is as great is remembered. An
	// error of apply is returned, and nothing is remembered. Calls for one subject wait for each other.
	Apply(subject string, sequence int64, apply func() error) error
}

// InOrder makes a function for Handler that passes over late events: an event that failed may be
// sent again after a newer one about the same subject, and must not bring an older state back. All
// others are given to handle.
func InOrder(applied Applied, handle func(Event) error) func(Event) error {
	return func(e Event) error {
		subject := e.Subject()
		if subject == "" || e.Sequence <= 0 {
			return handle(e)
		}
		return applied.Apply(subject, e.Sequence, func() error { return handle(e) })
	}
}

// AppliedMemory is an Applied for the time that this process runs. It keeps a number for each subject.
type AppliedMemory struct {
	mu     sync.Mutex
	newest map[string]*newest
}

type newest struct {
	sync.Mutex
	sequence int64
}

// NewAppliedMemory makes an empty one.
func NewAppliedMemory() *AppliedMemory { return &AppliedMemory{newest: map[string]*newest{}} }

// Apply implements Applied.
func (m *AppliedMemory) Apply(subject string, sequence int64, apply func() error) error {
	m.mu.Lock()
	n := m.newest[subject]
	if n == nil {
		n = &newest{}
		m.newest[subject] = n
	}
	m.mu.Unlock()
	n.Lock()
	defer n.Unlock()
	if sequence <= n.sequence {
		return nil
	}
	err := apply()
	if err == nil {
		n.sequence = sequence
	}
	return err
}
