package operator_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

func TestAResourceBecomesAURLAndGoesWithIt(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "lifecycle")
	e := endpoint("lifecycle", "results")
	e.Spec.Events = []v1beta1.EventType{"result.final", "student.joined"}
	e.Spec.TimeZone = "Asia/Kolkata"
	e.Annotations = map[string]string{v1beta1.AnnotationSendTest: "1"}
	w.create(t, e)
	w.awaitRegistered(t, e)
	check.Contains(t, "the columns", w.run(t, "get", "whe", "--namespace=lifecycle", "--field-selector=spec.organization=lifecycle,spec.url="+e.Spec.URL), "Registered", "")
	stored := w.stored(t, e)
	if check.Equal(t, "stored.URL", stored.URL, e.Spec.URL, "registered: %+v", stored) &&
		check.Equal(t, "stored.TimeZone", stored.TimeZone, "Asia/Kolkata", "registered: %+v", stored) &&
		check.Equal(t, "number of events", len(stored.Events), 2, "registered: %+v", stored) {
		check.True(t, "stored.SwitchedOn", stored.SwitchedOn, "registered: %+v", stored)
	}
	if check.Equal(t, "e.Status.EndpointID", e.Status.EndpointID, int64(stored.ID), "status: %+v", e.Status) &&
		check.Equal(t, "e.Status.SecretVersion", e.Status.SecretVersion, int32(1), "status: %+v", e.Status) &&
		check.True(t, "there is a reference to a secret", e.Status.SecretRef != nil, "status: %+v", e.Status) {
		check.Equal(t, "*e.Status.SecretRef", *e.Status.SecretRef, (v1beta1.SecretKeyRef{Name: "results-signing-secret", Key: "secret"}), "status: %+v", e.Status)
	}
	if on := conditionOf(e, v1beta1.ConditionSwitchedOn); check.True(t, "the condition or reference is there", on != nil, "SwitchedOn: %+v", on) {
		check.Equal(t, "on.Status", on.Status, metav1.ConditionTrue, "SwitchedOn: %+v", on)
	}
	secret := w.secret(t, "lifecycle", "results-signing-secret", "secret")
	if check.True(t, "the secret has the secrets' prefix", strings.HasPrefix(secret, webhook.SecretPrefix), "the generated Secret does not sign") {
		check.True(t, "the secret signs", w.signs(t, e, secret), "the generated Secret does not sign")
	}
	w.awaitEvent(t, e, corev1.EventTypeNormal, "Registered")
	w.awaitEvent(t, e, corev1.EventTypeNormal, "TestSent")
	if e.Status.Backlog != 1 {
		t.Errorf("backlog %d, want the ping", e.Status.Backlog)
	}

	change(t, w, e, func(e *v1beta1.WebhookEndpoint) {
		e.Spec.URL, e.Spec.Events, e.Spec.TimeZone = "https://hooks.example.com/elsewhere", nil, "UTC"
	})
	w.awaitRegistered(t, e)
	if changed := w.stored(t, e); check.Equal(t, "changed.ID", changed.ID, stored.ID, "edited: %+v", changed) &&
		check.Equal(t, "changed.URL", changed.URL, e.Spec.URL, "edited: %+v", changed) &&
		check.Equal(t, "number of events", len(changed.Events), 0, "edited: %+v", changed) {
		check.Equal(t, "changed.TimeZone", changed.TimeZone, "UTC", "edited: %+v", changed)
	}

	if err := w.client.Delete(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	w.awaitGone(t, e)
	if _, err := w.webhooks.FindManaged(t.Context(), stored.ManagedBy); fault.KindOf(err) != fault.NotFound {
		t.Errorf("the URL is still there: %v", err)
	}
}

func TestTheSigningSecretIsReplacedAtOnce(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "rotation")
	e := endpoint("rotation", "generated")
	w.create(t, e)
	w.awaitRegistered(t, e)
	first := w.secret(t, "rotation", "generated-signing-secret", "secret")

	annotate(t, w, e, v1beta1.AnnotationRotateSecret, "monday")
	w.awaitVersion(t, e, 2)
	second := w.secret(t, "rotation", "generated-signing-secret", "secret")
	if check.True(t, "the second is another", second != first, "the annotation has not replaced the secret") {
		check.True(t, "the new secret signs", w.signs(t, e, second), "the annotation has not replaced the secret")
	}
	w.awaitEvent(t, e, corev1.EventTypeNormal, "SecretRotated")

	var secret corev1.Secret
	key := client.ObjectKey{Namespace: "rotation", Name: "generated-signing-secret"}
	if err := w.client.Get(t.Context(), key, &secret); err != nil {
		t.Fatal(err)
	}
	change(t, w, &secret, func(s *corev1.Secret) { s.Data["secret"] = []byte("chosen-by-the-platform-team") })
	w.awaitVersion(t, e, 3)
	if !w.signs(t, e, "chosen-by-the-platform-team") {
		t.Error("the edited Secret does not sign")
	}

	if err := w.client.Delete(t.Context(), &secret); err != nil {
		t.Fatal(err)
	}
	w.awaitVersion(t, e, 4)
	if again := w.secret(t, "rotation", "generated-signing-secret", "secret"); check.True(t, "the secret is another", again != second, "a Secret that was deleted by hand is not made again with a new value") {
		check.True(t, "the new secret signs", w.signs(t, e, again), "a Secret that was deleted by hand is not made again with a new value")
	}
	w.awaitEvent(t, e, corev1.EventTypeWarning, "SecretRegenerated")
}

// With an overlap the secret before goes on signing, but for one whose Secret was deleted: somebody else may know it.
func TestTheSecretBeforeSignsDuringTheOverlap(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "overlap")
	e := endpoint("overlap", "results")
	e.Spec.Rotation = &v1beta1.Rotation{Overlap: "24h"}
	w.create(t, e)
	w.awaitRegistered(t, e)
	first := w.secret(t, "overlap", "results-signing-secret", "secret")
	annotate(t, w, e, v1beta1.AnnotationRotateSecret, "monday")
	until := func(e *v1beta1.WebhookEndpoint) bool { return e.Status.PreviousSecretUntil != nil }
	await(t, w, e, "signed with two secrets", until)
	second := w.secret(t, "overlap", "results-signing-secret", "secret")
	check.Slices(t, "the secrets", w.signing(t, e), []string{second, first}, "during the overlap")
	at := w.stored(t, e).PreviousUntil
	check.True(t, "it is shown", e.Status.PreviousSecretUntil.Time.Equal(at.Truncate(time.Second)), "%s: %s", e.Status.PreviousSecretUntil, at)

	check.NoError(check.Now(t), webhook.EndOverlaps(t.Context(), w.webhooks.DB, *at), "ending the overlap")
	await(t, w, e, "signed with one secret", func(e *v1beta1.WebhookEndpoint) bool { return !until(e) })
	check.Slices(t, "the secrets", w.signing(t, e), []string{second}, "after the overlap")

	check.NoError(check.Now(t), w.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "overlap", Name: "results-signing-secret"}}), "deleting")
	w.awaitVersion(t, e, 3)
	third := w.secret(t, "overlap", "results-signing-secret", "secret")
	check.Slices(t, "the secrets", w.signing(t, e), []string{third}, "after the Secret was deleted")
	annotate(t, w, e, v1beta1.AnnotationRotateSecret, "tuesday")
	await(t, w, e, "signed with two secrets", until)
	check.Slices(t, "the secrets", w.signing(t, e), []string{w.secret(t, "overlap", "results-signing-secret", "secret"), third}, "of the next rotation")
}

// signing are the secrets that sign now.
func (w *world) signing(t *testing.T, e *v1beta1.WebhookEndpoint) []string {
	t.Helper()
	target, err := dispatch.ReadTarget(t.Context(), w.webhooks.DB, w.stored(t, e).ID)
	check.NoError(check.Now(t), err, "the target")
	secrets, err := target.Open(t.Context(), w.webhooks.Box, time.Now())
	check.NoError(check.Now(t), err, "opening")
	return secrets
}

// The resource has the last word on what somebody changes elsewhere.
func TestAChangeMadeElsewhereIsUndone(t *testing.T) {
	w := theWorld(t)
	o := w.tenant(t, "drift")
	e := endpoint("drift", "results")
	w.create(t, e)
	w.awaitRegistered(t, e)
	stored, zone := w.stored(t, e), "Europe/Berlin"
	if _, err := w.webhooks.Change(t.Context(), audit.Platform, o.ID, stored.ID, webhook.Settings{TimeZone: &zone}, time.Now()); err != nil {
		t.Fatal(err)
	}
	w.awaitEvent(t, e, corev1.EventTypeNormal, "Changed")
	if got := w.stored(t, e); got.TimeZone != "UTC" {
		t.Errorf("the zone is still %s", got.TimeZone)
	}
	if _, _, err := w.webhooks.Rotate(t.Context(), audit.Platform, o.ID, stored.ID, "", 0, time.Now()); err != nil {
		t.Fatal(err)
	}
	w.awaitVersion(t, e, 3)
	if !w.signs(t, e, w.secret(t, "drift", "results-signing-secret", "secret")) {
		t.Error("the Secret does not sign any more")
	}
	if err := w.webhooks.Remove(t.Context(), audit.Platform, o.ID, stored.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	await(t, w, e, "registered again", func(e *v1beta1.WebhookEndpoint) bool {
		return e.Status.EndpointID != 0 && e.Status.EndpointID != int64(stored.ID)
	})
	if !w.signs(t, e, w.secret(t, "drift", "results-signing-secret", "secret")) {
		t.Error("the Secret does not sign any more")
	}
}

func (w *world) awaitVersion(t *testing.T, e *v1beta1.WebhookEndpoint, version int) {
	t.Helper()
	await(t, w, e, "signed with the next secret", func(e *v1beta1.WebhookEndpoint) bool { return int(e.Status.SecretVersion) == version })
}

func TestASecretOfTheTeamSigns(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "referenced")
	e := endpoint("referenced", "own")
	e.Spec.SigningSecretRef = &v1beta1.SecretKeyRef{Name: "ours", Key: "hook"}
	w.create(t, e)
	awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonSecretNotFound)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "referenced", Name: "ours"}, StringData: map[string]string{"hook": "short"}}
	w.create(t, secret)
	awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonSecretInvalid)
	change(t, w, secret, func(s *corev1.Secret) { s.Data = map[string][]byte{"hook": []byte("a-secret-out-of-our-own-vault")} })
	w.awaitRegistered(t, e)
	if !w.signs(t, e, "a-secret-out-of-our-own-vault") {
		t.Error("the referenced Secret does not sign")
	}
	if on := e.Status.SecretRef; check.True(t, "the condition or reference is there", on != nil, "status.secretRef: %+v", on) &&
		check.Equal(t, "on.Name", on.Name, "ours", "status.secretRef: %+v", on) {
		check.Equal(t, "on.Key", on.Key, "hook", "status.secretRef: %+v", on)
	}
	annotate(t, w, e, v1beta1.AnnotationRotateSecret, "1")
	w.awaitEvent(t, e, corev1.EventTypeWarning, "RotationRefused")
	if err := w.client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonSecretNotFound)
	if !w.signs(t, e, "a-secret-out-of-our-own-vault") {
		t.Error("the last signing secret is not in force any more")
	}
}

func TestSuspending(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "suspended")
	e := endpoint("suspended", "results")
	w.create(t, e)
	w.awaitRegistered(t, e)
	change(t, w, e, func(e *v1beta1.WebhookEndpoint) { e.Spec.Suspend = true })
	awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionTrue, v1beta1.ReasonSuspended)
	awaitReason(t, w, e, v1beta1.ConditionSwitchedOn, metav1.ConditionFalse, v1beta1.ReasonSuspended)
	if w.stored(t, e).SwitchedOn {
		t.Error("the URL is still on")
	}
	change(t, w, e, func(e *v1beta1.WebhookEndpoint) { e.Spec.Suspend = false })
	w.awaitRegistered(t, e)
	if !w.stored(t, e).SwitchedOn {
		t.Error("the URL is still off")
	}
	w.awaitEvent(t, e, corev1.EventTypeNormal, "Suspended")
	w.awaitEvent(t, e, corev1.EventTypeNormal, "Resumed")
}

func TestASwitchOffIsShownAndUndone(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "switchoff")
	e := endpoint("switchoff", "results")
	w.create(t, e)
	w.awaitRegistered(t, e)
	w.fail(t, e, webhook.SwitchOffAfter)
	off := awaitReason(t, w, e, v1beta1.ConditionSwitchedOn, metav1.ConditionFalse, v1beta1.ReasonSwitchedOff)
	if check.Contains(t, "message", off.Message, "50", "the reason is not shown: %+v", e.Status) &&
		check.Equal(t, "e.Status.SwitchedOffReason", e.Status.SwitchedOffReason, off.Message, "the reason is not shown: %+v", e.Status) &&
		check.True(t, "there is a time of switching off", e.Status.SwitchedOffAt != nil, "the reason is not shown: %+v", e.Status) {
		check.Equal(t, "e.Status.ConsecutiveFailures", int(e.Status.ConsecutiveFailures), webhook.SwitchOffAfter, "the reason is not shown: %+v", e.Status)
	}
	if stalled := conditionOf(e, v1beta1.ConditionStalled); check.True(t, "the endpoint is stalled", stalled != nil, "Stalled: %+v", stalled) {
		check.Equal(t, "stalled.Reason", stalled.Reason, v1beta1.ReasonSwitchedOff, "Stalled: %+v", stalled)
	}
	if c := conditionOf(e, v1beta1.ConditionReady); c.Status != metav1.ConditionFalse {
		t.Errorf("Ready: %+v", c)
	}
	w.awaitEvent(t, e, corev1.EventTypeWarning, "SwitchedOff")

	change(t, w, e, func(e *v1beta1.WebhookEndpoint) { e.Spec.TimeZone = "Europe/Berlin" })
	awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonSwitchedOff) // an edit turns nothing on
	annotate(t, w, e, v1beta1.AnnotationTurnOn, time.Now().Format(time.RFC3339))
	w.awaitRegistered(t, e)
	if stored := w.stored(t, e); check.True(t, "stored.SwitchedOn", stored.SwitchedOn, "turned on: %+v", stored) {
		check.Equal(t, "stored.ConsecutiveFailures", stored.ConsecutiveFailures, 0, "turned on: %+v", stored)
	}
	if check.True(t, "the endpoint is not stalled", conditionOf(e, v1beta1.ConditionStalled) == nil, "traces are left: %+v", e.Status) {
		check.True(t, "there is no time of switching off", e.Status.SwitchedOffAt == nil, "traces are left: %+v", e.Status)
	}
	w.awaitEvent(t, e, corev1.EventTypeNormal, "TurnedOn")

	// The same token again, after the next switch-off, turns nothing on.
	w.fail(t, e, webhook.SwitchOffAfter)
	awaitReason(t, w, e, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonSwitchedOff)
}

// fail records failed attempts in a row, as the sender does, each of a delivery that is gone afterwards.
func (w *world) fail(t *testing.T, e *v1beta1.WebhookEndpoint, times int) {
	t.Helper()
	stored := w.stored(t, e)
	at := time.Now().Add(-time.Hour)
	for range times {
		at = at.Add(time.Second)
		o := webhook.Outcome{Delivery: id.NewDelivery(time.Now()), Endpoint: stored.ID, Organization: stored.Organization, Number: 1,
			StartedAt: at, Duration: time.Millisecond, Verdict: webhook.Retry, Cause: "http_503", Status: 503, RequestHeaders: map[string]string{}}
		err := w.webhooks.DB.InTx(t.Context(), func(tx *pg.Tx) error {
			_, err := tx.Exec(t.Context(), `
				INSERT INTO webhook_queue (organization_id, endpoint_id, id, event_id, due_at)
				VALUES ($1, $2, $3, uuid7(), now())`, o.Organization, o.Endpoint, o.Delivery)
			if err != nil {
				return err
			}
			err = tx.QueryRow(t.Context(), `
				SELECT CASE consecutive_failures WHEN 0 THEN 0 ELSE runs END
				FROM webhook_health WHERE endpoint_id = $1`, o.Endpoint).Scan(&o.Run)
			if err != nil {
				return err
			}
			if err := webhook.Settle(t.Context(), tx, []webhook.Outcome{o}); err != nil {
				return err
			}
			_, err = tx.Exec(t.Context(), `DELETE FROM webhook_queue WHERE id = $1`, o.Delivery)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestOneEventATransition(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "transitions")
	e := endpoint("transitions", "results")
	w.create(t, e)
	w.awaitRegistered(t, e)
	version := e.ResourceVersion
	for _, n := range []int{1, 2, 3} { // failures that change nothing are not written
		w.fail(t, e, n)
	}
	annotate(t, w, e, v1beta1.AnnotationSendTest, "1")
	w.awaitEvent(t, e, corev1.EventTypeNormal, "TestSent")
	await(t, w, e, "tested", func(e *v1beta1.WebhookEndpoint) bool { return e.Status.Handled.SendTest == "1" })
	if e.Status.ConsecutiveFailures != 6 {
		t.Errorf("%d failures shown, want 6 with the transition", e.Status.ConsecutiveFailures)
	}
	out, err := w.cluster.Kubectl(t.Context(), "-n", "transitions", "get", "events.events.k8s.io", "-o", "jsonpath={range .items[*]}{.reason} {end}")
	if err != nil {
		t.Fatal(err)
	}
	reasons := strings.Fields(out)
	slices.Sort(reasons)
	if !slices.Equal(reasons, []string{"Registered", "TestSent"}) {
		t.Errorf("Events since version %s: %v", version, reasons)
	}
}
