package reconcile

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// next implements visit.
func (v *endpointVisit) next() time.Time { return time.Time{} }

func (v *endpointVisit) ready() condition { return readiness(v.endpoint) }

// show implements visit.
func (v *endpointVisit) show(to resource, set func(string, condition)) {
	s := &to.(*v1beta1.WebhookEndpoint).Status
	s.Handled = v.handled
	if v.secretRef != nil {
		s.SecretRef = v.secretRef
	}
	if v.asked {
		v.figuresOf(s)
		set(v1beta1.ConditionSwitchedOn, switchedOn(v.endpoint))
	}
}

// figuresOf copies the endpoint's figures from PostgreSQL.
func (v *endpointVisit) figuresOf(s *v1beta1.WebhookEndpointStatus) {
	e := v.endpoint
	if e == nil {
		e = &webhook.Endpoint{}
	}
	s.EndpointID, s.SecretVersion = int64(e.ID), int32(e.SecretVersion)
	s.PreviousSecretUntil = stamp(e.Overlap(v.Clock()))
	s.SwitchedOffAt, s.SwitchedOffReason = stamp(e.SwitchedOffAt), e.SwitchedOffReason
	s.ConsecutiveFailures, s.Backlog = int32(e.ConsecutiveFailures), int64(v.backlog)
	s.LastSuccessTime, s.LastFailureTime = stamp(e.LastSuccessAt), stamp(e.LastFailureAt)
}

// stamp is a time as the API server stores it: in whole seconds.
func stamp(t *time.Time) *metav1.Time {
	if t == nil {
		return nil
	}
	return &metav1.Time{Time: t.UTC().Truncate(time.Second)}
}

func readiness(e *webhook.Endpoint) condition {
	switch {
	case e.SwitchedOn:
		return condition{metav1.ConditionTrue, v1beta1.ReasonRegistered, "Events are posted to the URL.", false}
	case offByOperator(e):
		return condition{metav1.ConditionTrue, v1beta1.ReasonSuspended, "The URL is registered; deliveries are suspended.", false}
	}
	return condition{metav1.ConditionFalse, v1beta1.ReasonSwitchedOff, "Switched off: " + e.SwitchedOffReason, true}
}

func switchedOn(e *webhook.Endpoint) condition {
	switch {
	case e == nil:
		return condition{metav1.ConditionFalse, v1beta1.ReasonNotRegistered, "The URL is not registered.", false}
	case e.SwitchedOn:
		return condition{metav1.ConditionTrue, v1beta1.ReasonRegistered, "Events are posted to the URL.", false}
	case offByOperator(e):
		return condition{metav1.ConditionFalse, v1beta1.ReasonSuspended, e.SwitchedOffReason, false}
	}
	return condition{metav1.ConditionFalse, v1beta1.ReasonSwitchedOff, e.SwitchedOffReason, false}
}

// quietEndpoint removes the figures that change with every attempt.
func quietEndpoint(e *v1beta1.WebhookEndpoint) {
	s := &e.Status
	s.ConsecutiveFailures, s.Backlog, s.LastSuccessTime, s.LastFailureTime = 0, 0, nil, nil
}

// endpointBecame is the Event for a URL that is Ready from now on.
func endpointBecame(before string, ready metav1.Condition) occurrence {
	switch {
	case ready.Reason == v1beta1.ReasonSuspended:
		return occurrence{normal, "Suspended", ready.Message}
	case before == v1beta1.ReasonSwitchedOff:
		return occurrence{normal, "TurnedOn", "The URL was turned on. Deliveries that were skipped can be recovered."}
	case before == v1beta1.ReasonSuspended:
		return occurrence{normal, "Resumed", "Deliveries go on. Those that were skipped can be recovered."}
	}
	return occurrence{normal, "Registered", ready.Message}
}
