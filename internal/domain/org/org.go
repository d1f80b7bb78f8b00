// Package org holds organizations, their members and their API keys.
package org

import (
	"context"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/lang"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Organization is an institute: the tenant that everything else belongs to.
type Organization struct {
	ID                   id.Organization
	Slug                 string // what the platform calls it; never changes
	Name                 string
	LanguageTestsEnabled bool
	Language             string // of students who chose none, on their pages and in mails; one of lang.All
	Defaults             Defaults
	CreatedAt            time.Time
}

// Defaults are the provisioning defaults (reference: organization#provisioning-defaults).
type Defaults struct {
	AccessMonths             int  // 1 to 120; unless the call, the course or the type has a length
	GracePeriodDays          int  // 0 to 365
	StarterTestsPerCourse    int  // 0 to 1,000; 0 places none
	VisibleTestsLimit        int  // 0 to 10,000
	SendWelcomeEmail         bool // unless the call says
	SetPasswordLinkValidDays int  // 1 to 365
}

// initial are the defaults of a new organization, unless the platform sends others.
var initial = Defaults{AccessMonths: 3, GracePeriodDays: 7, StarterTestsPerCourse: 3,
	VisibleTestsLimit: 10, SendWelcomeEmail: true, SetPasswordLinkValidDays: 3}

// Patch changes the settings that are not nil.
type Patch struct {
	Name                     *string
	LanguageTestsEnabled     *bool
	Language                 *string
	AccessMonths             *int
	GracePeriodDays          *int
	StarterTestsPerCourse    *int
	VisibleTestsLimit        *int
	SendWelcomeEmail         *bool
	SetPasswordLinkValidDays *int
}

// Put creates the organization of slug, or changes the settings in p; created says which. A new
// one needs a name. Every process drops what it has cached of the organization. Invalid lists
// each wrong setting, with the name that the platform API gives it. Conflict as MayChange has it.
func Put(ctx context.Context, db *pg.DB, by audit.Actor, slug string, p Patch, now time.Time) (o Organization, created bool, err error) {
	return put(ctx, db, by, slug, p, now, command{creates: true})
}

// Change is Put for an organization that there is. NotFound where there is none.
func Change(ctx context.Context, db *pg.DB, by audit.Actor, slug string, p Patch, now time.Time) (Organization, error) {
	o, _, err := put(ctx, db, by, slug, p, now, command{})
	return o, err
}

// command is how settings are put.
type command struct {
	creates    bool        // an organization that there is not yet
	management *Management // by a resource
}

func put(ctx context.Context, db *pg.DB, by audit.Actor, slug string, p Patch, now time.Time, c command) (o Organization, created bool, err error) {
	if !slugForm.MatchString(slug) {
		return o, false, fault.Field("slug", "invalid",
			"slug: %q is no slug; use 1 to 63 lower-case letters, digits and hyphens, with a letter or digit at both ends", slug)
	}
	err = db.InTx(ctx, func(tx *pg.Tx) error {
		before, err := lockOrNew(ctx, tx, slug, now)
		if err != nil {
			return err
		}
		if before.ID == 0 && !c.creates {
			return noOrganization(slug)
		}
		o, created = p.apply(before), before.ID == 0
		if err := o.check(before.Language); err != nil {
			return err
		}
		if err := MayChange(ctx, tx, by, before.ID, differences(before, o)...); err != nil {
			return err
		}
		changed := o != before
		if o.ID, err = upsert(ctx, tx, o, now); err != nil {
			return err
		}
		if err := c.claim(ctx, tx, o); err != nil {
			return err
		}
		wakeKeyrings(tx, o.ID)
		if !changed {
			return nil
		}
		entry := audit.Entry{Organization: o.ID, Actor: by, Action: "changed organization", Target: o.Name, At: now}
		if created {
			entry.Action = "created organization"
		}
		return audit.Write(ctx, tx, entry)
	})
	return o, created, err
}

// claim makes the resource of the command the organization's manager.
func (c command) claim(ctx context.Context, tx *pg.Tx, o Organization) error {
	if c.management == nil {
		return nil
	}
	m, err := ManagementOf(ctx, tx, o.ID)
	if err != nil {
		return err
	}
	if m.By != "" && m.By != c.management.By {
		return fault.New(fault.Conflict, "organization_managed", "the organization %q is kept by %s", o.Slug, m.By)
	}
	return updateManagement(ctx, tx, o.ID, *c.management)
}

// lockOrNew reads the organization of slug; one that does not exist yet has no id and the
// initial settings. Other transactions that put it wait.
func lockOrNew(ctx context.Context, tx *pg.Tx, slug string, now time.Time) (Organization, error) {
	if err := pg.Lock(ctx, tx, pg.LockOrganization, slug); err != nil {
		return Organization{}, err
	}
	o, err := selectBySlug(ctx, tx, slug)
	if pg.None(err) {
		return Organization{Slug: slug, Language: lang.English, Defaults: initial, CreatedAt: now}, nil
	}
	return o, err
}

// Find reads the organization of slug. NotFound when there is none.
func Find(ctx context.Context, q pg.Querier, slug string) (Organization, error) {
	o, err := selectBySlug(ctx, q, slug)
	if pg.None(err) {
		return o, noOrganization(slug)
	}
	return o, err
}

func noOrganization(slug string) error {
	return fault.New(fault.NotFound, "not_found", "there is no organization %q", slug)
}

// Erase makes the organization unknown: it has no slug and no name any more, and its keys are revoked. Every process
// drops what it has cached of it.
func Erase(ctx context.Context, tx *pg.Tx, org id.Organization, now time.Time) error {
	if err := erase(ctx, tx, org, now); err != nil {
		return err
	}
	wakeKeyrings(tx, org)
	return nil
}

// ReadAll reads organizations by their ids; unknown ids are left out.
func ReadAll(ctx context.Context, q pg.Querier, orgs ...id.Organization) (map[id.Organization]Organization, error) {
	found, err := selectByIDs(ctx, q, orgs)
	all := make(map[id.Organization]Organization, len(found))
	for _, o := range found {
		all[o.ID] = o
	}
	return all, err
}

// slugForm is that of a Kubernetes label value, because a namespace names its
// organization in a label.
var slugForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

const maxName = 200

func (p Patch) apply(o Organization) Organization {
	if p.Name != nil {
		o.Name = strings.TrimSpace(*p.Name)
	}
	set(&o.LanguageTestsEnabled, p.LanguageTestsEnabled)
	set(&o.Language, p.Language)
	set(&o.Defaults.AccessMonths, p.AccessMonths)
	set(&o.Defaults.GracePeriodDays, p.GracePeriodDays)
	set(&o.Defaults.StarterTestsPerCourse, p.StarterTestsPerCourse)
	set(&o.Defaults.VisibleTestsLimit, p.VisibleTestsLimit)
	set(&o.Defaults.SendWelcomeEmail, p.SendWelcomeEmail)
	set(&o.Defaults.SetPasswordLinkValidDays, p.SetPasswordLinkValidDays)
	return o
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// check lets a language stay that a later version of the programs has put.
func (o Organization) check(stored string) error {
	var faults fault.List
	if n := utf8.RuneCountInString(o.Name); n < 1 || n > maxName {
		_ = faults.Add(fault.Field("name", "invalid", "name: send a name of 1 to %d characters", maxName))
	}
	if o.Language != stored && !lang.Known(o.Language) {
		var codes []string
		for _, t := range lang.All() {
			codes = append(codes, t.Code())
		}
		_ = faults.Add(fault.Field("language", "unknown_language", "language: send one of %s", strings.Join(codes, ", ")))
	}
	within := func(field string, value, low, high int) {
		if value < low || value > high {
			field = "provisioning_defaults." + field
			_ = faults.Add(fault.Field(field, "out_of_range", "%s: send a whole number from %d to %d", field, low, high))
		}
	}
	within("default_access_months", o.Defaults.AccessMonths, 1, 120)
	within("grace_period_days", o.Defaults.GracePeriodDays, 0, 365)
	within("starter_tests_per_course", o.Defaults.StarterTestsPerCourse, 0, 1000)
	within("visible_tests_limit", o.Defaults.VisibleTestsLimit, 0, 10_000)
	within("set_password_link_valid_days", o.Defaults.SetPasswordLinkValidDays, 1, 365)
	return faults.Err()
}
