package operator_test

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// apiKey is a resource that is not created yet, for the organization its namespace is named after.
func apiKey(namespace, name string) *v1beta1.ApiKey {
	return &v1beta1.ApiKey{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1beta1.ApiKeySpec{Organization: namespace, Access: "full"}}
}

// awaitOther waits for another key than the one with the text, and returns its text.
func (w *world) awaitOther(t *testing.T, k *v1beta1.ApiKey, text, what string) string {
	t.Helper()
	was := k.Status.KeyID
	await(t, w, k, what, func(k *v1beta1.ApiKey) bool { return k.Status.KeyID != was && k.Status.KeyID != 0 })
	awaitReady(t, w, k, metav1.ConditionTrue, v1beta1.ReasonIssued)
	is := w.secret(t, k.Namespace, k.Status.SecretName, "key")
	check.True(t, "it is another", is != text, "%s", what)
	check.True(t, "it begins with its prefix", strings.HasPrefix(is, k.Status.Prefix), "%s", what)
	return is
}

// opens says what the key's text opens, "" for nothing.
func (w *world) opens(t *testing.T, text string) string {
	t.Helper()
	p, err := org.NewKeyring(w.webhooks.DB).Principal(t.Context(), text, "192.0.2.1")
	if fault.KindOf(err) == fault.Unauthenticated || err == nil && !p.Key.Works(time.Now()) {
		return ""
	}
	check.NoError(check.Now(t), err, "")
	words := []string{p.Organization.Slug, string(p.Key.Access)}
	for _, s := range p.Key.Scopes {
		words = append(words, string(s))
	}
	return strings.Join(words, " ")
}

// touch has the operator visit a resource.
func touch(t *testing.T, w *world, k *v1beta1.ApiKey, token string) {
	t.Helper()
	change(t, w, k, func(k *v1beta1.ApiKey) { metav1.SetMetaDataAnnotation(&k.ObjectMeta, "test", token) })
}

func (w *world) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	_, err := w.webhooks.DB.Exec(t.Context(), statement, args...)
	check.NoError(check.Now(t), err, "%s", statement)
}

func TestAnAPIKeyAsAResource(t *testing.T) {
	w := theWorld(t)
	o := school("keyed")
	o.Spec.Staff = []v1beta1.StaffMember{{Email: "olive@keyed.school.org", FirstName: "Olive", Role: "owner"}}
	o.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "keyed"}}
	w.create(t, o)
	is := w.awaitManaged(t, o)
	w.namespace(t, "keyed", "")
	k := apiKey("keyed", "crm")
	k.Spec.Access, k.Spec.Scopes, k.Spec.RotateEvery = "", []v1beta1.KeyScope{"results:read", "roster"}, "720h"
	w.create(t, k)
	w.run(t, "wait", "--for=condition=Ready", "rkey/crm", "--namespace=keyed", "--timeout=120s")
	awaitReady(t, w, k, metav1.ConditionTrue, v1beta1.ReasonIssued)
	text := w.secret(t, "keyed", "crm-api-key", "key")
	check.Equal(t, "the key opens", w.opens(t, text), "keyed scoped results:read roster", "")
	check.True(t, "the prefix", k.Status.Prefix != "" && strings.HasPrefix(text, k.Status.Prefix), "%+v", k.Status)
	check.True(t, "the rotation", k.Status.RotatesAt != nil && k.Status.RotatesAt.Sub(k.Status.CreatedAt.Time) == 720*time.Hour, "%+v", k.Status)
	check.Contains(t, "the columns", w.run(t, "get", "rkey", "--namespace=keyed", "--field-selector=spec.organization=keyed"), "Issued", "")
	check.Contains(t, "in the category", w.run(t, "get", "registrar", "--all-namespaces", "--output=name"), "apikey.registrar.dev/crm", "")

	// It is a key like others, made by the same command, and read-only for staff.
	keys, err := org.Keys(t.Context(), w.webhooks.DB, is.ID)
	check.NoError(check.Now(t), err, "")
	check.Equal(check.Now(t), "number of keys", len(keys), 1, "")
	check.Equal(t, "its name", keys[0].Name, "keyed/crm", "")
	check.Equal(t, "its manager", keys[0].ManagedBy, "kubernetes/test/keyed/crm", "")
	_, err = org.RevokeKey(t.Context(), w.webhooks.DB, audit.Actor{Kind: audit.Staff, ID: 1, Name: "olive"}, is.ID, keys[0].ID, time.Now())
	check.True(t, "staff cannot revoke it", fault.Has(err, "managed"), "%v", err)
	made, err := pg.Column[string](t.Context(), w.webhooks.DB, `
		SELECT actor_name FROM audit_log WHERE organization_id = $1 AND action = 'created API key'`, is.ID)
	check.NoError(t, err, "")
	check.Slices(t, "who made it", made, []string{"kubernetes/test/keyed/crm"}, "")
	notices := func() []string {
		mailed, err := pg.Column[string](t.Context(), w.webhooks.DB, `
			SELECT recipient FROM emails WHERE organization_id = $1 AND type = 'security_notice'`, is.ID)
		check.NoError(t, err, "")
		return mailed
	}
	check.Slices(t, "notices", notices(), []string{"olive@keyed.school.org"}, "")

	// Rotations: by the annotation, which acts once, by time, and by another spec.
	today := time.Now().UTC()
	used := org.NewUsage(w.webhooks.DB, slog.New(slog.DiscardHandler))
	used.Note(org.Principal{Organization: is, Key: keys[0]}, clock.DateOf(today.Date()), netip.MustParseAddr("192.0.2.1"))
	check.NoError(t, used.Flush(t.Context()), "")
	change(t, w, k, func(k *v1beta1.ApiKey) { metav1.SetMetaDataAnnotation(&k.ObjectMeta, v1beta1.AnnotationRotate, "1") })
	second := w.awaitOther(t, k, text, "rotated by the annotation")
	check.Equal(t, "the first key opens", w.opens(t, text), "keyed scoped results:read roster", "in the overlap")
	check.Equal(check.Now(t), "previous keys", len(k.Status.PreviousKeys), 1, "%+v", k.Status)
	previous := k.Status.PreviousKeys[0]
	check.Equal(t, "the previous key's last use", previous.LastUsedOn, today.Format(time.DateOnly), "")
	check.Equal(t, "the overlap", previous.EndsAt.Sub(k.Status.CreatedAt.Time).Round(time.Minute), 24*time.Hour, "")
	w.exec(t, `UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE organization_id = $1 AND expires_at IS NOT NULL`, is.ID)
	w.exec(t, `UPDATE api_keys SET created_at = created_at - interval '720 hours' WHERE organization_id = $1 AND expires_at IS NULL`, is.ID)
	touch(t, w, k, "1")
	third := w.awaitOther(t, k, second, "rotated by time")
	check.Equal(t, "the first key opens", w.opens(t, text), "", "after the overlap")
	check.Equal(t, "previous keys", len(k.Status.PreviousKeys), 1, "%+v", k.Status)
	keys, err = org.ManagedKeys(t.Context(), w.webhooks.DB, "kubernetes/test/keyed/crm")
	check.NoError(t, err, "")
	check.Equal(t, "keys that are not revoked", len(keys), 2, "%+v", keys)
	change(t, w, k, func(k *v1beta1.ApiKey) { k.Spec.Scopes, k.Spec.Overlap = k.Spec.Scopes[:1], "0s" })
	fourth := w.awaitOther(t, k, third, "rotated with spec")
	check.Equal(t, "the key opens", w.opens(t, fourth), "keyed scoped results:read", "")
	check.Equal(t, "keys before it open", w.opens(t, second)+w.opens(t, third), "", "without an overlap")
	check.Equal(t, "previous keys", len(k.Status.PreviousKeys), 0, "%+v", k.Status)

	// What others do: a Secret that is deleted or changed, a key that the platform revokes.
	if err := w.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "keyed", Name: "crm-api-key"}}); err != nil {
		t.Fatal(err)
	}
	fifth := w.awaitOther(t, k, fourth, "another Secret")
	check.Equal(t, "the lost key opens", w.opens(t, fourth), "", "")
	var secret corev1.Secret
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "keyed", Name: "crm-api-key"}, &secret); err != nil {
		t.Fatal(err)
	}
	change(t, w, &secret, func(s *corev1.Secret) { s.Data["key"] = []byte("reg_" + strings.Repeat("a", 43)) })
	sixth := w.awaitOther(t, k, fifth, "in place of a text by hand")
	_, err = org.RevokeKey(t.Context(), w.webhooks.DB, audit.Platform, is.ID, id.APIKey(k.Status.KeyID), time.Now())
	check.NoError(check.Now(t), err, "the platform")
	seventh := w.awaitOther(t, k, sixth, "in place of the one that the platform revoked")
	check.Equal(t, "the key opens", w.opens(t, seventh), "keyed scoped results:read", "")

	// A namespace that may have no keys has none that work.
	change(t, w, o, func(o *v1beta1.Organization) {
		o.Spec.AllowedNamespaces.MatchLabels[corev1.LabelMetadataName] = "other"
	})
	refused := awaitReady(t, w, k, metav1.ConditionFalse, v1beta1.ReasonNamespaceNotAllowed)
	check.Contains(t, "the message", refused.Message, `may not have keys of the organization "keyed"`, "")
	check.Equal(t, "the key opens", w.opens(t, seventh), "", "")
	change(t, w, o, func(o *v1beta1.Organization) {
		o.Spec.AllowedNamespaces.MatchLabels[corev1.LabelMetadataName] = "keyed"
	})
	eighth := w.awaitOther(t, k, seventh, "when the namespace may have one again")
	check.Equal(t, "notices", len(notices()), 3, "one of each key that follows none")

	kept := apiKey("keyed", "kept")
	kept.Spec.DeletionPolicy, kept.Spec.SecretName = v1beta1.Retain, "mine"
	w.create(t, kept)
	awaitReady(t, w, kept, metav1.ConditionTrue, v1beta1.ReasonIssued)
	ninth := w.secret(t, "keyed", "mine", "key")
	w.deleted(t, k)
	w.deleted(t, kept)
	check.Equal(t, "the revoked key opens", w.opens(t, eighth), "", "")
	check.Equal(t, "the retained key opens", w.opens(t, ninth), "keyed full", "")
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "keyed", Name: "mine"}, &secret); check.NoError(t, err, "") {
		check.Equal(t, "owners of the retained Secret", len(secret.OwnerReferences), 0, "")
	}
	_, err = org.RevokeKey(t.Context(), w.webhooks.DB, audit.Actor{Kind: audit.Staff, ID: 1, Name: "olive"}, is.ID, id.APIKey(kept.Status.KeyID), time.Now())
	check.NoError(t, err, "the retained key is the staff's")

	log, err := os.ReadFile(filepath.Join(w.dir, "operator.log"))
	check.NoError(check.Now(t), err, "")
	for _, secret := range []string{text, second, third, fourth, fifth, sixth, seventh, eighth, ninth} {
		check.False(t, "the log has the text of a key", strings.Contains(string(log), secret[12:]), "")
		rows, err := pg.Column[int](t.Context(), w.webhooks.DB, `SELECT count(*)::int FROM api_keys k WHERE k::text LIKE '%' || $1 || '%'`, secret[12:])
		check.NoError(t, err, "")
		check.Slices(t, "rows with the text", rows, []int{0}, "")
	}
	w.deleted(t, o)
}

func TestAPIKeysThatCannotBe(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "keyless")
	for says, how := range map[string]func(*v1beta1.ApiKeySpec){
		"organization: use the organization's slug":        func(s *v1beta1.ApiKeySpec) { s.Organization = "A School" },
		"access: say access or scopes, one of the two":     func(s *v1beta1.ApiKeySpec) { s.Scopes = []v1beta1.KeyScope{"roster"} },
		`supported values: "provision", "roster"`:          func(s *v1beta1.ApiKeySpec) { s.Access, s.Scopes = "", []v1beta1.KeyScope{"everything"} },
		"networks: write an address or a network":          func(s *v1beta1.ApiKeySpec) { s.Networks = []string{"here"} },
		"secretName: not the name of a Secret":             func(s *v1beta1.ApiKeySpec) { s.SecretName = "A" },
		"rotateEvery: use a duration from 1h to 87600h":    func(s *v1beta1.ApiKeySpec) { s.RotateEvery = "1m" },
		"overlap: use a duration from 0s to 8760h":         func(s *v1beta1.ApiKeySpec) { s.Overlap = "a day" },
		"overlap: has to be shorter than rotateEvery":      func(s *v1beta1.ApiKeySpec) { s.RotateEvery, s.Overlap = "24h", "24h" },
		`Unsupported value: "Forget": supported values: "`: func(s *v1beta1.ApiKeySpec) { s.DeletionPolicy = "Forget" },
	} {
		k := apiKey("keyless", "refused")
		how(&k.Spec)
		err := w.client.Create(t.Context(), k)
		if check.True(t, "it is invalid", apierrors.IsInvalid(err), "want %q: %v", says, err) {
			check.Contains(t, "the error", err.Error(), says, "")
		}
	}
	k := apiKey("keyless", "conflicting")
	k.Spec.SecretName = "taken"
	w.create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "keyless", Name: "taken"}, Data: map[string][]byte{"key": []byte("theirs")}}, k)
	awaitReady(t, w, k, metav1.ConditionFalse, v1beta1.ReasonSecretConflict)
	check.Equal(t, "the Secret of others", w.secret(t, "keyless", "taken", "key"), "theirs", "")
	before := k.DeepCopy()
	k.Spec.SecretName = "other"
	err := w.client.Patch(t.Context(), k, client.MergeFrom(before))
	check.True(t, "another Secret is refused", apierrors.IsInvalid(err) && strings.Contains(err.Error(), "secretName: cannot be changed"), "%v", err)
	twin := apiKey("keyless", "twin")
	twin.Spec.Sandbox = true
	w.create(t, twin)
	awaitReady(t, w, twin, metav1.ConditionFalse, v1beta1.ReasonSandboxNotFound)
	keys, err := pg.Column[string](t.Context(), w.webhooks.DB, `SELECT name FROM api_keys WHERE name LIKE 'keyless/%'`)
	check.NoError(t, err, "")
	check.Slices(t, "keys", keys, nil, "")
	w.deleted(t, before)
	w.deleted(t, twin)
}

// An operator may be newer than the definitions of a cluster (crds.enabled: false).
func TestAnOperatorWithoutTheDefinitionOfAKind(t *testing.T) {
	w := theWorld(t)
	w.tenant(t, "older")
	k, e := apiKey("older", "crm"), endpoint("older", "results")
	w.create(t, k)
	awaitReady(t, w, k, metav1.ConditionTrue, v1beta1.ReasonIssued)
	text := w.secret(t, "older", "crm-api-key", "key")
	if err := w.operator.Stop(); err != nil {
		t.Fatal(err)
	}
	change(t, w, k, func(k *v1beta1.ApiKey) { k.Finalizers = nil })
	w.run(t, "delete", "customresourcedefinition", "apikeys.registrar.dev")
	if err := stack.StartReady(t.Context(), w.operator.Program, w.operator.private); err != nil {
		t.Fatal(err)
	}
	w.create(t, e)
	w.awaitRegistered(t, e)
	check.Contains(t, "the log", w.operator.LogTail(200), "a definition is not installed", "")
	check.Equal(t, "the key opens", w.opens(t, text), "older full", "without the definition")
	w.run(t, "apply", "-f", "../../config/crd/bases/registrar.dev_apikeys.yaml")
	check.NoError(check.Now(t), w.cluster.AwaitDefinitions(t.Context()), "")
	again := apiKey("older", "crm")
	w.create(t, again)
	awaitReady(t, w, again, metav1.ConditionTrue, v1beta1.ReasonIssued)
	w.deleted(t, again)
}
