package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/operator/api/v1alpha1"
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
	object *v1alpha1.WebhookEndpoint

	asked    bool // PostgreSQL has said whether there is an endpoint
	endpoint *webhook.Endpoint
	added    bool              // by this visit
	others   *webhook.Endpoint // which people manage, and the resource takes over
	org      id.Organization
	backlog  int

	secret    string
	replaces  string // AnnotationReplaces of the Secret
	secretRef *v1alpha1.SecretKeyRef
	handled   v1alpha1.HandledTokens
}

// endpoints is the kind WebhookEndpoint.
func (r *Reconciler) endpoints() *kind[*v1alpha1.WebhookEndpoint] {
	return &kind[*v1alpha1.WebhookEndpoint]{
		Reconciler: r,
		name:       "WebhookEndpoint",
		stands:     "URL",
		swept:      "removed",
		finalizer:  v1alpha1.Finalizer,
		empty:      func() *v1alpha1.WebhookEndpoint { return &v1alpha1.WebhookEndpoint{} },
		list:       func() client.ObjectList { return &v1alpha1.WebhookEndpointList{} },
		ours:       func(*v1alpha1.WebhookEndpoint) bool { return true },
		pending:    pending,
		begin: func(e *v1alpha1.WebhookEndpoint) visit {
			return &endpointVisit{Reconciler: r, object: e, handled: e.Status.Handled}
		},
		remove: func(ctx context.Context, e *v1alpha1.WebhookEndpoint) error {
			return r.endEndpoint(ctx, e)
		},
		id:     func(e *v1alpha1.WebhookEndpoint) int64 { return e.Status.EndpointID },
		quiet:  quietEndpoint,
		became: endpointBecame,
	}
}

// pending says whether an annotation asks for something that has not been done.
func pending(object *v1alpha1.WebhookEndpoint) bool {
	h := object.Status.Handled
	return asks(object, v1alpha1.AnnotationRotateSecret, h.RotateSecret) ||
		asks(object, v1alpha1.AnnotationTurnOn, h.TurnOn) ||
		asks(object, v1alpha1.AnnotationSendTest, h.SendTest)
}

// asks says whether the annotation has a token other than the one handled last.
func asks(object *v1alpha1.WebhookEndpoint, annotation, handled string) bool {
	token := object.Annotations[annotation]
	return token != "" && token != handled
}

// steps implements visit.
func (v *endpointVisit) steps() []step {
	return []step{v.find, v.mayRegister, v.belong, v.claim, v.ensureSecret, v.register, v.sign, v.turn, v.test, v.measure}
}

// actor is the resource as the giver of commands.
func (v *endpointVisit) actor() audit.Actor {
	return audit.Actor{Kind: audit.Operator, Name: v.managedBy(client.ObjectKeyFromObject(v.object))}
}

// find reads the endpoint that an earlier visit registered.
func (v *endpointVisit) find(ctx context.Context) error {
	e, err := v.findManaged(ctx, v.managedBy(client.ObjectKeyFromObject(v.object)))
	switch {
	case fault.KindOf(err) == fault.NotFound:
	case err != nil:
		return err
	default:
		v.endpoint = &e
	}
	v.asked = true
	return nil
}

// findManaged reads the endpoint that the resource manages. While PostgreSQL is known not to answer, nobody
// waits for it. Faults: NotFound.
func (r *Reconciler) findManaged(ctx context.Context, managedBy string) (webhook.Endpoint, error) {
	if r.Probe.Failing() {
		return webhook.Endpoint{}, errFailing
	}
	return r.Webhooks.FindManaged(ctx, managedBy)
}

// mayRegister checks that the namespace may register URLs of the organization. If it no longer may, nothing
// more is sent to the URL.
func (v *endpointVisit) mayRegister(ctx context.Context) error {
	has, err := v.namespaceLabels(ctx)
	if err != nil {
		return err
	}
	slug, namespace := v.object.Spec.Organization, v.object.Namespace
	resource, err := v.managerOf(ctx, slug)
	if err != nil {
		return err
	}
	var why string
	switch {
	case resource == nil || resource.Spec.AllowedNamespaces == nil:
		if has[v1alpha1.LabelOrganization] == slug {
			return nil
		}
		why = fmt.Sprintf("its label %s is %q. A cluster administrator sets it.", v1alpha1.LabelOrganization, has[v1alpha1.LabelOrganization])
	default:
		allowed, err := metav1.LabelSelectorAsSelector(resource.Spec.AllowedNamespaces)
		if err == nil && allowed.Matches(labels.Set(has)) {
			return nil
		}
		why = fmt.Sprintf("the Organization %q does not allow it (spec.allowedNamespaces).", resource.Name)
	}
	if err := v.switchOff(ctx, offForeign); err != nil {
		return err
	}
	return refuse(v1alpha1.ReasonNamespaceNotAllowed, "The namespace %s may not register URLs of the organization %q: %s", namespace, slug, why)
}

// namespaceLabels reads the labels of the resource's namespace. Without permission to watch all namespaces it asks the
// API server for this one.
func (v *endpointVisit) namespaceLabels(ctx context.Context) (map[string]string, error) {
	var namespace metav1.PartialObjectMetadata
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	reader := client.Reader(v.Client)
	if len(v.Namespaces) > 0 {
		reader = v.Live
	}
	err := reader.Get(ctx, types.NamespacedName{Name: v.object.Namespace}, &namespace)
	return namespace.Labels, err
}

// managerOf is the resource that manages the organization, and nil when none does.
func (v *endpointVisit) managerOf(ctx context.Context, slug string) (*v1beta1.Organization, error) {
	if !v.Organizations {
		return nil, nil //nolint:nilnil // people manage it
	}
	var all v1beta1.OrganizationList
	if err := v.Client.List(ctx, &all, client.MatchingFields{bySlug: slug}); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if o := &all.Items[i]; o.Status.OrganizationID != 0 && o.Spec.ClassName == v.Class {
			return o, nil
		}
	}
	return nil, nil //nolint:nilnil // people manage it
}

// belong finds the organization. One that is created later is announced by PostgreSQL.
func (v *endpointVisit) belong(ctx context.Context) error {
	o, err := org.Find(ctx, v.Webhooks.DB, v.object.Spec.Organization)
	if fault.KindOf(err) == fault.NotFound {
		return waitFor(v1alpha1.ReasonOrganizationNotFound, "There is no organization %q yet; the URL is registered once it is created.", v.object.Spec.Organization)
	}
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
		return waitFor(v1alpha1.ReasonURLInUse, "The organization already has this URL, kept by %s. It is registered here once that one lets it go.", e.ManagedBy)
	case !v.object.Spec.Adopt:
		return waitFor(v1alpha1.ReasonURLInUse, "The organization already has this URL. Take it over with spec.adopt: true, or delete it in the console.")
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
	retained := spec.DeletionPolicy == v1alpha1.Retain
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
	v.endpoint, v.added = &e, true
	return nil
}

// sign makes the Secret's signing secret the current one.
func (v *endpointVisit) sign(ctx context.Context) error {
	signs, err := v.Webhooks.Signs(ctx, v.org, v.endpoint.ID, v.secret)
	if err != nil || signs {
		return err
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
	asked := asks(v.object, v1alpha1.AnnotationTurnOn, v.handled.TurnOn) && !v.added
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
		v.endpoint = &e
	}
	v.handled.TurnOn = v.object.Annotations[v1alpha1.AnnotationTurnOn]
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
	v.endpoint = &e
	return nil
}

// test sends a ping on request.
func (v *endpointVisit) test(ctx context.Context) error {
	if asks(v.object, v1alpha1.AnnotationSendTest, v.handled.SendTest) {
		delivery, err := v.Webhooks.SendTest(ctx, v.actor(), v.org, v.endpoint.ID, v.Clock())
		if err != nil {
			return err
		}
		v.note(normal, "TestSent", fmt.Sprintf("A ping is on its way (%s).", delivery))
	}
	v.handled.SendTest = v.object.Annotations[v1alpha1.AnnotationSendTest]
	return nil
}

// measure counts the URL's backlog.
func (v *endpointVisit) measure(ctx context.Context) error {
	backlogs, err := v.Webhooks.Backlogs(ctx, v.endpoint.ID)
	v.backlog = backlogs[v.endpoint.ID]
	return err
}
