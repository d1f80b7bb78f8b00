package org

import (
	"context"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Management says which resource keeps an organization, and what of it. The zero Management is that of an organization
// that people manage.
type Management struct {
	By     string
	Fields []string // settings, by their names in the platform API, and FieldSandbox
}

// FieldSandbox is whether the organization has a sandbox.
const FieldSandbox = "sandbox"

// settings are what a Patch changes.
var settings = []struct {
	name string
	sent func(Patch) bool
	same func(a, b Organization) bool
}{
	{"name",
		func(p Patch) bool { return p.Name != nil },
		func(a, b Organization) bool { return a.Name == b.Name }},
	{"language_tests_enabled",
		func(p Patch) bool { return p.LanguageTestsEnabled != nil },
		func(a, b Organization) bool { return a.LanguageTestsEnabled == b.LanguageTestsEnabled }},
	{"language",
		func(p Patch) bool { return p.Language != nil },
		func(a, b Organization) bool { return a.Language == b.Language }},
	{"default_access_months",
		func(p Patch) bool { return p.AccessMonths != nil },
		func(a, b Organization) bool { return a.Defaults.AccessMonths == b.Defaults.AccessMonths }},
	{"grace_period_days",
		func(p Patch) bool { return p.GracePeriodDays != nil },
		func(a, b Organization) bool { return a.Defaults.GracePeriodDays == b.Defaults.GracePeriodDays }},
	{"starter_tests_per_course",
		func(p Patch) bool { return p.StarterTestsPerCourse != nil },
		func(a, b Organization) bool {
			return a.Defaults.StarterTestsPerCourse == b.Defaults.StarterTestsPerCourse
		}},
	{"visible_tests_limit",
		func(p Patch) bool { return p.VisibleTestsLimit != nil },
		func(a, b Organization) bool { return a.Defaults.VisibleTestsLimit == b.Defaults.VisibleTestsLimit }},
	{"send_welcome_email_default",
		func(p Patch) bool { return p.SendWelcomeEmail != nil },
		func(a, b Organization) bool { return a.Defaults.SendWelcomeEmail == b.Defaults.SendWelcomeEmail }},
	{"set_password_link_valid_days",
		func(p Patch) bool { return p.SetPasswordLinkValidDays != nil },
		func(a, b Organization) bool {
			return a.Defaults.SetPasswordLinkValidDays == b.Defaults.SetPasswordLinkValidDays
		}},
}

// Fields names the settings that p has.
func (p Patch) Fields() (names []string) {
	for _, s := range settings {
		if s.sent(p) {
			names = append(names, s.name)
		}
	}
	return names
}

// Changes says whether p makes another organization of o.
func (p Patch) Changes(o Organization) bool { return p.apply(o) != o }

// Manage is Put by the resource that m names, which keeps the fields of m from now on. Conflict "organization_managed" for
// an organization that another resource keeps.
func Manage(ctx context.Context, db *pg.DB, by audit.Actor, slug string, p Patch, m Management, now time.Time) (Organization, bool, error) {
	return put(ctx, db, by, slug, p, now, command{creates: true, management: &m})
}

// Release leaves an organization to people again. It does nothing when another resource keeps it.
func Release(ctx context.Context, db *pg.DB, by audit.Actor, org id.Organization, managedBy string, now time.Time) error {
	return db.InTx(ctx, func(tx *pg.Tx) error {
		name, err := releaseManagement(ctx, tx, org, managedBy)
		if pg.None(err) {
			return nil
		}
		if err != nil {
			return err
		}
		Notify(tx, org)
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "left organization to its staff", Target: name, At: now})
	})
}

// MayChange refuses staff and partners what a resource keeps of the organization (Conflict "managed"). The platform may
// change it, and the resource's operator changes it back.
func MayChange(ctx context.Context, q pg.Querier, by audit.Actor, org id.Organization, fields ...string) error {
	if by.Kind != audit.Staff && by.Kind != audit.PartnerKey || len(fields) == 0 {
		return nil
	}
	m, err := ManagementOf(ctx, q, org)
	if err != nil {
		return err
	}
	for _, field := range fields {
		if slices.Contains(m.Fields, field) {
			return errManaged(field, m.By)
		}
	}
	return nil
}

// MayChangeMember refuses staff, partners and identity providers to change a member of the staff whom a resource keeps
// (Conflict "managed").
func MayChangeMember(ctx context.Context, q pg.Querier, by audit.Actor, org id.Organization, user id.User) error {
	if by.Kind != audit.Staff && by.Kind != audit.PartnerKey && by.Kind != audit.Schedule {
		return nil
	}
	managedBy, err := selectMembersManager(ctx, q, org, user)
	if err != nil || managedBy == "" {
		return err
	}
	return errManaged("this person's role", managedBy)
}

func errManaged(what, by string) error {
	return fault.New(fault.Conflict, "managed", "%s is kept by %s; change that resource instead", what, by)
}

// differences names the settings in which two organizations differ.
func differences(a, b Organization) (names []string) {
	for _, s := range settings {
		if !s.same(a, b) {
			names = append(names, s.name)
		}
	}
	return names
}

// Notify has every process that listens to Channel look at the organization again, after tx has committed.
func Notify(tx *pg.Tx, org id.Organization) { wakeKeyrings(tx, org) }
