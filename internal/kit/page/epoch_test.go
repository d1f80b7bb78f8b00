package page_test

import (
	"context"
	"sync"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/page"
)

// takeOver has the database be one that another server took over, which is on a timeline of its own.
func (l list) takeOver(t *testing.T, timeline string) {
	t.Helper()
	l.exec(t, `CREATE OR REPLACE FUNCTION current_timeline() RETURNS text LANGUAGE sql AS $$ SELECT '`+timeline+`' $$`)
}

// lose is what an earlier state does not have: the events behind a position, and the epochs.
func (l list) lose(t *testing.T, org id.Organization, kept int64) {
	t.Helper()
	l.exec(t, `DELETE FROM webhook_events WHERE organization_id = $1 AND sequence > $2`, org, kept)
	l.exec(t, `DELETE FROM list_epochs WHERE organization_id = $1 AND begins > 0 AND kept >= $2`, org, kept)
	l.exec(t, `SELECT setval('positions_' || $1::bigint, $2::bigint)`, org, kept)
}

// event records an event, whose sequence is the next position.
func (l list) event(t *testing.T, org id.Organization) (position int64) {
	t.Helper()
	err := l.QueryRow(t.Context(), `
		INSERT INTO webhook_events (id, organization_id, type, created_at, data, sequence)
		SELECT gen_random_uuid(), $1, 'ping', now(), '{}', next_position($1) RETURNING sequence`, org).Scan(&position)
	check.NoError(check.Now(t), err, "%v", err)
	return position
}

func (l list) lost(t *testing.T, org id.Organization, position int64) (kept int64, lost bool) {
	t.Helper()
	loss, lost, err := page.Lost(t.Context(), l.DB, org, page.Positions, position)
	check.NoError(check.Now(t), err, "%v", err)
	return loss.Kept, lost
}

// Whatever was read before, new positions are behind it, and who has read what is lost learns of it.
// Reference: conventions#cursors.
func TestAnEarlierStateGivesNoPositionAgain(t *testing.T) {
	t.Parallel()
	l := newList(t, 2)
	var read []int64
	for range 10 {
		read = append(read, l.event(t, 1))
	}
	for _, position := range read {
		_, lost := l.lost(t, 1, position)
		check.False(t, "something is lost", lost, "up to %d", position)
	}
	l.lose(t, 1, read[6])
	l.takeOver(t, "00000002")
	first := l.event(t, 1)
	check.True(t, "the next position is behind all others", first > read[9], "%d", first)
	check.Equal(t, "position", l.event(t, 1), first+1, "after the first one")
	for i, position := range read {
		kept, lost := l.lost(t, 1, position)
		check.Equal(t, "something is lost", lost, i > 6, "up to the %d-th", i+1)
		if lost {
			check.Equal(t, "what is kept", kept, read[6], "of %v", read)
		}
	}
	for _, position := range []int64{0, first, first + 1} {
		_, lost := l.lost(t, 1, position)
		check.False(t, "something is lost", lost, "up to %d", position)
	}
	// The state of before the first takeover comes back, on a timeline whose number was used before.
	// By then the clock is beyond what was given.
	l.exec(t, `SELECT pg_sleep(greatest(0, $1::bigint + 1 - beyond_positions()) / 1000.0)`, first+1)
	l.lose(t, 1, read[3])
	l.takeOver(t, "00000003")
	second := l.event(t, 1)
	check.True(t, "the next position is behind all others", second > first+1, "%d after %d", second, first+1)
	for _, position := range []int64{read[4], read[9], first + 1} {
		kept, lost := l.lost(t, 1, position)
		check.True(t, "something is lost", lost, "up to %d", position)
		check.Equal(t, "what is kept", kept, read[3], "of %v", read)
	}
	_, lost := l.lost(t, 2, 5)
	check.False(t, "the other organization lost something", lost, "it was not there")
}

// More positions were given since a takeover than the clock knows of, and the standby that takes over next lacks the last of
// them.
func TestAnEpochBeginsBehindABurst(t *testing.T) {
	t.Parallel()
	l := newList(t, 1)
	l.event(t, 1)
	l.takeOver(t, "00000002")
	began := l.event(t, 1)
	l.exec(t, `SELECT setval('positions_1', $1::bigint)`, began+5_000_000)
	kept := l.event(t, 1)
	l.exec(t, `SELECT setval('positions_1', $1::bigint)`, kept+1_000_000)
	read := l.event(t, 1)
	l.lose(t, 1, kept)
	l.takeOver(t, "00000003")
	next := l.event(t, 1)
	check.True(t, "the next position is behind all others", next > read, "%d after %d", next, read)
	at, lost := l.lost(t, 1, read)
	check.True(t, "something is lost", lost, "up to %d", read)
	check.Equal(t, "what is kept", at, kept, "of before")
}

// A transaction that is taken back has begun no epoch, and those that come first at once begin one.
func TestAnEpochBeginsOnce(t *testing.T) {
	t.Parallel()
	l := newList(t, 1)
	last := l.event(t, 1)
	l.takeOver(t, "00000002")
	tx, drawn := l.begin(t, 1)
	check.NoError(check.Now(t), tx.Rollback(t.Context()), "taking back")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var position int64
			err := l.QueryRow(context.WithoutCancel(t.Context()), insertRow, 1).Scan(&position)
			check.NoError(t, err, "%v", err)
			check.True(t, "the position is behind all others", position > drawn, "%d after %d", position, drawn)
		})
	}
	wg.Wait()
	var epochs int
	var kept int64
	err := l.QueryRow(t.Context(), `SELECT count(*), max(kept) FROM list_epochs WHERE list = 'positions' AND begins > 0`).Scan(&epochs, &kept)
	check.NoError(t, err, "%v", err)
	check.Equal(t, "epochs", epochs, 1, "of eight first transactions")
	check.Equal(t, "what is kept", kept, last, "of before")
}

// Counters go on behind a gap as well, in the statement that moves them first.
func TestCountersBeginAnEpoch(t *testing.T) {
	t.Parallel()
	l := newList(t, 1)
	draw := func(n int64) (last int64) {
		t.Helper()
		err := l.QueryRow(t.Context(), `
			INSERT INTO result_positions AS p (organization_id, last) VALUES (1, $1)
			ON CONFLICT (organization_id) DO UPDATE SET last = p.last + excluded.last RETURNING last`, n).Scan(&last)
		check.NoError(check.Now(t), err, "%v", err)
		return last
	}
	check.Equal(t, "position", draw(5), 5, "before")
	l.takeOver(t, "00000002")
	first := draw(3)
	var kept, begins int64
	err := l.QueryRow(t.Context(), `SELECT kept, begins FROM list_epochs WHERE list = 'results' AND begins > 0`).Scan(&kept, &begins)
	check.NoError(check.Now(t), err, "%v", err)
	check.Equal(t, "what is kept", kept, 5, "of before")
	check.Equal(t, "last position", first, begins+3, "after")
	check.Equal(t, "last position", draw(2), first+2, "after it")
}

// After a restore that PostgreSQL's timeline does not show, the command has numbers go on behind a gap.
func TestAfterRestore(t *testing.T) {
	t.Parallel()
	l := newList(t, 3)
	read := l.event(t, 2)
	var account, next int64
	const insertAccount = `INSERT INTO organizations (slug, name, language_tests_enabled, default_access_months, grace_period_days,
		starter_tests_per_course, visible_tests_limit, send_welcome_email_default, set_password_link_valid_days, created_at, updated_at)
		VALUES ($1, 'O', true, 3, 7, 3, 5, true, 7, now(), now()) RETURNING id`
	check.NoError(check.Now(t), l.QueryRow(t.Context(), insertAccount, "before").Scan(&account), "adding")
	for range 2 { // it can be repeated
		organizations, ids, err := page.AfterRestore(t.Context(), l.DB)
		check.NoError(check.Now(t), err, "%v", err)
		check.Equal(t, "organizations", organizations, 4, "all")
		check.True(t, "sequences of ids are moved", ids > 0, "%d", ids)
	}
	check.True(t, "the next position is behind all that may be lost", l.event(t, 2) > read+1_000_000, "it is not")
	check.NoError(check.Now(t), l.QueryRow(t.Context(), insertAccount, "after").Scan(&next), "adding")
	check.Equal(t, "the next id", next, account+2_000_001, "after two gaps")
	kept, lost := l.lost(t, 2, read+1)
	check.True(t, "what was read behind the backup is lost", lost, "%d", kept)
	check.Equal(t, "what is kept", kept, read, "of before")
}
