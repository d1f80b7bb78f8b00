package reconcile

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// secretSuffix follows the resource's name in the name of its generated Secret.
const secretSuffix = "-signing-secret"

const labelManager = "app.kubernetes.io/managed-by"

// secretName is the Secret that holds the signing secret of a resource.
func secretName(object *v1beta1.WebhookEndpoint) string {
	if ref := object.Spec.SigningSecretRef; ref != nil {
		return ref.Name
	}
	return object.Name + secretSuffix
}

// secretKey names the Secret and the key that hold the signing secret.
func secretKey(object *v1beta1.WebhookEndpoint) *v1beta1.SecretKeyRef {
	key := &v1beta1.SecretKeyRef{Name: secretName(object), Key: v1beta1.DefaultSecretKey}
	if ref := object.Spec.SigningSecretRef; ref != nil && ref.Key != "" {
		key.Key = ref.Key
	}
	return key
}

var endpointKind = v1beta1.GroupVersion.WithKind("WebhookEndpoint")

// generatedSecret is the Secret that the operator makes for a resource and that is deleted with
// it.
func generatedSecret(object *v1beta1.WebhookEndpoint, value string) *corev1.Secret {
	secret := ownedSecret(object.Name+secretSuffix, object, endpointKind)
	secret.Data = map[string][]byte{v1beta1.DefaultSecretKey: []byte(value)}
	return secret
}

// ownerOf has a Secret deleted with the resource. It does not block the resource's deletion, which would need permission to
// change its finalizers.
func ownerOf(object client.Object, kind schema.GroupVersionKind) metav1.OwnerReference {
	owner := metav1.NewControllerRef(object, kind)
	owner.BlockOwnerDeletion = nil
	return *owner
}

// ownedSecret is a Secret that is deleted with the resource.
func ownedSecret(name string, object client.Object, kind schema.GroupVersionKind) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:      name,
			Namespace: object.GetNamespace(),
			Labels: map[string]string{
				"app.kubernetes.io/name": "registrar",
				labelManager:             string(fieldManager),
			},
			OwnerReferences: []metav1.OwnerReference{ownerOf(object, kind)},
		},
		Type: corev1.SecretTypeOpaque,
	}
}

// signing is a version of a Secret, and what a visit saw it sign.
type signing struct {
	ref      v1beta1.SecretKeyRef
	version  string // the Secret's resource version
	endpoint id.Endpoint
	current  int // the version of the endpoint's secret
}

// signs says whether a version of the Secret signs for the endpoint, as an earlier visit has seen.
func (v *endpointVisit) signs(version string) bool {
	if version == "" || v.endpoint == nil || v.endpoint.Organization != v.org {
		return false
	}
	seen, _ := v.signing.Load(v.object.UID)
	return seen == signing{*v.secretRef, version, v.endpoint.ID, v.endpoint.SecretVersion}
}

// remember notes which version of the Secret the visit has, and what it signs; nothing yet without an endpoint.
func (v *endpointVisit) remember() {
	has := signing{ref: *v.secretRef, version: v.secretVersion}
	if v.endpoint != nil {
		has.endpoint, has.current = v.endpoint.ID, v.endpoint.SecretVersion
	}
	v.signing.Store(v.object.UID, has)
}

// remembers says whether a visit to the resource has this version of a Secret.
func (r *Reconciler) remembers(object client.Object, version string) bool {
	has, ok := r.signing.Load(object.GetUID())
	return ok && has.(signing).version == version
}

// cachedSecret is the resource version of a Secret in the cache, and "" where it has none.
func (r *Reconciler) cachedSecret(ctx context.Context, key types.NamespacedName) (string, error) {
	reader := r.Cache
	if r.selected != nil {
		reader = r.selected.secretsOf(key.Namespace)
	}
	if reader == nil {
		return "", nil
	}
	var secret metav1.PartialObjectMetadata
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := reader.Get(ctx, key, &secret)
	return secret.ResourceVersion, client.IgnoreNotFound(err)
}

// ensureSecret finds the signing secret, in the Secret that the spec names or in the generated one, which it creates if it is
// missing and changes on request. It asks the API server only for a Secret that has changed, and for none that it has not made.
func (v *endpointVisit) ensureSecret(ctx context.Context) error {
	v.secretRef = secretKey(v.object)
	key := types.NamespacedName{Namespace: v.object.Namespace, Name: v.secretRef.Name}
	rotate := asks(v.object, v1beta1.AnnotationRotateSecret, v.handled.RotateSecret) && v.endpoint != nil
	cached, err := v.cachedSecret(ctx, key)
	switch {
	case err != nil:
		return err
	case !rotate && v.signs(cached):
	case cached == "" && v.endpoint == nil && v.object.Spec.SigningSecretRef == nil:
		err = v.generate(ctx)
		if !apierrors.IsAlreadyExists(err) {
			break
		}
		fallthrough
	default:
		err = v.readSecret(ctx, key, rotate)
	}
	if err != nil {
		return err
	}
	v.handled.RotateSecret = v.object.Annotations[v1beta1.AnnotationRotateSecret]
	return nil
}

// readSecret asks the API server.
func (v *endpointVisit) readSecret(ctx context.Context, key types.NamespacedName, rotate bool) error {
	var secret corev1.Secret
	err := v.Client.Get(ctx, key, &secret)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return err
	case v.object.Spec.SigningSecretRef != nil:
		return v.referenced(&secret, err == nil, rotate)
	case err != nil:
		return v.generate(ctx)
	}
	return v.generated(ctx, &secret, rotate)
}

func (v *endpointVisit) referenced(secret *corev1.Secret, exists, rotate bool) error {
	value := string(secret.Data[v.secretRef.Key])
	switch {
	case !exists:
		return refuse(v1beta1.ReasonSecretNotFound, "There is no Secret %q in this namespace.", v.secretRef.Name)
	case value == "":
		return refuse(v1beta1.ReasonSecretNotFound, "The Secret %q has no key %q.", v.secretRef.Name, v.secretRef.Key)
	case rotate:
		v.note(warning, "RotationRefused", "The Secret "+v.secretRef.Name+" is not the operator's to change; put a new value there, which holds at once.")
	}
	v.secret, v.secretVersion = value, secret.ResourceVersion
	return nil
}

// generate creates the Secret.
func (v *endpointVisit) generate(ctx context.Context) (err error) {
	if v.secret, err = v.firstSecret(ctx); err != nil {
		return err
	}
	made := generatedSecret(v.object, v.secret)
	if v.endpoint != nil {
		v.replaces = strconv.Itoa(v.endpoint.SecretVersion)
		made.Annotations = map[string]string{v1beta1.AnnotationReplaces: v.replaces}
	}
	if err := v.Client.Create(ctx, made, fieldManager); err != nil {
		return err
	}
	v.secretVersion = made.ResourceVersion
	if v.endpoint == nil {
		v.remember() // the watch tells of it soon
		return nil
	}
	v.note(warning, "SecretRegenerated", "The Secret "+v.secretRef.Name+" was gone; there is a new one with a new signing secret.")
	return nil
}

// generated is the Secret that there is.
func (v *endpointVisit) generated(ctx context.Context, secret *corev1.Secret, rotate bool) error {
	if v.others != nil && left(secret) {
		return v.inherit(ctx, secret)
	}
	if !metav1.IsControlledBy(secret, v.object) {
		return refuse(v1beta1.ReasonSecretConflict, "A Secret %q exists that is not this resource's. Name it in spec.signingSecretRef, or delete it.", secret.Name)
	}
	v.secret, v.secretVersion, v.replaces = string(secret.Data[v.secretRef.Key]), secret.ResourceVersion, secret.Annotations[v1beta1.AnnotationReplaces]
	if v.secret != "" && !rotate {
		return nil
	}
	v.secret, v.replaces = webhook.NewSecret(), ""
	before := secret.DeepCopy()
	delete(secret.Annotations, v1beta1.AnnotationReplaces)
	secret.Data = map[string][]byte{v1beta1.DefaultSecretKey: []byte(v.secret)}
	err := v.Client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldManager)
	if apierrors.IsNotFound(err) { // deleted just now
		return apierrors.NewConflict(corev1.Resource("secrets"), secret.Name, err)
	}
	v.secretVersion = secret.ResourceVersion
	return err
}

// firstSecret is what a generated Secret holds: of a URL that is taken over, the secret that signs.
func (v *endpointVisit) firstSecret(ctx context.Context) (string, error) {
	if v.others == nil {
		return webhook.NewSecret(), nil
	}
	return v.Webhooks.Reveal(ctx, v.org, v.others.ID)
}

// left says whether the operator made the Secret for a resource that was deleted without it (kubectl delete --cascade=orphan).
func left(secret *corev1.Secret) bool {
	return secret.Labels[labelManager] == string(fieldManager) && metav1.GetControllerOf(secret) == nil
}

// inherit takes the Secret that another resource has left, for the URL that is taken over.
func (v *endpointVisit) inherit(ctx context.Context, secret *corev1.Secret) (err error) {
	if v.secret, err = v.firstSecret(ctx); err != nil {
		return err
	}
	before := secret.DeepCopy()
	secret.OwnerReferences = append(secret.OwnerReferences, ownerOf(v.object, endpointKind))
	secret.Data = map[string][]byte{v1beta1.DefaultSecretKey: []byte(v.secret)}
	err = v.Client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldManager)
	v.secretVersion = secret.ResourceVersion
	return err
}
