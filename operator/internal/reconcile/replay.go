package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// replayAskedEvery is how often the figures of a replay that goes on are read.
const replayAskedEvery = 2 * time.Second

// replayVisit is the reconciliation of a WebhookReplay. One that has ended is not looked at again.
type replayVisit struct {
	*Reconciler
	occurrences
	object *v1beta1.WebhookReplay

	runs      []journal.Recovery // one for each URL
	org       id.Organization
	endpoints []webhook.Endpoint
	state     v1beta1.WebhookReplayStatus
}

// replays is the kind WebhookReplay.
func (r *Reconciler) replays() *kind[*v1beta1.WebhookReplay] {
	return &kind[*v1beta1.WebhookReplay]{
		Reconciler: r,
		name:       "WebhookReplay",
		stands:     "replay",
		swept:      "left to end by itself",
		finalizer:  v1beta1.ReplayFinalizer,
		empty:      func() *v1beta1.WebhookReplay { return &v1beta1.WebhookReplay{} },
		list:       func() client.ObjectList { return &v1beta1.WebhookReplayList{} },
		ours:       func(w *v1beta1.WebhookReplay) bool { return w.Spec.ClassName == r.Class },
		pending:    func(w *v1beta1.WebhookReplay) bool { return w.Status.StartTime == nil },
		begin: func(w *v1beta1.WebhookReplay) visit {
			return &replayVisit{Reconciler: r, object: w, state: *w.Status.DeepCopy()}
		},
		remove: r.removeReplay,
		id: func(w *v1beta1.WebhookReplay) int64 {
			if len(w.Status.URLs) == 0 {
				return 0
			}
			return w.Status.URLs[0].EndpointID
		},
		quiet: func(*v1beta1.WebhookReplay) {},
		became: func(_ string, ready metav1.Condition) occurrence {
			return occurrence{normal, ready.Reason, ready.Message}
		},
	}
}

// replayName names the replay in PostgreSQL. It has the uid, since a resource that is created again asks again.
func (r *Reconciler) replayName(object *v1beta1.WebhookReplay) string {
	return r.managedBy(client.ObjectKeyFromObject(object)) + "#" + string(object.UID)
}

// admits implements visit.
func (v *replayVisit) admits() []step {
	if v.state.CompletionTime != nil {
		return nil
	}
	return []step{v.find, v.mayReplay}
}

// steps implements visit.
func (v *replayVisit) steps() []step {
	if v.state.CompletionTime != nil {
		return nil
	}
	return []step{v.choose, v.start, v.sum}
}

// find reads what earlier visits have begun.
func (v *replayVisit) find(ctx context.Context) error {
	db, err := v.db()
	if err != nil {
		return err
	}
	v.runs, err = journal.Managed(ctx, db, v.replayName(v.object))
	return err
}

// mayReplay checks that the namespace may register URLs of the organization. If it no longer may, the replay is stopped.
func (v *replayVisit) mayReplay(ctx context.Context) error {
	slug, err := v.slug(ctx)
	if err != nil || slug == "" { // that the WebhookEndpoint is gone does not stop what has begun
		return err
	}
	why, err := v.foreign(ctx, v.object.Namespace, slug)
	if err != nil {
		return err
	}
	if why != "" {
		if err := journal.Stop(ctx, v.Webhooks.DB, v.actorOf(v.object), v.replayName(v.object), v.Clock()); err != nil {
			return err
		}
		return refuse(v1beta1.ReasonNamespaceNotAllowed, "The namespace %s may not register URLs of the organization %q: %s", v.object.Namespace, slug, why)
	}
	o, err := v.findOrganization(ctx, slug, "the replay begins")
	v.org = o.ID
	return err
}

// slug is that of the organization; "" for a replay that has begun and whose WebhookEndpoint is gone.
func (v *replayVisit) slug(ctx context.Context) (string, error) {
	if v.object.Spec.Organization != "" {
		return v.object.Spec.Organization, nil
	}
	var e v1beta1.WebhookEndpoint
	err := v.Client.Get(ctx, v.endpointName(), &e)
	if apierrors.IsNotFound(err) && v.state.StartTime == nil {
		return "", waitFor(v1beta1.ReasonEndpointNotFound, "There is no WebhookEndpoint %q in this namespace yet.", v.object.Spec.Endpoint)
	}
	return e.Spec.Organization, client.IgnoreNotFound(err)
}

func (v *replayVisit) endpointName() types.NamespacedName {
	return types.NamespacedName{Namespace: v.object.Namespace, Name: v.object.Spec.Endpoint}
}

// choose finds the URLs for which the replay has not begun. Once it has begun, there are none.
func (v *replayVisit) choose(ctx context.Context) error {
	switch {
	case v.state.StartTime != nil:
		return nil
	case v.object.Spec.Endpoint != "":
		e, err := v.findManaged(ctx, v.managedBy(v.endpointName()))
		if fault.KindOf(err) == fault.NotFound || err == nil && e.Organization != v.org {
			return waitFor(v1beta1.ReasonEndpointNotFound, "The WebhookEndpoint %q has no URL yet.", v.object.Spec.Endpoint)
		}
		if err != nil {
			return err
		}
		v.endpoints = []webhook.Endpoint{e.Endpoint}
	default:
		all, err := v.Webhooks.List(ctx, v.org)
		if err != nil {
			return err
		}
		v.endpoints = slices.DeleteFunc(all, func(e webhook.Endpoint) bool { return !e.SwitchedOn })
	}
	v.endpoints = slices.DeleteFunc(v.endpoints, func(e webhook.Endpoint) bool {
		return slices.ContainsFunc(v.runs, func(r journal.Recovery) bool { return r.Endpoint == e.ID })
	})
	return nil
}

// start begins the replay of each URL, by the command of the console.
func (v *replayVisit) start(ctx context.Context) error {
	if v.state.StartTime != nil {
		return nil
	}
	now := v.Clock()
	until := now
	if to := v.object.Spec.To; to != nil {
		until = to.Time
	}
	events := make([]webhook.Type, len(v.object.Spec.Events))
	for i, e := range v.object.Spec.Events {
		events[i] = webhook.Type(e)
	}
	for _, e := range v.endpoints {
		asked := journal.Recovery{Organization: v.org, Endpoint: e.ID, Since: v.object.Spec.From.Time, Until: until,
			ManagedBy: v.replayName(v.object)}
		if len(events) > 0 {
			asked.Events = events
		}
		run, err := journal.Recover(ctx, v.Webhooks.DB, v.actorOf(v.object), asked, now)
		if err != nil {
			return err
		}
		v.runs = append(v.runs, run)
	}
	v.state.StartTime = stamp(&now)
	v.note(normal, "Started", fmt.Sprintf("Events are sent again to %d URLs.", len(v.runs)))
	return nil
}

// sum adds up how far the URLs are. What is gone from PostgreSQL has ended with its URL.
func (v *replayVisit) sum(context.Context) error {
	urls := make([]v1beta1.ReplayedURL, 0, len(v.runs))
	for _, r := range v.runs {
		urls = append(urls, v1beta1.ReplayedURL{EndpointID: int64(r.Endpoint), State: string(r.Status), Total: int64(r.Total), Replayed: int64(r.PutBack)})
	}
	for _, before := range v.state.URLs {
		if !slices.ContainsFunc(urls, func(u v1beta1.ReplayedURL) bool { return u.EndpointID == before.EndpointID }) {
			before.State = string(journal.RecoveryStopped)
			urls = append(urls, before)
		}
	}
	slices.SortFunc(urls, func(a, b v1beta1.ReplayedURL) int { return cmp.Compare(a.EndpointID, b.EndpointID) })
	v.state.URLs, v.state.Total, v.state.Replayed = urls, 0, 0
	over := true
	for _, u := range urls {
		v.state.Total += u.Total
		v.state.Replayed += u.Replayed
		over = over && u.State != string(journal.RecoveryRunning)
	}
	if over {
		now := v.Clock()
		v.state.CompletionTime = stamp(&now)
	}
	return nil
}

// stopped says whether the replay ended before all events were due again.
func (v *replayVisit) stopped() bool {
	return slices.ContainsFunc(v.state.URLs, func(u v1beta1.ReplayedURL) bool { return u.State == string(journal.RecoveryStopped) })
}

// next implements visit.
func (v *replayVisit) next() time.Time {
	if v.state.StartTime == nil || v.state.CompletionTime != nil {
		return time.Time{}
	}
	return v.Clock().Add(replayAskedEvery)
}

// ready implements visit.
func (v *replayVisit) ready() condition {
	switch s := v.state; {
	case s.StartTime == nil:
		return condition{metav1.ConditionFalse, v1beta1.ReasonNotStarted, "The replay has not begun.", false}
	case s.CompletionTime == nil:
		return condition{metav1.ConditionFalse, v1beta1.ReasonReplaying, "Undelivered events are made due again, the oldest first.", false}
	case v.stopped():
		return condition{metav1.ConditionFalse, v1beta1.ReasonStopped,
			fmt.Sprintf("The replay was stopped, as the URL was switched off or removed; %d of %d events are due again.", s.Replayed, s.Total), true}
	default:
		return condition{metav1.ConditionTrue, v1beta1.ReasonCompleted, fmt.Sprintf("%d of %d events are due again.", s.Replayed, s.Total), false}
	}
}

// show implements visit.
func (v *replayVisit) show(to resource, set func(string, condition)) {
	s := &to.(*v1beta1.WebhookReplay).Status
	s.StartTime, s.CompletionTime, s.Total, s.Replayed, s.URLs = v.state.StartTime, v.state.CompletionTime, v.state.Total, v.state.Replayed, v.state.URLs
	is := v.ready()
	complete, failed := is, is
	complete.status, failed.status = metav1.ConditionFalse, metav1.ConditionFalse
	if s.CompletionTime != nil {
		complete.status = is.status
		if v.stopped() {
			failed.status = metav1.ConditionTrue
		}
	}
	set(v1beta1.ConditionComplete, complete)
	set(v1beta1.ConditionFailed, failed)
}

// removeReplay stops what has not ended.
func (r *Reconciler) removeReplay(ctx context.Context, object *v1beta1.WebhookReplay) error {
	if object.Status.CompletionTime != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stepsLimit)
	defer cancel()
	db, err := r.db()
	if err != nil {
		return err
	}
	return journal.Stop(ctx, db, r.actorOf(object), r.replayName(object), r.Clock())
}
