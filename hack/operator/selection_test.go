package operator_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

const (
	labelManaged  = "registrar.dev/managed"
	namespaceRole = "registrar-operator-namespaced"
)

// selecting replaces the operator by one of config/selector, with its rights and its environment.
func (w *world) selecting(t *testing.T, name string, extra ...string) *process {
	t.Helper()
	if err := w.operator.Stop(); err != nil {
		t.Fatal(err)
	}
	w.run(t, "delete", "-f", "../../config/cluster-wide/role_binding.yaml")
	w.run(t, "apply", "-k", "../../config/selector")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, args := range [][]string{
			{"delete", "-f", "../../config/selector/role_binding.yaml", "-f", "../../config/selector/admission_policy.yaml"},
			{"apply", "-k", "../../config/cluster-wide"},
		} {
			if _, err := w.cluster.Kubectl(ctx, args...); err != nil {
				t.Error(err)
			}
		}
		if err := stack.StartReady(ctx, w.operator.Program, w.operator.private); err != nil {
			t.Error(err)
		}
	})
	environment := strings.Split(strings.TrimSpace(w.run(t, "get", "deployment/registrar-operator", "--namespace=registrar-system",
		`--output=jsonpath={range .spec.template.spec.containers[0].env[?(@.value)]}{.name}={.value}{"\n"}{end}`)), "\n")
	var chosen []string
	for _, e := range environment {
		if strings.HasPrefix(e, "WATCH_") || strings.HasPrefix(e, "NAMESPACE_") {
			chosen = append(chosen, e)
		}
	}
	return w.begin(t, name, append(append(chosen, "ORGANIZATIONS=false"), extra...)...)
}

// label sets a label of a namespace, and takes it away with "".
func (w *world) label(t *testing.T, namespace, name, value string) {
	t.Helper()
	var ns corev1.Namespace
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: namespace}, &ns); err != nil {
		t.Fatal(err)
	}
	change(t, w, &ns, func(ns *corev1.Namespace) {
		if ns.Labels[name] = value; value == "" {
			delete(ns.Labels, name)
		}
	})
}

// bound says whether the namespace has the operator's RoleBinding.
func (w *world) bound(t *testing.T, namespace string) bool {
	t.Helper()
	err := w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: namespaceRole}, &rbacv1.RoleBinding{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// can is what kubectl auth can-i says of the operator.
func (w *world) can(t *testing.T, namespace string, words ...string) string {
	t.Helper()
	out, _ := w.cluster.Kubectl(t.Context(), append([]string{"auth", "can-i", "--namespace=" + namespace, "--as=" + operatorAccount}, words...)...) // an error says no
	return strings.Fields(out)[0]
}

// With config/selector, namespaces join and leave by a label while the operator runs. It reads Secrets in those alone.
func TestNamespacesJoinAndLeaveByTheirLabels(t *testing.T) {
	w := theWorld(t)
	for _, name := range []string{"joins", "stranger"} {
		w.tenant(t, name)
	}
	w.selecting(t, "selecting")
	e, k, stranger := endpoint("joins", "results"), apiKey("joins", "reports"), endpoint("stranger", "results")
	w.create(t, e, k, stranger)
	check.Equal(t, "whether it may list Secrets before", w.can(t, "joins", "list", "secrets"), "no", "")

	w.label(t, "joins", labelManaged, "true")
	w.awaitRegistered(t, e)
	awaitReady(t, w, k, metav1.ConditionTrue, v1beta1.ReasonIssued)
	check.Equal(t, "whether it may list Secrets", w.can(t, "joins", "list", "secrets"), "yes", "")
	for _, namespace := range []string{"stranger", "kube-system", "registrar-system"} {
		check.Equal(t, "whether it may list Secrets", w.can(t, namespace, "list", "secrets"), "no", "in %s", namespace)
	}
	// A change of a Secret is seen, as everywhere.
	before := w.secret(t, "joins", "results-signing-secret", "secret")
	if err := w.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "joins", Name: "results-signing-secret"}}); err != nil {
		t.Fatal(err)
	}
	w.until(t, "a new signing secret", func() bool {
		var s corev1.Secret
		err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "joins", Name: "results-signing-secret"}, &s)
		return err == nil && string(s.Data["secret"]) != before && w.signs(t, e, string(s.Data["secret"]))
	})
	// So is the loss of the RoleBinding, which it makes again.
	w.run(t, "delete", "rolebinding", namespaceRole, "--namespace=joins")
	w.until(t, "the RoleBinding again", func() bool { return w.bound(t, "joins") })

	w.label(t, "joins", labelManaged, "")
	left := awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonNamespaceNotServed)
	check.Contains(t, "the message", left.Message, labelManaged, "")
	check.True(t, "it is not Stalled", conditionOf(e, v1beta1.ConditionStalled) == nil, "")
	awaitReady(t, w, k, metav1.ConditionFalse, v1beta1.ReasonNamespaceNotServed)
	w.until(t, "the rights to be given back", func() bool { return !w.bound(t, "joins") && w.can(t, "joins", "list", "secrets") == "no" })
	check.True(t, "the URL is still on", w.stored(t, e).SwitchedOn, "deliveries go on")

	// Who may not have the URL any more loses it also there.
	w.label(t, "joins", v1beta1.LabelOrganization, "")
	awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonNamespaceNotAllowed)
	check.True(t, "the URL is off", !w.stored(t, e).SwitchedOn, "the namespace has lost its organization")
	w.label(t, "joins", v1beta1.LabelOrganization, "joins")
	awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonNamespaceNotServed)

	// Back again, it follows spec.
	w.label(t, "joins", labelManaged, "true")
	w.awaitRegistered(t, e)
	check.True(t, "the URL is on", w.stored(t, e).SwitchedOn, "")

	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(stranger), stranger); err != nil {
		t.Fatal(err)
	}
	check.Equal(t, "number of finalizers and conditions", len(stranger.Finalizers)+len(stranger.Status.Conditions), 0, "a resource of another namespace was touched")
}

// What is deleted goes with what it stands for, in a namespace that has left and with a namespace that goes.
func TestNamespacesThatLeaveHoldNothing(t *testing.T) {
	w := theWorld(t)
	for _, name := range []string{"leaves", "goes"} {
		w.tenant(t, name)
		w.label(t, name, labelManaged, "true")
	}
	w.selecting(t, "leaving")
	e, going := endpoint("leaves", "results"), endpoint("goes", "results")
	k := apiKey("goes", "reports")
	k.Spec.DeletionPolicy = v1beta1.Retain
	w.create(t, e, going, k)
	w.awaitRegistered(t, e)
	w.awaitRegistered(t, going)
	awaitReady(t, w, k, metav1.ConditionTrue, v1beta1.ReasonIssued)

	w.label(t, "leaves", labelManaged, "")
	awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonNamespaceNotServed)
	if err := w.client.Delete(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	w.awaitGone(t, e)
	check.True(t, "the URL is removed", w.awaitRemoved(t, "kubernetes/test/leaves/results"), "")

	w.run(t, "delete", "namespace", "goes", "--wait=false")
	w.awaitGone(t, going)
	w.awaitGone(t, k)
	check.True(t, "the URL is removed", w.awaitRemoved(t, "kubernetes/test/goes/results"), "")
}

// The operator's right to make RoleBindings is one to make its own, where labels select it.
func TestTheOperatorBindsItselfAlone(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "unselected")
	w.tenant(t, "chosen")
	w.label(t, "chosen", labelManaged, "true")
	w.selecting(t, "binding")
	w.until(t, "the RoleBinding", func() bool { return w.bound(t, "chosen") })
	kubeconfig, err := w.cluster.User(operatorAccount, "system:serviceaccounts", "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	operator, err := client.New(config, client.Options{Scheme: w.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	own := rbacv1.Subject{Kind: "ServiceAccount", Namespace: "registrar-system", Name: "registrar-operator"}
	for name, c := range map[string]struct {
		namespace, name, role string
		subject               rbacv1.Subject
		says                  string
	}{
		"where labels do not select it": {"unselected", namespaceRole, namespaceRole, own, "the labels of the namespace do not select it"},
		"where Secrets of others are":   {"kube-system", namespaceRole, namespaceRole, own, "the labels of the namespace do not select it"},
		"to somebody else": {"chosen", namespaceRole, namespaceRole, rbacv1.Subject{Kind: "ServiceAccount", Namespace: "chosen", Name: "default"},
			"the operator binds registrar-operator-namespaced to itself"},
		"by another name": {"chosen", "more", namespaceRole, own, "the operator binds registrar-operator-namespaced to itself"},
		"another role":    {"chosen", namespaceRole, "admin", own, "forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			w.until(t, "the policy to be in force", func() bool {
				err := operator.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: c.name},
					RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: c.role}, Subjects: []rbacv1.Subject{c.subject}}, client.DryRunAll)
				return (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) && strings.Contains(err.Error(), c.says)
			})
		})
	}
	// A Secret of this type would be filled with a token, which the operator could read.
	err = operator.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "chosen", Name: "token",
		Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}}, Type: corev1.SecretTypeServiceAccountToken}, client.DryRunAll)
	if check.True(t, "the operator makes no token", apierrors.IsForbidden(err) || apierrors.IsInvalid(err), "%v", err) {
		check.Contains(t, "the refusal", err.Error(), "the operator makes Opaque Secrets, and no others", "")
	}
}

// Where others give the rights, a namespace says what is missing, and is served once it is there.
func TestOthersGiveTheRightsOfANamespace(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "granted")
	w.label(t, "granted", labelManaged, "true")
	w.selecting(t, "granted", "NAMESPACE_ROLE=")
	e := endpoint("granted", "results")
	w.create(t, e)
	c := awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonNamespaceNotServed)
	check.Contains(t, "the message", c.Message, `cannot list resource "secrets"`, "")
	check.True(t, "the operator has bound itself", !w.bound(t, "granted"), "others do that")
	w.run(t, "create", "rolebinding", "given", "--namespace=granted", "--clusterrole="+namespaceRole, "--serviceaccount=registrar-system:registrar-operator")
	w.awaitRegistered(t, e)
}

// An uninstall takes the RoleBindings that the operator has made with it.
func TestAnUninstallGivesTheRightsBack(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "ends")
	w.label(t, "ends", labelManaged, "true")
	operator := w.selecting(t, "ends")
	e := endpoint("ends", "results")
	w.create(t, e)
	w.awaitRegistered(t, e)
	if err := operator.Stop(); err != nil {
		t.Fatal(err)
	}
	out := w.uninstall(t, "uninstall-ends", []string{"WATCH_NAMESPACE_SELECTOR=" + labelManaged, "NAMESPACE_ROLE=" + namespaceRole})
	check.Contains(t, "what it says", out, "RoleBindings "+namespaceRole+" are deleted.", "")
	check.True(t, "the RoleBinding is gone", !w.bound(t, "ends"), "")
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil || len(e.Finalizers) != 0 {
		t.Errorf("the resource does not stay without a finalizer: %v %v", err, e.Finalizers)
	}
}
