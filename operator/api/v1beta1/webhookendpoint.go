package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EndpointFinalizer keeps a resource until its URL is gone from Registrar.
const EndpointFinalizer = "registrar.dev/webhook-endpoint"

// Annotations that ask for one action. Each acts once for a value: a new token, such as
// the time, asks again.
const (
	AnnotationRotateSecret = "registrar.dev/rotate-secret" //nolint:gosec // a name
	AnnotationTurnOn       = "registrar.dev/turn-on"
	AnnotationSendTest     = "registrar.dev/send-test"
)

// AnnotationReplaces is on a generated Secret that was made again because it had been deleted: the version of the signing
// secret that it replaces at once, without spec.rotation.overlap.
const AnnotationReplaces = "registrar.dev/replaces"

// DefaultSecretKey is the key of a generated Secret, and of a referenced one where the
// reference names none.
const DefaultSecretKey = "secret"

// WebhookEndpointSpec is what should be true of a receiver URL.
type WebhookEndpointSpec struct {
	// className says which operator manages the resource: the one with this class, or, when it is empty, the one without a
	// class. It cannot be changed later.
	//
	// +optional
	// +default=""
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="className: cannot be changed; delete this resource and create another"
	ClassName string `json:"className,omitempty"`

	// organization is the slug of the organization whose events the URL receives. The namespace
	// must be one that the Organization resource allows or, where none says, carry the slug in the
	// label registrar.dev/organization.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="organization: use the organization's slug, lower-case letters, digits and hyphens"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="organization: a URL stays with its organization; delete this resource and create another"
	Organization string `json:"organization,omitempty"`

	// url is the public https:// address that events are posted to.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2000
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getHostname() != ''",message="url: not an absolute URL; write one such as https://hooks.example.com/registrar"
	// +kubebuilder:validation:XValidation:rule="!isURL(self) || url(self).getScheme() == 'https'",message="url: only https:// addresses are accepted"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*@')",message="url: a user name or password in the URL is not accepted; check the request's signature instead"
	// +kubebuilder:validation:XValidation:rule="!self.contains('#')",message="url: a fragment (#...) never reaches the server; leave it out"
	// +kubebuilder:validation:XValidation:rule="!isURL(self) || url(self).getPort() == '' || (url(self).getPort().size() < 6 && (int(url(self).getPort()) == 443 || (int(url(self).getPort()) >= 1024 && int(url(self).getPort()) <= 65535)))",message="url: this port is not allowed; use 443 or one from 1024 to 65535"
	// +kubebuilder:validation:XValidation:rule="self.trim() == self",message="url: leave out the spaces around it"
	URL string `json:"url,omitempty"`

	// events are those that the URL receives; none means all.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=9
	Events []EventType `json:"events,omitempty"`

	// timeZone is the IANA zone that timestamps are written in, such as Asia/Kolkata.
	//
	// +optional
	// +default="UTC"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && self != 'Local'",message="timeZone: use the name of an IANA time zone, such as UTC or Asia/Kolkata"
	TimeZone string `json:"timeZone,omitempty"`

	// signingSecretRef names a Secret in the same namespace that holds the signing secret.
	// Without it the operator generates a Secret that it owns, <name>-signing-secret.
	//
	// +optional
	SigningSecretRef *SecretKeyRef `json:"signingSecretRef,omitempty"`

	// rotation says how a signing secret replaces another.
	//
	// +optional
	Rotation *Rotation `json:"rotation,omitempty"`

	// suspend stops deliveries to the URL while it is true. Events of that time are kept
	// as skipped and can be recovered.
	//
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// adopt takes over the URL if the organization has it already and no other resource keeps it, with its signing
	// secret, its log and what waits for it. Without it the resource waits until the URL is deleted elsewhere.
	//
	// +optional
	Adopt bool `json:"adopt,omitempty"`

	// deletionPolicy says what becomes of the URL when this resource is deleted. Delete removes it, and what waits for
	// it ends. Retain leaves it to the organization's staff, with its secret, its log and what waits.
	//
	// +optional
	// +default="Delete"
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// Rotation says how a signing secret replaces another.
type Rotation struct {
	// overlap is how long requests are signed with the secret before beside the new one, such as 24h, and how long answers
	// 401 and 403 are tried again. None: the one before ends at once.
	//
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,3}h)?([0-9]{1,5}m)?([0-9]{1,6}s)?$')",message="rotation.overlap: write hours, minutes and seconds, such as 24h or 1h30m"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,3}h)?([0-9]{1,5}m)?([0-9]{1,6}s)?$') || duration(self) <= duration('168h')",message="rotation.overlap: at most 168h, which is seven days"
	Overlap string `json:"overlap,omitempty"`
}

// SecretKeyRef names one key of a Secret in the same namespace.
type SecretKeyRef struct {
	// name is the Secret's.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="signingSecretRef.name: not the name of a Secret"
	Name string `json:"name,omitempty"`

	// key is the one whose value is the signing secret: 24 to 200 visible ASCII characters.
	//
	// +optional
	// +default="secret"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+$')",message="signingSecretRef.key: a Secret's keys are letters, digits, dots, hyphens and underscores"
	Key string `json:"key,omitempty"`
}

// ConditionSwitchedOn of a WebhookEndpoint is False after 50 failed attempts in a row, or while suspended.
const ConditionSwitchedOn = "SwitchedOn"

// The reasons of a WebhookEndpoint's conditions, beside those that all kinds have. They are stable.
const (
	ReasonRegistered      = "Registered"
	ReasonSuspended       = "Suspended"
	ReasonSwitchedOff     = "SwitchedOff"
	ReasonNotRegistered   = "NotRegistered"
	ReasonAddressRefused  = "AddressRefused"
	ReasonURLInUse        = "URLInUse"
	ReasonURLLimitReached = "URLLimitReached"
	ReasonSecretNotFound  = "SecretNotFound"
	ReasonSecretInvalid   = "SecretInvalid"
)

// WebhookEndpointStatus is what the operator last saw.
type WebhookEndpointStatus struct {
	// conditions say whether events reach the URL (Ready), whether deliveries are made (SwitchedOn) and,
	// while it is not Ready, that it will be (Reconciling) or that somebody has to act (Stalled).
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that the conditions speak of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// endpointID is the URL's id in Registrar, as the console and the platform API show it.
	//
	// +optional
	EndpointID int64 `json:"endpointID,omitempty"`

	// consecutiveFailures counts failed attempts since the last success; at 50 the URL is
	// switched off. Refreshed when something changes and slowly otherwise.
	//
	// +optional
	ConsecutiveFailures int32 `json:"consecutiveFailures,omitempty"`

	// switchedOffAt is when the URL was switched off; absent while it is on.
	//
	// +optional
	SwitchedOffAt *metav1.Time `json:"switchedOffAt,omitempty"`

	// switchedOffReason says why the URL is off, for people.
	//
	// +optional
	SwitchedOffReason string `json:"switchedOffReason,omitempty"`

	// lastSuccessTime is when a delivery was last accepted. Refreshed when something changes and
	// slowly otherwise, never once an attempt.
	//
	// +optional
	LastSuccessTime *metav1.Time `json:"lastSuccessTime,omitempty"`

	// lastFailureTime is when an attempt last failed. Refreshed as lastSuccessTime is.
	//
	// +optional
	LastFailureTime *metav1.Time `json:"lastFailureTime,omitempty"`

	// backlog counts the deliveries that wait. Refreshed as lastSuccessTime is.
	//
	// +optional
	Backlog int64 `json:"backlog,omitempty"`

	// secretRef names the Secret that holds the signing secret.
	//
	// +optional
	SecretRef *SecretKeyRef `json:"secretRef,omitempty"`

	// secretVersion counts the signing secrets that the URL has had.
	//
	// +optional
	SecretVersion int32 `json:"secretVersion,omitempty"`

	// previousSecretUntil is until when requests are signed with the secret before, too; absent while only one
	// signs.
	//
	// +optional
	PreviousSecretUntil *metav1.Time `json:"previousSecretUntil,omitempty"`

	// handled are the tokens of the annotations that were acted on last.
	//
	// +optional
	Handled HandledTokens `json:"handled,omitzero"`
}

// HandledTokens are the values of the annotations that were acted on last.
type HandledTokens struct {
	// rotateSecret is that of registrar.dev/rotate-secret.
	//
	// +optional
	RotateSecret string `json:"rotateSecret,omitempty"`

	// turnOn is that of registrar.dev/turn-on.
	//
	// +optional
	TurnOn string `json:"turnOn,omitempty"`

	// sendTest is that of registrar.dev/send-test.
	//
	// +optional
	SendTest string `json:"sendTest,omitempty"`
}

// WebhookEndpoint is a receiver URL of an organization: Registrar posts signed events to
// it. Deleting the resource removes the URL, unless spec.deletionPolicy says otherwise.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=whe,categories=registrar
// +kubebuilder:selectablefield:JSONPath=`.spec.organization`
// +kubebuilder:selectablefield:JSONPath=`.spec.url`
// +kubebuilder:printcolumn:name="Organization",type=string,JSONPath=`.spec.organization`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Backlog",type=integer,JSONPath=`.status.backlog`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.url`,priority=1
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 200",message="metadata.name: at most 200 characters, because the Secret is named after it"
type WebhookEndpoint struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every resource.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what should be true of the URL.
	//
	// +required
	Spec WebhookEndpointSpec `json:"spec,omitzero"`

	// status is what the operator last saw.
	//
	// +optional
	Status WebhookEndpointStatus `json:"status,omitzero"`
}

// Observed gives what the status of every kind has: the conditions and the generation that they speak of.
func (e *WebhookEndpoint) Observed() (conditions *[]metav1.Condition, generation *int64) {
	return &e.Status.Conditions, &e.Status.ObservedGeneration
}

// WebhookEndpointList is what a list request answers.
//
// +kubebuilder:object:root=true
type WebhookEndpointList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WebhookEndpoint `json:"items"`
}
