package webhook_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/dispatch"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/lead"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/seal/sealtest"
)

// now is past the default clock of PostgreSQL's own columns by nothing: the rules take it
// as an argument.
var now = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

func newService(t *testing.T) webhook.Service {
	t.Helper()
	box := sealtest.New(t)
	policy := egress.New(egress.Config{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true})
	return webhook.Service{DB: pgtest.New(t), Box: box, Policy: policy}
}

func newOrganization(t *testing.T, db *pg.DB, slug string) id.Organization {
	t.Helper()
	return flowtest.On(t, db).Organization(slug).ID
}

func add(t *testing.T, k webhook.Service, org id.Organization, url string, events ...webhook.Type) webhook.Endpoint {
	t.Helper()
	e, secret, err := k.Add(t.Context(), audit.Platform, org, webhook.Settings{URL: &url, Events: &events}, now)
	if err != nil {
		t.Fatal(err)
	}
	if len(secret) != len(webhook.SecretPrefix)+44 {
		t.Fatalf("secret of %d characters", len(secret))
	}
	return e
}

// record commits events, each about another person.
func record(t *testing.T, db *pg.DB, org id.Organization, types ...webhook.Type) {
	t.Helper()
	err := db.InTx(t.Context(), func(tx *pg.Tx) error {
		for i, kind := range types {
			if err := webhook.Record(t.Context(), tx, org, now, webhook.Event{Type: kind, User: id.User(i + 1), Data: map[string]int{"user_id": 1}}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func counts(t *testing.T, db *pg.DB, endpoint id.Endpoint) map[string]int {
	t.Helper()
	rows, err := db.Query(t.Context(), `SELECT status, count(*) FROM webhook_states WHERE endpoint_id = $1 GROUP BY status`, endpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	got := map[string]int{}
	for rows.Next() {
		var status string
		var n int
		if err := rows.Scan(&status, &n); err != nil {
			t.Fatal(err)
		}
		got[status] = n
	}
	return got
}

func settle(t *testing.T, db *pg.DB, outcomes ...webhook.Outcome) {
	t.Helper()
	if err := db.InTx(t.Context(), func(tx *pg.Tx) error { return webhook.Settle(t.Context(), tx, outcomes) }); err != nil {
		t.Fatal(err)
	}
}

// all are leases of every shard, which no process else asks for.
func all() map[int]lead.Lease {
	shards := map[int]lead.Lease{}
	for shard := range dispatch.Shards {
		shards[shard] = lead.Lease{}
	}
	return shards
}

func lease(t *testing.T, db *pg.DB, at time.Time) []dispatch.Lease {
	t.Helper()
	leases, _, err := dispatch.LeaseDue(t.Context(), db, at, 20*time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	return leases
}

// outcomes attempts everything that the leases hold, with one verdict.
func outcomes(t *testing.T, db *pg.DB, leases []dispatch.Lease, verdict webhook.Verdict, at time.Time) []webhook.Outcome {
	t.Helper()
	var out []webhook.Outcome
	for _, l := range leases {
		held, err := dispatch.Load(t.Context(), db, l.Deliver)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range held[0].Dues {
			out = append(out, webhook.Outcome{Delivery: d.Delivery, Endpoint: l.Endpoint, Organization: l.Organization, Lease: d.Lease, Run: d.Run, Number: d.Number,
				Tries: d.Tries, StartedAt: at, Duration: time.Millisecond, Verdict: verdict, Cause: "http_500", Status: 500})
		}
	}
	return out
}

// Each organization's events have ascending sequences in the order in which they are given, whoever
// else records at the same time.
// Reference: webhooks#order.
func TestEventsHaveASequence(t *testing.T) {
	t.Parallel()
	k := newService(t)
	orgs := []id.Organization{newOrganization(t, k.DB, "one"), newOrganization(t, k.DB, "other")}
	for _, org := range orgs {
		add(t, k, org, "https://a.example.org/all")
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 5 {
				record(t, k.DB, orgs[i%2], webhook.StudentJoined, webhook.EnrollmentCreated, webhook.ResultFinal)
			}
		})
	}
	wg.Wait()
	for _, org := range orgs {
		var events, different, ordered int
		err := k.DB.QueryRow(t.Context(), `
			SELECT count(*), count(DISTINCT sequence),
				count(*) FILTER (WHERE type = 'student.joined' AND second = 'enrollment.created' AND third = 'result.final')
			FROM (SELECT type, sequence, lead(type) OVER w AS second, lead(type, 2) OVER w AS third
				FROM webhook_events WHERE organization_id = $1 WINDOW w AS (PARTITION BY xmin::text ORDER BY sequence)) AS v`,
			org).Scan(&events, &different, &ordered)
		check.NoError(check.Now(t), err, "%v", err)
		check.Equal(t, "events", events, 60, "of organization %d", org)
		check.Equal(t, "different sequences", different, 60, "of organization %d", org)
		check.Equal(t, "transactions in their order", ordered, 20, "of organization %d", org)
	}
}

func TestRecordReachesTheURLsThatSelectedTheEvent(t *testing.T) {
	t.Parallel()
	k := newService(t)
	org, other := newOrganization(t, k.DB, "one"), newOrganization(t, k.DB, "other")
	all := add(t, k, org, "https://a.example.org/all")
	some := add(t, k, org, "https://a.example.org/some", webhook.ResultFinal)
	foreign := add(t, k, other, "https://a.example.org/all")
	record(t, k.DB, org, webhook.StudentJoined, webhook.ResultFinal)
	if got := counts(t, k.DB, all.ID); got["waiting"] != 2 {
		t.Errorf("the URL with all events has %v", got)
	}
	if got := counts(t, k.DB, some.ID); got["waiting"] != 1 {
		t.Errorf("the URL with one event has %v", got)
	}
	if got := counts(t, k.DB, foreign.ID); len(got) != 0 {
		t.Errorf("another organization's URL has %v", got)
	}
}

// Reference: webhooks#webhook-urls, limits#webhook-limits.
func TestTheEleventhURLIsRefusedUnderConcurrency(t *testing.T) {
	t.Parallel()
	k := newService(t)
	org := newOrganization(t, k.DB, "one")
	var wg sync.WaitGroup
	var mu sync.Mutex
	made, refused := 0, 0
	for i := range 20 {
		wg.Go(func() {
			url := fmt.Sprintf("https://hooks.example.org/%d", i)
			_, _, err := k.Add(context.WithoutCancel(t.Context()), audit.Platform, org, webhook.Settings{URL: &url}, now)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				made++
			case fault.Has(err, "url_limit"):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	check.Equal(check.Now(t), "made", made, webhook.MaxEndpoints, "%d made, %d refused", made, refused)
	check.Equal(check.Now(t), "refused", refused, 10, "%d made, %d refused", made, refused)
	urls, err := k.List(t.Context(), org)
	check.NoError(check.Now(t), err, "%d URLs, %v", len(urls), err)
	check.Equal(check.Now(t), "number of URLs", len(urls), webhook.MaxEndpoints, "%d URLs, %v", len(urls), err)
	if err := k.Remove(t.Context(), audit.Platform, org, urls[3].ID, now); err != nil {
		t.Fatal(err)
	}
	add(t, k, org, "https://hooks.example.org/again") // its place is free again
}

// Reference: webhooks#webhook-urls.
func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	k := newService(t)
	org := newOrganization(t, k.DB, "one")
	text := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		settings webhook.Settings
		code     string
	}{
		"no url":          {webhook.Settings{}, "missing"},
		"private address": {webhook.Settings{URL: text("https://10.0.0.1/")}, "address_not_public"},
		"unknown event":   {webhook.Settings{URL: text("https://hooks.example.org/"), Events: &[]webhook.Type{"student.born"}}, "unknown_event"},
		"ping":            {webhook.Settings{URL: text("https://hooks.example.org/"), Events: &[]webhook.Type{webhook.Ping}}, "unknown_event"},
		"unknown zone":    {webhook.Settings{URL: text("https://hooks.example.org/"), TimeZone: text("Mars/Olympus")}, "unknown_time_zone"},
	} {
		if _, _, err := k.Add(t.Context(), audit.Platform, org, c.settings, now); !fault.Has(err, c.code) {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	e := add(t, k, org, "https://hooks.example.org/")
	url := e.URL
	if _, _, err := k.Add(t.Context(), audit.Platform, org, webhook.Settings{URL: &url}, now); !fault.Has(err, "url_exists") {
		t.Errorf("the same URL twice: %v", err)
	}
	other := newOrganization(t, k.DB, "other")
	if _, err := k.Find(t.Context(), other, e.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another organization finds it: %v", err)
	}
	if err := k.Remove(t.Context(), audit.Platform, other, e.ID, now); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another organization removes it: %v", err)
	}
	if _, err := k.Change(t.Context(), audit.Platform, other, e.ID, webhook.Settings{TimeZone: text("Asia/Kolkata")}, now); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another organization changes it: %v", err)
	}
	changed, err := k.Change(t.Context(), audit.Platform, org, e.ID, webhook.Settings{TimeZone: text("Asia/Kolkata")}, now)
	if check.NoError(t, err, "changed = %+v, %v", changed, err) &&
		check.Equal(t, "changed.TimeZone", changed.TimeZone, "Asia/Kolkata", "changed = %+v, %v", changed, err) {
		check.Equal(t, "changed.URL", changed.URL, e.URL, "changed = %+v, %v", changed, err)
	}
}

// Reference: webhooks#delivery-and-retries.
func TestAttemptsFollowTheScheduleUntilTheyAreExhausted(t *testing.T) {
	t.Parallel()
	k := newService(t)
	org := newOrganization(t, k.DB, "one")
	e := add(t, k, org, "https://hooks.example.org/")
	record(t, k.DB, org, webhook.StudentJoined)
	at := now
	for try := 1; try <= webhook.MaxTries; try++ {
		leases := lease(t, k.DB, at)
		if len(leases) != 1 {
			t.Fatalf("try %d: %d leases at %v", try, len(leases), at)
		}
		if again := lease(t, k.DB, at); len(again) != 0 {
			t.Fatalf("try %d: leased twice", try)
		}
		failed := outcomes(t, k.DB, leases, webhook.Retry, at)
		settle(t, k.DB, failed...)
		settle(t, k.DB, failed...) // the same outcome again changes nothing
		pause, ok := webhook.Pause(try)
		if !ok {
			break
		}
		if early := lease(t, k.DB, at.Add(pause)); len(early) != 0 {
			t.Fatalf("try %d: leased before its pause was over", try)
		}
		at = at.Add(pause + time.Second)
	}
	if got := counts(t, k.DB, e.ID); got["exhausted"] != 1 {
		t.Fatalf("in the end: %v", got)
	}
	found, err := k.Find(t.Context(), org, e.ID)
	check.NoError(check.Now(t), err, "%d failures are counted, %v", found.ConsecutiveFailures, err)
	check.Equal(check.Now(t), "found.ConsecutiveFailures", found.ConsecutiveFailures, webhook.MaxTries, "%d failures are counted, %v", found.ConsecutiveFailures, err)
}

func TestTheFiftiethFailureInARowSwitchesOffOnce(t *testing.T) {
	t.Parallel()
	k := newService(t)
	org := newOrganization(t, k.DB, "one")
	e := add(t, k, org, "https://hooks.example.org/")
	for range 60 {
		record(t, k.DB, org, webhook.StudentJoined)
	}
	at := now
	for made := 0; made < webhook.SwitchOffAfter; {
		at = at.Add(2 * time.Second)
		failed := outcomes(t, k.DB, lease(t, k.DB, at), webhook.Declined, at)
		if len(failed) == 0 {
			t.Fatalf("nothing to attempt after %d failures", made)
		}
		made += len(failed)
		var wg sync.WaitGroup
		for range 4 { // the same task, brought several times at once
			wg.Go(func() { settle(t, k.DB, append([]webhook.Outcome(nil), failed...)...) })
		}
		wg.Wait()
		found, err := k.Find(t.Context(), org, e.ID)
		check.NoError(check.Now(t), err, "after %d failures: %+v, %v", made, found, err)
		check.Equal(check.Now(t), "found.ConsecutiveFailures", found.ConsecutiveFailures, made, "after %d failures: %+v, %v", made, found, err)
		check.Equal(check.Now(t), "found.SwitchedOn", found.SwitchedOn, (made < webhook.SwitchOffAfter), "after %d failures: %+v, %v", made, found, err)
	}
	if leases := lease(t, k.DB, at.Add(time.Hour)); len(leases) != 0 {
		t.Fatal("a switched-off URL is attempted")
	}
	found, err := k.Find(t.Context(), org, e.ID)
	check.NoError(check.Now(t), err, "no reason is kept: %+v, %v", found, err)
	check.True(check.Now(t), "there is a reason of switching off", found.SwitchedOffReason != "", "no reason is kept: %+v, %v", found, err)
	check.True(check.Now(t), "there is a time of switching off", found.SwitchedOffAt != nil, "no reason is kept: %+v, %v", found, err)
	if err := webhook.Skip(t.Context(), k.DB, e.ID, at); err != nil {
		t.Fatal(err)
	}
	record(t, k.DB, org, webhook.StudentJoined)
	if got := counts(t, k.DB, e.ID); check.Equal(check.Now(t), "declined", got["declined"], 50, "in the end: %v", got) &&
		check.Equal(check.Now(t), "skipped", got["skipped"], 11, "in the end: %v", got) {
		check.Equal(check.Now(t), "number of entries", len(got), 2, "in the end: %v", got)
	}
}

func TestAnAttemptThatTwoTasksMadeCountsOnceInOneGroup(t *testing.T) {
	t.Parallel()
	k := newService(t)
	org := newOrganization(t, k.DB, "one")
	e := add(t, k, org, "https://a.example.org/")
	record(t, k.DB, org, webhook.StudentJoined, webhook.StudentLeft)
	made := outcomes(t, k.DB, lease(t, k.DB, now), webhook.Retry, now)
	settle(t, k.DB, append(made, made...)...)
	var failures, attempts, tries int
	if err := k.DB.QueryRow(t.Context(), `SELECT consecutive_failures, (SELECT count(*) FROM webhook_journal), (SELECT sum(tries) FROM webhook_queue)
		FROM webhook_health WHERE endpoint_id = $1`, e.ID).Scan(&failures, &attempts, &tries); err != nil {
		t.Fatal(err)
	}
	if check.Equal(t, "failures", failures, 2, "%d failures, %d attempts, %d tries; want 2 of each", failures, attempts, tries) &&
		check.Equal(t, "attempts", attempts, 2, "%d failures, %d attempts, %d tries; want 2 of each", failures, attempts, tries) {
		check.Equal(t, "tries", tries, 2, "%d failures, %d attempts, %d tries; want 2 of each", failures, attempts, tries)
	}
}

// Reference: webhooks#switching-off.
func TestADeadURLIsProbedOneAtATime(t *testing.T) {
	t.Parallel()
	k := newService(t)
	org := newOrganization(t, k.DB, "one")
	add(t, k, org, "https://hooks.example.org/")
	for range 30 {
		record(t, k.DB, org, webhook.StudentJoined)
	}
	first := lease(t, k.DB, now)
	settle(t, k.DB, outcomes(t, k.DB, first, webhook.Declined, now)...) // 8 at once: the allowance of a new URL
	if early := lease(t, k.DB, now.Add(500*time.Millisecond)); len(early) != 0 {
		t.Fatal("probed again within a second")
	}
	probe := lease(t, k.DB, now.Add(1100*time.Millisecond))
	check.Equal(check.Now(t), "number of leases", len(probe), 1, "probe = %+v, want one delivery", probe)
	check.Equal(check.Now(t), "number of first lease's deliveries", len(probe[0].Deliveries), 1, "probe = %+v, want one delivery", probe)
	if more := lease(t, k.DB, now.Add(10*time.Second)); len(more) != 0 {
		t.Fatal("a second probe while one is under way")
	}
}

func TestALeaseThatRanOutIsReleasedAndCanBeSettledLate(t *testing.T) {
	t.Parallel()
	k := newService(t)
	org := newOrganization(t, k.DB, "one")
	e := add(t, k, org, "https://hooks.example.org/")
	record(t, k.DB, org, webhook.StudentJoined)
	lost := lease(t, k.DB, now)
	late := outcomes(t, k.DB, lost, webhook.Delivered, now)
	p := dispatch.NewPicker(k.DB, 20*time.Second)
	p.Lead(all())
	if got, _, err := p.Expired(t.Context(), time.Time{}, now.Add(19*time.Second), 10); check.NoError(check.Now(t), err, "expired too early: %v, %v", got, err) {
		check.Equal(check.Now(t), "number of entries", len(got), 0, "expired too early: %v, %v", got, err)
	}
	gone, _, err := p.Expired(t.Context(), time.Time{}, now.Add(21*time.Second), 10)
	check.NoError(check.Now(t), err, "expired = %v, %v", gone, err)
	check.Equal(check.Now(t), "number of expired leases", len(gone), 1, "expired = %v, %v", gone, err)
	check.Equal(check.Now(t), "the first expired lease", gone[0].Lease, lost[0].Lease, "expired = %v, %v", gone, err)
	if n, err := dispatch.Release(t.Context(), k.DB, gone...); check.NoError(check.Now(t), err, "released %d, %v", n, err) {
		check.Equal(check.Now(t), "n", n, 1, "released %d, %v", n, err)
	}
	if held, err := dispatch.Load(t.Context(), k.DB, lost[0].Deliver); check.NoError(check.Now(t), err, "the lost lease still loads %+v, %v", held, err) {
		check.Equal(check.Now(t), "number of deliveries", len(held[0].Dues), 0, "the lost lease still loads %+v, %v", held, err)
	}
	settle(t, k.DB, late...)
	if got := counts(t, k.DB, e.ID); got["delivered"] != 1 {
		t.Fatalf("the late outcome is lost: %v", got)
	}
}

func TestARemovedURLEndsItsDeliveriesQuietly(t *testing.T) {
	t.Parallel()
	k := newService(t)
	org := newOrganization(t, k.DB, "one")
	e := add(t, k, org, "https://hooks.example.org/")
	for range 10 {
		record(t, k.DB, org, webhook.StudentJoined)
	}
	underWay := outcomes(t, k.DB, lease(t, k.DB, now), webhook.Retry, now)
	if err := k.Remove(t.Context(), audit.Platform, org, e.ID, now); err != nil {
		t.Fatal(err)
	}
	settle(t, k.DB, underWay...)
	if err := webhook.Cancel(t.Context(), k.DB, e.ID, now); err != nil {
		t.Fatal(err)
	}
	if got := counts(t, k.DB, e.ID); got["cancelled"] != 10 {
		t.Fatalf("in the end: %v", got)
	}
}

func TestTurnsAreTakenBetweenURLs(t *testing.T) {
	t.Parallel()
	k := newService(t)
	big, small := newOrganization(t, k.DB, "big"), newOrganization(t, k.DB, "small")
	add(t, k, big, "https://hooks.example.org/")
	quiet := add(t, k, small, "https://hooks.example.org/")
	for range 500 {
		record(t, k.DB, big, webhook.StudentJoined)
	}
	record(t, k.DB, small, webhook.StudentJoined)
	for _, l := range lease(t, k.DB, now) {
		if l.Endpoint == quiet.ID {
			return
		}
	}
	t.Fatal("the first call serves the big backlog alone")
}

// A receiver that takes many requests at a time and then fails all of them, in groups as a sender records
// them, stays on; its fiftieth counted failure is a probe.
// Reference: webhooks#switching-off.
func TestABurstDoesNotSwitchAURLOff(t *testing.T) {
	t.Parallel()
	k := newService(t)
	org := newOrganization(t, k.DB, "one")
	e := add(t, k, org, "https://hooks.example.org/")
	if _, err := k.DB.Exec(t.Context(), `UPDATE webhook_health SET allowance = $1`, webhook.MaxAllowance); err != nil {
		t.Fatal(err)
	}
	types := make([]webhook.Type, 300)
	for i := range types {
		types[i] = webhook.StudentJoined
	}
	record(t, k.DB, org, types...)
	burst := outcomes(t, k.DB, lease(t, k.DB, now), webhook.Retry, now)
	check.Equal(check.Now(t), "in flight", len(burst), webhook.MaxAllowance, "a receiver that was well")
	state := func() webhook.Endpoint {
		t.Helper()
		found, err := k.Find(t.Context(), org, e.ID)
		check.NoError(check.Now(t), err, "%+v", found)
		return found
	}
	settle(t, k.DB, burst[:1]...)
	extra := outcomes(t, k.DB, lease(t, k.DB, now), webhook.Retry, now) // its allowance is halved, and more than used
	check.Equal(t, "handed out beside what is in flight", len(extra), 0, "after the first failure")
	settle(t, k.DB, burst[1:100]...)
	settle(t, k.DB, burst[100:]...)
	check.Equal(t, "failures", state().ConsecutiveFailures, webhook.MaxEarly, "after the burst: %+v", state())
	at := now
	for state().SwitchedOn {
		at = at.Add(2 * time.Second)
		probe := outcomes(t, k.DB, lease(t, k.DB, at), webhook.Declined, at)
		check.Equal(check.Now(t), "probes", len(probe), 1, "at %v", at)
		settle(t, k.DB, probe...)
	}
	check.Equal(t, "failures", state().ConsecutiveFailures, webhook.SwitchOffAfter, "in the end: %+v", state())
	check.Equal(t, "seconds", at.Sub(now), 2*(webhook.SwitchOffAfter-webhook.MaxEarly)*time.Second, "until it is off")
}

// Whatever fails after its URL was switched off is skipped like the others, and not kept for ever.
func TestWhatIsUnderWayWhenAURLIsSwitchedOffIsSkipped(t *testing.T) {
	t.Parallel()
	k := newService(t)
	org := newOrganization(t, k.DB, "one")
	e := add(t, k, org, "https://hooks.example.org/")
	record(t, k.DB, org, webhook.StudentJoined, webhook.StudentJoined, webhook.StudentJoined, webhook.StudentJoined)
	leases := lease(t, k.DB, now)
	check.Equal(check.Now(t), "leases", len(leases), 2, "%+v", leases)
	underWay := outcomes(t, k.DB, leases, webhook.Retry, now)
	underWay[0].Lease = [16]byte{} // the other attempt of its lease is still under way
	settle(t, k.DB, underWay[0])
	_, err := k.SwitchOff(t.Context(), audit.Platform, org, e.ID, "maintenance", now)
	check.NoError(check.Now(t), err, "%v", err)
	check.NoError(check.Now(t), webhook.Skip(t.Context(), k.DB, e.ID, now), "skipping")
	check.Equal(t, "deliveries", fmt.Sprint(counts(t, k.DB, e.ID)), "map[in_flight:3 skipped:1]", "the attempt that has failed before")
	settle(t, k.DB, underWay[2:]...)
	check.Equal(t, "deliveries", fmt.Sprint(counts(t, k.DB, e.ID)), "map[in_flight:1 skipped:3]", "the attempts that fail afterwards")
	n, err := dispatch.Release(t.Context(), k.DB, leases[0])
	check.NoError(check.Now(t), err, "%d, %v", n, err)
	check.NoError(check.Now(t), webhook.EndGivenBack(t.Context(), k.DB, e.ID, now), "ending")
	check.Equal(t, "deliveries", fmt.Sprint(counts(t, k.DB, e.ID)), "map[skipped:4]", "what was not attempted")
}

// A sender that stands still while it records keeps another one from recording for moments only.
func TestASenderThatStandsStillLetsOthersRecord(t *testing.T) {
	t.Parallel()
	k := newService(t)
	org := newOrganization(t, k.DB, "one")
	e := add(t, k, org, "https://hooks.example.org/")
	record(t, k.DB, org, webhook.StudentJoined, webhook.StudentJoined)
	made := outcomes(t, k.DB, lease(t, k.DB, now), webhook.Delivered, now)
	err := k.DB.InTx(t.Context(), func(tx *pg.Tx) error {
		if err := webhook.Settle(t.Context(), tx, made[:1]); err != nil {
			return err
		}
		settle(t, k.DB, made[1:]...) // waits until PostgreSQL has ended this transaction
		return nil
	})
	check.True(t, "it is not committed", err != nil, "")
	check.Equal(t, "deliveries", fmt.Sprint(counts(t, k.DB, e.ID)), "map[delivered:1 in_flight:1]", "")
	settle(t, k.DB, made[:1]...)
	check.Equal(t, "deliveries", fmt.Sprint(counts(t, k.DB, e.ID)), "map[delivered:2]", "after another try")
}

// Small leases of several URLs go together into one task, large ones do not.
func TestSmallLeasesShareAnID(t *testing.T) {
	t.Parallel()
	k := newService(t)
	org := newOrganization(t, k.DB, "one")
	for i := range 3 {
		add(t, k, org, fmt.Sprintf("https://hooks-%d.example.org/", i))
	}
	shape := func() string {
		t.Helper()
		leases := lease(t, k.DB, now)
		of := map[string][]int{}
		for _, l := range leases {
			of[l.Lease] = append(of[l.Lease], len(l.Deliveries))
		}
		var sizes []string
		for _, s := range of {
			sizes = append(sizes, fmt.Sprint(s))
		}
		slices.Sort(sizes)
		settle(t, k.DB, outcomes(t, k.DB, leases, webhook.Delivered, now)...)
		return strings.Join(sizes, " ")
	}
	record(t, k.DB, org, webhook.StudentJoined)
	check.Equal(t, "leases", shape(), "[1 1 1]", "one event")
	record(t, k.DB, org, webhook.StudentJoined, webhook.StudentJoined)
	check.Equal(t, "leases", shape(), "[1 1 1] [1 1 1]", "two events")
	_, err := k.DB.Exec(t.Context(), `UPDATE webhook_health SET allowance = 256`)
	check.NoError(check.Now(t), err, "%v", err)
	record(t, k.DB, org, slices.Repeat([]webhook.Type{webhook.StudentJoined}, 40)...)
	check.Equal(t, "leases", shape(), "[20] [20] [20] [20] [20] [20]", "forty events")
	var left int
	err = k.DB.QueryRow(t.Context(), `SELECT count(*) FROM webhook_leases`).Scan(&left)
	check.NoError(check.Now(t), err, "%v", err)
	check.Equal(t, "leases that are left", left, 0, "all have ended")
}
