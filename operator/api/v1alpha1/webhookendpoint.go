package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// The fields are those of v1beta1.
type (
	WebhookEndpointSpec   = v1beta1.WebhookEndpointSpec
	WebhookEndpointStatus = v1beta1.WebhookEndpointStatus
)

// WebhookEndpoint is a receiver URL of an organization: Registrar posts signed events to
// it. Deleting the resource removes the URL, unless spec.deletionPolicy says otherwise.
//
// +kubebuilder:object:root=true
// +kubebuilder:deprecatedversion:warning="registrar.dev/v1alpha1 WebhookEndpoint is deprecated; use registrar.dev/v1beta1, which has the same fields"
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

// WebhookEndpointList is what a list request answers.
//
// +kubebuilder:object:root=true
type WebhookEndpointList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WebhookEndpoint `json:"items"`
}
