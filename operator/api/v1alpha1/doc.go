// Package v1alpha1 is the first version of WebhookEndpoint, for clients that were written for it. What is new, and the other
// kinds, are in v1beta1; the API server serves a resource in both versions, and keeps it in v1beta1.
//
// +kubebuilder:object:generate=true
// +groupName=registrar.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the resources here.
var GroupVersion = schema.GroupVersion{Group: "registrar.dev", Version: "v1alpha1"}

// AddToScheme makes a scheme know the resources.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &WebhookEndpoint{}, &WebhookEndpointList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
