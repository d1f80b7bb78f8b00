// Package v1alpha1 is the Kubernetes API of Registrar: WebhookEndpoint, a receiver URL
// with its events, zone and signing secret, kept as a resource.
//
// +kubebuilder:object:generate=true
// +groupName=registrar.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

//go:generate go tool -modfile=../../../hack/tools/go.mod controller-gen object crd paths=. output:crd:artifacts:config=../../../config/crd/bases
//go:generate cp ../../../config/crd/bases/registrar.dev_webhookendpoints.yaml ../../../charts/registrar/files/crds/

// GroupVersion is the group and version of the resources here.
var GroupVersion = schema.GroupVersion{Group: "registrar.dev", Version: "v1alpha1"}

// AddToScheme makes a scheme know the resources.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &WebhookEndpoint{}, &WebhookEndpointList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
