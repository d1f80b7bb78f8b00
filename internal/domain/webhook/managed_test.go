package webhook_test

import (
	"slices"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// What a Kubernetes resource does to a URL is in the audit log, with the resource's name.
func TestTheOperatorsCommandsAreInTheAuditLog(t *testing.T) {
	t.Parallel()
	k := newService(t)
	one := newOrganization(t, k.DB, "one")
	operator := audit.Actor{Kind: audit.Operator, Name: "kubernetes/a/x"}
	url := "https://a.example.org/"
	e, _, err := k.Add(t.Context(), operator, one, webhook.Settings{URL: &url, ManagedBy: operator.Name}, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.Rotate(t.Context(), operator, one, e.ID, "", 0, now); err != nil {
		t.Fatal(err)
	}
	if err := k.Remove(t.Context(), operator, one, e.ID, now); err != nil {
		t.Fatal(err)
	}
	entries, err := audit.List(t.Context(), k.DB, one, 0)
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, entry := range entries {
		actions = append(actions, entry.Action)
		if entry.Actor != operator {
			t.Errorf("%s: the actor is %+v, want %+v", entry.Action, entry.Actor, operator)
		}
		if entry.Target != url {
			t.Errorf("%s: the target is %s, want %s", entry.Action, entry.Target, url)
		}
	}
	if want := []string{"deleted webhook URL", "replaced signing secret", "added webhook URL"}; !slices.Equal(actions, want) {
		t.Errorf("the log has %q, want %q", actions, want)
	}
}

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
	check.Equal(check.Now(t), "number of endpoints", len(found), 1, "%+v, %v", found, err)
	check.Equal(check.Now(t), "the first endpoint's manager", found[0].ManagedBy, "kubernetes/a/x", "%+v, %v", found, err)
	check.Equal(check.Now(t), "the first endpoint's URL", found[0].URL, urls[0], "%+v, %v", found, err)
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

// Staff and partners leave what a resource manages to it; the platform may step in.
func TestWhatAResourceManagesIsReadOnlyForStaffAndPartners(t *testing.T) {
	t.Parallel()
	k := newService(t)
	one := newOrganization(t, k.DB, "one")
	url, zone := "https://a.example.org/", "Europe/London"
	e, _, err := k.Add(t.Context(), audit.Platform, one, webhook.Settings{URL: &url, ManagedBy: "kubernetes/a/b/x"}, now)
	check.NoError(check.Now(t), err, "a URL that is managed")
	try := func(by audit.Actor) (faults []error) {
		_, err := k.Change(t.Context(), by, one, e.ID, webhook.Settings{TimeZone: &zone}, now)
		_, _, rotating := k.Rotate(t.Context(), by, one, e.ID, "", 0, now)
		return []error{err, rotating, k.Remove(t.Context(), by, one, e.ID, now)}
	}
	for _, by := range []audit.Actor{{Kind: audit.Staff, ID: 1, Name: "Olive"}, {Kind: audit.PartnerKey, ID: 1, Name: "Student office"}} {
		for i, err := range try(by) {
			check.True(t, "it is refused", fault.Has(err, "managed"), "command %d of %s: %v", i, by.Name, err)
		}
	}
	found, err := k.Find(t.Context(), one, e.ID)
	check.NoError(check.Now(t), err, "the URL")
	check.Equal(t, "the zone", found.TimeZone, "UTC", "%+v", found)
	check.Equal(t, "the secret's version", found.SecretVersion, e.SecretVersion, "%+v", found)
	for i, err := range try(audit.Platform) {
		check.NoError(t, err, "command %d of the platform", i)
	}
}

// A URL changes hands as it is, and only from whom it has.
func TestAURLIsTakenOverAndReleased(t *testing.T) {
	t.Parallel()
	k := newService(t)
	one, other := newOrganization(t, k.DB, "one"), newOrganization(t, k.DB, "other")
	url := "https://a.example.org/"
	by := audit.Actor{Kind: audit.Operator, Name: "kubernetes/a/x"}
	e, secret, err := k.Add(t.Context(), audit.Platform, one, webhook.Settings{URL: &url}, now)
	check.NoError(check.Now(t), err, "a URL of people")
	_, err = k.FindURL(t.Context(), other, url)
	check.Equal(t, "the kind of fault", fault.KindOf(err), fault.NotFound, "of another organization: %v", err)
	for range 2 { // the second time changes nothing
		adopted, err := k.Adopt(t.Context(), by, one, e.ID, by.Name, now)
		check.NoError(check.Now(t), err, "taking over")
		check.Equal(t, "the manager", adopted.ManagedBy, by.Name, "%+v", adopted)
	}
	_, err = k.Adopt(t.Context(), by, one, e.ID, "kubernetes/a/y", now)
	check.True(t, "it is refused", fault.Has(err, "url_exists"), "to another resource: %v", err)
	revealed, err := k.Reveal(t.Context(), one, e.ID)
	check.NoError(t, err, "the secret")
	check.Equal(t, "the secret", revealed, secret, "as it was")
	_, err = k.Change(t.Context(), by, one, e.ID, webhook.Settings{Retained: new(true)}, now)
	check.NoError(check.Now(t), err, "to be retained")
	check.NoError(check.Now(t), k.Release(t.Context(), by, one, e.ID, "kubernetes/a/y", now), "by another resource")
	found, err := k.FindURL(t.Context(), one, url)
	check.NoError(check.Now(t), err, "the URL")
	check.Equal(t, "the manager", found.ManagedBy, by.Name, "%+v", found)
	check.True(t, "it is retained", found.Retained, "%+v", found)
	check.NoError(check.Now(t), k.Release(t.Context(), by, one, e.ID, by.Name, now), "by the resource")
	found, err = k.FindURL(t.Context(), one, url)
	check.NoError(check.Now(t), err, "the URL")
	check.Equal(t, "the manager", found.ManagedBy, "", "%+v", found)
}
