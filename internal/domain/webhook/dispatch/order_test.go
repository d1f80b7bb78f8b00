package dispatch

import (
	"slices"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// line is a URL of an organization's own, and a Picker that leads all shards.
type line struct {
	*flowtest.Fixture
	t      *testing.T
	org    id.Organization
	picker *Picker
	now    time.Time
}

func newLine(t *testing.T) *line {
	t.Helper()
	l := &line{Fixture: flowtest.New(t), t: t, now: time.Now()}
	one := l.Organization("one")
	one.Endpoint()
	l.Exec(`INSERT INTO webhook_health (endpoint_id, allowance) SELECT id, 256 FROM webhook_endpoints`)
	l.org = one.ID
	l.picker = l.leader()
	return l
}

func (l *line) leader() *Picker {
	p := NewPicker(l.Database, 20*time.Second)
	for shard := range Shards {
		p.shards[shard] = nil
	}
	return p
}

// record commits n events about the student.
func (l *line) record(student id.User, n int) {
	l.t.Helper()
	l.InTx(func(tx *pg.Tx) error {
		events := slices.Repeat([]webhook.Event{{Type: webhook.EnrollmentUpdated, User: student, Data: struct{}{}}}, n)
		return webhook.Record(l.t.Context(), tx, l.org, l.now, events...)
	})
}

// pass leases, and lists for each lease whose deliveries it holds.
func (l *line) pass(p *Picker) (leases []Lease, students [][]id.User) {
	l.t.Helper()
	leases, _, err := p.Pass(l.t.Context(), l.now, []id.Organization{l.org})
	check.NoError(check.Now(l.t), err, "%v", err)
	for _, lease := range leases {
		whose, err := pg.Column[id.User](l.t.Context(), l.Database,
			`SELECT coalesce(user_id, 0) FROM webhook_queue WHERE id = ANY ($1::uuid[]) ORDER BY id`, lease.Deliveries)
		check.NoError(check.Now(l.t), err, "%v", err)
		students = append(students, whose)
	}
	return leases, students
}

// fail records that the first attempts of a lease have failed, and has the URL be well again.
func (l *line) fail(lease Lease) {
	l.t.Helper()
	held, err := Load(l.t.Context(), l.Database, lease.Deliver)
	check.NoError(check.Now(l.t), err, "%v", err)
	var outcomes []webhook.Outcome
	for _, d := range held[0].Dues {
		outcomes = append(outcomes, webhook.Outcome{Delivery: d.Delivery, Endpoint: lease.Endpoint, Organization: l.org, Lease: d.Lease,
			Number: d.Number, StartedAt: l.now, Duration: time.Millisecond, Verdict: webhook.Retry, Cause: "http_503"})
	}
	l.InTx(func(tx *pg.Tx) error { return webhook.Settle(l.t.Context(), tx, outcomes) })
	l.Exec(`UPDATE webhook_health SET consecutive_failures = 0, next_probe_at = NULL, allowance = 256`)
}

// all is every student of the leases, in ascending order.
func all(students [][]id.User) []id.User {
	return slices.Sorted(slices.Values(slices.Concat(students...)))
}

// Reference: webhooks#order.
func TestAStudentsFirstAttemptsAreInOneLease(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	l.Exec(`INSERT INTO webhook_secrets (endpoint_id, version, sealed, created_at) SELECT id, 1, '', now() FROM webhook_endpoints`)
	for range 3 {
		for student := range id.User(4) { // 0 is nobody
			l.record(student, 1)
		}
	}
	leases, students := l.pass(l.picker)
	check.Slices(t, "whose", all(students), []id.User{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3}, "%v", students)
	in := map[id.User]int{}
	for i, whose := range students {
		for _, s := range whose {
			at, known := in[s]
			check.True(t, "the student is in this lease alone", s == 0 || !known || at == i, "student %d: %v", s, students)
			in[s] = i
		}
	}
	check.True(t, "there are several leases", len(leases) > 1, "%v", students)

	// What comes now has to wait for them, also when another process takes over.
	l.record(1, 2)
	l.record(0, 1)
	l.record(4, 1)
	_, students = l.pass(l.picker)
	check.Slices(t, "whose", all(students), []id.User{0, 4}, "%v", students)
	check.True(t, "it looks again soon", l.picker.Next(l.now, time.Hour) <= firstPause, "in %s", l.picker.Next(l.now, time.Hour))
	other := l.leader()
	check.NoError(check.Now(t), other.Scan(t.Context(), l.now), "scan")
	_, students = l.pass(other)
	check.Equal(t, "leases of another leader", len(students), 0, "%v", students)

	// An attempt that failed holds nothing back.
	l.fail(leases[in[1]])
	l.now = l.now.Add(time.Minute - time.Second) // before it is repeated
	for _, p := range []*Picker{l.picker, other} {
		_, students = l.pass(p)
		want := []id.User{1, 1}
		if p == other {
			want = nil
		}
		check.Slices(t, "whose", all(students), want, "%v", students)
	}
}

// What a sender had no time for comes before what was recorded later about the student.
func TestWhatASenderReturnsKeepsItsPlace(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	l.record(1, 2)
	first, _ := l.pass(l.picker)
	check.Equal(check.Now(t), "leases", len(first), 1, "%v", first)
	l.now = l.now.Add(time.Minute)
	l.record(2, 1)
	_, students := l.pass(l.picker)
	check.Slices(t, "whose", all(students), []id.User{2}, "%v", students)
	check.NoError(check.Now(t), Return(t.Context(), l.Database, l.now, first[0]), "returning")
	l.record(1, 1)
	_, students = l.pass(l.picker)
	check.Equal(t, "leases before the relay has looked", len(students), 0, "%v", students)
	over, _, err := l.picker.Expired(t.Context(), l.now.Add(-time.Minute), l.now, 10)
	check.NoError(check.Now(t), err, "%v", err)
	check.Equal(check.Now(t), "leases that are over", len(over), 1, "%v", over)
	check.Equal(t, "which", over[0].Lease, first[0].Lease, "%v", over)
	_, err = Release(t.Context(), l.Database, over...)
	check.NoError(check.Now(t), err, "%v", err)
	l.picker.Returned(over)
	again, _ := l.pass(l.picker)
	check.Equal(check.Now(t), "leases", len(again), 1, "%v", again)
	check.Slices(t, "what comes first", again[0].Deliveries[:2], first[0].Deliveries, "%v", again)
}

// Who has more than a lease holds is in nobody's way.
func TestAStudentWithManyEventsIsInNobodysWay(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	l.record(1, 300)
	l.record(2, 2)
	l.record(0, 1)
	_, students := l.pass(l.picker)
	check.Slices(t, "whose", all(students), slices.Concat([]id.User{0}, slices.Repeat([]id.User{1}, maxLease), []id.User{2, 2}), "%v", students)
	_, students = l.pass(l.picker)
	check.Equal(t, "leases beside", len(students), 0, "%v", students)
}

// sequences are those of the events that a lease holds, in its order.
func (l *line) sequences(lease Lease) []int64 {
	l.t.Helper()
	found, err := pg.Column[int64](l.t.Context(), l.Database, `
		SELECT v.sequence FROM unnest($1::uuid[]) WITH ORDINALITY AS d(id, n)
		JOIN webhook_queue q ON q.id = d.id JOIN webhook_events v ON v.id = q.event_id ORDER BY d.n`, lease.Deliveries)
	check.NoError(check.Now(l.t), err, "%v", err)
	return found
}

// What was committed before comes first, whatever time it has.
func TestTheOrderIsThatOfCommits(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]time.Duration{"a call that took a minute": -time.Minute, "a clock that is a minute ahead": time.Minute} {
		l := newLine(t)
		l.record(2, 1)
		_, students := l.pass(l.picker) // knows where the queue begins from now on
		check.Slices(t, "whose", all(students), []id.User{2}, "%s: %v", name, students)
		now := l.now
		l.now = now.Add(away)
		l.record(1, 2)
		l.now = now
		l.record(1, 1)
		l.record(0, 1)
		leases, students := l.pass(l.picker)
		check.Slices(t, "whose", all(students), []id.User{0, 1, 1, 1}, "%s: %v", name, students)
		for i, whose := range students {
			if whose[0] == 1 {
				s := l.sequences(leases[i])
				check.True(t, "in order", len(s) == 3 && slices.IsSorted(s), "%s: %v", name, s)
			}
		}
		leases, _ = l.pass(l.picker)
		check.Equal(t, "leases besides", len(leases), 0, "%s", name)
	}
}

// What comes before keeps to the allowance too, and to what a lease holds.
func TestWhatComesBeforeKeepsToTheAllowance(t *testing.T) {
	t.Parallel()
	for _, allowance := range []int{1, 2, 256} {
		l := newLine(t)
		l.Exec(`UPDATE webhook_health SET allowance = $1`, allowance)
		l.record(2, 1)
		first, _ := l.pass(l.picker)
		_, err := Release(t.Context(), l.Database, first...)
		check.NoError(check.Now(t), err, "%v", err)
		l.Exec(`DELETE FROM webhook_queue`)
		now := l.now
		l.now = now.Add(-time.Minute)
		l.record(1, 40)
		l.now = now
		l.record(1, 1)
		leases, students := l.pass(l.picker)
		check.Equal(check.Now(t), "leases", len(leases), 1, "allowance %d: %v", allowance, students)
		got, want := l.sequences(leases[0]), min(allowance, maxLease)
		earliest, err := pg.Column[int64](t.Context(), l.Database, `SELECT sequence FROM webhook_queue ORDER BY sequence LIMIT $1`, want)
		check.NoError(check.Now(t), err, "%v", err)
		check.Slices(t, "which", got, earliest, "allowance %d", allowance)
		check.True(t, "it looks again soon", l.picker.Next(l.now, time.Hour) <= firstPause, "in %s", l.picker.Next(l.now, time.Hour))
	}
}

// newBacklog is a line with 2,000 deliveries, and with the statistics of an empty queue.
func newBacklog(t *testing.T) *line {
	t.Helper()
	l := newLine(t)
	l.Exec(`INSERT INTO webhook_secrets (endpoint_id, version, sealed, created_at) SELECT id, 1, '', now() FROM webhook_endpoints`)
	l.Exec(`ANALYZE webhook_queue`)
	for student := range id.User(20) {
		l.record(student+1, 100)
	}
	return l
}

// A lease costs what is in it, whatever else the URL has pending, and also with the statistics of an empty queue.
func TestALeaseReadsOnlyItsOwnRows(t *testing.T) {
	t.Parallel()
	l := newBacklog(t)
	before := pgtest.RowsRead(t, l.Database)
	leases, _, err := l.picker.Pass(t.Context(), l.now, []id.Organization{l.org})
	check.NoError(check.Now(t), err, "%v", err)
	check.True(check.Now(t), "there are leases", len(leases) > 0, "none")
	after := pgtest.RowsRead(t, l.Database)
	rows := after["webhook_queue"] - before["webhook_queue"]
	check.True(t, "rows read", rows <= 4*256, "%d rows of 2,000 were read for an allowance of 256", rows)
	before = after
	held, err := Load(t.Context(), l.Database, leases[0].Deliver)
	check.NoError(check.Now(t), err, "%v", err)
	check.Equal(t, "deliveries", len(held[0].Dues), len(leases[0].Deliveries), "of the lease")
	rows = pgtest.RowsRead(t, l.Database)["webhook_queue"] - before["webhook_queue"]
	check.True(t, "rows read", rows <= 2*len(held[0].Dues), "%d rows of 2,000 were read for %d deliveries", rows, len(held[0].Dues))
}

// So does what a sender looks up: no index is walked from the first delivery of the URL on. By what PostgreSQL knows
// of the queue, that may seem no worse, so no index but one may serve.
func TestASenderWalksAlongNoIndex(t *testing.T) {
	t.Parallel()
	for name, without := range map[string]string{
		"the primary key":       `ALTER TABLE webhook_queue DROP CONSTRAINT webhook_queue_pkey`,
		"the index that serves": `DROP INDEX webhook_queue_lookup`,
	} {
		t.Run("without "+name, func(t *testing.T) {
			t.Parallel()
			walksAlongNoIndex(t, without)
		})
	}
}

func walksAlongNoIndex(t *testing.T, without string) {
	l := newBacklog(t)
	l.Exec(without)
	for _, table := range []string{"webhook_queue", "webhook_leases"} {
		l.Exec(`ALTER TABLE ` + table + ` SET (autovacuum_enabled = false)`) // it reads indexes, too
	}
	others := `INSERT INTO webhook_leases (organization_id, endpoint_id, id, until, in_order, deliveries)
		SELECT 1000000 + n, n, gen_random_uuid(), now(), false, '{}' FROM generate_series(1, 10000) AS n`
	l.Exec(others)
	l.Exec(`DELETE FROM webhook_leases`)
	l.Exec(`VACUUM ANALYZE webhook_leases`) // it knows of none, and takes it for small for good
	leases, _, err := l.picker.Pass(t.Context(), l.now, []id.Organization{l.org})
	check.NoError(check.Now(t), err, "%v", err)
	lease := leases[len(leases)-1]
	l.Exec(others)
	pages := func(what string, do func()) {
		before := pgtest.IndexPagesRead(t, l.Database)
		do()
		after := pgtest.IndexPagesRead(t, l.Database)
		n := after["webhook_queue"] - before["webhook_queue"]
		check.True(t, what, n <= 4*len(lease.Deliveries), "%d pages of indexes were read for %d deliveries", n, len(lease.Deliveries))
		n = after["webhook_leases"] - before["webhook_leases"]
		check.True(t, what, n <= 20, "%d pages of indexes were read for one of 10,000 leases", n)
	}
	pages("renewing a lease", func() {
		n, err := Renew(t.Context(), l.Database, l.now.Add(time.Minute), lease)
		check.NoError(check.Now(t), err, "%v", err)
		check.Equal(t, "renewed", n, 1, "of one lease")
	})
	var held []Held
	pages("reading a lease", func() {
		held, err = Load(t.Context(), l.Database, lease.Deliver)
		check.NoError(check.Now(t), err, "%v", err)
	})
	check.Equal(check.Now(t), "deliveries", len(held[0].Dues), len(lease.Deliveries), "of the lease")
	pages("learning whose attempts are under way", func() {
		found, err := selectStudents(t.Context(), l.Database, []state{{Organization: l.org, Endpoint: lease.Endpoint, Leased: lease.Deliveries}})
		check.NoError(check.Now(t), err, "%v", err)
		check.Equal(t, "students' attempts", len(found), len(lease.Deliveries), "of the lease")
	})
	pages("recording attempts", func() {
		var outcomes []webhook.Outcome
		for _, d := range held[0].Dues {
			outcomes = append(outcomes, webhook.Outcome{Delivery: d.Delivery, Endpoint: lease.Endpoint, Organization: l.org, Lease: d.Lease,
				Number: d.Number, StartedAt: l.now, Duration: time.Millisecond, Verdict: webhook.Delivered})
		}
		l.InTx(func(tx *pg.Tx) error { return webhook.Settle(t.Context(), tx, outcomes) })
	})
	left, err := pg.Column[int](t.Context(), l.Database, `SELECT count(*)::int FROM webhook_queue`)
	check.NoError(check.Now(t), err, "%v", err)
	check.Slices(t, "deliveries that are left", left, []int{2000 - len(lease.Deliveries)}, "%v", left)
}
