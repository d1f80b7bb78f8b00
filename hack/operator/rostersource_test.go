package operator_test

import (
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// rosterSource is a resource that is not created yet, for the organization its namespace is named after.
func rosterSource(namespace, name string) *v1beta1.RosterSource {
	return &v1beta1.RosterSource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1beta1.RosterSourceSpec{Organization: namespace, Source: name, AuthoritativeEnabled: true}}
}

// source is what PostgreSQL has of the source.
func (w *world) source(t *testing.T, of org.Organization, name string) roster.Source {
	t.Helper()
	s, err := roster.FindSource(t.Context(), w.webhooks.DB, of.ID, name)
	check.NoError(check.Now(t), err, "")
	return s
}

// sends makes a run of the source that the importer has brought to the state.
func (w *world) sends(t *testing.T, of org.Organization, source string, state roster.State) id.RosterRun {
	t.Helper()
	ctx, db := t.Context(), w.webhooks.DB
	run, err := roster.Begin(ctx, db, of.ID, "sis", time.Now())
	check.NoError(check.Now(t), err, "")
	check.NoError(check.Now(t), roster.Submit(ctx, db, audit.Platform, of.ID, run,
		roster.Draft{Source: w.source(t, of, source), Mode: roster.Snapshot}, time.Now()), "")
	check.NoError(check.Now(t), db.InTx(ctx, func(tx *pg.Tx) error {
		planned, err := roster.Find(ctx, tx, of.ID, run)
		if err != nil {
			return err
		}
		planned.State, planned.Deactivate, planned.Update, planned.Stamp = state, 60, 60, time.Now()
		planned.Reasons = []roster.Reason{{Code: "implausible_share", Text: "60 of 80 active people of the source would be deactivated"}}
		if err := roster.SavePlan(ctx, tx, planned, time.Now()); err != nil {
			return err
		}
		return roster.Finish(ctx, tx, planned, time.Now())
	}), "")
	return run
}

func TestARosterSourceAsAResource(t *testing.T) {
	w := theWorld(t)
	o := w.tenant(t, "rostered")
	_, err := roster.PutSource(t.Context(), w.webhooks.DB, audit.Platform, o.ID, "sis", nil, time.Now())
	check.NoError(check.Now(t), err, "a source that sends already")
	s := rosterSource("rostered", "sis")
	s.Spec.Guards.MaxLossPercent = new(int32(20))
	w.create(t, s)
	w.run(t, "wait", "--for=condition=Ready", "rrs/sis", "--namespace=rostered", "--timeout=120s")
	w.run(t, "wait", "--for=condition=RunHeld=False", "rrs/sis", "--namespace=rostered", "--timeout=120s")
	awaitReady(t, w, s, metav1.ConditionTrue, v1beta1.ReasonManaged)
	is := w.source(t, o, "sis")
	check.True(t, "the settings", is.AuthoritativeEnabled && is.Approval == roster.ApproveGuarded && *is.GuardPercent == 20, "%+v", is)
	check.Equal(t, "its manager", is.ManagedBy, "kubernetes/test/rostered/sis", "")
	check.Equal(t, "its id", s.Status.SourceID, int64(is.ID), "")
	check.True(t, "no run", s.Status.LastRun == nil, "%+v", s.Status)
	check.Contains(t, "the columns", w.run(t, "get", "rrs", "--namespace=rostered", "--field-selector=spec.organization=rostered,spec.source=sis"), "Managed", "")
	check.Contains(t, "in the category", w.run(t, "get", "registrar", "--all-namespaces", "--output=name"), "rostersource.registrar.dev/sis", "")
	_, err = roster.PutSource(t.Context(), w.webhooks.DB, audit.Platform, o.ID, "sis", nil, time.Now())
	check.True(t, "it is read-only elsewhere", fault.Has(err, "managed"), "%v", err)

	// A change of spec, and one behind its back.
	change(t, w, s, func(s *v1beta1.RosterSource) {
		s.Spec.Approval, s.Spec.Guards.MaxLossPercent = v1beta1.ApprovalAlways, nil
	})
	awaitReady(t, w, s, metav1.ConditionTrue, v1beta1.ReasonManaged)
	is = w.source(t, o, "sis")
	check.True(t, "the settings", is.Approval == roster.ApproveAlways && is.GuardPercent == nil, "%+v", is)
	w.exec(t, `UPDATE roster_sources SET approval = 'guarded' WHERE id = $1`, is.ID)
	change(t, w, s, func(s *v1beta1.RosterSource) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, "test", "again") })
	w.until(t, "the change is reverted", func() bool { return w.source(t, o, "sis").Approval == roster.ApproveAlways })

	// A held run shows at once, with what to do, and is approved or discarded by annotations.
	held := w.sends(t, o, "sis", roster.Held)
	c := awaitReason(t, w, s, v1beta1.ConditionRunHeld, metav1.ConditionTrue, v1beta1.ReasonApprovalRequired)
	number := strconv.FormatInt(int64(held), 10)
	for _, part := range []string{"60 of 80 active people", "deactivate 60 people", "https://registrar.test/console/rostered/roster-runs/" + number, "registrar.dev/approve-run: \"" + number} {
		check.Contains(t, "the message", c.Message, part, "")
	}
	check.True(t, "the run", s.Status.HeldRun == int64(held) && s.Status.LastRun != nil && s.Status.LastRun.State == "held" && s.Status.LastRun.Deactivated == 60 &&
		s.Status.LastRun.FinishedAt != nil, "%+v", s.Status)
	change(t, w, s, func(s *v1beta1.RosterSource) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1beta1.AnnotationDiscardRun, number)
	})
	awaitReason(t, w, s, v1beta1.ConditionRunHeld, metav1.ConditionFalse, v1beta1.ReasonNoRunHeld)
	check.Equal(t, "the last run", s.Status.LastRun.State, "discarded", "")
	second := w.sends(t, o, "sis", roster.Held)
	awaitReason(t, w, s, v1beta1.ConditionRunHeld, metav1.ConditionTrue, v1beta1.ReasonApprovalRequired)
	change(t, w, s, func(s *v1beta1.RosterSource) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1beta1.AnnotationApproveRun, strconv.FormatInt(int64(second), 10))
	})
	awaitReason(t, w, s, v1beta1.ConditionRunHeld, metav1.ConditionFalse, v1beta1.ReasonNoRunHeld)
	approved, err := roster.Find(t.Context(), w.webhooks.DB, o.ID, second)
	check.NoError(check.Now(t), err, "")
	check.Equal(t, "who decided", approved.DecidedBy, "kubernetes/test/rostered/sis", "")
	check.Equal(t, "its state", approved.State, roster.Queued, "the worker applies it")
	actions, err := pg.Column[string](t.Context(), w.webhooks.DB, `
		SELECT DISTINCT action FROM audit_log WHERE organization_id = $1 AND actor_name = 'kubernetes/test/rostered/sis' ORDER BY 1`, o.ID)
	check.NoError(t, err, "")
	check.Slices(t, "what it did", actions, []string{"approved roster import", "discarded roster import", "set up roster source"}, "")
	change(t, w, s, func(s *v1beta1.RosterSource) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1beta1.AnnotationApproveRun, number)
	})
	await(t, w, s, "refused, and Ready", func(s *v1beta1.RosterSource) bool { return s.Status.Handled.ApproveRun == number })

	// Another resource waits for the source; deleting resets it or leaves it.
	other := rosterSource("rostered", "other")
	other.Spec.Source, other.Spec.DeletionPolicy = "sis", v1beta1.Retain
	w.create(t, other)
	refused := awaitReady(t, w, other, metav1.ConditionFalse, v1beta1.ReasonSourceInUse)
	check.Contains(t, "the message", refused.Message, "kubernetes/test/rostered/sis", "")
	w.deleted(t, s)
	awaitReady(t, w, other, metav1.ConditionTrue, v1beta1.ReasonManaged)
	w.deleted(t, other)
	is = w.source(t, o, "sis")
	check.True(t, "retained", is.ManagedBy == "" && is.AuthoritativeEnabled, "%+v", is)
	again := rosterSource("rostered", "sis")
	w.create(t, again)
	awaitReady(t, w, again, metav1.ConditionTrue, v1beta1.ReasonManaged)
	w.exec(t, `DELETE FROM roster_runs WHERE organization_id = $1`, o.ID)
	w.deleted(t, again)
	is = w.source(t, o, "sis")
	check.True(t, "reset", is.ManagedBy == "" && !is.AuthoritativeEnabled && is.Approval == roster.ApproveGuarded, "%+v", is)
}

func TestRosterSourcesThatCannotBe(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "rosterless")
	for says, how := range map[string]func(*v1beta1.RosterSourceSpec){
		"organization: use the organization's slug":        func(s *v1beta1.RosterSourceSpec) { s.Organization = "A School" },
		"source: leave out the spaces around it":           func(s *v1beta1.RosterSourceSpec) { s.Source = " sis" },
		`supported values: "Guarded", "Always"`:            func(s *v1beta1.RosterSourceSpec) { s.Approval = "Never" },
		"should be less than or equal to 100":              func(s *v1beta1.RosterSourceSpec) { s.Guards.MaxLossPercent = new(int32(101)) },
		`Unsupported value: "Forget": supported values: "`: func(s *v1beta1.RosterSourceSpec) { s.DeletionPolicy = "Forget" },
	} {
		s := rosterSource("rosterless", "refused")
		how(&s.Spec)
		err := w.client.Create(t.Context(), s)
		if check.True(t, "it is invalid", apierrors.IsInvalid(err), "want %q: %v", says, err) {
			check.Contains(t, "the error", err.Error(), says, "")
		}
	}
	foreign := rosterSource("rosterless", "foreign")
	foreign.Spec.Organization = "somebody-elses"
	w.create(t, foreign)
	awaitReady(t, w, foreign, metav1.ConditionFalse, v1beta1.ReasonNamespaceNotAllowed)
	w.deleted(t, foreign)

	// A namespace that loses its organization keeps no source of it, and one whose finalizer was taken is swept.
	o := w.tenant(t, "rosterlost")
	lost := rosterSource("rosterlost", "sis")
	w.create(t, lost)
	awaitReady(t, w, lost, metav1.ConditionTrue, v1beta1.ReasonManaged)
	w.run(t, "label", "namespace", "rosterlost", v1beta1.LabelOrganization+"-")
	awaitReady(t, w, lost, metav1.ConditionFalse, v1beta1.ReasonNamespaceNotAllowed)
	check.False(t, "snapshots are allowed", w.source(t, o, "sis").AuthoritativeEnabled, "")
	w.deleted(t, lost)
}
