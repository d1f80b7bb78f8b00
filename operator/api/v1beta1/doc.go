// Package v1beta1 is the Kubernetes API of Registrar: Organization, a tenant with its settings, its staff
// and its sandbox, ApiKey, a key of one, WebhookEndpoint, a receiver URL with its events, zone and signing secret, RosterSource, a system that sends its rosters, and WebhookReplay, which sends events
// again, as resources.
//
// +kubebuilder:object:generate=true
// +groupName=registrar.dev
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the resources here.
var GroupVersion = schema.GroupVersion{Group: "registrar.dev", Version: "v1beta1"}

// AddToScheme makes a scheme know the resources.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Organization{}, &OrganizationList{}, &ApiKey{}, &ApiKeyList{},
		&WebhookEndpoint{}, &WebhookEndpointList{}, &WebhookReplay{}, &WebhookReplayList{}, &RosterSource{}, &RosterSourceList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
