package reconcile

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// apiKeyVisit is the reconciliation of an ApiKey.
//
// PostgreSQL has only the hashes of keys, and the Secret only the text of the newest. A key whose text is in no Secret,
// because the operator or the API server failed between the two, is replaced by the next visit.
type apiKeyVisit struct {
	*Reconciler
	occurrences
	object *v1beta1.ApiKey

	asked        bool // PostgreSQL has said which keys there are
	keys         []org.Key
	current      *org.Key // the one in the Secret
	organization org.Organization
	handled      v1beta1.HandledKeyTokens
}

// apiKeys is the kind ApiKey.
func (r *Reconciler) apiKeys() *kind[*v1beta1.ApiKey] {
	return &kind[*v1beta1.ApiKey]{
		Reconciler: r,
		name:       "ApiKey",
		stands:     "API key",
		swept:      "revoked",
		finalizer:  v1beta1.APIKeyFinalizer,
		empty:      func() *v1beta1.ApiKey { return &v1beta1.ApiKey{} },
		list:       func() client.ObjectList { return &v1beta1.ApiKeyList{} },
		ours:       func(a *v1beta1.ApiKey) bool { return a.Spec.ClassName == r.Class },
		pending:    func(k *v1beta1.ApiKey) bool { return asks(k, v1beta1.AnnotationRotate, k.Status.Handled.Rotate) },
		begin: func(k *v1beta1.ApiKey) visit {
			return &apiKeyVisit{Reconciler: r, object: k, handled: k.Status.Handled}
		},
		remove: r.removeAPIKey,
		id:     func(k *v1beta1.ApiKey) int64 { return k.Status.KeyID },
		quiet:  quietAPIKey,
		became: func(_ string, ready metav1.Condition) occurrence {
			return occurrence{normal, ready.Reason, ready.Message}
		},
	}
}

// apiKeySecret is the name of the Secret with the key.
func apiKeySecret(object *v1beta1.ApiKey) string {
	return cmp.Or(object.Spec.SecretName, object.Name+"-api-key")
}

// admits implements visit.
func (v *apiKeyVisit) admits() []step { return []step{v.find, v.mayHave} }

// steps implements visit.
func (v *apiKeyVisit) steps() []step {
	return []step{v.belong, v.end, v.issue}
}

func (v *apiKeyVisit) actor() audit.Actor { return v.actorOf(v.object) }

// find reads the keys that earlier visits made.
func (v *apiKeyVisit) find(ctx context.Context) error {
	db, err := v.db()
	if err != nil {
		return err
	}
	v.keys, err = org.ManagedKeys(ctx, db, v.actor().Name)
	v.asked = err == nil
	return err
}

// mayHave checks that the namespace may have keys of the organization. If it no longer may, its keys are revoked.
func (v *apiKeyVisit) mayHave(ctx context.Context) error {
	why, err := v.foreign(ctx, v.object.Namespace, v.object.Spec.Organization)
	if err != nil || why == "" {
		return err
	}
	if err := v.revoke(ctx, func(org.Key) bool { return true }); err != nil {
		return err
	}
	return refuse(v1beta1.ReasonNamespaceNotAllowed, "The namespace %s may not have keys of the organization %q: %s",
		v.object.Namespace, v.object.Spec.Organization, why)
}

// belong finds the organization. One that is created later is announced by PostgreSQL.
func (v *apiKeyVisit) belong(ctx context.Context) (err error) {
	v.organization, err = v.findOrganization(ctx, v.object.Spec.Organization, "the key is made")
	return err
}

// end revokes keys whose time is over, and those of another organization, for which an earlier resource of this name was.
func (v *apiKeyVisit) end(ctx context.Context) error {
	now := v.Clock()
	return v.revoke(ctx, func(k org.Key) bool { return k.Expired(now) || k.Organization != v.organization.ID })
}

// revoke revokes some of the keys.
func (v *apiKeyVisit) revoke(ctx context.Context, which func(org.Key) bool) error {
	for _, k := range slices.Clone(v.keys) {
		if !which(k) {
			continue
		}
		if _, err := org.RevokeKey(ctx, v.Webhooks.DB, v.actor(), k.Organization, k.ID, v.Clock()); err != nil {
			return err
		}
		v.keys = slices.DeleteFunc(v.keys, func(other org.Key) bool { return other.ID == k.ID })
	}
	return nil
}

// issue makes a key if the Secret has none that works and is as spec says, or another is due.
func (v *apiKeyVisit) issue(ctx context.Context) error {
	wanted, err := v.wanted()
	if err != nil {
		return err
	}
	var secret corev1.Secret
	err = v.Client.Get(ctx, types.NamespacedName{Namespace: v.object.Namespace, Name: apiKeySecret(v.object)}, &secret)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	exists := err == nil
	if exists && !metav1.IsControlledBy(&secret, v.object) {
		return refuse(v1beta1.ReasonSecretConflict, "A Secret %q exists that is not this resource's. Say another spec.secretName, or delete it.", secret.Name)
	}
	if len(v.keys) > 0 && v.keys[0].ExpiresAt.IsZero() {
		is, err := org.IsKey(ctx, v.Webhooks.DB, v.organization.ID, v.keys[0].ID, string(secret.Data[v1beta1.APIKeySecretKey]))
		if err != nil {
			return err
		}
		if is {
			v.current = &v.keys[0]
		}
	}
	if why, needed := v.replaces(wanted); needed {
		if err := v.replace(ctx, wanted, &secret, exists); err != nil {
			return err
		}
		v.occurrences = append(v.occurrences, why)
	}
	v.handled.Rotate = v.object.Annotations[v1beta1.AnnotationRotate]
	return nil
}

// replaces says whether a new key is needed, and why.
func (v *apiKeyVisit) replaces(wanted org.Key) (why occurrence, needed bool) {
	due := v.rotatesAt()
	switch {
	case len(v.keys) == 0:
		return occurrence{normal, "Created", "The key was created."}, true
	case v.current == nil:
		return occurrence{warning, "SecretRegenerated", "The Secret " + apiKeySecret(v.object) + " had no key that works; there is a new one."}, true
	case !sameKey(*v.current, wanted):
		return occurrence{normal, "Rotated", "There is a new key, as spec has changed."}, true
	case asks(v.object, v1beta1.AnnotationRotate, v.handled.Rotate):
		return occurrence{normal, "Rotated", "There is a new key, as the annotation asks."}, true
	case !due.IsZero() && !v.Clock().Before(due):
		return occurrence{normal, "Rotated", "There is a new key, as rotateEvery says."}, true
	}
	return occurrence{}, false
}

// sameKey says whether two keys open the same.
func sameKey(a, b org.Key) bool {
	return a.Access == b.Access && a.Sandbox == b.Sandbox && slices.Equal(a.Scopes, b.Scopes) && slices.Equal(a.Networks, b.Networks)
}

// wanted is the key that spec describes.
func (v *apiKeyVisit) wanted() (k org.Key, err error) {
	spec := v.object.Spec
	k = org.Key{Name: v.object.Namespace + "/" + v.object.Name, Access: org.Access(spec.Access), Sandbox: spec.Sandbox, ManagedBy: v.actor().Name}
	if len(spec.Scopes) > 0 {
		k.Access = org.Scoped
		for _, s := range spec.Scopes {
			k.Scopes = append(k.Scopes, org.Scope(s))
		}
	}
	k.Networks, err = org.ParseNetworks(spec.Networks)
	return k, err
}

// replace makes a key, and writes it to the Secret. What the API server would refuse it refuses before there is a key.
func (v *apiKeyVisit) replace(ctx context.Context, wanted org.Key, secret *corev1.Secret, exists bool) error {
	if err := v.keep(ctx, secret.DeepCopy(), exists, "", client.DryRunAll); err != nil {
		return err
	}
	overlap, err := duration("overlap", v.object.Spec.Overlap)
	if err != nil {
		return err
	}
	made, text, err := v.Accounts.ReplaceKey(ctx, v.actor(), v.organization, wanted, len(v.keys) == 0, v.Clock().Add(overlap))
	if errors.Is(err, sandbox.ErrNone) {
		return waitFor(v1beta1.ReasonSandboxNotFound, "The organization has no sandbox yet; the key is made once it has one.")
	}
	if err != nil {
		return err
	}
	if err := v.keep(ctx, secret, exists, text); err != nil {
		return err
	}
	if v.keys, err = org.ManagedKeys(ctx, v.Webhooks.DB, v.actor().Name); err != nil {
		return err
	}
	v.current = &made
	return nil
}

// keep writes the text to the Secret.
func (v *apiKeyVisit) keep(ctx context.Context, secret *corev1.Secret, exists bool, text string, only ...dryRun) error {
	if !exists {
		made := ownedSecret(apiKeySecret(v.object), v.object, v1beta1.GroupVersion.WithKind("ApiKey"))
		made.Data = map[string][]byte{v1beta1.APIKeySecretKey: []byte(text)}
		options := []client.CreateOption{fieldManager}
		for _, o := range only {
			options = append(options, o)
		}
		return v.Client.Create(ctx, made, options...)
	}
	options := []client.PatchOption{fieldManager}
	for _, o := range only {
		options = append(options, o)
	}
	before := secret.DeepCopy()
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[v1beta1.APIKeySecretKey] = []byte(text)
	err := v.Client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), options...)
	if apierrors.IsNotFound(err) { // deleted just now
		return apierrors.NewConflict(corev1.Resource("secrets"), secret.Name, err)
	}
	return err
}

// dryRun has the API server check a change and make none.
type dryRun interface {
	client.CreateOption
	client.PatchOption
}

// duration reads one that the API server has checked.
func duration(field, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, refuse(v1beta1.ReasonInvalidSpec, "%s: %q is not a duration such as 720h", field, text)
	}
	return d, nil
}

// rotatesAt is when another key takes the current one's place; zero: not by itself.
func (v *apiKeyVisit) rotatesAt() time.Time {
	every, err := duration("rotateEvery", v.object.Spec.RotateEvery)
	if err != nil || every == 0 || v.current == nil {
		return time.Time{}
	}
	return v.current.CreatedAt.Add(every)
}

// next implements visit: a rotation, or the end of a key that was replaced.
func (v *apiKeyVisit) next() time.Time {
	first := v.rotatesAt()
	for _, k := range v.keys {
		if end := k.ExpiresAt; !end.IsZero() && (first.IsZero() || end.Before(first)) {
			first = end
		}
	}
	return first
}

// ready implements visit.
func (v *apiKeyVisit) ready() condition {
	return condition{metav1.ConditionTrue, v1beta1.ReasonIssued, "The Secret " + apiKeySecret(v.object) + " has the key.", false}
}

// show implements visit.
func (v *apiKeyVisit) show(to resource, _ func(string, condition)) {
	s := &to.(*v1beta1.ApiKey).Status
	s.Handled, s.SecretName = v.handled, apiKeySecret(v.object)
	if v.organization.ID != 0 {
		s.OrganizationID = int64(v.organization.ID)
	}
	if !v.asked {
		return
	}
	s.KeyID, s.Prefix, s.CreatedAt, s.RotatesAt, s.LastUsedOn, s.PreviousKeys = 0, "", nil, nil, "", nil
	for _, k := range v.keys {
		switch {
		case v.current != nil && k.ID == v.current.ID:
			s.KeyID, s.Prefix, s.CreatedAt, s.LastUsedOn = int64(k.ID), k.Prefix, stamp(&k.CreatedAt), day(k.LastUsedOn)
			if at := v.rotatesAt(); !at.IsZero() {
				s.RotatesAt = stamp(&at)
			}
		case !k.ExpiresAt.IsZero():
			s.PreviousKeys = append(s.PreviousKeys, v1beta1.PreviousKey{Prefix: k.Prefix, EndsAt: *stamp(&k.ExpiresAt), LastUsedOn: day(k.LastUsedOn)})
		}
	}
}

func day(d *clock.Date) string {
	if d == nil {
		return ""
	}
	return d.String()
}

// quietAPIKey removes what changes with the use of keys.
func quietAPIKey(k *v1beta1.ApiKey) {
	k.Status.LastUsedOn = ""
	for i := range k.Status.PreviousKeys {
		k.Status.PreviousKeys[i].LastUsedOn = ""
	}
}

// removeAPIKey does what spec says of a deletion: the keys are revoked, or are people's with their Secret.
func (r *Reconciler) removeAPIKey(ctx context.Context, object *v1beta1.ApiKey) error {
	ctx, cancel := context.WithTimeout(ctx, stepsLimit)
	defer cancel()
	db, err := r.db()
	if err != nil {
		return err
	}
	by := r.actorOf(object)
	if object.Spec.DeletionPolicy != v1beta1.Retain {
		return r.revokeKeysOf(ctx, by)
	}
	if err := r.disown(ctx, object); err != nil {
		return err
	}
	return org.ReleaseKeys(ctx, db, by, by.Name, r.Clock())
}

// disown keeps the Secret from being deleted with its resource.
func (r *Reconciler) disown(ctx context.Context, object *v1beta1.ApiKey) error {
	var secret corev1.Secret
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: object.Namespace, Name: apiKeySecret(object)}, &secret)
	if r.unreadable(err) {
		return nil
	}
	if err != nil || !metav1.IsControlledBy(&secret, object) {
		return client.IgnoreNotFound(err)
	}
	before := secret.DeepCopy()
	secret.OwnerReferences = slices.DeleteFunc(secret.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == object.UID })
	return client.IgnoreNotFound(r.Client.Patch(ctx, &secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldManager))
}

// revokeKeysOf revokes the keys that the resource keeps.
func (r *Reconciler) revokeKeysOf(ctx context.Context, by audit.Actor) error {
	keys, err := org.ManagedKeys(ctx, r.Webhooks.DB, by.Name)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if _, err := org.RevokeKey(ctx, r.Webhooks.DB, by, k.Organization, k.ID, r.Clock()); ignoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
