// Package outbox lists the tasks that committed transactions have asked for.
//
// Add writes a task in the caller's transaction. The relay claims tasks that are due and
// puts them on the run queue; the worker that runs one calls Done or Postpone. A claim is a
// lease: when the worker calls neither before it runs out (a process died, Redis was
// emptied), the task is simply due again. The number of a claim fences: a worker whose claim
// has run out cannot finish the task.
package outbox

import (
	"errors"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Channel is notified with a kind when tasks of that kind were committed.
const Channel = "outbox"

// Task is a claimed task.
type Task struct {
	ID           id.Task
	Subject      int64 // the row it is about; see task.Kind
	Organization id.Organization
	Claim        int // 1 for the first claim
}

// ErrLost means that the claim is no longer the task's current one: another worker has the
// task, or it is done. What was computed under the claim must not be saved.
var ErrLost = errors.New("the task was handed to another worker")

// Lag describes the tasks of a kind that are due and not claimed.
type Lag struct {
	Due    int64
	Oldest time.Duration // how long the oldest of them has been due
}
