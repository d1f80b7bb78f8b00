package org_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func put(t *testing.T, db *pg.DB, slug string, p org.Patch) (o org.Organization, created bool, err error) {
	t.Helper()
	return org.Put(t.Context(), db, audit.Platform, slug, p, now)
}

func organization(t *testing.T, db *pg.DB, slug string) org.Organization {
	t.Helper()
	o, _, err := put(t, db, slug, org.Patch{Name: &slug})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Reference: organization#provisioning-defaults.
func TestPutCreatesWithDefaultsAndThenKeepsWhatIsNotSent(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	name, months, on := " North Institute ", 6, true
	o, created, err := put(t, db, "north", org.Patch{Name: &name, AccessMonths: &months})
	check.NoError(check.Now(t), err, "%v %v", created, err)
	check.True(check.Now(t), "created", created, "%v %v", created, err)
	want := org.Organization{ID: o.ID, Slug: "north", Name: "North Institute", CreatedAt: now,
		Defaults: org.Defaults{AccessMonths: 6, GracePeriodDays: 7, StarterTestsPerCourse: 3, VisibleTestsLimit: 10,
			SendWelcomeEmail: true, SetPasswordLinkValidDays: 3}}
	if o != want {
		t.Fatalf("created %+v\nwant %+v", o, want)
	}
	o, created, err = put(t, db, "north", org.Patch{LanguageTestsEnabled: &on})
	if want.LanguageTestsEnabled = true; check.NoError(check.Now(t), err, "%v %v", created, err) {
		check.False(check.Now(t), "created", created, "%v %v", created, err)
	}
	found, err := org.Find(t.Context(), db, "north")
	if err != nil {
		t.Fatal(err)
	}
	all, err := org.ReadAll(t.Context(), db, o.ID, o.ID+1)
	check.NoError(check.Now(t), err, "%v %v", all, err)
	check.Equal(check.Now(t), "number of organizations", len(all), 1, "%v %v", all, err)
	for _, got := range []org.Organization{found, all[o.ID]} {
		if got.CreatedAt = got.CreatedAt.UTC(); got != want {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
	}
}

func TestPutNamesEveryFieldAtFault(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	zero, many, long := 0, 366, strings.Repeat("ä", 201)
	_, _, err := put(t, db, "north", org.Patch{Name: &long, AccessMonths: &zero, GracePeriodDays: &many, SetPasswordLinkValidDays: &zero})
	var f *fault.Error
	check.True(check.Now(t), "the error is a fault", errors.As(err, &f), "err = %+v", f)
	check.Equal(check.Now(t), "number of faults", len(f.All()), 4, "err = %+v", f)
	check.Equal(check.Now(t), "f.Field", f.Field, "name", "err = %+v", f)
	check.Equal(check.Now(t), "the second fault's field", f.All()[1].Field, "provisioning_defaults.default_access_months", "err = %+v", f)
	for _, slug := range []string{"", "North", "-a", "a-", "a_b", strings.Repeat("a", 64)} {
		if _, _, err := put(t, db, slug, org.Patch{Name: &slug}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("slug %q: %v", slug, err)
		}
	}
	if _, err := org.Find(t.Context(), db, "north"); fault.KindOf(err) != fault.NotFound {
		t.Fatalf("something was saved: %v", err)
	}
}

func TestPutsOfOneSlugAtOnceKeepEachOthersFields(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	name, months, days := "North", 9, 1
	var wg sync.WaitGroup
	for _, p := range []org.Patch{{Name: &name, AccessMonths: &months}, {Name: &name, GracePeriodDays: &days}} {
		wg.Go(func() {
			if _, _, err := put(t, db, "north", p); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	o, err := org.Find(t.Context(), db, "north")
	check.NoError(check.Now(t), err, "%+v, %v", o, err)
	check.Equal(check.Now(t), "o.Defaults.AccessMonths", o.Defaults.AccessMonths, 9, "%+v, %v", o, err)
	check.Equal(check.Now(t), "o.Defaults.GracePeriodDays", o.Defaults.GracePeriodDays, 1, "%+v, %v", o, err)
}

func TestKeysBelongToTheirOrganization(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	north, south := organization(t, db, "north"), organization(t, db, "south")
	k, text, err := org.CreateKey(t.Context(), db, audit.Platform, north.ID, " CRM ", org.ReadOnly, now)
	check.NoError(check.Now(t), err, "%+v %q %v", k, text, err)
	check.Equal(check.Now(t), "k.Name", k.Name, "CRM", "%+v %q %v", k, text, err)
	check.True(check.Now(t), "the key begins with its prefix", strings.HasPrefix(text, k.Prefix), "%+v %q %v", k, text, err)
	check.Equal(check.Now(t), "length of the prefix", len(k.Prefix), 12, "%+v %q %v", k, text, err)
	check.Equal(check.Now(t), "length of the key", len(text), 47, "%+v %q %v", k, text, err)
	var stored int
	err = db.QueryRow(t.Context(), `SELECT count(*) FROM api_keys k WHERE k::text LIKE '%' || $1 || '%'`, text[4:]).Scan(&stored)
	check.NoError(check.Now(t), err, "the key's text is stored: %v", err)
	check.Equal(check.Now(t), "stored", stored, 0, "the key's text is stored: %v", err)
	revoke := func(o org.Organization, at time.Time) (org.Key, error) {
		return org.RevokeKey(t.Context(), db, audit.Platform, o.ID, k.ID, at)
	}
	if _, err := revoke(south, now); fault.KindOf(err) != fault.NotFound {
		t.Fatalf("another organization revokes it: %v", err)
	}
	for _, at := range []time.Time{now.Add(time.Hour), now.Add(2 * time.Hour)} {
		if got, err := revoke(north, at); check.NoError(check.Now(t), err, "revoked %+v, %v", got, err) {
			check.True(check.Now(t), "it was revoked an hour later", got.RevokedAt.Equal(now.Add(time.Hour)), "revoked %+v, %v", got, err)
		}
	}
	keys, err := org.Keys(t.Context(), db, north.ID)
	check.NoError(check.Now(t), err, "%+v, %v", keys, err)
	check.Equal(check.Now(t), "number of keys", len(keys), 1, "%+v, %v", keys, err)
	check.Equal(check.Now(t), "the first key's id", keys[0].ID, k.ID, "%+v, %v", keys, err)
	check.False(check.Now(t), "the key was never revoked", keys[0].RevokedAt.IsZero(), "%+v, %v", keys, err)
	if keys, err := org.Keys(t.Context(), db, south.ID); check.NoError(check.Now(t), err, "%+v, %v", keys, err) {
		check.Equal(check.Now(t), "number of keys", len(keys), 0, "%+v, %v", keys, err)
	}
}

func TestCreateKeyNamesEveryFieldAtFault(t *testing.T) {
	t.Parallel()
	_, _, err := org.CreateKey(t.Context(), nil, audit.Platform, 1, " ", "write", now)
	var f *fault.Error
	check.True(check.Now(t), "the error is a fault", errors.As(err, &f), "err = %+v", f)
	check.Equal(check.Now(t), "number of faults", len(f.All()), 2, "err = %+v", f)
	check.Equal(check.Now(t), "the second fault's field", f.All()[1].Field, "access", "err = %+v", f)
}
