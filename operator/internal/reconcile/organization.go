package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/flow/organization"
	"github.com/registrar-dev/registrar/internal/flow/staff"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// organizationVisit is the reconciliation of an Organization.
type organizationVisit struct {
	*Reconciler
	occurrences
	object *v1beta1.Organization

	asked        bool // PostgreSQL has said whether the organization is this resource's
	organization org.Organization
	looked       bool // PostgreSQL has said whether there is a sandbox
	sandbox      *sandbox.Sandbox
}

// organizations is the kind Organization.
func (r *Reconciler) organizations() *kind[*v1beta1.Organization] {
	return &kind[*v1beta1.Organization]{
		Reconciler: r,
		name:       "Organization",
		stands:     "organization",
		swept:      "left to its staff",
		finalizer:  v1beta1.OrganizationFinalizer,
		empty:      func() *v1beta1.Organization { return &v1beta1.Organization{} },
		list:       func() client.ObjectList { return &v1beta1.OrganizationList{} },
		ours:       func(o *v1beta1.Organization) bool { return o.Spec.ClassName == r.Class },
		pending:    func(*v1beta1.Organization) bool { return false },
		begin:      func(o *v1beta1.Organization) visit { return &organizationVisit{Reconciler: r, object: o} },
		remove:     r.removeOrganization,
		id:         func(o *v1beta1.Organization) int64 { return o.Status.OrganizationID },
		quiet:      func(*v1beta1.Organization) {},
		became: func(_ string, ready metav1.Condition) occurrence {
			return occurrence{normal, ready.Reason, ready.Message}
		},
	}
}

// organizationActor is the resource as the giver of commands. Its name has no namespace.
func (r *Reconciler) organizationActor(o *v1beta1.Organization) audit.Actor {
	return audit.Actor{Kind: audit.Operator, Name: r.managedPrefix() + o.Name}
}

// db is PostgreSQL, unless it is known not to answer: then nobody waits for it.
func (r *Reconciler) db() (*pg.DB, error) {
	if r.Probe.Failing() {
		return nil, errFailing
	}
	return r.Webhooks.DB, nil
}

// admits implements visit. An Organization belongs to no namespace.
func (v *organizationVisit) admits() []step { return nil }

// steps implements visit.
func (v *organizationVisit) steps() []step {
	return []step{v.check, v.manage, v.keepStaff, v.keepSandbox}
}

// check finds what the API server could not check.
func (v *organizationVisit) check(context.Context) error {
	if _, err := metav1.LabelSelectorAsSelector(v.object.Spec.AllowedNamespaces); err != nil {
		return refuse(v1beta1.ReasonInvalidSpec, "allowedNamespaces: %v", err)
	}
	return nil
}

// manage makes the organization, or its settings, what spec says, and this resource its manager.
func (v *organizationVisit) manage(ctx context.Context) error {
	db, err := v.db()
	if err != nil {
		return err
	}
	by, patch := v.organizationActor(v.object), settingsOf(v.object.Spec)
	want := org.Management{By: by.Name, Fields: patch.Fields()}
	if v.object.Spec.Sandbox != nil {
		want.Fields = append(want.Fields, org.FieldSandbox)
	}
	found, err := org.Find(ctx, db, v.object.Spec.Slug)
	if ignoreNotFound(err) != nil {
		return err
	}
	is, err := org.ManagementOf(ctx, db, found.ID)
	if err != nil {
		return err
	}
	v.asked = true
	if is.By == want.By && slices.Equal(is.Fields, want.Fields) && !patch.Changes(found) {
		v.organization = found
		return nil
	}
	if is.By != want.By {
		if err := v.leave(ctx, db, by); err != nil {
			return err
		}
	}
	o, created, err := org.Manage(ctx, db, by, v.object.Spec.Slug, patch, want, v.Clock())
	if err != nil {
		return err
	}
	v.organization = o
	switch {
	case created:
		v.note(normal, "Created", fmt.Sprintf("The organization was created (id %d).", o.ID))
	case is.By == "":
		v.note(normal, "TakenOver", fmt.Sprintf("The organization existed (id %d). This resource manages it from now on.", o.ID))
	default:
		v.note(normal, "Changed", "The organization's settings are as spec says.")
	}
	return nil
}

// leave releases an organization that an earlier resource of this name managed and that its deletion did not release.
func (v *organizationVisit) leave(ctx context.Context, db *pg.DB, by audit.Actor) error {
	former, err := org.FindManaged(ctx, db, by.Name)
	if err != nil {
		return ignoreNotFound(err)
	}
	return org.Release(ctx, db, by, former.ID, by.Name, v.Clock())
}

func settingsOf(spec v1beta1.OrganizationSpec) org.Patch {
	d := spec.ProvisioningDefaults
	return org.Patch{Name: &spec.Name, LanguageTestsEnabled: spec.LanguageTestsEnabled, Language: spec.Language, AccessMonths: number(d.AccessMonths),
		GracePeriodDays: number(d.GracePeriodDays), StarterTestsPerCourse: number(d.StarterTestsPerCourse),
		VisibleTestsLimit: number(d.VisibleTestsLimit), SendWelcomeEmail: d.SendWelcomeEmail,
		SetPasswordLinkValidDays: number(d.SetPasswordLinkValidDays)}
}

func number(n *int32) *int {
	if n == nil {
		return nil
	}
	whole := int(*n)
	return &whole
}

// keepStaff keeps people on the staff.
func (v *organizationVisit) keepStaff(ctx context.Context) error {
	if len(v.object.Spec.Staff) > 0 && v.Staff.PublicURL == "" {
		return refuse(v1beta1.ReasonNotConfigured, "The operator invites nobody to the staff without PUBLIC_URL, the base of the links in its mails.")
	}
	people := make([]staff.Command, len(v.object.Spec.Staff))
	for i, p := range v.object.Spec.Staff {
		people[i] = staff.Command{Email: p.Email, FirstName: p.FirstName, LastName: p.LastName, Role: org.Role(p.Role)}
	}
	return v.Staff.Manage(ctx, v.organizationActor(v.object), v.organization, people)
}

// keepSandbox makes a sandbox, or drops it.
func (v *organizationVisit) keepSandbox(ctx context.Context) error {
	found, err := sandbox.Find(ctx, v.Webhooks.DB, v.organization.ID)
	exists := err == nil
	if err != nil && !errors.Is(err, sandbox.ErrNone) {
		return err
	}
	if v.looked = true; exists {
		v.sandbox = &found
	}
	switch want := v.object.Spec.Sandbox; {
	case want == nil || *want == exists:
		return nil
	case v.Sandboxes == nil:
		return refuse(v1beta1.ReasonNotConfigured, "The operator has no SANDBOX_DATABASE_URL, which says where sandboxes are.")
	case *want:
		return v.become(within(ctx, "The sandbox is being made.", func() (*sandbox.Sandbox, error) {
			made, _, err := v.Sandboxes.Make(context.WithoutCancel(ctx), v.organizationActor(v.object), v.organization.ID)
			return &made, err
		}))
	default:
		return v.become(within(ctx, "The sandbox is being dropped.", func() (*sandbox.Sandbox, error) {
			err := v.Sandboxes.Drop(context.WithoutCancel(ctx), v.organizationActor(v.object), v.organization.ID)
			if errors.Is(err, sandbox.ErrNone) {
				err = nil
			}
			return nil, err
		}))
	}
}

// become notes what the sandbox is after it was made or dropped.
func (v *organizationVisit) become(is *sandbox.Sandbox, err error) error {
	if err == nil {
		v.sandbox = is
	}
	return err
}

// within waits for what goes on when ctx ends, too. A later visit finds what it has done.
func within(ctx context.Context, meanwhile string, do func() (*sandbox.Sandbox, error)) (*sandbox.Sandbox, error) {
	type outcome struct {
		is  *sandbox.Sandbox
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		is, err := do()
		done <- outcome{is, err}
	}()
	select {
	case o := <-done:
		return o.is, o.err
	case <-ctx.Done():
		return nil, waitFor(v1beta1.ReasonSandboxPending, "%s", meanwhile)
	}
}

// next implements visit.
func (v *organizationVisit) next() time.Time { return time.Time{} }

// ready implements visit.
func (v *organizationVisit) ready() condition {
	return condition{metav1.ConditionTrue, v1beta1.ReasonManaged, "The organization is as spec says.", false}
}

// show implements visit.
func (v *organizationVisit) show(to resource, _ func(string, condition)) {
	s := &to.(*v1beta1.Organization).Status
	if v.asked {
		s.OrganizationID = int64(v.organization.ID)
	}
	if !v.looked {
		return
	}
	s.SandboxCreationTime = nil
	if v.sandbox != nil {
		s.SandboxCreationTime = stamp(&v.sandbox.CreatedAt)
	}
}

// removeOrganization does what spec says of a deletion: the organization stays, and is its staff's, or it is erased.
func (r *Reconciler) removeOrganization(ctx context.Context, object *v1beta1.Organization) error {
	ctx, cancel := context.WithTimeout(ctx, stepsLimit)
	defer cancel()
	db, err := r.db()
	if err != nil {
		return err
	}
	by := r.organizationActor(object)
	o, err := org.FindManaged(ctx, db, by.Name)
	if err != nil {
		return ignoreNotFound(err)
	}
	if object.Spec.DeletionPolicy == v1beta1.Delete && o.Slug == object.Spec.Slug {
		eraser := organization.Eraser{DB: db, Clock: r.Clock}
		_, err = eraser.Begin(ctx, by, o.Slug)
		return ignoreNotFound(err)
	}
	return org.Release(ctx, db, by, o.ID, by.Name, r.Clock())
}
