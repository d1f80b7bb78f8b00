package org_test

import (
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

func TestAResourceReplacesItsKeys(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	north, south := organization(t, db, "north"), organization(t, db, "south")
	by := audit.Actor{Kind: audit.Operator, Name: "kubernetes/a/school/crm"}
	wanted := org.Key{Name: "crm", Access: org.Full, ManagedBy: by.Name}
	other := wanted
	other.ManagedBy = "kubernetes/a/school/other"
	beside, _, err := org.ReplaceKey(t.Context(), db, by, north.ID, other, now, now)
	check.NoError(check.Now(t), err, "")
	elsewhere, _, err := org.ReplaceKey(t.Context(), db, by, south.ID, wanted, now, now)
	check.NoError(check.Now(t), err, "")

	first, text, err := org.ReplaceKey(t.Context(), db, by, north.ID, wanted, now.Add(time.Hour), now)
	check.NoError(check.Now(t), err, "")
	for _, c := range []struct {
		text string
		is   bool
	}{{text, true}, {text + "x", false}, {"", false}} {
		is, err := org.IsKey(t.Context(), db, north.ID, first.ID, c.text)
		check.NoError(t, err, "")
		check.Equal(t, "it is the key", is, c.is, "%q", c.text)
	}
	keyring := org.NewKeyring(db)
	second, _, err := org.ReplaceKey(t.Context(), db, by, north.ID, wanted, now.Add(time.Hour), now.Add(time.Minute))
	check.NoError(check.Now(t), err, "")
	p, err := keyring.Principal(t.Context(), text, "192.0.2.1")
	check.NoError(t, err, "the first still works")
	check.True(t, "its end", p.Key.ExpiresAt.Equal(now.Add(time.Hour)), "%s", p.Key.ExpiresAt)
	third, _, err := org.ReplaceKey(t.Context(), db, by, north.ID, wanted, now.Add(2*time.Hour), now.Add(2*time.Minute))
	check.NoError(check.Now(t), err, "")

	keys, err := org.ManagedKeys(t.Context(), db, by.Name)
	check.NoError(check.Now(t), err, "")
	check.Equal(check.Now(t), "number of keys", len(keys), 4, "%+v", keys)
	for i, want := range []struct {
		key org.Key
		end time.Time
	}{{third, time.Time{}}, {second, now.Add(2 * time.Hour)}, {first, now.Add(time.Hour)}, {elsewhere, time.Time{}}} {
		check.Equal(t, "the key", keys[i].ID, want.key.ID, "at %d", i)
		check.True(t, "its end", keys[i].ExpiresAt.Equal(want.end), "at %d: %s", i, keys[i].ExpiresAt)
	}

	_, err = org.RevokeKey(t.Context(), db, audit.Actor{Kind: audit.Staff, ID: 1, Name: "olive"}, north.ID, third.ID, now)
	check.True(t, "staff revoke it in the resource", fault.Has(err, "managed"), "%v", err)
	fourth, _, err := org.ReplaceKey(t.Context(), db, by, north.ID, wanted, now.Add(3*time.Minute), now.Add(3*time.Minute))
	check.NoError(check.Now(t), err, "")
	_, err = org.NewKeyring(db).Principal(t.Context(), text, "192.0.2.1")
	check.Equal(t, "without overlap the first", fault.KindOf(err), fault.Unauthenticated, "%v", err)
	managers, err := org.KeyManagers(t.Context(), db, "kubernetes/a/")
	check.NoError(t, err, "")
	check.Slices(t, "resources with keys", managers, []string{by.Name, other.ManagedBy}, "")

	check.NoError(t, org.ReleaseKeys(t.Context(), db, by, by.Name, now), "")
	_, err = org.RevokeKey(t.Context(), db, audit.Actor{Kind: audit.Staff, ID: 1, Name: "olive"}, north.ID, fourth.ID, now)
	check.NoError(t, err, "it is the staff's now")
	keys, err = org.ManagedKeys(t.Context(), db, other.ManagedBy)
	check.NoError(t, err, "")
	check.True(t, "the other resource's key is as it was", len(keys) == 1 && keys[0].ID == beside.ID && keys[0].ExpiresAt.IsZero(), "%+v", keys)
	entries, err := audit.List(t.Context(), db, north.ID, 0)
	check.NoError(t, err, "")
	counts := map[string]int{}
	for _, e := range entries {
		counts[e.Action]++
	}
	for action, n := range map[string]int{"created API key": 5, "set end of API key": 2, "revoked API key": 4, "left API key to the staff": 1} {
		check.Equal(t, "times", counts[action], n, "%s", action)
	}
}
