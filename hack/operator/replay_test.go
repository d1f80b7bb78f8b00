package operator_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// replay is a resource that is not created yet, of the last hour.
func replay(namespace, name string, of v1beta1.WebhookReplaySpec) *v1beta1.WebhookReplay {
	of.From = metav1.NewTime(time.Now().Add(-time.Hour))
	return &v1beta1.WebhookReplay{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: of}
}

// undelivered records events while the resource's URL is off, and turns it on.
func (w *world) undelivered(t *testing.T, o org.Organization, e *v1beta1.WebhookEndpoint, events ...webhook.Type) {
	t.Helper()
	stored := w.stored(t, e)
	_, err := w.webhooks.SwitchOff(t.Context(), audit.Platform, o.ID, stored.ID, "by hand", time.Now())
	check.NoError(check.Now(t), err, "")
	err = w.webhooks.DB.InTx(t.Context(), func(tx *pg.Tx) error {
		for i, of := range events {
			if err := webhook.Record(t.Context(), tx, o.ID, time.Now(), webhook.Event{Type: of, User: 7, Data: map[string]any{"n": i}}); err != nil {
				return err
			}
		}
		return nil
	})
	check.NoError(check.Now(t), err, "")
	_, err = w.webhooks.TurnOn(t.Context(), audit.Platform, o.ID, stored.ID, time.Now())
	check.NoError(check.Now(t), err, "")
}

// work does a step of each recovery that is pending, as the worker does.
func (w *world) work(t *testing.T) {
	t.Helper()
	claimed, err := outbox.Claim(t.Context(), w.webhooks.DB, task.WebhookRecover, time.Now().Add(time.Minute), time.Minute, 10)
	check.NoError(check.Now(t), err, "")
	for _, c := range claimed {
		check.NoError(check.Now(t), journal.Step(t.Context(), w.webhooks.DB, task.Outbox{Task: c.ID, Claim: c.Claim}, time.Now()), "")
	}
}

func TestAReplayAsAResource(t *testing.T) {
	w := theWorld(t)
	o := w.tenant(t, "replayed")
	e := endpoint("replayed", "results")
	w.create(t, e)
	w.awaitRegistered(t, e)
	w.undelivered(t, o, e, webhook.StudentJoined, webhook.EnrollmentEnded, webhook.StudentJoined, webhook.StudentJoined, webhook.EnrollmentEnded)
	w.awaitRegistered(t, e)
	joined := replay("replayed", "joined", v1beta1.WebhookReplaySpec{Endpoint: "results", Events: []v1beta1.EventType{"student.joined"}})
	w.create(t, joined)
	awaitReady(t, w, joined, metav1.ConditionFalse, v1beta1.ReasonReplaying)
	check.Equal(t, "total", joined.Status.Total, int64(3), "%+v", joined.Status)
	check.False(t, "it is complete", meta.IsStatusConditionTrue(joined.Status.Conditions, v1beta1.ConditionComplete), "%+v", joined.Status)
	w.work(t)
	w.run(t, "wait", "--for=condition=Complete", "whr/joined", "--namespace=replayed", "--timeout=60s")
	done := awaitReady(t, w, joined, metav1.ConditionTrue, v1beta1.ReasonCompleted)
	check.Equal(t, "the message", done.Message, "3 of 3 events are due again.", "")
	check.True(t, "its times", joined.Status.StartTime != nil && joined.Status.CompletionTime != nil, "%+v", joined.Status)
	check.Equal(t, "URLs", len(joined.Status.URLs), 1, "%+v", joined.Status)
	check.Contains(t, "the columns", w.run(t, "get", "whr", "--namespace=replayed", "--field-selector=spec.endpoint=results"), "Completed", "")
	recovered, err := pg.Column[string](t.Context(), w.webhooks.DB, `
		SELECT actor_name FROM audit_log WHERE organization_id = $1 AND action = 'recovered events'`, o.ID)
	check.NoError(t, err, "")
	check.Slices(t, "who asked", recovered, []string{"kubernetes/test/replayed/joined"}, "")

	// It happens once, whatever becomes of PostgreSQL's record of it, and cannot be changed.
	w.exec(t, `DELETE FROM webhook_recoveries WHERE organization_id = $1`, o.ID)
	change(t, w, joined, func(r *v1beta1.WebhookReplay) { metav1.SetMetaDataAnnotation(&r.ObjectMeta, "test", "again") })
	before := joined.DeepCopy()
	joined.Spec.Events = nil
	err = w.client.Patch(t.Context(), joined, client.MergeFrom(before))
	check.True(t, "a change is refused", apierrors.IsInvalid(err), "%v", err)

	// One of the whole organization, whose URL is switched off meanwhile.
	all := replay("replayed", "all", v1beta1.WebhookReplaySpec{Organization: "replayed"})
	w.create(t, all)
	awaitReady(t, w, all, metav1.ConditionFalse, v1beta1.ReasonReplaying)
	check.Equal(t, "total", all.Status.Total, int64(2), "beside those that are due again: %+v", all.Status)
	_, err = w.webhooks.SwitchOff(t.Context(), audit.Platform, o.ID, w.stored(t, e).ID, "by hand", time.Now())
	check.NoError(check.Now(t), err, "")
	w.work(t)
	w.run(t, "wait", "--for=condition=Failed", "whr/all", "--namespace=replayed", "--timeout=60s")
	awaitReady(t, w, all, metav1.ConditionFalse, v1beta1.ReasonStopped)
	check.True(t, "somebody has to act", meta.IsStatusConditionTrue(all.Status.Conditions, v1beta1.ConditionStalled), "%+v", all.Status)
	check.False(t, "it is complete", meta.IsStatusConditionTrue(all.Status.Conditions, v1beta1.ConditionComplete), "%+v", all.Status)

	// One waits for the URL, and ends with its resource.
	off := replay("replayed", "off", v1beta1.WebhookReplaySpec{Endpoint: "results"})
	w.create(t, off)
	awaitReady(t, w, off, metav1.ConditionFalse, v1beta1.ReasonURLSwitchedOff)
	annotate(t, w, e, v1beta1.AnnotationTurnOn, "now")
	awaitReady(t, w, off, metav1.ConditionFalse, v1beta1.ReasonReplaying)
	second := replay("replayed", "second", v1beta1.WebhookReplaySpec{Endpoint: "results"})
	w.create(t, second)
	awaitReady(t, w, second, metav1.ConditionFalse, v1beta1.ReasonReplayRunning)
	w.deleted(t, off)
	states, err := pg.Column[string](t.Context(), w.webhooks.DB, `SELECT status FROM webhook_recoveries WHERE organization_id = $1 ORDER BY id`, o.ID)
	check.NoError(t, err, "")
	check.Slices(t, "states", states, []string{"stopped", "stopped"}, "of the one of all and the one that was deleted")
	for _, r := range []*v1beta1.WebhookReplay{joined, all, second} {
		w.deleted(t, r)
	}
	early := replay("replayed", "early", v1beta1.WebhookReplaySpec{Endpoint: "later"})
	w.create(t, early)
	awaitReady(t, w, early, metav1.ConditionFalse, v1beta1.ReasonEndpointNotFound)
	w.create(t, endpoint("replayed", "later"))
	awaitReady(t, w, early, metav1.ConditionFalse, v1beta1.ReasonReplaying)
	w.work(t)
	awaitReady(t, w, early, metav1.ConditionTrue, v1beta1.ReasonCompleted)
	w.deleted(t, early)
}

func TestTheAPIServerRefusesReplays(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "replayless")
	for says, how := range map[string]func(*v1beta1.WebhookReplaySpec){
		"endpoint: say endpoint or organization":    func(s *v1beta1.WebhookReplaySpec) { s.Organization = "replayless" },
		"organization: use the organization's slug": func(s *v1beta1.WebhookReplaySpec) { s.Endpoint, s.Organization = "", "A School" },
		"to: has to be after from":                  func(s *v1beta1.WebhookReplaySpec) { s.To = &s.From },
		`supported values: "result.final"`:          func(s *v1beta1.WebhookReplaySpec) { s.Events = []v1beta1.EventType{"ping"} },
	} {
		r := replay("replayless", "refused", v1beta1.WebhookReplaySpec{Endpoint: "results"})
		how(&r.Spec)
		err := w.client.Create(t.Context(), r)
		if check.True(t, "it is invalid", apierrors.IsInvalid(err), "want %q: %v", says, err) {
			check.Contains(t, "the error", err.Error(), says, "")
		}
	}
	foreign := replay("replayless", "foreign", v1beta1.WebhookReplaySpec{Organization: "somebody-elses"})
	w.create(t, foreign)
	awaitReady(t, w, foreign, metav1.ConditionFalse, v1beta1.ReasonNamespaceNotAllowed)
	w.deleted(t, foreign)
}
