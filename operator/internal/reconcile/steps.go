package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// The reasons for which the operator switches a URL off. It turns on only URLs with such a
// reason, not those that the sender or a person has switched off.
const (
	offSuspended = "Suspended by its Kubernetes resource (spec.suspend)."
	offForeign   = "Its Kubernetes namespace may not register URLs of this organization any more."
)

// endpointVisit is the reconciliation of a WebhookEndpoint.
type endpointVisit struct {
	*Reconciler
	occurrences
	object *v1beta1.WebhookEndpoint

	asked    bool // PostgreSQL has said whether there is an endpoint
	endpoint *webhook.Endpoint
	slug     string            // of its organization, if the visit found it
	counted  bool              // the backlog is that of now
	added    bool              // by this visit
	others   *webhook.Endpoint // which people manage, and the resource takes over
	org      id.Organization
	backlog  int

	secretRef     *v1beta1.SecretKeyRef
	secret        string // "" when it signs, as an earlier visit has seen
	secretVersion string // the resource version of the Secret that has it
	replaces      string // AnnotationReplaces of that
	handled       v1beta1.HandledTokens
}

// endpoints is the kind WebhookEndpoint.
func (r *Reconciler) endpoints() *kind[*v1beta1.WebhookEndpoint] {
	return &kind[*v1beta1.WebhookEndpoint]{
		Reconciler: r,
		name:       "WebhookEndpoint",
		stands:     "URL",
		swept:      "removed",
		finalizer:  v1beta1.EndpointFinalizer,
		empty:      func() *v1beta1.WebhookEndpoint { return &v1beta1.WebhookEndpoint{} },
		list:       func() client.ObjectList { return &v1beta1.WebhookEndpointList{} },
		ours:       func(e *v1beta1.WebhookEndpoint) bool { return e.Spec.ClassName == r.Class },
		pending:    pending,
		begin: func(e *v1beta1.WebhookEndpoint) visit {
			return &endpointVisit{Reconciler: r, object: e, handled: e.Status.Handled}
		},
		remove: func(ctx context.Context, e *v1beta1.WebhookEndpoint) error {
			return r.endEndpoint(ctx, e)
		},
		id:     func(e *v1beta1.WebhookEndpoint) int64 { return e.Status.EndpointID },
		quiet:  quietEndpoint,
		became: endpointBecame,
	}
}

// pending says whether an annotation asks for something that has not been done.
func pending(object *v1beta1.WebhookEndpoint) bool {
	h := object.Status.Handled
	return asks(object, v1beta1.AnnotationRotateSecret, h.RotateSecret) ||
		asks(object, v1beta1.AnnotationTurnOn, h.TurnOn) ||
		asks(object, v1beta1.AnnotationSendTest, h.SendTest)
}

// asks says whether the annotation has a token other than the one handled last.
func asks(object client.Object, annotation, handled string) bool {
	token := object.GetAnnotations()[annotation]
	return token != "" && token != handled
}

// admits implements visit.
func (v *endpointVisit) admits() []step { return []step{v.find, v.mayRegister} }

// steps implements visit.
func (v *endpointVisit) steps() []step {
	return []step{v.belong, v.claim, v.ensureSecret, v.register, v.sign, v.turn, v.test, v.measure}
}

func (v *endpointVisit) actor() audit.Actor { return v.actorOf(v.object) }

// find reads the endpoint that an earlier visit registered.
func (v *endpointVisit) find(ctx context.Context) error {
	e, err := v.findManaged(ctx, v.managedBy(client.ObjectKeyFromObject(v.object)))
	switch {
	case fault.KindOf(err) == fault.NotFound:
	case err != nil:
		return err
	default:
		v.endpoint, v.slug, v.backlog, v.counted = &e.Endpoint, e.Slug, e.Backlog, true
	}
	v.asked = true
	return nil
}

// findManaged reads the endpoint that the resource manages. While PostgreSQL is known not to answer, nobody
// waits for it. Faults: NotFound.
func (r *Reconciler) findManaged(ctx context.Context, managedBy string) (webhook.Managed, error) {
	if r.Probe.Failing() {
		return webhook.Managed{}, errFailing
	}
	return r.Webhooks.FindManaged(ctx, managedBy)
}

// mayRegister checks that the namespace may register URLs of the organization. If it no longer may, nothing
// more is sent to the URL.
func (v *endpointVisit) mayRegister(ctx context.Context) error {
	why, err := v.foreign(ctx, v.object.Namespace, v.object.Spec.Organization)
	if err != nil || why == "" {
		return err
	}
	if err := v.switchOff(ctx, offForeign); err != nil {
		return err
	}
	return refuse(v1beta1.ReasonNamespaceNotAllowed, "The namespace %s may not register URLs of the organization %q: %s",
		v.object.Namespace, v.object.Spec.Organization, why)
}

// belong finds the organization. One that is created later is announced by PostgreSQL.
func (v *endpointVisit) belong(ctx context.Context) error {
	if v.endpoint != nil && v.slug == v.object.Spec.Organization {
		v.org = v.endpoint.Organization
		return nil
	}
	o, err := v.findOrganization(ctx, v.object.Spec.Organization, "the URL is registered")
	v.org = o.ID
	return err
}

// claim looks whether the organization has the URL already, and whether the resource takes it over.
func (v *endpointVisit) claim(ctx context.Context) error {
	if v.endpoint != nil {
		return nil
	}
	want, err := v.settings()
	if err != nil {
		return err
	}
	e, err := v.Webhooks.FindURL(ctx, v.org, *want.URL)
	switch {
	case fault.KindOf(err) == fault.NotFound:
		return nil
	case err != nil:
		return err
	case e.ManagedBy != "":
		return waitFor(v1beta1.ReasonURLInUse, "The organization already has this URL, kept by %s. It is registered here once that one lets it go.", e.ManagedBy)
	case !v.object.Spec.Adopt:
		return waitFor(v1beta1.ReasonURLInUse, "The organization already has this URL. Take it over with spec.adopt: true, or delete it in the console.")
	}
	v.others = &e
	return nil
}

// register adds the endpoint or updates its settings.
func (v *endpointVisit) register(ctx context.Context) error {
	want, err := v.settings()
	if err != nil {
		return err
	}
	if v.endpoint != nil && v.endpoint.Organization != v.org { // the resource was deleted and created for another one
		if err := v.Webhooks.Remove(ctx, v.actor(), v.endpoint.Organization, v.endpoint.ID, v.Clock()); err != nil {
			return err
		}
		v.endpoint = nil
	}
	if v.endpoint == nil && v.others == nil {
		return v.add(ctx, want)
	}
	if v.endpoint == nil {
		e, err := v.Webhooks.Adopt(ctx, v.actor(), v.org, v.others.ID, v.managedBy(client.ObjectKeyFromObject(v.object)), v.Clock())
		if err != nil {
			return err
		}
		v.endpoint = &e
		v.note(normal, "Adopted", "The URL was taken over, with its signing secret, its log and what waits for it.")
	}
	if v.endpoint.URL == *want.URL && v.endpoint.TimeZone == *want.TimeZone && slices.Equal(v.endpoint.Events, *want.Events) &&
		v.endpoint.Retained == *want.Retained {
		return nil
	}
	e, err := v.Webhooks.Change(ctx, v.actor(), v.org, v.endpoint.ID, want, v.Clock())
	if err != nil {
		return err
	}
	v.endpoint = &e
	v.note(normal, "Changed", "The URL's settings are as spec says.")
	return nil
}

func (v *endpointVisit) settings() (webhook.Settings, error) {
	spec := v.object.Spec
	url, err := v.Webhooks.Policy.CheckURL("url", spec.URL)
	if err != nil {
		return webhook.Settings{}, err
	}
	events := make([]webhook.Type, len(spec.Events))
	for i, e := range spec.Events {
		events[i] = webhook.Type(e)
	}
	retained := spec.DeletionPolicy == v1beta1.Retain
	zone := spec.TimeZone
	if zone == "" {
		zone = "UTC"
	}
	return webhook.Settings{URL: &url, Events: &events, TimeZone: &zone, Retained: &retained}, nil
}

func (v *endpointVisit) add(ctx context.Context, s webhook.Settings) error {
	s.Secret, s.ManagedBy = v.secret, v.managedBy(client.ObjectKeyFromObject(v.object))
	e, _, err := v.Webhooks.Add(ctx, v.actor(), v.org, s, v.Clock())
	if err != nil {
		return err
	}
	v.endpoint, v.added, v.backlog, v.counted = &e, true, 0, true
	return nil
}

// sign makes the Secret's signing secret the current one.
func (v *endpointVisit) sign(ctx context.Context) error {
	if v.secret == "" {
		return nil
	}
	signs, err := v.Webhooks.Signs(ctx, v.org, v.endpoint.ID, v.secret)
	if err != nil {
		return err
	}
	if signs {
		v.remember()
		return nil
	}
	e, _, err := v.Webhooks.Rotate(ctx, v.actor(), v.org, v.endpoint.ID, v.secret, v.overlap(), v.Clock())
	if err != nil {
		return err
	}
	v.endpoint = &e
	said := fmt.Sprintf("The signing secret was replaced (version %d); the next attempt is signed with it.", e.SecretVersion)
	if until := e.Overlap(v.Clock()); until != nil {
		said += " The one before signs, too, until " + until.UTC().Format(time.RFC3339) + "."
	}
	v.note(normal, "SecretRotated", said)
	v.remember()
	return nil
}

// overlap is how long the secret before goes on signing. One whose Secret was deleted may be known to others.
func (v *endpointVisit) overlap() time.Duration {
	r := v.object.Spec.Rotation
	if r == nil || v.replaces == strconv.Itoa(v.endpoint.SecretVersion) {
		return 0
	}
	overlap, _ := time.ParseDuration(r.Overlap) // the API server takes no other, and "" is none
	return overlap
}

// turn suspends and resumes a URL, and on request turns on one that was switched off.
func (v *endpointVisit) turn(ctx context.Context) error {
	asked := asks(v.object, v1beta1.AnnotationTurnOn, v.handled.TurnOn) && !v.added
	switch {
	case v.object.Spec.Suspend:
		if err := v.switchOff(ctx, offSuspended); err != nil {
			return err
		}
	case !v.endpoint.SwitchedOn && (asked || offByOperator(v.endpoint)):
		e, err := v.Webhooks.TurnOn(ctx, v.actor(), v.org, v.endpoint.ID, v.Clock())
		if err != nil {
			return err
		}
		v.endpoint, v.counted = &e, false
	}
	v.handled.TurnOn = v.object.Annotations[v1beta1.AnnotationTurnOn]
	return nil
}

func offByOperator(e *webhook.Endpoint) bool {
	return !e.SwitchedOn && (e.SwitchedOffReason == offSuspended || e.SwitchedOffReason == offForeign)
}

func (v *endpointVisit) switchOff(ctx context.Context, reason string) error {
	if v.endpoint == nil || !v.endpoint.SwitchedOn && v.endpoint.SwitchedOffReason == reason {
		return nil
	}
	e, err := v.Webhooks.SwitchOff(ctx, v.actor(), v.endpoint.Organization, v.endpoint.ID, reason, v.Clock())
	if err != nil {
		return err
	}
	v.endpoint, v.counted = &e, false
	return nil
}

// test sends a ping on request.
func (v *endpointVisit) test(ctx context.Context) error {
	if asks(v.object, v1beta1.AnnotationSendTest, v.handled.SendTest) {
		delivery, err := v.Webhooks.SendTest(ctx, v.actor(), v.org, v.endpoint.ID, v.Clock())
		if err != nil {
			return err
		}
		v.counted = false
		v.note(normal, "TestSent", fmt.Sprintf("A ping is on its way (%s).", delivery))
	}
	v.handled.SendTest = v.object.Annotations[v1beta1.AnnotationSendTest]
	return nil
}

// measure counts the backlog again, where the visit has changed it or was not told.
func (v *endpointVisit) measure(ctx context.Context) error {
	if v.counted {
		return nil
	}
	backlogs, err := v.Webhooks.Backlogs(ctx, v.endpoint.ID)
	v.backlog = backlogs[v.endpoint.ID]
	return err
}
