package operator_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// adopting is a resource that takes over the URL.
func adopting(namespace, name, url string) *v1beta1.WebhookEndpoint {
	e := endpoint(namespace, name)
	e.Spec.URL, e.Spec.Adopt = url, true
	return e
}

// same holds that the resource has the URL as it was: its id, what waits for it, and its secret, which is in the Secret.
func (w *world) same(t *testing.T, e *v1beta1.WebhookEndpoint, was webhook.Endpoint, secret string) {
	t.Helper()
	w.awaitRegistered(t, e)
	stored := w.stored(t, e)
	check.Equal(t, "the URL's id", stored.ID, was.ID, "of %s", e.Name)
	check.Equal(t, "the secret's version", stored.SecretVersion, was.SecretVersion, "of %s", e.Name)
	check.Equal(t, "the Secret", w.secret(t, e.Namespace, e.Name+"-signing-secret", "secret"), secret, "of %s", e.Name)
	check.Slices(t, "what signs", w.signing(t, e), []string{secret}, "for %s", e.Name)
	backlogs, err := w.webhooks.Backlogs(t.Context(), stored.ID)
	check.NoError(check.Now(t), err, "the backlog")
	check.Equal(t, "deliveries that wait", backlogs[stored.ID], 1, "for %s", e.Name)
}

// free holds that the URL is still there, and people manage it.
func (w *world) free(t *testing.T, was webhook.Endpoint) {
	t.Helper()
	left, err := w.webhooks.Find(t.Context(), was.Organization, was.ID)
	check.NoError(check.Now(t), err, "the URL")
	check.Equal(t, "its manager", left.ManagedBy, "", "%+v", left)
	check.True(t, "it is on", left.SwitchedOn, "%+v", left)
}

// A URL keeps its id, its backlog and its secret whoever manages it: people, a resource, and the same resource by another name.
func TestAURLChangesHandsAsItIs(t *testing.T) {
	w := theWorld(t)
	o := w.tenant(t, "hands")
	url := "https://hooks.example.com/hands"
	made, secret, err := w.webhooks.Add(t.Context(), audit.Platform, o.ID, webhook.Settings{URL: &url}, time.Now())
	check.NoError(check.Now(t), err, "a URL of people")
	_, err = w.webhooks.SendTest(t.Context(), audit.Platform, o.ID, made.ID, time.Now()) // no sender runs here
	check.NoError(check.Now(t), err, "a delivery that waits")

	first := adopting("hands", "first", url)
	first.Spec.Adopt, first.Spec.DeletionPolicy = false, v1beta1.Retain
	w.create(t, first)
	c := awaitReason(t, w, first, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonURLInUse)
	check.Contains(t, "the message", c.Message, "spec.adopt: true", "how to take it over")
	change(t, w, first, func(e *v1beta1.WebhookEndpoint) { e.Spec.Adopt = true })
	w.same(t, first, made, secret)
	w.awaitEvent(t, first, corev1.EventTypeNormal, "Adopted")

	second := adopting("hands", "second", url) // the first by another name
	w.create(t, second)
	c = awaitReason(t, w, second, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonURLInUse)
	check.Contains(t, "the message", c.Message, "kubernetes/test/hands/first", "who keeps it")
	check.NoError(check.Now(t), w.client.Delete(t.Context(), first), "deleting the first")
	w.awaitGone(t, first)
	w.same(t, second, made, secret)

	check.NoError(check.Now(t), w.client.Delete(t.Context(), second, client.PropagationPolicy(metav1.DeletePropagationOrphan)), "deleting the second alone")
	w.awaitGone(t, second)
	w.free(t, made)
	again := adopting("hands", "second", url) // which finds the Secret that was left
	w.create(t, again)
	w.same(t, again, made, secret)

	// An operator that was away sees of kubectl delete --cascade=orphan only that the Secret has no owner.
	var held corev1.Secret
	check.NoError(check.Now(t), w.client.Get(t.Context(), client.ObjectKey{Namespace: "hands", Name: "second-signing-secret"}, &held), "the Secret")
	change(t, w, &held, func(s *corev1.Secret) { s.OwnerReferences = nil })
	check.NoError(check.Now(t), w.client.Delete(t.Context(), again), "deleting")
	w.awaitGone(t, again)
	w.free(t, made)

	last := adopting("hands", "last", url)
	w.create(t, last)
	w.same(t, last, made, secret)
	check.NoError(check.Now(t), w.client.Delete(t.Context(), last), "deleting for good")
	w.awaitGone(t, last)
	_, err = w.webhooks.Find(t.Context(), o.ID, made.ID)
	check.Equal(t, "the kind of fault", fault.KindOf(err), fault.NotFound, "%v", err)
	entries, err := audit.List(t.Context(), w.webhooks.DB, o.ID, 0)
	check.NoError(check.Now(t), err, "the audit log")
	var log []string
	for _, e := range entries {
		log = append(log, e.Actor.Name+" "+e.Action)
	}
	for _, want := range []string{"kubernetes/test/hands/first took over webhook URL", "kubernetes/test/hands/first released webhook URL",
		"kubernetes/test/hands/last deleted webhook URL"} {
		check.Contains(t, "the audit log", strings.Join(log, "\n"), want, "")
	}
}
