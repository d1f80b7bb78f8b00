package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// runAskedEvery is how often a run that goes on is looked at.
const runAskedEvery = 2 * time.Second

// rosterVisit is the reconciliation of a RosterSource.
type rosterVisit struct {
	*Reconciler
	occurrences
	object *v1beta1.RosterSource

	organization org.Organization
	source       roster.Source
	asked        bool        // PostgreSQL has said which runs there are
	last, held   *roster.Run // nil: there is none
	handled      v1beta1.HandledRosterTokens
}

// rosterSources is the kind RosterSource.
func (r *Reconciler) rosterSources() *kind[*v1beta1.RosterSource] {
	return &kind[*v1beta1.RosterSource]{
		Reconciler: r,
		name:       "RosterSource",
		stands:     "roster source",
		swept:      "left to the platform",
		finalizer:  v1beta1.RosterSourceFinalizer,
		empty:      func() *v1beta1.RosterSource { return &v1beta1.RosterSource{} },
		list:       func() client.ObjectList { return &v1beta1.RosterSourceList{} },
		ours:       func(s *v1beta1.RosterSource) bool { return s.Spec.ClassName == r.Class },
		pending: func(s *v1beta1.RosterSource) bool {
			h := s.Status.Handled
			return asks(s, v1beta1.AnnotationApproveRun, h.ApproveRun) || asks(s, v1beta1.AnnotationDiscardRun, h.DiscardRun)
		},
		begin: func(s *v1beta1.RosterSource) visit {
			return &rosterVisit{Reconciler: r, object: s, handled: s.Status.Handled}
		},
		remove: r.removeRosterSource,
		id:     func(s *v1beta1.RosterSource) int64 { return s.Status.SourceID },
		quiet:  func(*v1beta1.RosterSource) {},
		became: func(_ string, ready metav1.Condition) occurrence {
			return occurrence{normal, ready.Reason, ready.Message}
		},
	}
}

// admits implements visit.
func (v *rosterVisit) admits() []step { return []step{v.mayKeep} }

// steps implements visit.
func (v *rosterVisit) steps() []step {
	return []step{v.belong, v.manage, v.decide, v.look}
}

func (v *rosterVisit) actor() audit.Actor { return v.actorOf(v.object) }

// mayKeep checks that the namespace may keep sources of the organization. If it no longer may, the source has the settings
// that a source has by itself.
func (v *rosterVisit) mayKeep(ctx context.Context) error {
	db, err := v.db()
	if err != nil {
		return err
	}
	why, err := v.foreign(ctx, v.object.Namespace, v.object.Spec.Organization)
	if err != nil || why == "" {
		return err
	}
	by := v.actor()
	if err := roster.ReleaseSource(ctx, db, by, by.Name, true, v.Clock()); ignoreNotFound(err) != nil {
		return err
	}
	return refuse(v1beta1.ReasonNamespaceNotAllowed, "The namespace %s may not keep roster sources of the organization %q: %s",
		v.object.Namespace, v.object.Spec.Organization, why)
}

// belong finds the organization. One that is created later is announced by PostgreSQL.
func (v *rosterVisit) belong(ctx context.Context) (err error) {
	v.organization, err = v.findOrganization(ctx, v.object.Spec.Organization, "the source is set up")
	return err
}

// manage makes the settings of the source what spec says, and this resource their manager.
func (v *rosterVisit) manage(ctx context.Context) error {
	spec := v.object.Spec
	name, err := roster.ParseSource(spec.Source)
	if err != nil {
		return err
	}
	want := roster.Settings{AuthoritativeEnabled: spec.AuthoritativeEnabled, Approval: roster.ApproveGuarded,
		GuardPercent: number(spec.Guards.MaxLossPercent)}
	if spec.Approval == v1beta1.ApprovalAlways {
		want.Approval = roster.ApproveAlways
	}
	var changed bool
	if v.source, err = roster.FindSource(ctx, v.Webhooks.DB, v.organization.ID, name); err != nil {
		return err
	}
	if v.source.ManagedBy == v.actor().Name && v.source.Same(want) {
		return nil
	}
	v.source, changed, err = roster.ManageSource(ctx, v.Webhooks.DB, v.actor(), v.organization.ID, name, want, v.Clock())
	if changed {
		v.note(normal, "Changed", "The source's settings are as spec says.")
	}
	return err
}

// decide does what the annotations say about held runs, by the commands of the console.
func (v *rosterVisit) decide(ctx context.Context) error {
	for _, a := range []struct {
		annotation string
		handled    *string
		happened   string
		command    func(context.Context, *pg.DB, audit.Actor, id.Organization, id.RosterRun, time.Time) error
	}{
		{v1beta1.AnnotationApproveRun, &v.handled.ApproveRun, "Approved", roster.Approve},
		{v1beta1.AnnotationDiscardRun, &v.handled.DiscardRun, "Discarded", roster.Discard},
	} {
		if !asks(v.object, a.annotation, *a.handled) {
			continue
		}
		text := v.object.Annotations[a.annotation]
		err := v.ofRun(ctx, text, func(run id.RosterRun) error {
			return a.command(ctx, v.Webhooks.DB, v.actor(), v.organization.ID, run, v.Clock())
		})
		var f *fault.Error
		switch {
		case err == nil:
			v.note(normal, a.happened, "Run "+text+", as the annotation asks.")
		case errors.As(err, &f) && (f.Kind == fault.Invalid || f.Kind == fault.NotFound || f.Kind == fault.Conflict):
			v.note(warning, "DecisionRefused", a.annotation+": "+f.Message)
		default:
			return err
		}
		*a.handled = text
	}
	return nil
}

// ofRun does something about the run of the source with this number.
func (v *rosterVisit) ofRun(ctx context.Context, number string, do func(id.RosterRun) error) error {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return fault.New(fault.Invalid, "run", "%q is not the number of a run", number)
	}
	run, err := roster.Find(ctx, v.Webhooks.DB, v.organization.ID, id.RosterRun(n))
	if err != nil {
		return err
	}
	if run.Source.ID != v.source.ID {
		return fault.New(fault.NotFound, "run", "the source has no run %d", n)
	}
	return do(run.ID)
}

// look reads the runs.
func (v *rosterVisit) look(ctx context.Context) (err error) {
	if v.last, err = found(roster.LastRun(ctx, v.Webhooks.DB, v.organization.ID, v.source.ID)); err != nil {
		return err
	}
	v.held, err = found(roster.HeldRun(ctx, v.Webhooks.DB, v.organization.ID, v.source.ID))
	if v.asked = err == nil; v.held != nil && (v.last == nil || v.held.ID >= v.last.ID) {
		v.last = v.held // held since the last one was read
	}
	return err
}

// found is nil for a run that there is not.
func found(run roster.Run, err error) (*roster.Run, error) {
	switch {
	case fault.KindOf(err) == fault.NotFound:
		return nil, nil //nolint:nilnil // there is none
	case err != nil:
		return nil, err
	}
	return &run, nil
}

// next implements visit.
func (v *rosterVisit) next() time.Time {
	if v.last != nil && !v.last.State.Over() {
		return v.Clock().Add(runAskedEvery)
	}
	return time.Time{}
}

// ready implements visit.
func (v *rosterVisit) ready() condition {
	return condition{metav1.ConditionTrue, v1beta1.ReasonManaged, "The source is as spec says.", false}
}

// show implements visit.
func (v *rosterVisit) show(to resource, set func(string, condition)) {
	s := &to.(*v1beta1.RosterSource).Status
	s.Handled = v.handled
	if !v.asked {
		return
	}
	s.OrganizationID, s.SourceID = int64(v.organization.ID), int64(v.source.ID)
	s.LastRun, s.HeldRun = runOf(v.last), 0
	if v.held == nil {
		set(v1beta1.ConditionRunHeld, condition{metav1.ConditionFalse, v1beta1.ReasonNoRunHeld, "No run waits for a person.", false})
		return
	}
	s.HeldRun = int64(v.held.ID)
	set(v1beta1.ConditionRunHeld, condition{metav1.ConditionTrue, v1beta1.ReasonApprovalRequired, v.todo(), false})
}

// todo says why a run is held, and what to do about it.
func (v *rosterVisit) todo() string {
	reasons := make([]string, len(v.held.Reasons))
	for i, r := range v.held.Reasons {
		reasons[i] = r.Text
	}
	return fmt.Sprintf("Run %d is held: %s. It would deactivate %d people and take away %d places in classes. Look at %s, "+
		"and set the annotation %s: \"%d\" to apply it, or %s to end it.",
		v.held.ID, strings.Join(reasons, "; "), v.held.Deactivate, v.held.SeatsRemoved,
		roster.ReviewURL(v.Accounts.PublicURL, v.organization.Slug, v.held.ID), v1beta1.AnnotationApproveRun, v.held.ID, v1beta1.AnnotationDiscardRun)
}

func runOf(r *roster.Run) *v1beta1.RosterRun {
	if r == nil {
		return nil
	}
	c := r.Counts
	shown := &v1beta1.RosterRun{ID: int64(r.ID), State: string(r.State), Mode: string(r.Mode), StartedAt: *stamp(&r.CreatedAt),
		Created: int32(c.Create), Updated: int32(c.Update), Skipped: int32(c.Skip), Deactivated: int32(c.Deactivate),
		PlacesAdded: int32(c.SeatsAdded), PlacesRemoved: int32(c.SeatsRemoved), Issues: int32(r.Issues), Message: r.Fault}
	if !r.FinishedAt.IsZero() {
		shown.FinishedAt = stamp(&r.FinishedAt)
	}
	return shown
}

// removeRosterSource leaves the source to the platform.
func (r *Reconciler) removeRosterSource(ctx context.Context, object *v1beta1.RosterSource) error {
	ctx, cancel := context.WithTimeout(ctx, stepsLimit)
	defer cancel()
	db, err := r.db()
	if err != nil {
		return err
	}
	by := r.actorOf(object)
	return ignoreNotFound(roster.ReleaseSource(ctx, db, by, by.Name, object.Spec.DeletionPolicy != v1beta1.Retain, r.Clock()))
}
