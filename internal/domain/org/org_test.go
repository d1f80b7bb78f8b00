package org_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func put(t *testing.T, db *pg.DB, slug string, p org.Patch) (o org.Organization, created bool, err error) {
	t.Helper()
	err = db.InTx(t.Context(), func(tx *pg.Tx) error {
		o, created, err = org.Put(t.Context(), tx, slug, p, now)
		return err
	})
	return o, created, err
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
	if err != nil || !created {
		t.Fatal(created, err)
	}
	want := org.Organization{ID: o.ID, Slug: "north", Name: "North Institute", CreatedAt: now,
		Defaults: org.Defaults{AccessMonths: 6, GracePeriodDays: 7, StarterTestsPerCourse: 3, VisibleTestsLimit: 10,
			SendWelcomeEmail: true, SetPasswordLinkValidDays: 3}}
	if o != want {
		t.Fatalf("created %+v\nwant %+v", o, want)
	}
	o, created, err = put(t, db, "north", org.Patch{LanguageTestsEnabled: &on})
	if want.LanguageTestsEnabled = true; err != nil || created {
		t.Fatal(created, err)
	}
	found, err := org.Find(t.Context(), db, "north")
	if err != nil {
		t.Fatal(err)
	}
	all, err := org.ReadAll(t.Context(), db, o.ID, o.ID+1)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
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
	if !errors.As(err, &f) || len(f.All()) != 4 || f.Field != "name" || f.All()[1].Field != "provisioning_defaults.default_access_months" {
		t.Fatalf("err = %+v", f)
	}
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
	if err != nil || o.Defaults.AccessMonths != 9 || o.Defaults.GracePeriodDays != 1 {
		t.Fatalf("%+v, %v", o, err)
	}
}

func TestKeysBelongToTheirOrganization(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	north, south := organization(t, db, "north"), organization(t, db, "south")
	k, text, err := org.CreateKey(t.Context(), db, north.ID, " CRM ", org.ReadOnly, now)
	if err != nil || k.Name != "CRM" || !strings.HasPrefix(text, k.Prefix) || len(k.Prefix) != 12 || len(text) != 47 {
		t.Fatalf("%+v %q %v", k, text, err)
	}
	var stored int
	err = db.QueryRow(t.Context(), `SELECT count(*) FROM api_keys k WHERE k::text LIKE '%' || $1 || '%'`, text[4:]).Scan(&stored)
	if err != nil || stored != 0 {
		t.Fatalf("the key's text is stored: %v", err)
	}
	revoke := func(o org.Organization, at time.Time) (k2 org.Key, err error) {
		err = db.InTx(t.Context(), func(tx *pg.Tx) error {
			k2, err = org.RevokeKey(t.Context(), tx, o.ID, k.ID, at)
			return err
		})
		return k2, err
	}
	if _, err := revoke(south, now); fault.KindOf(err) != fault.NotFound {
		t.Fatalf("another organization revokes it: %v", err)
	}
	for _, at := range []time.Time{now.Add(time.Hour), now.Add(2 * time.Hour)} {
		if got, err := revoke(north, at); err != nil || !got.RevokedAt.Equal(now.Add(time.Hour)) {
			t.Fatalf("revoked %+v, %v", got, err)
		}
	}
	keys, err := org.Keys(t.Context(), db, north.ID)
	if err != nil || len(keys) != 1 || keys[0].ID != k.ID || keys[0].RevokedAt.IsZero() {
		t.Fatalf("%+v, %v", keys, err)
	}
	if keys, err := org.Keys(t.Context(), db, south.ID); err != nil || len(keys) != 0 {
		t.Fatalf("%+v, %v", keys, err)
	}
}

func TestCreateKeyNamesEveryFieldAtFault(t *testing.T) {
	t.Parallel()
	_, _, err := org.CreateKey(t.Context(), nil, 1, " ", "write", now)
	var f *fault.Error
	if !errors.As(err, &f) || len(f.All()) != 2 || f.All()[1].Field != "access" {
		t.Fatalf("err = %+v", f)
	}
}
