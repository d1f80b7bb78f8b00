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

// ensureSecret reads the signing secret, from the Secret that the spec names or from the
// generated one, which it creates if it is missing and changes on request.
func (v *endpointVisit) ensureSecret(ctx context.Context) error {
	v.secretRef = secretKey(v.object)
	rotate := asks(v.object, v1beta1.AnnotationRotateSecret, v.handled.RotateSecret) && v.endpoint != nil
	var secret corev1.Secret
	err := v.Client.Get(ctx, types.NamespacedName{Namespace: v.object.Namespace, Name: v.secretRef.Name}, &secret)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if v.object.Spec.SigningSecretRef != nil {
		err = v.referenced(&secret, err == nil, rotate)
	} else {
		err = v.generated(ctx, &secret, err == nil, rotate)
	}
	if err != nil {
		return err
	}
	v.handled.RotateSecret = v.object.Annotations[v1beta1.AnnotationRotateSecret]
	return nil
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
	v.secret = value
	return nil
}

func (v *endpointVisit) generated(ctx context.Context, secret *corev1.Secret, exists, rotate bool) error {
	if !exists {
		var err error
		if v.secret, err = v.firstSecret(ctx); err != nil {
			return err
		}
		made := generatedSecret(v.object, v.secret)
		if v.endpoint != nil {
			v.replaces = strconv.Itoa(v.endpoint.SecretVersion)
			made.Annotations = map[string]string{v1beta1.AnnotationReplaces: v.replaces}
		}
		err = v.Client.Create(ctx, made, fieldManager)
		if err == nil && v.endpoint != nil {
			v.note(warning, "SecretRegenerated", "The Secret "+v.secretRef.Name+" was gone; there is a new one with a new signing secret.")
		}
		return err
	}
	if v.others != nil && left(secret) {
		return v.inherit(ctx, secret)
	}
	if !metav1.IsControlledBy(secret, v.object) {
		return refuse(v1beta1.ReasonSecretConflict, "A Secret %q exists that is not this resource's. Name it in spec.signingSecretRef, or delete it.", secret.Name)
	}
	v.secret, v.replaces = string(secret.Data[v.secretRef.Key]), secret.Annotations[v1beta1.AnnotationReplaces]
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
	return v.Client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldManager)
}
