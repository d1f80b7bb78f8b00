package operator_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// What Kubernetes does not let the operator do is shown on the resource, in Kubernetes' words, and ends by
// itself.
func TestRefusalsOfKubernetesAreShown(t *testing.T) {
	w := theWorld(t)
	for _, c := range []struct {
		namespace string
		begin     func(*testing.T) (end func())
		says      string
	}{
		{"quota", w.noSecretsByQuota, "exceeded quota: none"},
		{"admission", w.noSecretsByPolicy, "nobody makes Secrets here"},
		{"rights", w.noSecretsByRights, `cannot create resource "secrets"`},
	} {
		t.Run(c.namespace, func(t *testing.T) {
			w.tenant(t, c.namespace)
			end := c.begin(t)
			e := endpoint(c.namespace, "results")
			w.create(t, e)
			ready := awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonReconcileError)
			check.Contains(t, "the message", ready.Message, c.says, "")
			check.True(t, "it is not Stalled", conditionOf(e, v1beta1.ConditionStalled) == nil, "%s: it is tried again", c.namespace)
			w.awaitEvent(t, e, corev1.EventTypeWarning, v1beta1.ReasonReconcileError)
			end()
			w.awaitRegistered(t, e)
		})
	}
}

func (w *world) noSecretsByQuota(t *testing.T) (end func()) {
	t.Helper()
	w.run(t, "create", "quota", "none", "--namespace=quota", "--hard=secrets=0")
	w.run(t, "wait", "--namespace=quota", "--for=jsonpath={.status.hard.secrets}=0", "--timeout=60s", "resourcequota/none")
	w.awaitRefusal(t, "quota")
	return func() { w.run(t, "delete", "quota", "none", "--namespace=quota") }
}

func (w *world) noSecretsByPolicy(t *testing.T) (end func()) {
	t.Helper()
	named := metav1.ObjectMeta{Name: "no-secrets"}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: named, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
		}}}},
		Validations: []admissionv1.Validation{{Expression: "false", Message: "nobody makes Secrets here"}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: named, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: "no-secrets", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "admission"}}},
	}}
	w.create(t, policy, binding)
	w.awaitRefusal(t, "admission")
	return func() {
		for _, o := range []client.Object{binding, policy} {
			if err := w.client.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (w *world) noSecretsByRights(t *testing.T) (end func()) {
	t.Helper()
	restore := func(ctx context.Context) {
		if _, err := w.cluster.Kubectl(ctx, "apply", "-k", "../../config/cluster-wide"); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { restore(context.WithoutCancel(t.Context())) })
	var role rbacv1.ClusterRole
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "registrar-operator-namespaced"}, &role); err != nil {
		t.Fatal(err)
	}
	change(t, w, &role, func(r *rbacv1.ClusterRole) {
		for i := range r.Rules {
			if slices.Contains(r.Rules[i].Resources, "secrets") {
				r.Rules[i].Verbs = slices.DeleteFunc(r.Rules[i].Verbs, func(verb string) bool { return verb == "create" })
			}
		}
	})
	w.until(t, "the operator may not create Secrets", func() bool {
		out, _ := w.cluster.Kubectl(t.Context(), "auth", "can-i", "create", "secrets", "--namespace=rights", "--as="+operatorAccount) // an error says no
		return strings.HasPrefix(out, "no")
	})
	return func() { restore(t.Context()) }
}

// awaitRefusal waits until the API server refuses a Secret in the namespace.
func (w *world) awaitRefusal(t *testing.T, namespace string) {
	t.Helper()
	w.until(t, "a Secret is refused", func() bool {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tried"}}
		return w.client.Create(t.Context(), secret, client.DryRunAll) != nil
	})
}

// until asks until it is so.
func (w *world) until(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); !so(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s", what, limit)
		}
	}
}

// kubectl explain has a sentence for every field of ours.
func TestEveryFieldIsDescribed(t *testing.T) {
	w := theWorld(t)
	fields := 0
	var walk func(path string, s schemaProps)
	walk = func(path string, s schemaProps) {
		for name, property := range s.Properties {
			fields++
			if name != "metadata" { // Kubernetes' own
				check.True(t, "there is a description", property.Description != "", "%s.%s", path, name)
			}
			walk(path+"."+name, property)
		}
		if s.Items != nil {
			walk(path+"[]", *s.Items)
		}
	}
	for _, name := range []string{"apikeys", "organizations", "rostersources", "webhookendpoints", "webhookreplays"} {
		var definition struct {
			Spec struct {
				Versions []struct {
					Name   string
					Schema struct{ OpenAPIV3Schema schemaProps }
				}
			}
		}
		if err := json.Unmarshal([]byte(w.run(t, "get", "crd", name+".registrar.dev", "--output=json")), &definition); err != nil {
			t.Fatal(err)
		}
		for _, version := range definition.Spec.Versions {
			walk(name+"/"+version.Name, version.Schema.OpenAPIV3Schema)
		}
	}
	if fields < 60 {
		t.Errorf("%d fields", fields)
	}
}

type schemaProps struct {
	Description string
	Properties  map[string]schemaProps
	Items       *schemaProps
}
