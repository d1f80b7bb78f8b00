package operator_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// tenant makes an organization and a namespace that may register its URLs, both of one name.
func (w *world) tenant(t *testing.T, name string) org.Organization {
	t.Helper()
	w.namespace(t, name, name)
	return w.organization(t, name)
}

func (w *world) organization(t *testing.T, slug string) org.Organization {
	t.Helper()
	o, _, err := org.Put(t.Context(), w.webhooks.DB, audit.Platform, slug, org.Patch{Name: &slug}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (w *world) namespace(t *testing.T, name, organization string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if organization != "" {
		ns.Labels = map[string]string{v1beta1.LabelOrganization: organization}
	}
	if err := w.client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
}

// endpoint is a resource that is not created yet, for the organization its namespace is named after.
func endpoint(namespace, name string) *v1beta1.WebhookEndpoint {
	return &v1beta1.WebhookEndpoint{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1beta1.WebhookEndpointSpec{Organization: namespace, URL: "https://hooks.example.com/" + namespace + "/" + name},
	}
}

func (w *world) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := w.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// change patches an object with what the function changes of it.
func change[T client.Object](t *testing.T, w *world, o T, how func(T)) {
	t.Helper()
	before := o.DeepCopyObject().(T)
	how(o)
	if err := w.client.Patch(t.Context(), o, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func annotate(t *testing.T, w *world, e *v1beta1.WebhookEndpoint, annotation, token string) {
	t.Helper()
	change(t, w, e, func(e *v1beta1.WebhookEndpoint) { metav1.SetMetaDataAnnotation(&e.ObjectMeta, annotation, token) })
}

// await watches until the object is as wanted, and leaves what was seen in it.
func await[T client.Object](t *testing.T, w *world, o T, what string, wanted func(T) bool) {
	t.Helper()
	list, least := w.listOf(t, o), o.GetResourceVersion()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	began := time.Now()
	reached := w.follow(ctx, list, func(c watch.Event) bool {
		seen, ok := c.Object.(T)
		if !ok {
			return false
		}
		if c.Type == watch.Deleted {
			seen.SetResourceVersion("") // gone
		}
		reflect.ValueOf(o).Elem().Set(reflect.ValueOf(seen).Elem())
		return !older(seen, least) && wanted(seen)
	}, client.InNamespace(o.GetNamespace()), client.MatchingFields{"metadata.name": o.GetName()})
	if reached {
		t.Logf("%s: %s after %s", o.GetName(), what, time.Since(began).Round(time.Millisecond))
		return
	}
	now, _ := o.DeepCopyObject().(T)
	check.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(o), now), "")
	t.Fatalf("%s/%s: not %s within %s: the watch showed\n%+v\nand it is\n%+v", o.GetNamespace(), o.GetName(), what, limit, o, now)
}

// older says whether an object is of before a version that was seen of it: a watch begins with what the API server remembers, which
// is at times not yet what it has just answered.
func older(o client.Object, version string) bool {
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), version)
	return err == nil && order < 0 // err: it was not created then, or is gone now
}

// follow hands on each change of a list's objects until one is enough; false: ctx has ended before. The API server ends a watch when
// it is restarted, or when the reader is late; a new one begins with all there is.
func (w *world) follow(ctx context.Context, list client.ObjectList, enough func(watch.Event) bool, of ...client.ListOption) bool {
	for ctx.Err() == nil {
		changes, err := w.client.Watch(ctx, list, of...)
		if err != nil {
			continue
		}
		for c := range changes.ResultChan() {
			if enough(c) {
				changes.Stop()
				return true
			}
		}
		changes.Stop()
	}
	return false
}

// listOf is an empty list of resources like this one.
func (w *world) listOf(t *testing.T, o client.Object) client.ObjectList {
	t.Helper()
	kind, err := w.client.GroupVersionKindFor(o)
	check.NoError(check.Now(t), err, "")
	kind.Kind += "List"
	list, err := w.client.Scheme().New(kind)
	check.NoError(check.Now(t), err, "")
	return list.(client.ObjectList)
}

// observed is a resource of ours.
type observed interface {
	client.Object
	Observed() (conditions *[]metav1.Condition, generation *int64)
}

// awaitReason waits for a condition's status and reason, for the current generation.
func awaitReason[T observed](t *testing.T, w *world, o T, kind string, status metav1.ConditionStatus, reason string) *metav1.Condition {
	t.Helper()
	await(t, w, o, fmt.Sprintf("%s=%s (%s)", kind, status, reason), func(o T) bool {
		c := conditionOf(o, kind)
		return c != nil && c.Status == status && c.Reason == reason && c.ObservedGeneration == o.GetGeneration()
	})
	return conditionOf(o, kind)
}

// awaitReady waits for what the condition Ready says.
func awaitReady[T observed](t *testing.T, w *world, o T, status metav1.ConditionStatus, reason string) *metav1.Condition {
	t.Helper()
	return awaitReason(t, w, o, v1beta1.ConditionReady, status, reason)
}

func (w *world) awaitRegistered(t *testing.T, e *v1beta1.WebhookEndpoint) {
	t.Helper()
	awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonRegistered)
}

func (w *world) awaitGone(t *testing.T, o client.Object) {
	t.Helper()
	gone, _ := o.DeepCopyObject().(client.Object)
	w.until(t, o.GetName()+" is gone", func() bool {
		err := w.client.Get(t.Context(), client.ObjectKeyFromObject(o), gone)
		return apierrors.IsNotFound(err)
	})
}

func conditionOf(o observed, kind string) *metav1.Condition {
	conditions, _ := o.Observed()
	return meta.FindStatusCondition(*conditions, kind)
}

// awaitEvent waits for an Event of the resource.
func (w *world) awaitEvent(t *testing.T, e *v1beta1.WebhookEndpoint, kind, reason string) eventsv1.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var found eventsv1.Event
	if !w.follow(ctx, &eventsv1.EventList{}, func(c watch.Event) bool {
		seen, ok := c.Object.(*eventsv1.Event)
		if !ok || seen.Regarding.Name != e.Name || seen.Type != kind || seen.Reason != reason {
			return false
		}
		found = *seen
		return true
	}, client.InNamespace(e.Namespace)) {
		t.Fatalf("%s/%s: no Event %s %s within %s", e.Namespace, e.Name, kind, reason, limit)
	}
	return found
}

// stored is the resource's URL as PostgreSQL has it.
func (w *world) stored(t *testing.T, e *v1beta1.WebhookEndpoint) webhook.Endpoint {
	t.Helper()
	got, err := w.webhooks.FindManaged(t.Context(), "kubernetes/test/"+e.Namespace+"/"+e.Name)
	if err != nil {
		t.Fatal(err)
	}
	return got.Endpoint
}

// secret reads a key of a Secret.
func (w *world) secret(t *testing.T, namespace, name, key string) string {
	t.Helper()
	var s corev1.Secret
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &s); err != nil {
		t.Fatal(err)
	}
	return string(s.Data[key])
}

func (w *world) signs(t *testing.T, e *v1beta1.WebhookEndpoint, secret string) bool {
	t.Helper()
	stored := w.stored(t, e)
	ok, err := w.webhooks.Signs(t.Context(), stored.Organization, stored.ID, secret)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}
