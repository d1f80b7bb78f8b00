package operator_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// aKind is what all kinds have, with a resource of it.
type aKind struct {
	short, plural, columns string
	selectors              []string // that select the resource and nothing else in its namespace
	resource               observed
	reason                 string // when it is Ready
}

// kindsOf has a resource of each kind, for the organization that the namespace is named after.
func kindsOf(namespace string) []aKind {
	return []aKind{
		{"rorg", "organizations", "NAME SLUG READY REASON AGE ID STATUS", []string{"spec.slug=" + namespace}, school(namespace), v1beta1.ReasonManaged},
		{"whe", "webhookendpoints", "NAME ORGANIZATION READY REASON BACKLOG AGE URL STATUS",
			[]string{"spec.organization=" + namespace, "spec.url=https://hooks.example.com/" + namespace + "/results"}, endpoint(namespace, "results"), v1beta1.ReasonRegistered},
		{"rkey", "apikeys", "NAME ORGANIZATION READY REASON ROTATES AGE PREFIX LAST USED STATUS", []string{"spec.organization=" + namespace}, apiKey(namespace, "results"), v1beta1.ReasonIssued},
		{"rrs", "rostersources", "NAME ORGANIZATION SOURCE READY REASON LAST RUN HELD AGE STARTED STATUS",
			[]string{"spec.organization=" + namespace, "spec.source=results"}, rosterSource(namespace, "results"), v1beta1.ReasonManaged},
		{"whr", "webhookreplays", "NAME ENDPOINT ORGANIZATION COMPLETE REASON REPLAYED TOTAL AGE STATUS",
			[]string{"spec.organization=" + namespace}, replay(namespace, "results", v1beta1.WebhookReplaySpec{Organization: namespace}), v1beta1.ReasonCompleted},
	}
}

// Every kind waits without being Stalled, becomes Ready, and is found by the ways of kubectl.
func TestEveryKindIsAsKubernetesHasIt(t *testing.T) {
	w := theWorld(t)
	w.namespace(t, "kinds", "kinds")
	kinds := kindsOf("kinds")
	for _, k := range kinds[1:] { // all wait for the organization, which comes last
		w.create(t, k.resource)
		c := awaitReady(t, w, k.resource, metav1.ConditionFalse, v1beta1.ReasonOrganizationNotFound)
		waiting := conditionOf(k.resource, v1beta1.ConditionReconciling)
		if check.True(t, k.short+" is Reconciling", waiting != nil, "%v", c) {
			check.Equal(t, "status of Reconciling", waiting.Status, metav1.ConditionTrue, "")
			check.Equal(t, "reason of Reconciling", waiting.Reason, c.Reason, "")
		}
		check.True(t, k.short+" is not Stalled", conditionOf(k.resource, v1beta1.ConditionStalled) == nil, "")
	}
	w.create(t, kinds[0].resource)
	for _, k := range kinds {
		name := k.resource.GetName()
		if begun, is := k.resource.(*v1beta1.WebhookReplay); is {
			// It may find the URL registered, and then has work for a worker.
			await(t, w, begun, "it has begun", func(r *v1beta1.WebhookReplay) bool { return r.Status.StartTime != nil })
			w.work(t)
		}
		w.run(t, "wait", "--for=condition=Ready", "--namespace=kinds", "--timeout=120s", k.short+"/"+name)
		awaitReady(t, w, k.resource, metav1.ConditionTrue, k.reason)
		_, observed := k.resource.Observed()
		check.Equal(t, "observedGeneration of "+k.short, *observed, k.resource.GetGeneration(), "")
		for _, abnormal := range []string{v1beta1.ConditionReconciling, v1beta1.ConditionStalled} {
			check.True(t, "no "+abnormal, conditionOf(k.resource, abnormal) == nil, "of %s", k.short)
		}
		singular := strings.TrimSuffix(k.plural, "s") + ".registrar.dev/" + name
		check.Contains(t, "the category", w.run(t, "get", "registrar", "--namespace=kinds", "--output=name"), singular, "")
		table := w.run(t, "get", k.short, "--namespace=kinds", "--output=wide")
		check.Equal(t, "the columns of "+k.short, strings.Join(strings.Fields(strings.Split(table, "\n")[0]), " "), k.columns, "")
		for _, selector := range k.selectors {
			check.Equal(t, "selected by "+selector, w.run(t, "get", k.plural, "--namespace=kinds", "--output=name", "--field-selector="+selector), singular, "")
			field, _, _ := strings.Cut(selector, "=")
			check.Equal(t, "selected by another "+field, w.run(t, "get", k.plural, "--namespace=kinds", "--output=name", "--field-selector="+field+"=another", "--ignore-not-found"), "", "")
		}
	}

	// Somebody has to act.
	e := endpoint("kinds", "refused")
	e.Spec.URL = "https://169.254.169.254/latest"
	w.create(t, e)
	awaitReason(t, w, e, v1beta1.ConditionStalled, metav1.ConditionTrue, v1beta1.ReasonAddressRefused)
	check.True(t, "it is not Reconciling", conditionOf(e, v1beta1.ConditionReconciling) == nil, "")
	for _, k := range kinds[1:] {
		w.deleted(t, k.resource)
	}
	w.deleted(t, e)
	w.deleted(t, kinds[0].resource)
}
