package operator_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

func TestTheAPIServerRefusesWhatCannotBe(t *testing.T) {
	w := theWorld(t)
	w.namespace(t, "invalid", "invalid")
	spec := func(change func(*v1beta1.WebhookEndpointSpec)) v1beta1.WebhookEndpointSpec {
		s := endpoint("invalid", "x").Spec
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		spec v1beta1.WebhookEndpointSpec
		says string
	}{
		"no URL":          {spec(func(s *v1beta1.WebhookEndpointSpec) { s.URL = "" }), "spec.url"},
		"no absolute URL": {spec(func(s *v1beta1.WebhookEndpointSpec) { s.URL = "hooks.example.com/x" }), "url: not an absolute URL; write one such as https://hooks.example.com/registrar"},
		"a path alone":    {spec(func(s *v1beta1.WebhookEndpointSpec) { s.URL = "/x" }), "url: not an absolute URL"},
		"http":            {spec(func(s *v1beta1.WebhookEndpointSpec) { s.URL = "http://hooks.example.com/x" }), "url: only https:// addresses are accepted"},
		"a password":      {spec(func(s *v1beta1.WebhookEndpointSpec) { s.URL = "https://me:secret@hooks.example.com/x" }), "url: a user name or password in the URL is not accepted"},
		"a fragment":      {spec(func(s *v1beta1.WebhookEndpointSpec) { s.URL = "https://hooks.example.com/#x" }), "url: a fragment (#...) never reaches the server"},
		"a low port":      {spec(func(s *v1beta1.WebhookEndpointSpec) { s.URL = "https://hooks.example.com:22/" }), "url: this port is not allowed; use 443 or one from 1024 to 65535"},
		"a long port":     {spec(func(s *v1beta1.WebhookEndpointSpec) { s.URL = "https://hooks.example.com:99999999999999999999/" }), "url: this port is not allowed"},
		"spaces around":   {spec(func(s *v1beta1.WebhookEndpointSpec) { s.URL = "https://hooks.example.com/ " }), "url: leave out the spaces around it"},
		"too long": {spec(func(s *v1beta1.WebhookEndpointSpec) {
			s.URL = "https://hooks.example.com/" + strings.Repeat("x", 2000)
		}), "may not be more than 2000"},
		"an unknown event":           {spec(func(s *v1beta1.WebhookEndpointSpec) { s.Events = []v1beta1.EventType{"student.slept"} }), `"student.slept": supported values: "result.final"`},
		"an event twice":             {spec(func(s *v1beta1.WebhookEndpointSpec) { s.Events = []v1beta1.EventType{"result.final", "result.final"} }), "Duplicate value"},
		"no zone":                    {spec(func(s *v1beta1.WebhookEndpointSpec) { s.TimeZone = "half past two" }), "timeZone: use the name of an IANA time zone"},
		"the local zone":             {spec(func(s *v1beta1.WebhookEndpointSpec) { s.TimeZone = "Local" }), "timeZone: use the name of an IANA time zone"},
		"no slug":                    {spec(func(s *v1beta1.WebhookEndpointSpec) { s.Organization = "Demo Institute" }), "organization: use the organization's slug"},
		"an overlap that is no time": {spec(func(s *v1beta1.WebhookEndpointSpec) { s.Rotation = &v1beta1.Rotation{Overlap: "a day"} }), "rotation.overlap: write hours, minutes and seconds"},
		"no deletion policy":         {spec(func(s *v1beta1.WebhookEndpointSpec) { s.DeletionPolicy = "Keep" }), `supported values: "Retain", "Delete"`},
		"an overlap of 8 days":       {spec(func(s *v1beta1.WebhookEndpointSpec) { s.Rotation = &v1beta1.Rotation{Overlap: "192h"} }), "rotation.overlap: at most 168h"},
		"no Secret's name":           {spec(func(s *v1beta1.WebhookEndpointSpec) { s.SigningSecretRef = &v1beta1.SecretKeyRef{Name: "Not A Name"} }), "signingSecretRef.name: not the name of a Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			err := w.client.Create(t.Context(), &v1beta1.WebhookEndpoint{
				ObjectMeta: metav1.ObjectMeta{Namespace: "invalid", Name: "x"}, Spec: c.spec})
			if check.True(t, "the API server finds it invalid", apierrors.IsInvalid(err), "want a refusal that says %q: %v", c.says, err) {
				check.Contains(t, "the error", err.Error(), c.says, "want a refusal that says %q: %v", c.says, err)
			}
		})
	}
	t.Run("another organization", func(t *testing.T) {
		e := endpoint("invalid", "fixed")
		w.create(t, e)
		before := e.DeepCopy()
		e.Spec.Organization = "other"
		if err := w.client.Patch(t.Context(), e, client.MergeFrom(before)); check.True(t, "the API server finds it invalid", apierrors.IsInvalid(err), "want a refusal: %v", err) {
			check.Contains(t, "the error", err.Error(), "a URL stays with its organization", "want a refusal: %v", err)
		}
	})
	t.Run("accepted", func(t *testing.T) {
		for i, url := range []string{"https://hooks.example.com", "https://hooks.example.com:8443/x?y=z@", "https://[2606:4700::1111]/x", "https://hooks.example.com:443/"} {
			e := endpoint("invalid", fmt.Sprintf("good-%d", i))
			e.Spec.URL = url
			w.create(t, e)
		}
	})
}

func TestTheEleventhURLWaitsForAPlace(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "limit")
	var all []*v1beta1.WebhookEndpoint
	for i := range webhook.MaxEndpoints {
		e := endpoint("limit", fmt.Sprintf("url-%d", i))
		w.create(t, e)
		all = append(all, e)
	}
	for _, e := range all {
		w.awaitRegistered(t, e)
	}
	eleventh := endpoint("limit", "url-10")
	w.create(t, eleventh)
	c := awaitReason(t, w, eleventh, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonURLLimitReached)
	if !strings.Contains(c.Message, "10 URLs") {
		t.Errorf("message: %q", c.Message)
	}
	check.True(t, "it is not Stalled", conditionOf(eleventh, v1beta1.ConditionStalled) == nil, "a place may become free")
	w.awaitEvent(t, eleventh, corev1.EventTypeWarning, v1beta1.ReasonURLLimitReached)
	if err := w.client.Delete(t.Context(), all[3]); err != nil {
		t.Fatal(err)
	}
	w.awaitRegistered(t, eleventh)
}

func TestAURLIsRegisteredOnce(t *testing.T) {
	w := theWorld(t)
	o := w.tenant(t, "taken")
	url := "https://hooks.example.com/taken"
	byHand, _, err := w.webhooks.Add(t.Context(), audit.Platform, o.ID, webhook.Settings{URL: &url}, o.CreatedAt)
	if err != nil {
		t.Fatal(err)
	}
	e := endpoint("taken", "same")
	e.Spec.URL = url
	w.create(t, e)
	awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonURLInUse)
	check.True(t, "it is not Stalled", conditionOf(e, v1beta1.ConditionStalled) == nil, "the URL may become free")
	if err := w.webhooks.Remove(t.Context(), audit.Platform, o.ID, byHand.ID, o.CreatedAt); err != nil {
		t.Fatal(err)
	}
	w.awaitRegistered(t, e)
}

func TestANamespaceRegistersForItsOrganizationAlone(t *testing.T) {
	w := theWorld(t)
	w.organization(t, "rich")
	w.namespace(t, "foreign", "poor")
	w.namespace(t, "unlabelled", "")
	for _, namespace := range []string{"foreign", "unlabelled"} {
		e := endpoint(namespace, "greedy")
		e.Spec.Organization = "rich"
		w.create(t, e)
		c := awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonNamespaceNotAllowed)
		if !strings.Contains(c.Message, v1beta1.LabelOrganization) {
			t.Errorf("message: %q", c.Message)
		}
		w.awaitEvent(t, e, corev1.EventTypeWarning, v1beta1.ReasonNamespaceNotAllowed)
		if _, err := w.webhooks.FindManaged(t.Context(), "kubernetes/test/"+namespace+"/greedy"); fault.KindOf(err) != fault.NotFound {
			t.Errorf("it is registered: %v", err)
		}
		label := func(to string) {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
			change(t, w, ns, func(ns *corev1.Namespace) { ns.Labels = map[string]string{v1beta1.LabelOrganization: to} })
		}
		label("rich")
		w.awaitRegistered(t, e)
		label("poor")
		awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonNamespaceNotAllowed)
		if w.stored(t, e).SwitchedOn {
			t.Error("the URL still gets the organization's events")
		}
		label("rich")
		w.awaitRegistered(t, e)
	}
}

func TestAnOrganizationMayComeLater(t *testing.T) {
	w := theWorld(t)
	w.namespace(t, "later", "later")
	e := endpoint("later", "early")
	w.create(t, e)
	awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonOrganizationNotFound)
	if conditionOf(e, v1beta1.ConditionStalled) != nil {
		t.Error("it is Stalled, though waiting helps")
	}
	w.organization(t, "later")
	w.awaitRegistered(t, e)
}

func TestAPrivateAddressIsRefused(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "inside")
	token := w.token(t, w.reader(t, "inside-metrics"))
	faults := func() float64 {
		return w.metric(t, token, `controller_runtime_reconcile_errors_total{controller="webhookendpoint"}`)
	}
	before := faults()
	e := endpoint("inside", "metadata")
	e.Spec.URL = "https://169.254.169.254/latest"
	w.create(t, e)
	awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonAddressRefused)
	awaitReason(t, w, e, v1beta1.ConditionStalled, metav1.ConditionTrue, v1beta1.ReasonAddressRefused)
	w.awaitEvent(t, e, corev1.EventTypeWarning, v1beta1.ReasonAddressRefused)
	w.until(t, "one resource is refused so, by the metric", func() bool {
		return w.metric(t, token, `registrar_operator_resources{condition="Ready",kind="WebhookEndpoint",reason="AddressRefused",status="False"}`) == 1
	})
	check.True(t, "visits are timed", w.metric(t, token, `controller_runtime_reconcile_time_seconds_count{controller="webhookendpoint"}`) > 0, "")
	if after := faults(); after != before { // faults are tried again at once, refusals are not
		t.Errorf("the refusal was taken for %g faults", after-before)
	}
	// Another zone that only PostgreSQL's side can judge.
	change(t, w, e, func(e *v1beta1.WebhookEndpoint) {
		e.Spec.URL, e.Spec.TimeZone = "https://hooks.example.com/inside", "Mars/Olympus"
	})
	awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonInvalidSpec)
	change(t, w, e, func(e *v1beta1.WebhookEndpoint) { e.Spec.TimeZone = "UTC" })
	w.awaitRegistered(t, e)
}

func TestASecretOfSomebodyElseIsLeftAlone(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "squatted")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "squatted", Name: "results-signing-secret"}, StringData: map[string]string{"secret": "somebody else's"}}
	w.create(t, secret)
	e := endpoint("squatted", "results")
	w.create(t, e)
	awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonSecretConflict)
	if got := w.secret(t, "squatted", "results-signing-secret", "secret"); got != "somebody else's" {
		t.Error("the Secret was changed")
	}
	if err := w.client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	w.awaitRegistered(t, e)
}
