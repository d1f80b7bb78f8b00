package org_test

import (
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// What a resource keeps is read-only for staff, setting by setting, and the rest is theirs.
func TestStaffChangeWhatNoResourceKeeps(t *testing.T) {
	t.Parallel()
	db, on, off, name := pgtest.New(t), true, false, "Another"
	number := func(n int) *int { return &n }
	patches := map[string]org.Patch{
		"name":                         {Name: &name},
		"language_tests_enabled":       {LanguageTestsEnabled: &on},
		"default_access_months":        {AccessMonths: number(12)},
		"grace_period_days":            {GracePeriodDays: number(20)},
		"starter_tests_per_course":     {StarterTestsPerCourse: number(9)},
		"visible_tests_limit":          {VisibleTestsLimit: number(99)},
		"send_welcome_email_default":   {SendWelcomeEmail: &off},
		"set_password_link_valid_days": {SetPasswordLinkValidDays: number(30)},
	}
	staff := audit.Actor{Kind: audit.Staff, ID: 1, Name: "olive"}
	for kept, p := range patches {
		check.Slices(t, "the settings of a patch", p.Fields(), []string{kept}, "")
		slug := strings.ReplaceAll(kept, "_", "-")
		organization(t, db, slug)
		by := audit.Actor{Kind: audit.Operator, Name: "kubernetes/test/" + kept}
		_, _, err := org.Manage(t.Context(), db, by, slug, org.Patch{}, org.Management{By: by.Name, Fields: []string{kept}}, now)
		check.NoError(check.Now(t), err, "%s", kept)
		for field, p := range patches {
			_, err := org.Change(t.Context(), db, staff, slug, p, now)
			check.Equal(t, "it is refused", fault.Has(err, "managed"), field == kept, "%s, of which %s is kept: %v", field, kept, err)
		}
		_, _, err = org.Put(t.Context(), db, audit.Platform, slug, patches[kept], now)
		check.NoError(t, err, "the platform changes %s", kept)
	}
}

// An organization has one resource, which alone leaves it to its staff.
func TestAnOrganizationHasOneResource(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	first, second := audit.Actor{Kind: audit.Operator, Name: "kubernetes/a/x"}, audit.Actor{Kind: audit.Operator, Name: "kubernetes/a/y"}
	name := "North"
	manage := func(by audit.Actor) (org.Organization, bool, error) {
		return org.Manage(t.Context(), db, by, "north", org.Patch{Name: &name}, org.Management{By: by.Name, Fields: []string{"name"}}, now)
	}
	made, created, err := manage(first)
	check.NoError(check.Now(t), err, "")
	check.True(t, "it is new", created, "")
	_, _, err = manage(second)
	check.True(t, "the second is refused", fault.Has(err, "organization_managed"), "%v", err)
	check.NoError(t, org.Release(t.Context(), db, second, made.ID, second.Name, now), "")
	found, err := org.FindManaged(t.Context(), db, first.Name)
	check.NoError(t, err, "what the first keeps, after the second let go")
	check.Equal(t, "what the first keeps", found.ID, made.ID, "")
	check.NoError(t, org.Release(t.Context(), db, first, made.ID, first.Name, now), "")
	_, created, err = manage(second)
	check.NoError(t, err, "the second, after the first")
	check.False(t, "it is new", created, "")
	all, err := org.ListManaged(t.Context(), db, "kubernetes/a/")
	check.NoError(t, err, "")
	check.True(t, "what is kept", len(all) == 1 && all[second.Name] == made.ID, "%v", all)
	_, err = org.FindManaged(t.Context(), db, first.Name)
	check.Equal(t, "what the first keeps", fault.KindOf(err), fault.NotFound, "%v", err)
}
