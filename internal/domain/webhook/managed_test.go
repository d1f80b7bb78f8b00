package webhook_test

import (
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

func TestManagedEndpointsAreFoundByTheirManager(t *testing.T) {
	t.Parallel()
	k := newService(t)
	one, other := newOrganization(t, k.DB, "one"), newOrganization(t, k.DB, "other")
	urls := []string{"https://a.example.org/", "https://b.example.org/", "https://c.example.org/"}
	for i, service := range []string{"kubernetes/a/x", "kubernetes/b/x", ""} {
		if _, _, err := k.Add(t.Context(), audit.Platform, one, webhook.Settings{URL: &urls[i], ManagedBy: service, Secret: "whsec_of-one-that-is-long-enough"}, now); err != nil {
			t.Fatal(err)
		}
	}
	found, err := k.ListManaged(t.Context(), "kubernetes/a/")
	check.NoError(check.Now(t), err, "%+v, %v", found, err)
	check.Equal(check.Now(t), "len(found)", len(found), 1, "%+v, %v", found, err)
	check.Equal(check.Now(t), "found[0].ManagedBy", found[0].ManagedBy, "kubernetes/a/x", "%+v, %v", found, err)
	check.Equal(check.Now(t), "found[0].URL", found[0].URL, urls[0], "%+v, %v", found, err)
	e := found[0].ID
	for secret, want := range map[string]bool{"whsec_of-one-that-is-long-enough": true, "whsec_another": false} {
		if signs, err := k.Signs(t.Context(), one, e, secret); check.NoError(t, err, "%s signs: %t, %v", secret, signs, err) {
			check.Equal(t, "signs", signs, want, "%s signs: %t, %v", secret, signs, err)
		}
	}
	if _, err := k.Signs(t.Context(), other, e, "whsec_another"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another organization's URL: %v", err)
	}
	k.Box = newService(t).Box // the keyset was lost
	if signs, err := k.Signs(t.Context(), one, e, "whsec_of-one-that-is-long-enough"); check.NoError(t, err, "what cannot be opened signs: %t, %v", signs, err) {
		check.False(t, "signs", signs, "what cannot be opened signs: %t, %v", signs, err)
	}
}
