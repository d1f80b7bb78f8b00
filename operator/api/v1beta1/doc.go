// Package v1beta1 is the Kubernetes API of Registrar: Organization, a tenant with its settings, its staff
// and its sandbox, ApiKey, a key of one, and WebhookReplay, which sends events again, as resources.
//
// +kubebuilder:object:generate=true
// +groupName=registrar.dev
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

//go:generate go tool -modfile=../../../hack/tools/go.mod controller-gen object crd paths=. output:crd:artifacts:config=../../../config/crd/bases
//go:generate cp ../../../config/crd/bases/registrar.dev_organizations.yaml ../../../config/crd/bases/registrar.dev_apikeys.yaml ../../../config/crd/bases/registrar.dev_webhookreplays.yaml ../../../charts/registrar/files/crds/

// GroupVersion is the group and version of the resources here.
var GroupVersion = schema.GroupVersion{Group: "registrar.dev", Version: "v1beta1"}

// AddToScheme makes a scheme know the resources.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Organization{}, &OrganizationList{}, &ApiKey{}, &ApiKeyList{},
		&WebhookReplay{}, &WebhookReplayList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
