package webhook_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

// secretInForce is what the next attempt is signed with.
func secretInForce(t *testing.T, k webhook.Service, e webhook.Endpoint) string {
	t.Helper()
	target, err := dispatch.ReadTarget(t.Context(), k.DB, e.ID)
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := target.Open(t.Context(), k.Box, now)
	check.NoError(check.Now(t), err, "opening")
	check.Equal(check.Now(t), "secrets that sign", len(secrets), 1, "without an overlap")
	return secrets[0]
}

// signing are the secrets that sign at a time, the current one first.
func signing(t *testing.T, k webhook.Service, e webhook.Endpoint, at time.Time) []string {
	t.Helper()
	target, err := dispatch.ReadTarget(t.Context(), k.DB, e.ID)
	check.NoError(check.Now(t), err, "the target")
	secrets, err := target.Open(t.Context(), k.Box, at)
	check.NoError(check.Now(t), err, "opening")
	return secrets
}

// Reference: webhooks#signature.
func TestTwoSecretsSignDuringAnOverlap(t *testing.T) {
	t.Parallel()
	k := newService(t)
	org := newOrganization(t, k.DB, "one")
	e := add(t, k, org, "https://a.example.org/")
	first := secretInForce(t, k, e)
	rotate := func(overlap time.Duration, at time.Time) string {
		t.Helper()
		r, secret, err := k.Rotate(t.Context(), audit.Platform, org, e.ID, "", overlap, at)
		check.NoError(check.Now(t), err, "rotating")
		if overlap == 0 {
			check.True(check.Now(t), "there is no overlap", r.Overlap(at) == nil, "%+v", r)
		} else {
			check.True(check.Now(t), "the end", r.Overlap(at).Equal(at.Add(overlap)), "%+v", r)
			check.True(check.Now(t), "nothing overlaps at the end", r.Overlap(at.Add(overlap)) == nil, "%+v", r)
		}
		return secret
	}
	kept := func() (n int) {
		t.Helper()
		check.NoError(check.Now(t), k.DB.QueryRow(t.Context(), `SELECT count(*) FROM webhook_secrets WHERE endpoint_id = $1`, e.ID).Scan(&n), "counting")
		return n
	}
	second := rotate(time.Hour, now)
	check.Slices(t, "secrets", signing(t, k, e, now), []string{second, first}, "during the overlap")
	check.Slices(t, "secrets", signing(t, k, e, now.Add(time.Hour)), []string{second}, "at its end, before anything is removed")

	third := rotate(time.Hour, now.Add(time.Minute))
	check.Slices(t, "secrets", signing(t, k, e, now.Add(time.Minute)), []string{third, second}, "the newest two")
	check.Equal(t, "secrets that are kept", kept(), 2, "after a second rotation")
	check.NoError(check.Now(t), webhook.EndOverlaps(t.Context(), k.DB, now.Add(time.Hour)), "before the end")
	check.Equal(t, "secrets that are kept", kept(), 2, "before the end")
	check.NoError(check.Now(t), webhook.EndOverlaps(t.Context(), k.DB, now.Add(time.Hour+time.Minute)), "at the end")
	check.Equal(t, "secrets that are kept", kept(), 1, "at the end")
	check.Slices(t, "secrets", signing(t, k, e, now), []string{third}, "afterwards")

	fourth := rotate(webhook.MaxOverlap, now)
	fifth := rotate(0, now)
	check.Slices(t, "secrets", signing(t, k, e, now), []string{fifth}, "a rotation without an overlap ends all, also %s", fourth)
	check.Equal(t, "secrets that are kept", kept(), 1, "of five")
	for _, overlap := range []time.Duration{-time.Second, webhook.MaxOverlap + time.Second} {
		_, _, err := k.Rotate(t.Context(), audit.Platform, org, e.ID, "", overlap, now)
		check.True(t, "it is refused", fault.Has(err, "out_of_range"), "%s: %v", overlap, err)
	}

	k.Box = newService(t).Box // the keyset was lost: the secret before could not sign
	sixth := rotateLost(t, k, org, e)
	check.Slices(t, "secrets", signing(t, k, e, now), []string{sixth}, "without the one that cannot be opened")
}

func rotateLost(t *testing.T, k webhook.Service, org id.Organization, e webhook.Endpoint) string {
	t.Helper()
	r, secret, err := k.Rotate(t.Context(), audit.Platform, org, e.ID, "", time.Hour, now)
	check.NoError(check.Now(t), err, "rotating")
	check.True(t, "there is no overlap", r.Overlap(now) == nil, "%+v", r)
	return secret
}

// Refusals while two secrets sign slow a URL down, and do not switch it off. Without an overlap they do.
func TestRefusalsDuringAnOverlapDoNotSwitchOff(t *testing.T) {
	t.Parallel()
	k := newService(t)
	org := newOrganization(t, k.DB, "one")
	e := add(t, k, org, "https://a.example.org/")
	at := now
	fail := func(status int, overlap bool) webhook.Endpoint {
		t.Helper()
		record(t, k.DB, org, webhook.StudentJoined)
		at = at.Add(2 * time.Second)
		verdict, _ := webhook.Judge(status, overlap)
		tried := outcomes(t, k.DB, lease(t, k.DB, at), verdict, at)
		for i := range tried {
			tried[i].Status, tried[i].Overlap = status, overlap
		}
		settle(t, k.DB, tried...)
		e, err := k.Find(t.Context(), org, e.ID)
		check.NoError(check.Now(t), err, "the URL")
		return e
	}
	for range 2 * webhook.SwitchOffAfter {
		e = fail(401, true)
	}
	check.True(t, "it is on", e.SwitchedOn, "%+v", e)
	check.Equal(t, "failures in a row", e.ConsecutiveFailures, webhook.ProbeAfter, "%+v", e)
	check.Equal(t, "declined", counts(t, k.DB, e.ID)["declined"], 0, "deliveries")
	for range webhook.SwitchOffAfter - webhook.ProbeAfter {
		check.True(check.Now(t), "it is on", e.SwitchedOn, "%+v", e)
		e = fail(401, false)
	}
	check.False(t, "it is on", e.SwitchedOn, "without an overlap: %+v", e)
}

func TestARotationHoldsForTheNextAttempt(t *testing.T) {
	t.Parallel()
	k := newService(t)
	org := newOrganization(t, k.DB, "one")
	e := add(t, k, org, "https://a.example.org/")
	before := secretInForce(t, k, e)
	rotated, secret, err := k.Rotate(t.Context(), audit.Platform, org, e.ID, "", 0, now)
	check.NoError(check.Now(t), err, "rotated to version %d: %v", rotated.SecretVersion, err)
	check.Equal(check.Now(t), "rotated.SecretVersion", rotated.SecretVersion, 2, "rotated to version %d: %v", rotated.SecretVersion, err)
	check.True(check.Now(t), "the secret is another", secret != before, "rotated to version %d: %v", rotated.SecretVersion, err)
	check.Equal(check.Now(t), "the secret in force", secretInForce(t, k, e), secret, "rotated to version %d: %v", rotated.SecretVersion, err)
	chosen := "whsec_chosen-by-somebody-else"
	for range 2 { // the second time changes nothing
		if rotated, _, err = k.Rotate(t.Context(), audit.Platform, org, e.ID, chosen, 0, now); check.NoError(check.Now(t), err, "version %d: %v", rotated.SecretVersion, err) &&
			check.Equal(check.Now(t), "rotated.SecretVersion", rotated.SecretVersion, 3, "version %d: %v", rotated.SecretVersion, err) {
			check.Equal(check.Now(t), "the secret in force", secretInForce(t, k, e), chosen, "version %d: %v", rotated.SecretVersion, err)
		}
	}
	var kept int
	if err := k.DB.QueryRow(t.Context(), `SELECT count(*) FROM webhook_secrets WHERE endpoint_id = $1`, e.ID).Scan(&kept); check.NoError(t, err, "%d secrets are kept, want the one in force (%v)", kept, err) {
		check.Equal(t, "kept", kept, 1, "%d secrets are kept, want the one in force (%v)", kept, err)
	}
	var f *fault.Error
	if _, _, err := k.Rotate(t.Context(), audit.Platform, org, e.ID, "short", 0, now); check.True(t, "the error is a fault", errors.As(err, &f), "a short secret: %v", err) {
		check.Equal(t, "f.Field", f.Field, "signing_secret", "a short secret: %v", err)
	}
	if _, _, err := k.Rotate(t.Context(), audit.Platform, newOrganization(t, k.DB, "other"), e.ID, "", 0, now); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another organization's URL: %v", err)
	}
}

func TestATestReachesAURLThatIsOff(t *testing.T) {
	t.Parallel()
	k := newService(t)
	org := newOrganization(t, k.DB, "one")
	e := add(t, k, org, "https://a.example.org/")
	record(t, k.DB, org, webhook.StudentJoined)
	off, err := k.SwitchOff(t.Context(), audit.Platform, org, e.ID, "Suspended by its resource.", now)
	check.NoError(check.Now(t), err, "%+v, %v", off, err)
	check.False(check.Now(t), "off.SwitchedOn", off.SwitchedOn, "%+v, %v", off, err)
	check.Equal(check.Now(t), "off.SwitchedOffReason", off.SwitchedOffReason, "Suspended by its resource.", "%+v, %v", off, err)
	check.True(check.Now(t), "it was switched off now", off.SwitchedOffAt.Equal(now), "%+v, %v", off, err)
	if _, err := k.SendTest(t.Context(), audit.Platform, org, e.ID, now); err != nil {
		t.Fatal(err)
	}
	if err := webhook.Skip(t.Context(), k.DB, e.ID, now); err != nil {
		t.Fatal(err)
	}
	leases := lease(t, k.DB, now)
	check.Equal(check.Now(t), "number of leases", len(leases), 1, "leases: %+v, want the test alone", leases)
	check.Equal(check.Now(t), "number of first lease's deliveries", len(leases[0].Deliveries), 1, "leases: %+v, want the test alone", leases)
	tried := outcomes(t, k.DB, leases, webhook.Retry, now)
	tried[0].Ping = true
	settle(t, k.DB, tried...)
	if got := counts(t, k.DB, e.ID); check.Equal(t, "exhausted", got["exhausted"], 1, "a failed test is not tried again: %v", got) {
		check.Equal(t, "skipped", got["skipped"], 1, "a failed test is not tried again: %v", got)
	}
	if e, err = k.Find(t.Context(), org, e.ID); check.NoError(t, err, "a failed test counts: %d in a row (%v)", e.ConsecutiveFailures, err) {
		check.Equal(t, "e.ConsecutiveFailures", e.ConsecutiveFailures, 0, "a failed test counts: %d in a row (%v)", e.ConsecutiveFailures, err)
	}
}

func TestTurningOnForgetsTheFailures(t *testing.T) {
	t.Parallel()
	k := newService(t)
	org := newOrganization(t, k.DB, "one")
	e := add(t, k, org, "https://a.example.org/")
	at := now
	for range webhook.SwitchOffAfter {
		record(t, k.DB, org, webhook.StudentJoined)
		at = at.Add(2 * time.Second)
		settle(t, k.DB, outcomes(t, k.DB, lease(t, k.DB, at), webhook.Declined, at)...)
	}
	off, err := k.Find(t.Context(), org, e.ID)
	check.NoError(check.Now(t), err, "after %d failures: %+v, %v", webhook.SwitchOffAfter, off, err)
	check.False(check.Now(t), "off.SwitchedOn", off.SwitchedOn, "after %d failures: %+v, %v", webhook.SwitchOffAfter, off, err)
	check.Equal(check.Now(t), "off.ConsecutiveFailures", off.ConsecutiveFailures, webhook.SwitchOffAfter, "after %d failures: %+v, %v", webhook.SwitchOffAfter, off, err)
	for range 2 {
		on, err := k.TurnOn(t.Context(), audit.Platform, org, e.ID, at)
		check.NoError(check.Now(t), err, "turned on: %+v, %v", on, err)
		check.True(check.Now(t), "on.SwitchedOn", on.SwitchedOn, "turned on: %+v, %v", on, err)
		check.Equal(check.Now(t), "on.ConsecutiveFailures", on.ConsecutiveFailures, 0, "turned on: %+v, %v", on, err)
		check.Equal(check.Now(t), "on.SwitchedOffReason", on.SwitchedOffReason, "", "turned on: %+v, %v", on, err)
		check.True(check.Now(t), "there is no time of switching off", on.SwitchedOffAt == nil, "turned on: %+v, %v", on, err)
	}
	record(t, k.DB, org, webhook.StudentJoined)
	if got := lease(t, k.DB, at); len(got) != 1 {
		t.Errorf("%d leases after turning on, want 1", len(got))
	}
	if _, err := k.TurnOn(t.Context(), audit.Platform, org, e.ID+1, at); fault.KindOf(err) != fault.NotFound {
		t.Errorf("turning on nothing: %v", err)
	}
}

func TestAnEndpointIsFoundByWhoManagesIt(t *testing.T) {
	t.Parallel()
	k := newService(t)
	org := newOrganization(t, k.DB, "one")
	url, secret := "https://a.example.org/", "whsec_0123456789abcdef01234567"
	made, shown, err := k.Add(t.Context(), audit.Platform, org, webhook.Settings{URL: &url, Secret: secret, ManagedBy: "cluster/ns/name"}, now)
	check.NoError(check.Now(t), err, "secret %q, %v", shown, err)
	check.Equal(check.Now(t), "shown", shown, secret, "secret %q, %v", shown, err)
	if found, err := k.FindManaged(t.Context(), "cluster/ns/name"); check.NoError(check.Now(t), err, "found %+v, %v", found, err) &&
		check.Equal(check.Now(t), "found.ID", found.ID, made.ID, "found %+v, %v", found, err) {
		check.Equal(check.Now(t), "found.ManagedBy", found.ManagedBy, "cluster/ns/name", "found %+v, %v", found, err)
	}
	other := "https://a.example.org/2"
	var f *fault.Error
	if _, _, err := k.Add(t.Context(), audit.Platform, org, webhook.Settings{URL: &other, ManagedBy: "cluster/ns/name"}, now); check.True(t, "the error is a fault", errors.As(err, &f), "a second one of the same manager: %v", err) {
		check.Equal(t, "f.Code", f.Code, "managed_already", "a second one of the same manager: %v", err)
	}
	if _, err := k.FindManaged(t.Context(), "cluster/ns/other"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("an unknown manager: %v", err)
	}
}

func TestBacklogsCountWhatWaitsAndWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	k := newService(t)
	org := newOrganization(t, k.DB, "one")
	busy, idle := add(t, k, org, "https://a.example.org/"), add(t, k, org, "https://a.example.org/idle", webhook.ResultFinal)
	record(t, k.DB, org, make30(webhook.StudentJoined)...)
	lease(t, k.DB, now)
	got, err := k.Backlogs(t.Context(), busy.ID, idle.ID)
	if check.NoError(t, err, "backlogs: %v, %v", got, err) &&
		check.Equal(t, "backlog of the busy endpoint", got[busy.ID], 30, "backlogs: %v, %v", got, err) &&
		check.Equal(t, "backlog of the idle endpoint", got[idle.ID], 0, "backlogs: %v, %v", got, err) {
		check.Equal(t, "number of backlogs", len(got), 2, "backlogs: %v, %v", got, err)
	}
}

func make30(kind webhook.Type) []webhook.Type {
	out := make([]webhook.Type, 30)
	for i := range out {
		out[i] = kind
	}
	return out
}

func TestChangesToAnEndpointAreNotified(t *testing.T) {
	t.Parallel()
	k := newService(t)
	org := newOrganization(t, k.DB, "one")
	e := add(t, k, org, "https://a.example.org/")
	ctx, cancel := context.WithCancel(t.Context())
	notes, done := make(chan wake.Notification, 100), make(chan struct{})
	go func() {
		defer close(done)
		k.DB.Wakes.Subscribe(ctx, func(n wake.Notification) { notes <- n }, webhook.EndpointChannel)
	}()
	defer func() { cancel(); <-done }()
	await := func(what string) {
		t.Helper()
		for n := range notes {
			if n.Payload == strconv.FormatInt(int64(e.ID), 10) || strings.HasPrefix(what, "listening") && n.Reset {
				return
			}
		}
	}
	await("listening")
	for what, change := range map[string]func() error{
		"suspended": func() error { _, err := k.SwitchOff(ctx, audit.Platform, org, e.ID, "why", now); return err },
		"rotated":   func() error { _, _, err := k.Rotate(ctx, audit.Platform, org, e.ID, "", 0, now); return err },
		"rezoned": func() error {
			zone := "Asia/Kolkata"
			_, err := k.Change(ctx, audit.Platform, org, e.ID, webhook.Settings{TimeZone: &zone}, now)
			return err
		},
	} {
		if err := change(); err != nil {
			t.Fatal(what, err)
		}
		await(what)
	}
}
