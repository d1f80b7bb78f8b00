package operator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// school is a resource that is not created yet, for the organization of its own name.
func school(name string) *v1beta1.Organization {
	return &v1beta1.Organization{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.OrganizationSpec{Slug: name, Name: "School " + name}}
}

func (w *world) awaitManaged(t *testing.T, o *v1beta1.Organization) org.Organization {
	t.Helper()
	awaitReady(t, w, o, metav1.ConditionTrue, v1beta1.ReasonManaged)
	return w.findOrganization(t, o.Spec.Slug)
}

func (w *world) findOrganization(t *testing.T, slug string) org.Organization {
	t.Helper()
	found, err := org.Find(t.Context(), w.webhooks.DB, slug)
	check.NoError(check.Now(t), err, "%s", slug)
	return found
}

func (w *world) management(t *testing.T, of id.Organization) org.Management {
	t.Helper()
	m, err := org.ManagementOf(t.Context(), w.webhooks.DB, of)
	check.NoError(check.Now(t), err, "")
	return m
}

// deleted waits until the resource is gone.
func (w *world) deleted(t *testing.T, o client.Object) {
	t.Helper()
	if err := w.client.Delete(t.Context(), o); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	found, _ := o.DeepCopyObject().(client.Object)
	w.until(t, o.GetName()+" is gone", func() bool {
		return apierrors.IsNotFound(w.client.Get(t.Context(), client.ObjectKeyFromObject(o), found))
	})
}

// member is the role and state of somebody in the organization, "" for nobody.
func (w *world) member(t *testing.T, of id.Organization, address string) string {
	t.Helper()
	var m org.Member
	var b pg.Batch
	org.LoadMemberBy(&b, of, address, &m)
	check.NoError(check.Now(t), b.Send(t.Context(), w.webhooks.DB), "%s", address)
	return strings.TrimSpace(string(m.Role) + " " + string(m.Status))
}

func TestAnOrganizationAsAResource(t *testing.T) {
	w := theWorld(t)
	o := school("tenant")
	months, languages, language := int32(6), true, "hi"
	o.Spec.ProvisioningDefaults.AccessMonths, o.Spec.LanguageTestsEnabled, o.Spec.Language = &months, &languages, &language
	o.Spec.Staff = []v1beta1.StaffMember{
		{Email: "olive@tenant.school.org", FirstName: "Olive", Role: "owner"},
		{Email: "tariq@tenant.school.org", FirstName: "Tariq", Role: "teacher"},
	}
	w.create(t, o)
	w.run(t, "wait", "--for=condition=Ready", "organization/tenant", "--timeout=120s")
	is := w.awaitManaged(t, o)
	check.Equal(t, "the name", is.Name, "School tenant", "")
	check.Equal(t, "months", is.Defaults.AccessMonths, 6, "")
	check.Equal(t, "a default that is not said", is.Defaults.GracePeriodDays, 7, "")
	check.True(t, "language tests", is.LanguageTestsEnabled, "")
	check.Equal(t, "the language", is.Language, "hi", "")
	check.Equal(t, "the status' id", o.Status.OrganizationID, int64(is.ID), "")
	check.Equal(t, "Olive is", w.member(t, is.ID, "olive@tenant.school.org"), "owner active", "")
	check.Equal(t, "Tariq is", w.member(t, is.ID, "tariq@tenant.school.org"), "teacher active", "")
	check.Contains(t, "by its short name and slug", w.run(t, "get", "rorg", "--field-selector=spec.slug=tenant"), "Managed", "")
	check.Contains(t, "in the category", w.run(t, "get", "registrar", "--all-namespaces", "--output=name"), "organization.registrar.dev/tenant", "")

	by := audit.Actor{Kind: audit.Operator, Name: "kubernetes/test/tenant"}
	entries, err := audit.List(t.Context(), w.webhooks.DB, is.ID, 0)
	check.NoError(check.Now(t), err, "the audit log")
	check.Equal(t, "audited commands", len(entries), 3, "%+v", entries)
	for _, e := range entries {
		check.Equal(t, "the actor", e.Actor, by, "%s", e.Action)
	}
	invitations, err := pg.Column[string](t.Context(), w.webhooks.DB, `SELECT recipient FROM emails WHERE organization_id = $1 AND type = 'staff_invitation' ORDER BY 1`, is.ID)
	check.NoError(t, err, "mails")
	check.Slices(t, "invited", invitations, []string{"olive@tenant.school.org", "tariq@tenant.school.org"}, "")

	// What it does not manage is the staff's; what it does is read-only for them, and the platform's changes are undone.
	staff := audit.Actor{Kind: audit.Staff, ID: 1, Name: "olive"}
	name, days, now := "Another", 30, time.Now()
	_, err = org.Change(t.Context(), w.webhooks.DB, staff, "tenant", org.Patch{GracePeriodDays: &days}, now)
	check.NoError(t, err, "a setting of the staff's own")
	_, err = org.Change(t.Context(), w.webhooks.DB, staff, "tenant", org.Patch{Name: &name}, now)
	check.True(t, "the name is read-only", fault.Has(err, "managed"), "%v", err)
	_, _, err = org.Put(t.Context(), w.webhooks.DB, audit.Platform, "tenant", org.Patch{Name: &name}, now)
	check.NoError(t, err, "the platform")
	w.until(t, "the name is undone", func() bool { return w.findOrganization(t, "tenant").Name == "School tenant" })
	check.Equal(t, "days of grace", w.findOrganization(t, "tenant").Defaults.GracePeriodDays, 30, "")

	change(t, w, o, func(o *v1beta1.Organization) {
		o.Spec.Staff, o.Spec.Name = o.Spec.Staff[:1], "School of tenants"
	})
	is = w.awaitManaged(t, o)
	check.Equal(t, "the name", is.Name, "School of tenants", "")
	check.Equal(t, "Tariq is", w.member(t, is.ID, "tariq@tenant.school.org"), "teacher inactive", "")
	change(t, w, o, func(o *v1beta1.Organization) { o.Spec.Staff[0].Role = "admin" })
	awaitReady(t, w, o, metav1.ConditionFalse, v1beta1.ReasonLastOwner)
	check.Equal(t, "Olive is", w.member(t, is.ID, "olive@tenant.school.org"), "owner active", "")
	change(t, w, o, func(o *v1beta1.Organization) { o.Spec.Staff[0].Role = "owner" })
	w.awaitManaged(t, o)

	version := o.ResourceVersion
	w.deleted(t, o)
	is = w.findOrganization(t, "tenant")
	check.Equal(t, "who manages it", w.management(t, is.ID).By, "", "after the deletion of version %s", version)
	_, err = org.Change(t.Context(), w.webhooks.DB, staff, "tenant", org.Patch{Name: &name}, time.Now())
	check.NoError(t, err, "the name is the staff's")
	again := school("tenant")
	w.create(t, again)
	check.Equal(t, "the id", w.awaitManaged(t, again).ID, is.ID, "of the organization that is taken over")
	w.awaitOrganizationEvent(t, again, "TakenOver")
	w.deleted(t, again)
}

func (w *world) awaitOrganizationEvent(t *testing.T, o *v1beta1.Organization, reason string) {
	t.Helper()
	w.until(t, "the Event "+reason, func() bool {
		var all eventsv1.EventList
		if err := w.client.List(t.Context(), &all, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			t.Fatal(err)
		}
		for _, e := range all.Items {
			if e.Regarding.Kind == "Organization" && e.Regarding.UID == o.UID && e.Reason == reason {
				return true
			}
		}
		return false
	})
}

func TestAnOrganizationIsErasedOnlyOnRequest(t *testing.T) {
	w := theWorld(t)
	o := school("erased")
	o.Spec.DeletionPolicy = v1beta1.Delete
	o.Spec.Staff = []v1beta1.StaffMember{{Email: "olive@erased.school.org", FirstName: "Olive", Role: "owner"}}
	w.create(t, o)
	is := w.awaitManaged(t, o)
	key, _, err := org.CreateKey(t.Context(), w.webhooks.DB, audit.Platform, is.ID, org.Key{Name: "first", Access: org.Full}, time.Now())
	check.NoError(check.Now(t), err, "a key")
	w.deleted(t, o)
	_, err = org.Find(t.Context(), w.webhooks.DB, "erased")
	check.Equal(t, "the organization", fault.KindOf(err), fault.NotFound, "%v", err)
	keys, err := org.Keys(t.Context(), w.webhooks.DB, is.ID)
	check.NoError(t, err, "")
	check.False(t, "its key works", len(keys) != 1 || keys[0].ID != key.ID || keys[0].Works(time.Now()), "%+v", keys)
	erased, err := pg.Column[string](t.Context(), w.webhooks.DB, `SELECT actor_name FROM audit_log WHERE action = 'erased organization' AND target = $1`, fmt.Sprintf("organization %d", is.ID))
	check.NoError(t, err, "")
	check.Slices(t, "who erased it", erased, []string{"kubernetes/test/erased"}, "")
}

func TestASandboxAsAResource(t *testing.T) {
	w := theWorld(t)
	o, yes, no := school("twin"), true, false
	o.Spec.Sandbox = &yes
	w.create(t, o)
	is := w.awaitManaged(t, o)
	check.True(t, "its time is shown", o.Status.SandboxCreationTime != nil, "%+v", o.Status)
	_, err := sandbox.Find(t.Context(), w.webhooks.DB, is.ID)
	check.NoError(t, err, "the sandbox")
	change(t, w, o, func(o *v1beta1.Organization) { o.Spec.Sandbox = nil })
	w.awaitManaged(t, o)
	_, err = sandbox.Find(t.Context(), w.webhooks.DB, is.ID)
	check.NoError(t, err, "the sandbox that nobody manages")
	change(t, w, o, func(o *v1beta1.Organization) { o.Spec.Sandbox = &no })
	w.awaitManaged(t, o)
	check.True(t, "no time is shown", o.Status.SandboxCreationTime == nil, "%+v", o.Status)
	_, err = sandbox.Find(t.Context(), w.webhooks.DB, is.ID)
	check.Equal(t, "the sandbox", fault.KindOf(err), fault.NotFound, "%v", err)
	w.deleted(t, o)
}

// The Organization says which namespaces register its URLs; a label that people set on a namespace of their own does not.
func TestAnOrganizationAllowsNamespaces(t *testing.T) {
	w := theWorld(t)
	o := school("allowing")
	w.create(t, o)
	w.awaitManaged(t, o)
	w.namespace(t, "allowing-labelled", "allowing")
	w.namespace(t, "allowing-selected", "")
	url := func(namespace string) *v1beta1.WebhookEndpoint {
		e := endpoint(namespace, "results")
		e.Spec.Organization = "allowing"
		return e
	}
	labelled, selected := url("allowing-labelled"), url("allowing-selected")
	w.create(t, labelled, selected)
	w.awaitRegistered(t, labelled)
	awaitReason(t, w, selected, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonNamespaceNotAllowed)
	change(t, w, o, func(o *v1beta1.Organization) {
		o.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "allowing-selected"}}
	})
	w.awaitRegistered(t, selected)
	refused := awaitReason(t, w, labelled, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonNamespaceNotAllowed)
	check.Contains(t, "the message", refused.Message, `the Organization "allowing" does not allow it (spec.allowedNamespaces)`, "")
	check.False(t, "the URL is on", w.stored(t, labelled).SwitchedOn, "")
	w.deleted(t, o) // and the label counts again
	w.awaitRegistered(t, labelled)
	awaitReason(t, w, selected, v1beta1.ConditionReady, metav1.ConditionFalse, v1beta1.ReasonNamespaceNotAllowed)
}

func TestOneResourceManagesAnOrganization(t *testing.T) {
	w := theWorld(t)
	first, second, foreign := school("shared"), school("shared-too"), school("foreign")
	second.Spec.Slug, foreign.Spec.ClassName = "shared", "another"
	w.create(t, first, foreign)
	is := w.awaitManaged(t, first)
	w.create(t, second)
	refused := awaitReady(t, w, second, metav1.ConditionFalse, v1beta1.ReasonSlugInUse)
	check.Contains(t, "the message", refused.Message, "kubernetes/test/shared", "")
	check.Equal(t, "the id of the second", second.Status.OrganizationID, int64(0), "")
	w.deleted(t, first)
	check.Equal(t, "the id", w.awaitManaged(t, second).ID, is.ID, "when the first is gone")
	w.deleted(t, second)
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); check.NoError(t, err, "") {
		check.Equal(t, "finalizers and conditions of another class", len(foreign.Finalizers)+len(foreign.Status.Conditions), 0, "")
	}
	w.deleted(t, foreign)
}

func TestTheAPIServerRefusesOrganizations(t *testing.T) {
	w := theWorld(t)
	for says, how := range map[string]func(*v1beta1.OrganizationSpec){
		"slug: use lower-case letters":                     func(s *v1beta1.OrganizationSpec) { s.Slug = "A School" },
		"name: leave out the spaces around it":             func(s *v1beta1.OrganizationSpec) { s.Name = " x " },
		"should be greater than or equal to 1":             func(s *v1beta1.OrganizationSpec) { s.ProvisioningDefaults.AccessMonths = new(int32) },
		"staff.email: not an email address":                func(s *v1beta1.OrganizationSpec) { s.Staff = []v1beta1.StaffMember{{Email: "olive", Role: "owner"}} },
		`supported values: "owner", "admin", "examiner"`:   func(s *v1beta1.OrganizationSpec) { s.Staff = []v1beta1.StaffMember{{Email: "o@x.org", Role: "boss"}} },
		`Unsupported value: "Forget": supported values: "`: func(s *v1beta1.OrganizationSpec) { s.DeletionPolicy = "Forget" },
	} {
		o := school("refused")
		how(&o.Spec)
		err := w.client.Create(t.Context(), o)
		if check.True(t, "it is invalid", apierrors.IsInvalid(err), "want %q: %v", says, err) {
			check.Contains(t, "the error", err.Error(), says, "")
		}
	}
	o := school("fixed-school")
	w.create(t, o)
	before := o.DeepCopy()
	o.Spec.Slug = "other"
	err := w.client.Patch(t.Context(), o, client.MergeFrom(before))
	check.True(t, "another slug is refused", apierrors.IsInvalid(err) && strings.Contains(err.Error(), "an organization keeps its slug"), "%v", err)
	o = before
	change(t, w, o, func(o *v1beta1.Organization) {
		o.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	})
	awaitReady(t, w, o, metav1.ConditionFalse, v1beta1.ReasonInvalidSpec)
	w.deleted(t, o)
}

// PostgreSQL may be away while organizations are created and deleted, and the operator when they are uninstalled.
func TestOrganizationsWithoutPostgreSQLOrOperator(t *testing.T) {
	w := theWorld(t)
	leaving, stays := school("leaving"), school("staying")
	stays.Spec.DeletionPolicy = v1beta1.Delete
	w.create(t, leaving, stays)
	was, is := w.awaitManaged(t, leaving), w.awaitManaged(t, stays)
	if err := w.postgres.Stop(); err != nil {
		t.Fatal(err)
	}
	during := school("during")
	w.create(t, during)
	awaitReady(t, w, during, metav1.ConditionFalse, v1beta1.ReasonDatabaseUnavailable)
	if err := w.client.Delete(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, w, leaving, metav1.ConditionFalse, v1beta1.ReasonDeleting)
	w.restartPostgres(t)
	w.awaitManaged(t, during)
	w.deleted(t, leaving)
	check.Equal(t, "who manages it", w.management(t, was.ID).By, "", "after its deletion")

	if err := w.operator.Stop(); err != nil {
		t.Fatal(err)
	}
	out := w.uninstall(t, "uninstall-organizations", []string{"WATCH_NAMESPACES=default"})
	check.Contains(t, "what it says", out, fmt.Sprintf("staying stays with its organization (id %d).", is.ID), "")
	check.Equal(t, "who manages it", w.management(t, is.ID).By, "kubernetes/test/staying", "")
	if err := stack.StartReady(t.Context(), w.operator.Program, w.operator.private); err != nil {
		t.Fatal(err)
	}
	await(t, w, stays, "held again", func(o *v1beta1.Organization) bool { return len(o.Finalizers) == 1 })
	if err := w.operator.Stop(); err != nil {
		t.Fatal(err)
	}
	w.uninstall(t, "uninstall-definitions", []string{"WATCH_NAMESPACES=default"}, "--delete")
	check.Equal(t, "the id", w.findOrganization(t, "staying").ID, is.ID, "an uninstall erases nothing that nobody has deleted")
	check.Equal(t, "who manages it", w.management(t, is.ID).By, "", "when the definitions go")
	if err := stack.StartReady(t.Context(), w.operator.Program, w.operator.private); err != nil {
		t.Fatal(err)
	}
	for _, o := range []*v1beta1.Organization{stays, during} {
		change(t, w, o, func(o *v1beta1.Organization) { o.Spec.DeletionPolicy = v1beta1.Retain })
		w.awaitManaged(t, o)
	}
	// Without its finalizer an organization is left to its staff by the sweep, never erased.
	if err := w.operator.Stop(); err != nil {
		t.Fatal(err)
	}
	change(t, w, stays, func(o *v1beta1.Organization) { o.Finalizers = nil })
	w.deleted(t, stays)
	if err := stack.StartReady(t.Context(), w.operator.Program, w.operator.private); err != nil {
		t.Fatal(err)
	}
	w.until(t, "it is left to its staff", func() bool { return w.management(t, is.ID).By == "" })
	w.deleted(t, during)
}
