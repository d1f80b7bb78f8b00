package operator_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// Operators of two classes serve the same namespaces, and neither touches what is the other's.
func TestTwoClassesInOneNamespace(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "classes")
	theirs, ours := endpoint("classes", "theirs"), endpoint("classes", "ours")
	theirs.Spec.ClassName = "another"
	w.create(t, theirs, ours)
	w.awaitRegistered(t, ours)
	check.NoError(check.Now(t), w.client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs), "")
	check.Equal(t, "finalizers and conditions of another class", len(theirs.Finalizers)+len(theirs.Status.Conditions), 0, "")

	const release = "registrar-another"
	w.release(t, release)
	w.begin(t, "another", "CLASS_NAME=another", "LEASE_NAMESPACE="+release, "LEASE_NAME="+release)
	w.awaitRegistered(t, theirs)
	w.run(t, "get", "lease", release, "--namespace="+release)
	before := w.stored(t, ours)

	// What one of them deletes, or is asked for, leaves the other's as it is.
	w.deleted(t, theirs)
	again := endpoint("classes", "again")
	again.Spec.ClassName = "another"
	w.create(t, again)
	w.awaitRegistered(t, again)
	check.Equal(t, "the URL of ours", w.stored(t, ours).ID, before.ID, "")
	change := again.DeepCopy()
	change.Spec.ClassName = ""
	err := w.client.Patch(t.Context(), change, client.MergeFrom(again))
	if check.True(t, "a class stays", err != nil, "") {
		check.Contains(t, "the refusal", err.Error(), "className: cannot be changed", "")
	}
	w.deleted(t, again)
	w.deleted(t, ours)
	var left v1beta1.WebhookEndpointList
	check.NoError(t, w.client.List(t.Context(), &left, client.InNamespace("classes")), "")
	check.Equal(t, "resources that are left", len(left.Items), 0, "")
}

// release makes the namespace of another release, where the replicas of its operator choose their leader.
func (w *world) release(t *testing.T, name string) {
	t.Helper()
	w.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "lease", Namespace: name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: operatorAccount}}})
}
