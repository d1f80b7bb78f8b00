package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// What the operator needs in the whole cluster when labels select its namespaces: its own kinds, but no Secrets. Those are
// in registrar-operator-namespaced, which it may bind, and in the selected namespaces does.
// +kubebuilder:rbac:roleName=registrar-operator-selecting,groups=registrar.dev,resources=webhookendpoints;apikeys;rostersources;webhookreplays,verbs=get;list;watch;patch
// +kubebuilder:rbac:roleName=registrar-operator-selecting,groups=registrar.dev,resources=webhookendpoints/status;apikeys/status;rostersources/status;webhookreplays/status,verbs=patch
// +kubebuilder:rbac:roleName=registrar-operator-selecting,groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:roleName=registrar-operator-selecting,groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:roleName=registrar-operator-selecting,groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=registrar-operator-namespaced,verbs=bind
// +kubebuilder:rbac:roleName=registrar-operator-selecting,groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=create
// +kubebuilder:rbac:roleName=registrar-operator-selecting,groups=rbac.authorization.k8s.io,resources=rolebindings,resourceNames=registrar-operator-namespaced,verbs=get;list;watch;delete

const (
	// Rights are in force within a second of their RoleBinding. So long nobody is told that they are missing.
	rightsWithin = 5 * time.Second
	askRights    = 200 * time.Millisecond
	// Where others give the rights, nothing says when.
	askRightsLater = 5 * time.Second
	// A namespace's Secrets are listed within this, or it is tried again.
	listedWithin = 10 * time.Second
)

// selection keeps track of the namespaces that Options.Selector selects. In each it has the rights given by a RoleBinding and
// watches the Secrets; resources of other namespaces are left as they are.
type selection struct {
	*Reconciler

	config  *rest.Config
	options cache.Options // of the watches of Secrets
	changed func(context.Context, change)
	subject rbacv1.Subject  // the operator's own; Options.NamespaceRole is bound to it
	ends    context.Context // with the manager

	mu     sync.Mutex
	served map[string]*membership
}

// membership is how far a selected namespace has come.
type membership struct {
	stop    context.CancelFunc // ends the watch of the Secrets; nil before it has begun
	secrets client.Reader      // their metadata, since then
	since   time.Time          // when the rights were missed first
	missing string             // which; "" while they may still come into force
}

// OwnBindings are the RoleBindings that the cache holds: those of the name that the operator gives its own.
func OwnBindings(role string) map[client.Object]cache.ByObject {
	if role == "" {
		return nil
	}
	return map[client.Object]cache.ByObject{&rbacv1.RoleBinding{}: {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, role)}}
}

// setupSelection adds the controller of the selected namespaces.
func (r *Reconciler) setupSelection(ctx context.Context, mgr manager.Manager, l *listener) error {
	s := &selection{Reconciler: r, config: mgr.GetConfig(), changed: l.send, ends: ctx, served: map[string]*membership{},
		options: cache.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(), DefaultTransform: Slim}}
	r.selected = s
	b := ctrl.NewControllerManagedBy(mgr).Named("namespace").
		For(&corev1.Namespace{}, builder.OnlyMetadata, builder.WithPredicates(predicate.LabelChangedPredicate{}))
	if r.NamespaceRole != "" {
		review := &authenticationv1.SelfSubjectReview{}
		if err := mgr.GetClient().Create(ctx, review); err != nil {
			return fmt.Errorf("who is the operator? %w", err)
		}
		s.subject = subjectOf(review.Status.UserInfo.Username)
		b = b.Watches(&rbacv1.RoleBinding{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, binding client.Object) []ctrl.Request {
			return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: binding.GetNamespace()}}}
		}))
	}
	return b.Complete(s)
}

// subjectOf is the subject of a RoleBinding that stands for a user.
func subjectOf(user string) rbacv1.Subject {
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		if namespace, name, ok := strings.Cut(account, ":"); ok {
			return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
		}
	}
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}
}

// Reconcile implements reconcile.Reconciler: it has a namespace join or leave.
func (s *selection) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*listedWithin)
	defer cancel()
	name := req.Name
	selects, going, err := s.selects(ctx, name)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case !selects:
		s.leave(ctx, name)
		return ctrl.Result{}, s.unbind(ctx, name)
	case going: // its RoleBinding may have gone before its resources, whose end needs no Secrets
		return ctrl.Result{}, nil
	}
	if err := s.bind(ctx, name); err != nil {
		if apierrors.IsForbidden(err) || isRefusal(err) {
			return s.lacks(ctx, name, err), nil
		}
		return ctrl.Result{}, err
	}
	if s.watches(name) {
		return ctrl.Result{}, nil
	}
	if err := s.mayRead(ctx, name); apierrors.IsForbidden(err) {
		return s.lacks(ctx, name, err), nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, s.join(ctx, name)
}

// selects says whether the namespace is one of the operator's, and whether it is being deleted.
func (s *selection) selects(ctx context.Context, name string) (selects, going bool, err error) {
	var namespace metav1.PartialObjectMetadata
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := s.Client.Get(ctx, types.NamespacedName{Name: name}, &namespace); err != nil {
		return false, false, client.IgnoreNotFound(err)
	}
	return s.Selector.Matches(labels.Set(namespace.Labels)), !namespace.DeletionTimestamp.IsZero(), nil
}

// bind gives the operator its rights in the namespace.
func (s *selection) bind(ctx context.Context, namespace string) error {
	if s.NamespaceRole == "" {
		return nil // others do
	}
	var binding rbacv1.RoleBinding
	err := s.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: s.NamespaceRole}, &binding)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return err
	case binding.RoleRef.Kind == "ClusterRole" && binding.RoleRef.Name == s.NamespaceRole && slices.Contains(binding.Subjects, s.subject):
		return nil
	default:
		return refuse(v1beta1.ReasonNamespaceNotServed, "the RoleBinding %s of the namespace gives the operator no rights; delete it, and the operator makes its own.", s.NamespaceRole)
	}
	err = s.Client.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: s.NamespaceRole,
			Labels: map[string]string{"app.kubernetes.io/name": "registrar", labelManager: string(fieldManager)}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: s.NamespaceRole},
		Subjects: []rbacv1.Subject{s.subject},
	}, fieldManager)
	if apierrors.IsAlreadyExists(err) {
		return nil // the cache has not seen it yet
	}
	return err
}

// unbind takes the rights away that bind has given.
func (s *selection) unbind(ctx context.Context, namespace string) error {
	if s.NamespaceRole == "" {
		return nil
	}
	var binding rbacv1.RoleBinding
	err := s.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: s.NamespaceRole}, &binding)
	if err != nil || !bound(&binding) {
		return client.IgnoreNotFound(err)
	}
	slog.InfoContext(ctx, "a namespace is not selected any more; the operator gives its rights there back", "namespace", namespace)
	return client.IgnoreNotFound(s.Client.Delete(ctx, &binding, client.Preconditions{UID: &binding.UID}))
}

// bound says whether an operator has made the RoleBinding.
func bound(binding *rbacv1.RoleBinding) bool {
	return binding.Labels[labelManager] == string(fieldManager)
}

// mayRead lists one Secret, which needs the right to watch all.
func (s *selection) mayRead(ctx context.Context, namespace string) error {
	var secrets metav1.PartialObjectMetadataList
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	return s.Live.List(ctx, &secrets, client.InNamespace(namespace), client.Limit(1))
}

// lacks notes that rights are missing, and when to ask again. After a while the resources of the namespace say so.
func (s *selection) lacks(ctx context.Context, namespace string, why error) ctrl.Result {
	s.mu.Lock()
	m := s.served[namespace]
	if m == nil {
		m = &membership{since: s.Clock()}
		s.served[namespace] = m
	}
	waited := s.Clock().Sub(m.since) >= rightsWithin
	tell := waited && m.missing != why.Error()
	if tell {
		m.missing = why.Error()
	}
	s.mu.Unlock()
	if !waited {
		return ctrl.Result{RequeueAfter: askRights}
	}
	if tell {
		slog.WarnContext(ctx, "a selected namespace cannot be served; it is tried again", "namespace", namespace, "error", why)
		s.changed(ctx, change{namespace: namespace})
	}
	return ctrl.Result{RequeueAfter: askRightsLater}
}

func (s *selection) watches(namespace string) bool { return s.secretsOf(namespace) != nil }

// secretsOf is the cache of a namespace's Secrets; nil while they are not watched.
func (s *selection) secretsOf(namespace string) client.Reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.served[namespace]; m != nil {
		return m.secrets
	}
	return nil
}

// join watches the Secrets of the namespace, and then has its resources visited.
func (s *selection) join(ctx context.Context, namespace string) error { //nolint:contextcheck // the watch outlives the visit
	options := s.options
	options.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	watch, err := cache.New(s.config, options)
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(s.ends)
	go func() { _ = watch.Start(watching) }() // returns nothing but nil
	if err := s.watchSecrets(ctx, watching, watch, namespace); err != nil {
		stop()
		return err
	}
	s.mu.Lock()
	s.served[namespace] = &membership{stop: stop, secrets: watch}
	s.mu.Unlock()
	slog.InfoContext(ctx, "a namespace is served", "namespace", namespace)
	s.changed(ctx, change{namespace: namespace})
	return nil
}

// watchSecrets returns when the Secrets of the namespace are known, and tells of each change from then on.
func (s *selection) watchSecrets(ctx, watching context.Context, watch cache.Cache, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, listedWithin)
	defer cancel()
	var secret metav1.PartialObjectMetadata
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	informer, err := watch.GetInformer(ctx, &secret)
	if err != nil {
		return fmt.Errorf("the Secrets of the namespace %s: %w", namespace, err)
	}
	tell := func(o any) {
		if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		if of, ok := o.(client.Object); ok {
			s.changed(watching, change{namespace: namespace, secret: of.GetName()})
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, first bool) {
			if !first { // all resources are visited then
				tell(o)
			}
		},
		UpdateFunc: func(_, o any) { tell(o) },
		DeleteFunc: tell,
	})
	return err
}

// leave ends the watch of the namespace's Secrets, and has its resources say that they are not served any more.
func (s *selection) leave(ctx context.Context, namespace string) {
	s.mu.Lock()
	m := s.served[namespace]
	delete(s.served, namespace)
	s.mu.Unlock()
	if m == nil {
		return
	}
	if m.stop != nil {
		m.stop()
	}
	s.changed(ctx, change{namespace: namespace})
}

// standing is what the operator does about resources of a namespace.
type standing struct {
	refusal *refusal // why it does no more than the end of what belongs to nobody; nil where it serves
	joins   bool     // it will within seconds, and then visits them
}

// standing of a namespace; everything is served where no labels select.
func (r *Reconciler) standing(ctx context.Context, namespace string) (standing, error) {
	s := r.selected
	if s == nil || namespace == "" {
		return standing{}, nil
	}
	selects, _, err := s.selects(ctx, namespace)
	if err != nil {
		return standing{}, err
	}
	if !selects {
		return standing{refusal: &refusal{reason: v1beta1.ReasonNamespaceNotServed, waits: true,
			message: fmt.Sprintf("The operator serves namespaces with the labels %s. What this resource stands for stays as it is; nothing follows its spec.", s.Selector)}}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m := s.served[namespace]; {
	case m == nil:
		return standing{joins: true}, nil
	case m.stop != nil:
		return standing{}, nil
	case m.missing == "":
		return standing{joins: true}, nil
	default:
		return standing{refusal: &refusal{reason: v1beta1.ReasonNamespaceNotServed, waits: true,
			message: "The operator cannot do its work in this namespace, and tries again: " + m.missing}}, nil
	}
}

// visible says whether the operator has to do with a resource: one of another namespace is left alone that it has never held.
func (k *kind[T]) visible(ctx context.Context, o T) bool {
	if k.selected == nil || o.GetNamespace() == "" || slices.Contains(o.GetFinalizers(), k.finalizer) {
		return true
	}
	selects, _, err := k.selected.selects(ctx, o.GetNamespace())
	return err == nil && selects
}

func isRefusal(err error) bool {
	_, ok := err.(*refusal) //nolint:errorlint // bind returns it as it is
	return ok
}

// Slim keeps of what the cache holds what the operator reads: of Secrets the names.
func Slim(in any) (any, error) {
	if o, ok := in.(*metav1.PartialObjectMetadata); ok && o.Kind == "Secret" {
		return &metav1.PartialObjectMetadata{TypeMeta: o.TypeMeta,
			ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}}, nil
	}
	return cache.TransformStripManagedFields()(in)
}
