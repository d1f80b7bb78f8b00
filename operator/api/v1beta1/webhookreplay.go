package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReplayFinalizer keeps a resource until what it has begun has ended.
const ReplayFinalizer = "registrar.dev/webhook-replay"

// WebhookReplaySpec says what is sent again. It cannot be changed.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec: a replay happens once and cannot be changed; create another"
// +kubebuilder:validation:XValidation:rule="has(self.endpoint) != has(self.organization)",message="endpoint: say endpoint or organization, one of the two"
// +kubebuilder:validation:XValidation:rule="!has(self.to) || self.from < self.to",message="to: has to be after from"
type WebhookReplaySpec struct {
	// className says which operator manages the resource: the one with this class, or, when it is empty, the one without a
	// class. It cannot be changed later.
	//
	// +optional
	// +default=""
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="className: cannot be changed; delete this resource and create another"
	ClassName string `json:"className,omitempty"`

	// endpoint is the name of the WebhookEndpoint in the same namespace to whose URL the events are sent again.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Endpoint string `json:"endpoint,omitempty"`

	// organization is the slug of the organization to all of whose webhook URLs the events are sent again, but for those
	// that are switched off. The namespace must be one that may register its URLs.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="organization: use the organization's slug, lower-case letters, digits and hyphens"
	Organization string `json:"organization,omitempty"`

	// from is the time from which on undelivered events are sent again.
	//
	// +required
	From metav1.Time `json:"from"`

	// to is the time before which they were recorded; without it, that at which the replay begins.
	//
	// +optional
	To *metav1.Time `json:"to,omitempty"`

	// events are those that are sent again; none means all.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=9
	Events []EventType `json:"events,omitempty"`
}

// The conditions of a WebhookReplay, beside Ready and Stalled. One of them is True once it has ended, and stays so.
const (
	ConditionComplete = "Complete" // all undelivered events are due again
	ConditionFailed   = "Failed"   // it was stopped before that
)

// The reasons of a WebhookReplay's conditions, beside those that all kinds have. They are stable.
const (
	ReasonCompleted        = "Completed"        // all undelivered events are due again
	ReasonNotStarted       = "NotStarted"       // Ready says what it waits for
	ReasonReplaying        = "Replaying"        // they become so, the oldest first
	ReasonStopped          = "Stopped"          // the URL was switched off or removed meanwhile
	ReasonEndpointNotFound = "EndpointNotFound" // the WebhookEndpoint is not there, or has no URL yet
	ReasonURLSwitchedOff   = "URLSwitchedOff"   // the URL has to be turned on first
	ReasonReplayRunning    = "ReplayRunning"    // the URL has another replay, which has to end first
)

// WebhookReplayStatus is what the operator last saw.
type WebhookReplayStatus struct {
	// conditions say whether the replay has ended well (Complete, Ready) or not (Failed) and, while it
	// is not Ready, that it will be (Reconciling) or that somebody has to act (Stalled).
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that the conditions speak of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// startTime is when it has begun for all URLs.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when it has ended.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// total counts the undelivered events that were found, for each URL.
	//
	// +optional
	Total int64 `json:"total,omitempty"`

	// replayed counts those that were made due again. They are sent one after the other, and tried as often as others.
	//
	// +optional
	Replayed int64 `json:"replayed,omitempty"`

	// urls are those to which events are sent again.
	//
	// +optional
	// +listType=map
	// +listMapKey=endpointID
	URLs []ReplayedURL `json:"urls,omitempty"`
}

// ReplayedURL is how far a replay is with one URL.
type ReplayedURL struct {
	// endpointID is the URL's id in Registrar.
	//
	// +required
	EndpointID int64 `json:"endpointID"`

	// state is running, done or stopped.
	//
	// +required
	State string `json:"state"`

	// total counts its undelivered events.
	//
	// +optional
	Total int64 `json:"total,omitempty"`

	// replayed counts those that were made due again.
	//
	// +optional
	Replayed int64 `json:"replayed,omitempty"`
}

// WebhookReplay sends events again that did not reach a webhook URL, once: those that were declined, whose tries are
// exhausted, or that were skipped while the URL was off.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=whr,categories=registrar
// +kubebuilder:selectablefield:JSONPath=`.spec.endpoint`
// +kubebuilder:selectablefield:JSONPath=`.spec.organization`
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.spec.endpoint`
// +kubebuilder:printcolumn:name="Organization",type=string,JSONPath=`.spec.organization`
// +kubebuilder:printcolumn:name="Complete",type=string,JSONPath=`.status.conditions[?(@.type=="Complete")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Replayed",type=integer,JSONPath=`.status.replayed`
// +kubebuilder:printcolumn:name="Total",type=integer,JSONPath=`.status.total`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
type WebhookReplay struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every resource.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is sent again.
	//
	// +required
	Spec WebhookReplaySpec `json:"spec,omitzero"`

	// status is what the operator last saw.
	//
	// +optional
	Status WebhookReplayStatus `json:"status,omitzero"`
}

// Observed gives what the status of every kind has: the conditions and the generation that they speak of.
func (r *WebhookReplay) Observed() (conditions *[]metav1.Condition, generation *int64) {
	return &r.Status.Conditions, &r.Status.ObservedGeneration
}

// WebhookReplayList is what a list request answers.
//
// +kubebuilder:object:root=true
type WebhookReplayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WebhookReplay `json:"items"`
}
