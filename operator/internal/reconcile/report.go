package reconcile

import (
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"
)

const (
	normal  = corev1.EventTypeNormal
	warning = corev1.EventTypeWarning
)

// occurrence is an Event to emit.
type occurrence struct{ kind, reason, note string }

// occurrences are what happened in a visit.
type occurrences []occurrence

func (o *occurrences) note(kind, reason, note string) {
	*o = append(*o, occurrence{kind, reason, note})
}

func (o *occurrences) events() []occurrence { return *o }

// condition is what a condition says.
type condition struct {
	status          metav1.ConditionStatus
	reason, message string
	stalled         bool
}

// again retries a visit that failed through no fault of the resource. Expected failures, an old
// copy or a PostgreSQL that is away, are not logged for each resource.
func (k *kind[T]) again(object T, cause error) (ctrl.Result, error) {
	switch {
	case apierrors.IsConflict(cause):
		return ctrl.Result{RequeueAfter: firstRetry}, nil
	case away(cause):
		return ctrl.Result{RequeueAfter: k.away.When(requestOf(object))}, nil
	}
	return ctrl.Result{}, cause
}

// emit makes an Event of the resource.
func (r *Reconciler) emit(object client.Object, h occurrence) {
	r.Events.Eventf(object, nil, h.kind, h.reason, "Reconcile", "%s", h.note)
}

// refreshes remembers when the figures of each resource were written. A new process begins
// with now, because the start of an operator is no reason to write.
type refreshes struct {
	mu   sync.Mutex
	last map[types.UID]time.Time
}

func (f *refreshes) due(uid types.UID, now time.Time, every time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	last, known := f.last[uid]
	if !known {
		f.set(uid, now)
		return false
	}
	return now.Sub(last) >= every
}

func (f *refreshes) wrote(uid types.UID, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.set(uid, now)
}

func (f *refreshes) set(uid types.UID, at time.Time) {
	if f.last == nil {
		f.last = map[types.UID]time.Time{}
	}
	f.last[uid] = at
}

func (f *refreshes) forget(uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.last, uid)
}
