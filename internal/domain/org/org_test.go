package org_test

import (
	"errors"
	"net/netip"
	"slices"
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
	"github.com/registrar-dev/registrar/internal/kit/seal"
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
	want := org.Organization{ID: o.ID, Slug: "north", Name: "North Institute", Language: "en", CreatedAt: now,
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
	k, text, err := org.CreateKey(t.Context(), db, audit.Platform, north.ID, org.Key{Name: " CRM ", Access: org.ReadOnly}, now)
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
	_, _, err := org.CreateKey(t.Context(), nil, audit.Platform, 1, org.Key{Name: " ", Access: "write"}, now)
	var f *fault.Error
	check.True(check.Now(t), "the error is a fault", errors.As(err, &f), "err = %+v", f)
	check.Equal(check.Now(t), "number of faults", len(f.All()), 2, "err = %+v", f)
	check.Equal(check.Now(t), "the second fault's field", f.All()[1].Field, "access", "err = %+v", f)
}

// Their statement looks for the hash of the text alone.
func TestProgramsBeforeScopesDoNotFindARestrictedKey(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	north := organization(t, db, "north")
	keys := org.NewKeyring(db)
	for what, wanted := range map[string]org.Key{
		"plain":       {Access: org.Full},
		"scopes":      {Access: org.Scoped, Scopes: []org.Scope{org.ScopeRoster}},
		"networks":    {Access: org.Full, Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		"an end":      {Access: org.ReadOnly, ExpiresAt: now.Add(time.Hour)},
		"all of them": {Access: org.Scoped, Scopes: []org.Scope{org.ScopeRoster}, Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, ExpiresAt: now.Add(time.Hour)},
	} {
		wanted.Name = what
		_, text, err := org.CreateKey(t.Context(), db, audit.Platform, north.ID, wanted, now)
		check.NoError(check.Now(t), err, "%s", what)
		var found int
		err = db.QueryRow(t.Context(), `SELECT count(*) FROM api_keys k WHERE k.hash = $1 AND k.revoked_at IS NULL`, seal.Hash(text)).Scan(&found)
		check.NoError(check.Now(t), err, "%s", what)
		check.Equal(t, "it is found", found == 1, what == "plain", "%s", what)
		p, err := keys.Principal(t.Context(), text, "192.0.2.1")
		check.NoError(check.Now(t), err, "%s", what)
		check.Equal(t, "the access", p.Key.Access, wanted.Access, "%s", what)
		check.Slices(t, "the scopes", p.Key.Scopes, wanted.Scopes, "%s", what)
		check.Slices(t, "the networks", p.Key.Networks, wanted.Networks, "%s", what)
		check.True(t, "the end", p.Key.ExpiresAt.Equal(wanted.ExpiresAt), "%s: %s", what, p.Key.ExpiresAt)
	}
}

// What is accepted is a list of scopes or networks in which each is once, and is accepted again.
func FuzzKeyLimits(f *testing.F) {
	for _, s := range []string{"", "roster", "results:read,roster, roster", "Roster", "10.0.0.0/8, 10.0.0.0/8", "::1,fe80::1%eth0", "203.0.113.7/32,203.0.113.7", "x\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parts := strings.Split(text, ",")
		if scopes, err := org.ParseScopes(parts); err == nil {
			again := make([]string, len(scopes))
			for i, s := range scopes {
				again[i] = string(s)
				check.True(t, "the scope exists", slices.Contains(org.Scopes(), s), "%q", text)
			}
			slices.Sort(again)
			check.Equal(t, "scopes, each once", len(slices.Compact(again)), len(scopes), "%q", text)
		}
		if networks, err := org.ParseNetworks(parts); err == nil {
			k := org.Key{Networks: networks}
			for _, n := range networks {
				check.True(t, "the key works from its networks", k.WorksFrom(n.Addr()), "%q", text)
			}
			check.False(t, "it works from nowhere", len(networks) > 0 && k.WorksFrom(netip.Addr{}), "%q", text)
		}
	})
}
