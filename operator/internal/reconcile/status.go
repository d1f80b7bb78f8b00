package reconcile

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/operator/api/v1alpha1"
)

const (
	normal  = corev1.EventTypeNormal
	warning = corev1.EventTypeWarning
)

// occurrence is an Event to emit.
type occurrence struct{ kind, reason, note string }

func (v *visit) note(kind, reason, note string) {
	v.happened = append(v.happened, occurrence{kind, reason, note})
}

// status computes the new status from the old one and the visit. It depends on nothing else, so
// that the same findings give the same status.
func (v *visit) status(before v1alpha1.WebhookEndpointStatus, refused *refusal, now time.Time) v1alpha1.WebhookEndpointStatus {
	s := *before.DeepCopy()
	generation := v.object.Generation
	if refused != nil && refused.reason == v1alpha1.ReasonDatabaseUnavailable && before.ObservedGeneration == generation {
		return s // nothing newer is known about this spec
	}
	s.ObservedGeneration = generation
	s.Handled = v.handled
	if v.secretRef != nil {
		s.SecretRef = v.secretRef
	}
	if v.asked {
		v.figuresOf(&s)
	}
	set := func(kind string, status metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason,
			Message: message, ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now)})
	}
	ready := readiness(v.endpoint, refused)
	set(v1alpha1.ConditionReady, ready.status, ready.reason, ready.message)
	if v.asked {
		on := switchedOn(v.endpoint)
		set(v1alpha1.ConditionSwitchedOn, on.status, on.reason, on.message)
	}
	if ready.stalled {
		set(v1alpha1.ConditionStalled, metav1.ConditionTrue, ready.reason, ready.message)
	} else {
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionStalled)
	}
	return s
}

// figuresOf copies the endpoint's figures from PostgreSQL.
func (v *visit) figuresOf(s *v1alpha1.WebhookEndpointStatus) {
	e := v.endpoint
	if e == nil {
		e = &webhook.Endpoint{}
	}
	s.EndpointID, s.SecretVersion = int64(e.ID), e.SecretVersion
	s.SwitchedOffAt, s.SwitchedOffReason = stamp(e.SwitchedOffAt), e.SwitchedOffReason
	s.ConsecutiveFailures, s.Backlog = e.ConsecutiveFailures, int64(v.backlog)
	s.LastSuccessTime, s.LastFailureTime = stamp(e.LastSuccessAt), stamp(e.LastFailureAt)
}

// stamp is a time as the API server stores it: in whole seconds.
func stamp(t *time.Time) *metav1.Time {
	if t == nil {
		return nil
	}
	return &metav1.Time{Time: t.UTC().Truncate(time.Second)}
}

// condition is what a condition says.
type condition struct {
	status          metav1.ConditionStatus
	reason, message string
	stalled         bool
}

func readiness(e *webhook.Endpoint, refused *refusal) condition {
	switch {
	case refused != nil:
		return condition{metav1.ConditionFalse, refused.reason, refused.message, !refused.waits}
	case e.SwitchedOn:
		return condition{metav1.ConditionTrue, v1alpha1.ReasonRegistered, "Events are posted to the URL.", false}
	case offByOperator(e):
		return condition{metav1.ConditionTrue, v1alpha1.ReasonSuspended, "The URL is registered; deliveries are suspended.", false}
	}
	return condition{metav1.ConditionFalse, v1alpha1.ReasonSwitchedOff, "Switched off: " + e.SwitchedOffReason, true}
}

func switchedOn(e *webhook.Endpoint) condition {
	switch {
	case e == nil:
		return condition{metav1.ConditionFalse, v1alpha1.ReasonNotRegistered, "The URL is not registered.", false}
	case e.SwitchedOn:
		return condition{metav1.ConditionTrue, v1alpha1.ReasonRegistered, "Events are posted to the URL.", false}
	case offByOperator(e):
		return condition{metav1.ConditionFalse, v1alpha1.ReasonSuspended, e.SwitchedOffReason, false}
	}
	return condition{metav1.ConditionFalse, v1alpha1.ReasonSwitchedOff, e.SwitchedOffReason, false}
}

// quiet removes the figures that change with every attempt, which alone are not worth a write.
func quiet(s v1alpha1.WebhookEndpointStatus) v1alpha1.WebhookEndpointStatus {
	s.ConsecutiveFailures, s.Backlog, s.LastSuccessTime, s.LastFailureTime = 0, 0, nil, nil
	return s
}

// transition is the Event for a change of the Ready condition, if any.
func transition(before, after v1alpha1.WebhookEndpointStatus) (occurrence, bool) {
	old := reasonOf(before)
	ready := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason == old {
		return occurrence{}, false
	}
	if ready.Status != metav1.ConditionTrue {
		return occurrence{warning, ready.Reason, ready.Message}, true
	}
	switch {
	case ready.Reason == v1alpha1.ReasonSuspended:
		return occurrence{normal, "Suspended", ready.Message}, true
	case old == v1alpha1.ReasonSwitchedOff:
		return occurrence{normal, "TurnedOn", "The URL was turned on. Deliveries that were skipped can be recovered."}, true
	case old == v1alpha1.ReasonSuspended:
		return occurrence{normal, "Resumed", "Deliveries go on. Those that were skipped can be recovered."}, true
	}
	return occurrence{normal, "Registered", ready.Message}, true
}

// reasonOf is the reason of the Ready condition; "" when there is none.
func reasonOf(s v1alpha1.WebhookEndpointStatus) string {
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady); c != nil {
		return c.Reason
	}
	return ""
}
