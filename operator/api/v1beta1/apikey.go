package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// APIKeyFinalizer keeps a resource until its keys are revoked or left to people.
const APIKeyFinalizer = "registrar.dev/api-key" //nolint:gosec // a name

// AnnotationRotate asks for a new key. It acts once for a value: another one, such as the time, asks again.
const AnnotationRotate = "registrar.dev/rotate"

// APIKeySecretKey is the key of the Secret that holds the text.
const APIKeySecretKey = "key"

// KeyAccess is what an API key may do.
//
// +kubebuilder:validation:Enum=full;read_only
type KeyAccess string

// KeyScope is a part of the partner API that an API key may use.
//
// +kubebuilder:validation:Enum=provision;roster;"students:read";"catalog:read";assignments;"assignments:read";"results:read";"reports:read";"events:read";"explain:read";webhooks;"webhooks:read"
type KeyScope string

// ApiKeySpec is what should be true of an API key.
//
// +kubebuilder:validation:XValidation:rule="has(self.access) != (has(self.scopes) && self.scopes.size() > 0)",message="access: say access or scopes, one of the two"
// +kubebuilder:validation:XValidation:rule="!has(self.rotateEvery) || duration(self.overlap) < duration(self.rotateEvery)",message="overlap: has to be shorter than rotateEvery"
//
//nolint:revive // the name of the kind
type ApiKeySpec struct {
	// className says which operator manages the resource: the one with this class, or, when it is empty, the one without a
	// class. It cannot be changed later.
	//
	// +optional
	// +default=""
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="className: cannot be changed; delete this resource and create another"
	ClassName string `json:"className,omitempty"`

	// organization is the slug of the organization whose data the key opens. The namespace must be one that the
	// Organization resource allows or, where none says, carry the slug in the label registrar.dev/organization.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="organization: use the organization's slug, lower-case letters, digits and hyphens"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="organization: a key stays with its organization; delete this resource and create another"
	Organization string `json:"organization,omitempty"`

	// access is what the key may do: full, or read_only for lists and results alone. Leave it out where scopes say more.
	//
	// +optional
	Access KeyAccess `json:"access,omitempty"`

	// scopes are the parts of the API that the key may use, instead of access.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=12
	Scopes []KeyScope `json:"scopes,omitempty"`

	// networks are the addresses and networks that the key works from, such as 203.0.113.0/28; none: from everywhere.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="isIP(self) || isCIDR(self)",message="networks: write an address or a network such as 203.0.113.0/28"
	Networks []string `json:"networks,omitempty"`

	// sandbox says that the key is for the organization's sandbox, and for nothing else.
	//
	// +optional
	Sandbox bool `json:"sandbox,omitempty"`

	// secretName is the name of the Secret that the operator makes, with the key's text under "key". Without it, the
	// Secret is called <name>-api-key. It cannot be changed later.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="secretName: not the name of a Secret"
	SecretName string `json:"secretName,omitempty"`

	// rotateEvery is how long a key is used until another takes its place, an hour at least, such as 720h. Without it,
	// a key is replaced only on request.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+[hms])+$') && duration(self) >= duration('1h') && duration(self) <= duration('87600h')",message="rotateEvery: use a duration from 1h to 87600h, such as 720h"
	RotateEvery string `json:"rotateEvery,omitempty"`

	// overlap is how long a key that was replaced still works, so that programs can read the new one. With 0s it is
	// revoked at once.
	//
	// +optional
	// +default="24h"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+[hms])+$') && duration(self) >= duration('0s') && duration(self) <= duration('8760h')",message="overlap: use a duration from 0s to 8760h, such as 24h"
	Overlap string `json:"overlap,omitempty"`

	// deletionPolicy says what becomes of the key when this resource is deleted. Delete revokes it. Retain leaves it,
	// with its Secret, to people.
	//
	// +optional
	// +default="Delete"
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// The reasons of an ApiKey's conditions, beside those that all kinds have. They are stable.
const (
	ReasonIssued          = "Issued"          // the Secret has a key that works
	ReasonSandboxNotFound = "SandboxNotFound" // the organization has no sandbox
)

// ApiKeyStatus is what the operator last saw.
//
//nolint:revive // the name of the kind
type ApiKeyStatus struct {
	// conditions say whether the Secret has a key that works and is as spec says (Ready) and, while it
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

	// organizationID is the organization's id in Registrar.
	//
	// +optional
	OrganizationID int64 `json:"organizationID,omitempty"`

	// keyID is the key's id in Registrar, as the platform API shows it.
	//
	// +optional
	KeyID int64 `json:"keyID,omitempty"`

	// prefix is what the key's text begins with, as the console shows it.
	//
	// +optional
	Prefix string `json:"prefix,omitempty"`

	// secretName is the name of the Secret that has the key.
	//
	// +optional
	SecretName string `json:"secretName,omitempty"`

	// createdAt is when the key was made.
	//
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`

	// rotatesAt is when another key takes its place; absent without rotateEvery.
	//
	// +optional
	RotatesAt *metav1.Time `json:"rotatesAt,omitempty"`

	// lastUsedOn is the last day, in the time zone of the platform, on which the key was used; absent if it never was.
	// Refreshed when something changes and slowly otherwise.
	//
	// +optional
	LastUsedOn string `json:"lastUsedOn,omitempty"`

	// previousKeys are those that were replaced and still work, the newest first.
	//
	// +optional
	// +listType=atomic
	PreviousKeys []PreviousKey `json:"previousKeys,omitempty"`

	// handled are the tokens of the annotations that were acted on last.
	//
	// +optional
	Handled HandledKeyTokens `json:"handled,omitzero"`
}

// PreviousKey is a key that was replaced and still works.
type PreviousKey struct {
	// prefix is what its text begins with.
	//
	// +required
	Prefix string `json:"prefix"`

	// endsAt is when it stops working.
	//
	// +required
	EndsAt metav1.Time `json:"endsAt"`

	// lastUsedOn is the last day on which it was used, as of the key itself.
	//
	// +optional
	LastUsedOn string `json:"lastUsedOn,omitempty"`
}

// HandledKeyTokens are the values of an ApiKey's annotations that were acted on last.
type HandledKeyTokens struct {
	// rotate is that of registrar.dev/rotate.
	//
	// +optional
	Rotate string `json:"rotate,omitempty"`
}

// ApiKey is an API key of an organization, whose text the operator keeps in a Secret.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=apikeys,shortName=rkey,categories=registrar
// +kubebuilder:selectablefield:JSONPath=`.spec.organization`
// +kubebuilder:printcolumn:name="Organization",type=string,JSONPath=`.spec.organization`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Rotates",type=date,JSONPath=`.status.rotatesAt`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Prefix",type=string,JSONPath=`.status.prefix`,priority=1
// +kubebuilder:printcolumn:name="Last used",type=string,JSONPath=`.status.lastUsedOn`,priority=1
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 130",message="metadata.name: at most 130 characters, because the key is named after it"
// +kubebuilder:validation:XValidation:rule="has(self.spec.secretName) == has(oldSelf.spec.secretName) && (!has(self.spec.secretName) || self.spec.secretName == oldSelf.spec.secretName)",message="secretName: cannot be changed; delete this resource and create another"
//
//nolint:revive // the name of the kind
type ApiKey struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every resource.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what should be true of the key.
	//
	// +required
	Spec ApiKeySpec `json:"spec,omitzero"`

	// status is what the operator last saw.
	//
	// +optional
	Status ApiKeyStatus `json:"status,omitzero"`
}

// Observed gives what the status of every kind has: the conditions and the generation that they speak of.
func (k *ApiKey) Observed() (conditions *[]metav1.Condition, generation *int64) {
	return &k.Status.Conditions, &k.Status.ObservedGeneration
}

// ApiKeyList is what a list request answers.
//
// +kubebuilder:object:root=true
//
//nolint:revive // the name of the kind
type ApiKeyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ApiKey `json:"items"`
}
